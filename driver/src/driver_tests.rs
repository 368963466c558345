use crate::{
    Builder, NoRuntime, Runtime,
    driver::ending,
    pool::Live,
    socket::Health,
    testing::{Server, soon},
    tokio_runtime::Tokio,
};
use chronicle_connection::{Command, Failure, FailureKind, Reply, State};
use futures_util::StreamExt;
use http::HeaderMap;
use std::{
    future::{Future, pending},
    io,
    net::SocketAddr,
    pin::pin,
    sync::Arc,
    task::{Context, Waker},
    time::Instant,
};
use tokio::sync::watch;

#[test]
fn after_256_inputs_in_a_row_other_tasks_have_a_turn() {
    let connection_string = "chronicle://localhost?skipTlsValidation=true";
    let builder = Builder::<Frozen>::new(connection_string.parse().unwrap());
    let (client, driver) = builder.assemble(None).unwrap();
    for _ in 0..600 {
        client.commands.send(Command::Tick).unwrap();
    }
    client.commands.send(Command::Close).unwrap();
    let mut task = pin!(driver.run());
    let mut polls = 1;
    while task
        .as_mut()
        .poll(&mut Context::from_waker(Waker::noop()))
        .is_pending()
    {
        polls += 1;
        assert!(polls < 10);
    }
    assert_eq!(polls, 3);
}

#[tokio::test]
async fn dropping_the_driver_drops_all_io() {
    let connection_string = "chronicle://localhost?skipTlsValidation=true";
    let builder = Builder::<Tokio>::new(connection_string.parse().unwrap());
    let (client, driver) = builder.assemble(None).unwrap();
    let server = Server::new().await;
    let pool = server.pool();
    driver.live.send_replace(Some(Live {
        pool: Arc::clone(&pool),
        metadata: HeaderMap::new(),
    }));
    let (lease, peer) = soon(async { tokio::join!(pool.lease(), server.accept()) }).await;
    drop(driver);
    soon(peer.unwrap().gone).await.unwrap();
    assert_eq!(client.state(), State::Stopped);
    drop(lease);
}

#[tokio::test]
async fn goaway_is_told_before_the_end_also_when_both_came_at_once() {
    let (health, receiver) = watch::channel(Health::default());
    let ended = Failure::new(FailureKind::Closed, "closed by the server");
    health.send_modify(|health| {
        health.going_away = Some(7);
        health.ended = Some(ended.clone());
    });
    let replies: Vec<_> = ending(receiver).collect().await;
    assert!(
        matches!(
            replies.as_slice(),
            [Reply::GoingAway { code: 7 }, Reply::Closed(cause)] if *cause == ended
        ),
        "{replies:?}"
    );
}

/// A runtime on which nothing ever happens.
#[derive(Clone)]
struct Frozen;

impl Runtime for Frozen {
    type Tcp = <Tokio as Runtime>::Tcp;
    type Udp = <Tokio as Runtime>::Udp;

    fn current() -> Result<Self, NoRuntime> {
        Ok(Self)
    }

    async fn connect(&self, _to: SocketAddr) -> io::Result<Self::Tcp> {
        pending().await
    }

    async fn udp(&self, _to: SocketAddr) -> io::Result<Self::Udp> {
        pending().await
    }

    async fn send(&self, _socket: &Self::Udp, _datagram: &[u8]) -> io::Result<()> {
        pending().await
    }

    async fn receive(&self, _socket: &Self::Udp, _buffer: &mut [u8]) -> io::Result<usize> {
        pending().await
    }

    async fn lookup(&self, _host: &str, _port: u16) -> io::Result<Vec<SocketAddr>> {
        pending().await
    }

    async fn sleep_until(&self, _at: Instant) {
        pending().await
    }

    fn spawn(&self, _task: impl Future<Output = ()> + Send + 'static) {}
}
