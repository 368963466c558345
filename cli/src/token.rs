//! `chronicle token`

use crate::{
    credentials,
    problem::{self, Problem, bad_input},
};
use chronicle_connection_tokio::{
    Authentication, Client, Config, ConnectionString, Event, FatalError, Notice, Session,
};
use clap::Args;
use std::{
    io::{self, Write as _},
    process::ExitCode,
    time::Duration,
};

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Where to connect, with client credentials: chronicle://id:secret@host:port/?options.
    connection_string: String,

    /// Print the token itself, too. Whoever sees it can act as this client.
    #[arg(long)]
    reveal: bool,
}

pub(crate) const EXIT_CODES: &str = "\
Exit codes:
  0  there is a token, and the server takes it
  1  there is none, or the server does not take it
  2  bad input: the connection string or an option is wrong";

/// Runs the command to its end.
pub(crate) fn run(arguments: &Arguments) -> ExitCode {
    problem::run(show(arguments))
}

fn parse(text: &str) -> Result<ConnectionString, Problem> {
    let string = ConnectionString::parse(text).map_err(bad_input)?;
    match string.authentication() {
        Authentication::ClientCredentials { .. } => Ok(string),
        Authentication::ApiKey(_) => Err(bad_input(
            "an apiKey is sent as it is; only client credentials get tokens",
        )),
        Authentication::None => Err(bad_input(
            "the connection string has no client credentials; give them as in \
             chronicle://id:secret@host",
        )),
    }
}

async fn show(arguments: &Arguments) -> Result<(), Problem> {
    let string = parse(&arguments.connection_string)?;
    let advice = credentials::advice(&string);
    let client = Client::builder(string)
        .connect_timeout(Some(Config::DEFAULT_CONNECT_TIMEOUT))
        .start()
        .map_err(bad_input)?;
    let connected = connected(&client).await;
    let (session, life) = connected.map_err(|error| credentials::gave_up(&error, &advice))?;
    let mut out = io::stdout().lock();
    writeln!(
        out,
        "{} gave a token, valid for {} s, and takes it",
        session.server,
        life.as_secs_f64().round()
    )?;
    let metadata = client.call_metadata().filter(|_| arguments.reveal);
    let authorization = metadata
        .as_ref()
        .and_then(|all| all.headers.get("authorization")?.to_str().ok());
    if let Some(value) = authorization {
        writeln!(out, "{}", value.trim_start_matches("Bearer "))?;
    }
    drop(out);
    client.close().await;
    Ok(())
}

/// The first session, and how long its token lives.
async fn connected(client: &Client) -> Result<(Session, Duration), FatalError> {
    let mut events = client.events();
    let mut life = Duration::ZERO;
    loop {
        match events.next().await {
            Some(Notice::Event(Event::Token {
                expires_in: Some(left),
                ..
            })) => life = left,
            Some(Notice::Event(Event::Connected(session))) => return Ok((session, life)),
            Some(Notice::Event(Event::Failed(error))) => return Err(error),
            // The subscription ends after the last of these at the earliest.
            Some(Notice::Event(_) | Notice::Lagged(_)) => {}
            None => std::future::pending().await,
        }
    }
}
