//! Futures that are dropped half-way.

use crate::support::{abandon, builder, connected, echo, server, soon};
use chronicle_connection_tokio::State;
use chronicle_reference_server::{
    Cluster,
    echo::{Payload, StreamRequest},
};
use std::time::Duration;

#[tokio::test]
async fn a_connect_that_is_dropped_at_any_time_leaves_no_socket_open() {
    let cluster = Cluster::start(1).await.unwrap();
    let string = cluster.connection_string();
    for time in (0..).map(|half_ms| Duration::from_micros(500 * half_ms)) {
        let connect = tokio::time::timeout(time, builder(&string).connect());
        let connected = connect.await;
        let is_connected = connected.is_ok();
        drop(connected.map(Result::unwrap));
        soon(server(&cluster).wait_for(|stats| stats.open == 0)).await;
        if is_connected {
            return;
        }
    }
}

#[tokio::test]
async fn calls_that_are_dropped_anywhere_give_their_stream_back() {
    let (cluster, client) = connected().await;
    let request = StreamRequest {
        count: 3,
        size: 1000,
        hold: true,
    };
    let mut completed = 0;
    for polls in growing().chain(0..300) {
        let mut stub = echo(client.channel());
        let call = async {
            let mut stream = stub.stream(request).await.unwrap().into_inner();
            for _ in 0..3 {
                stream.message().await.unwrap();
            }
        };
        completed += usize::from(abandon(call, polls).await);
    }
    assert!(completed > 0);
    echo(client.channel())
        .unary(Payload::default())
        .await
        .unwrap();
    assert_eq!(
        server(&cluster).stats().accepted,
        2,
        "streams leaked into a third transport"
    );
}

#[tokio::test]
async fn waiting_and_closing_may_be_given_up() {
    let (cluster, client) = connected().await;
    for polls in 0..5 {
        abandon(client.connected(), polls).await;
        abandon(client.events().next(), polls).await;
    }
    assert!(matches!(client.state(), State::Connected(_)));
    // The command is given with the first poll; nobody has to wait for what comes of it.
    abandon(client.close(), 1).await;
    soon(server(&cluster).wait_for(|stats| stats.open == 0)).await;
}

fn growing() -> impl Iterator<Item = usize> {
    (0..20).chain((0..16).map(|power| 20 << power))
}
