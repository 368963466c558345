//! The application against servers that keep what the contract promises.
#![allow(clippy::unwrap_used, reason = "a failure is a failed test")]

#[path = "../examples/event-log/log.rs"]
mod log;

use chronicle_connection_tokio::Client;
use chronicle_reference_server::{Console, Said};
use std::{io, time::Duration};
use tokio::{sync::mpsc, time::timeout};
use typed_calls::{
    connect,
    contract::{
        bcl::Guid,
        example::events::{AppendError, AppendRequest, Event, ReadRequest},
    },
    event_log, observe,
};

#[tokio::test]
async fn unary_calls_and_server_streams_are_typed() {
    let servers = log::start(0).await.unwrap();
    let client = connect(&servers.connection_string()).await.unwrap();
    for number in 0..3 {
        assert_eq!(append(&client, "Placed").await, number);
    }
    let refused = soon(event_log(&client).append(AppendRequest::default())).await;
    let refused = refused.unwrap().into_inner();
    assert_eq!(refused.error(), AppendError::UnknownEventType);

    let read = soon(event_log(&client).read(ReadRequest { from: 1 })).await;
    let mut read = read.unwrap().into_inner();
    let mut events = Vec::new();
    while let Some(event) = soon(read.message()).await.unwrap() {
        events.push(event);
    }
    let last = events.pop().unwrap();
    assert_eq!(
        (last.sequence_number, last.id),
        (2, Some(Guid { lo: 2, hi: 0 }))
    );
    assert_eq!((&*last.event_type, &*last.content), ("Placed", "{}"));
    assert_eq!(events.len(), 1);
    client.close().await;
}

#[tokio::test]
async fn a_duplex_stream_goes_on_across_fail_overs_without_a_gap_or_a_repetition() {
    let mut servers = log::start(0).await.unwrap();
    let client = connect(&servers.connection_string()).await.unwrap();
    let (sender, mut observed) = mpsc::unbounded_channel();
    let observer = tokio::spawn({
        let client = client.clone();
        async move {
            let pass_on = |event: &Event| sender.send(event.clone()).is_ok();
            observe(&client, "test", pass_on).await
        }
    });
    let mut expected = 0..;
    for _ in 0..2 {
        for _ in 0..5 {
            append(&client, "Placed").await;
            let event: Event = soon(observed.recv()).await.unwrap();
            assert_eq!(Some(event.sequence_number), expected.next());
        }
        let before = soon(client.connected()).await.unwrap();
        let down = index_of(&servers, before.server.port);
        say(&mut servers, &format!("kill {down}")).await;
        let after = loop {
            let session = soon(client.connected()).await.unwrap();
            if session.connection_id != before.connection_id {
                break session;
            }
            tokio::task::yield_now().await;
        };
        assert_ne!(after.server, before.server);
        say(&mut servers, &format!("heal {down}")).await;
    }
    drop(observed);
    // The next event finds nobody who wants it.
    append(&client, "Placed").await;
    soon(observer).await.unwrap().unwrap();
    client.close().await;
}

/// The number of the event.
async fn append(client: &Client, event_type: &str) -> u64 {
    let request = AppendRequest {
        event_type: event_type.to_owned(),
        content: "{}".to_owned(),
    };
    let appended = soon(event_log(client).append(request)).await;
    appended.unwrap().into_inner().sequence_number
}

fn index_of(servers: &Console, port: u16) -> usize {
    let (string, port) = (servers.connection_string(), port.to_string());
    let mut servers = string.split(',');
    let has_port = |server: &str| server.split([':', '/']).any(|part| part == port);
    servers.position(has_port).unwrap()
}

async fn say(servers: &mut Console, command: &str) {
    let said = servers.command(command, |_| Err(io::ErrorKind::NotFound.into()));
    assert_eq!(soon(said).await, Said::Done("ok".to_owned()), "{command}");
}

/// What must come has this long on any machine.
async fn soon<T>(what: impl Future<Output = T>) -> T {
    timeout(Duration::from_secs(30), what).await.unwrap()
}
