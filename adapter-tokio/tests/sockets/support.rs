use chronicle_connection_tokio::{
    Backoff, Builder, Channel, Client, ConnectionString, Jitter, Timing,
};
use chronicle_reference_server::{Cluster, Server, echo::echo_client::EchoClient};
use std::{
    future::{Future, poll_fn},
    pin::pin,
    time::Duration,
};
use tokio::task::yield_now;

/// The output of a future that has no reason to take long.
pub(crate) async fn soon<T>(future: impl Future<Output = T>) -> T {
    let limit = Duration::from_secs(30);
    tokio::time::timeout(limit, future)
        .await
        .expect("takes far too long")
}

/// Waits until a condition holds that nothing announces.
pub(crate) async fn until(condition: impl Fn() -> bool) {
    let wait = async {
        while !condition() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    soon(wait).await;
}

/// Polls a future this often, whether it asks to be or not, and drops it. True if it completed.
pub(crate) async fn abandon<T>(future: impl Future<Output = T>, polls: usize) -> bool {
    let mut future = pin!(future);
    for _ in 0..polls {
        let polled = poll_fn(|cx| std::task::Poll::Ready(future.as_mut().poll(cx))).await;
        if polled.is_ready() {
            return true;
        }
        yield_now().await;
    }
    false
}

/// A builder for quick tests: no random wait, and attempts in quick succession.
pub(crate) fn builder(connection_string: &str) -> Builder {
    let connection_string: ConnectionString = connection_string.parse().unwrap();
    Client::builder(connection_string)
        .timing(Timing {
            selection_wait: Duration::ZERO,
            ..Timing::default()
        })
        .backoff(Backoff {
            base: Duration::from_millis(10),
            ceiling: Duration::from_millis(10),
            jitter: Jitter::None,
        })
}

/// One server, and a client that is connected to it.
pub(crate) async fn connected() -> (Cluster, Client) {
    let cluster = Cluster::start(1).await.unwrap();
    let client = soon(builder(&cluster.connection_string()).connect())
        .await
        .unwrap();
    (cluster, client)
}

pub(crate) fn server(cluster: &Cluster) -> &Server {
    &cluster.servers()[0]
}

pub(crate) fn echo(channel: Channel) -> EchoClient<Channel> {
    EchoClient::new(channel)
}
