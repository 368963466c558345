use crate::{
    Builder, Client, NoRuntime, Notice, Runtime,
    driver::ending,
    socket::Health,
    suspend::SuspendWatch,
    testing::{Order, Server, soon},
    tokio_runtime::Tokio,
};
use chronicle_connection::{
    CallError, CandidateError, Command, Event, Failure, FailureKind, Reply, State, Timing,
};
use futures_util::{
    StreamExt,
    future::{Either, select},
};
use h2::Reason;
use std::{
    future::{Future, pending, poll_fn},
    io,
    net::SocketAddr,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    task::{Context, Waker},
    time::{Duration, Instant},
};
use tokio::sync::watch;

#[test]
fn after_256_inputs_in_a_row_other_tasks_have_a_turn() {
    let connection_string = "chronicle://localhost?skipTlsValidation=true";
    let builder = Builder::<Frozen>::new(connection_string.parse().unwrap());
    let (client, mut driver) = builder.assemble(None).unwrap();
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
async fn requests_leave_in_the_order_in_which_the_machine_asked() {
    let server = Server::new().await;
    // An order left to chance would pass half of the time.
    for _ in 0..10 {
        let _client = start(&server);
        let mut peer = soon(server.accept()).await.unwrap();
        let (first, _held) = soon(peer.requests.recv()).await.unwrap();
        let (second, _) = soon(peer.requests.recv()).await.unwrap();
        assert_eq!(first.uri().path(), "/connections/reserve");
        assert!(second.uri().path().ends_with("/CheckCompatibility"));
    }
}

#[tokio::test]
async fn a_request_that_the_machine_gives_up_is_reset_on_the_wire() {
    let server = Server::new().await;
    let _client = start(&server);
    let mut peer = soon(server.accept()).await.unwrap();
    let (_, mut respond) = soon(peer.requests.recv()).await.unwrap();
    let reset = soon(poll_fn(|cx| respond.poll_reset(cx))).await;
    assert_eq!(reset.unwrap(), Reason::CANCEL);
}

#[tokio::test]
async fn dropping_the_driver_drops_all_io() {
    let connection_string = "chronicle://localhost?skipTlsValidation=true";
    let builder = Builder::<Tokio>::new(connection_string.parse().unwrap());
    let (client, driver) = builder.assemble(None).unwrap();
    let server = Server::new().await;
    let live = server.live();
    let pool = Arc::clone(&live.pool);
    driver.live.send_replace(Some(live));
    let (lease, peer) = soon(async { tokio::join!(pool.lease(), server.accept()) }).await;
    drop(driver);
    soon(peer.unwrap().gone).await.unwrap();
    assert_eq!(client.state(), State::Stopped);
    drop(lease);
}

/// A connection that lives for months loses many.
#[tokio::test]
async fn a_transport_that_the_server_ended_is_forgotten() {
    let server = Server::new().await;
    let port = server.address().port();
    let connection_string = format!("chronicle://localhost:{port}?skipTlsValidation=true");
    let builder = Builder::<Tokio>::new(connection_string.parse().unwrap());
    let (client, mut driver) = builder.assemble(None).unwrap();
    let mut events = client.events();
    let lost = async {
        let peer = server.accept().await.unwrap();
        peer.orders.send(Order::Drop).ok().unwrap();
        let is_over = |notice| matches!(notice, Some(Notice::Event(Event::BackingOff { .. })));
        while !is_over(events.next().await) {}
    };
    let either = async {
        select(pin!(driver.run()), pin!(lost))
            .await
            .factor_first()
            .0
    };
    soon(either).await;
    assert_eq!(client.state(), State::BackingOff);
    assert!(driver.transports.open.is_empty());
}

#[tokio::test]
async fn a_suspend_is_told_to_the_machine() {
    let server = Server::new().await;
    let string = format!("chronicle://{}?skipTlsValidation=true", server.address());
    let builder = Builder::<Tokio>::new(string.parse().unwrap());
    let (client, mut driver) = builder.assemble(None).unwrap();
    let ahead = Arc::new(AtomicU64::new(0));
    let read = Arc::clone(&ahead);
    driver.suspend = SuspendWatch::reading(move || Duration::from_secs(read.load(Relaxed)));
    let mut events = client.events();
    let suspended = async {
        let mut peer = server.accept().await.unwrap();
        let _held = (peer.requests.recv().await, peer.requests.recv().await);
        ahead.store(60, Relaxed);
        // Whatever wakes the task up.
        client.commands.send(Command::Tick).unwrap();
        loop {
            if let Some(Notice::Event(Event::CandidateFailed { cause, .. })) = events.next().await {
                return cause;
            }
        }
    };
    let either = async {
        match select(pin!(driver.run()), pin!(suspended)).await {
            Either::Left(_) => panic!("the driver ended"),
            Either::Right((cause, _)) => cause,
        }
    };
    let cause = soon(either).await;
    let timed_out = |cause: &CandidateError| match cause {
        CandidateError::Call {
            error: CallError::Failure(failure),
            ..
        } => failure.kind == FailureKind::TimedOut,
        _ => false,
    };
    assert!(
        timed_out(&cause),
        "the time for the check was over: {cause}"
    );
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

/// A client that soon asks for a reservation and soon gives it up.
fn start(server: &Server) -> Client<Tokio> {
    let connection_string = format!("chronicle://{}?skipTlsValidation=true", server.address());
    let timing = Timing {
        selection_wait: Duration::ZERO,
        reserve: Duration::from_millis(50),
        ..Timing::default()
    };
    let builder = Builder::new(connection_string.parse().unwrap());
    builder.timing(timing).start().unwrap()
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

    async fn udp(&self, _from: SocketAddr, _to: SocketAddr) -> io::Result<Self::Udp> {
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
