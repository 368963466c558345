//! Appends an event, reads all there are, and observes new ones across fail-overs, until Ctrl-C.
//!
//! `typed-calls CONNECTION_STRING`
#![allow(clippy::disallowed_methods, reason = "a program reads its arguments")]

use std::{env, error::Error, process::ExitCode};
use typed_calls::{
    connect,
    contract::example::events::{AppendRequest, ReadRequest},
    event_log, observe,
};

#[tokio::main]
async fn main() -> ExitCode {
    match run().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("typed-calls: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run() -> Result<(), Box<dyn Error + Send + Sync>> {
    let string = env::args().nth(1).ok_or("give a connection string")?;
    let client = connect(&string).await?;
    let appended = event_log(&client)
        .append(AppendRequest {
            event_type: "OrderPlaced".to_owned(),
            content: r#"{"total":42}"#.to_owned(),
        })
        .await?
        .into_inner();
    println!("appended {}", appended.sequence_number);

    let mut events = event_log(&client)
        .read(ReadRequest { from: 0 })
        .await?
        .into_inner();
    while let Some(event) = events.message().await? {
        println!(
            "read {} {} {}",
            event.sequence_number, event.event_type, event.content
        );
    }

    observe(&client, "example", |event| {
        println!("observed {} {}", event.sequence_number, event.event_type);
        true
    })
    .await
}
