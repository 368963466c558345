//! What a scenario stands on: real servers, clients on the runtime under test, and patience.

use super::stack::{Stack, StackBuilder, StackClient, StackEvents};
use chronicle_connection_driver::{
    Channel, ConnectError, Notice, Runtime,
    core::{
        AttemptError, Backoff, ConnectionString, DropCause, Endpoint, Event, FatalError, Jitter,
        Selector, Session, Timing,
    },
};
use chronicle_reference_server::{
    Cluster, DnsServer, Faults, Server, ServerOptions, Stats,
    echo::{Payload, echo_client::EchoClient},
    model::ModelConfig,
};
use futures_util::future::{Either, select};
use rand_core::Rng;
use std::{
    future::{Future, poll_fn},
    pin::pin,
    sync::LazyLock,
    time::{Duration, Instant},
};
use tonic::{Code, Streaming};

/// Servers, which run on threads of their own, and the runtime that clients run on.
pub(crate) struct World<R> {
    pub(crate) runtime: R,
    cluster: Cluster,
}

impl<R: Stack> World<R> {
    /// So many servers, which send keep-alives ten times as fast as usual.
    pub(crate) async fn start(servers: usize) -> Self {
        Self::with(vec![quick(); servers]).await
    }

    /// A server for each of these.
    pub(crate) async fn with(options: Vec<ServerOptions>) -> Self {
        let cluster = on_servers(Cluster::start_with(options)).await.unwrap();
        Self {
            runtime: R::here(),
            cluster,
        }
    }

    /// The string that names all servers and accepts their certificates.
    pub(crate) fn string(&self) -> ConnectionString {
        self.string_with("")
    }

    /// The same with further options, each with `&` before it.
    pub(crate) fn string_with(&self, options: &str) -> ConnectionString {
        let string = self.cluster.connection_string();
        format!("{string}{options}").parse().unwrap()
    }

    /// The string that finds the servers through DNS and accepts their certificates.
    pub(crate) fn srv_string(&self) -> ConnectionString {
        self.cluster.srv_connection_string().parse().unwrap()
    }

    /// The name server that the servers are found through.
    pub(crate) fn dns(&self) -> &DnsServer {
        self.cluster.dns()
    }

    /// Makes DNS tell these servers and no others.
    pub(crate) fn list_in_dns(&self, servers: &[usize]) {
        self.cluster.list_in_dns(servers);
    }

    /// A client to be, whose waits are short: between selections, attempts and sessions.
    pub(crate) fn builder(&self) -> R::Builder {
        impatient(R::client(self.string()))
    }

    /// A client with short waits, connected.
    pub(crate) async fn connect(&self) -> R::Client {
        let connecting = self.builder().connect();
        self.soon("a session", connecting).await.unwrap()
    }

    /// How an attempt fails that would be repeated for ever.
    pub(crate) async fn failed_attempt(&self, builder: R::Builder) -> AttemptError {
        let client = builder.start().unwrap();
        let mut events = client.events();
        let failed = async {
            loop {
                match events.next().await {
                    Some(Notice::Event(Event::BackingOff {
                        error: Some(error), ..
                    })) => return error,
                    Some(_) => {}
                    None => panic!("no attempt failed"),
                }
            }
        };
        let error = self.soon("a failed attempt", failed).await;
        client.close().await;
        error
    }

    /// How a connect ends that cannot succeed.
    pub(crate) async fn refused(&self, builder: R::Builder) -> FatalError {
        match self.soon("refusal", builder.connect()).await {
            Err(ConnectError::Failed(error)) => error,
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn servers(&self) -> &[Server] {
        self.cluster.servers()
    }

    pub(crate) fn stats(&self, index: usize) -> Stats {
        self.servers()[index].stats()
    }

    /// The sockets that are open at all servers.
    pub(crate) fn open_sockets(&self) -> u64 {
        self.sum(|stats| stats.open)
    }

    /// The requests on a path that all servers got.
    pub(crate) fn requests(&self, path: &str) -> u64 {
        self.sum(|stats| stats.requests(path))
    }

    pub(crate) fn sum(&self, what: impl Fn(&Stats) -> u64) -> u64 {
        let servers = self.servers().iter();
        servers.map(|server| what(&server.stats())).sum()
    }

    /// Which server a session is with.
    pub(crate) fn server_of(&self, session: &Session) -> usize {
        let mut servers = self.servers().iter();
        servers
            .position(|server| server.port() == session.server.port)
            .unwrap()
    }

    /// Whether a server has a session among its clients.
    pub(crate) fn knows(&self, index: usize, session: &Session) -> bool {
        let id = session.connection_id.to_string();
        self.stats(index).clients.contains(&id)
    }

    pub(crate) fn set(&self, index: usize, change: impl FnOnce(&mut Faults)) {
        self.servers()[index].faults().set(change);
    }

    pub(crate) fn set_all(&self, change: impl Fn(&mut Faults)) {
        for server in self.servers() {
            server.faults().set(&change);
        }
    }

    pub(crate) async fn kill(&mut self, index: usize) {
        on_servers(self.cluster.servers_mut()[index].kill()).await;
    }

    pub(crate) async fn kill_all(&mut self) {
        for server in self.cluster.servers_mut() {
            on_servers(server.kill()).await;
        }
    }

    pub(crate) async fn restart(&mut self, index: usize) {
        let restarted = on_servers(self.cluster.servers_mut()[index].restart()).await;
        restarted.unwrap();
    }

    /// Lets time pass. Only for what must not happen meanwhile.
    pub(crate) async fn pass(&self, time: Duration) {
        self.runtime.pass_until(Instant::now() + time).await;
    }

    /// Waits for what must come, with far more patience than it should need.
    pub(crate) async fn soon<T>(&self, what: &str, future: impl Future<Output = T>) -> T {
        self.within(PATIENCE, future)
            .await
            .unwrap_or_else(|| panic!("no {what} within {PATIENCE:?}"))
    }

    /// What a future gives, if it does within a time; drops it otherwise.
    pub(crate) async fn within<T>(
        &self,
        time: Duration,
        future: impl Future<Output = T>,
    ) -> Option<T> {
        match select(pin!(future), pin!(self.pass(time))).await {
            Either::Left((output, _)) => Some(output),
            Either::Right(((), _)) => None,
        }
    }

    /// Waits until something holds that nothing tells of.
    pub(crate) async fn until(&self, what: &str, mut holds: impl FnMut() -> bool) {
        let wait = async {
            while !holds() {
                self.pass(Duration::from_millis(2)).await;
            }
        };
        self.soon(what, wait).await;
    }

    /// Waits for the first event that `pick` makes something of.
    pub(crate) async fn event<T>(
        &self,
        events: &mut R::Events,
        what: &str,
        pick: impl Fn(&Event) -> Option<T>,
    ) -> T {
        let find = async {
            loop {
                match events.next().await {
                    Some(Notice::Event(event)) => {
                        if let Some(found) = pick(&event) {
                            return found;
                        }
                    }
                    other => panic!("waiting for {what}: {other:?}"),
                }
            }
        };
        self.soon(what, find).await
    }

    /// Waits for the next session.
    pub(crate) async fn connected(&self, events: &mut R::Events) -> Session {
        self.event(events, "session", |event| match event {
            Event::Connected(session) => Some(session.clone()),
            _ => None,
        })
        .await
    }

    /// Waits for the end of a session, and tells its cause.
    pub(crate) async fn disconnected(&self, events: &mut R::Events) -> (Session, DropCause) {
        self.event(events, "end of the session", |event| match event {
            Event::Disconnected { session, cause, .. } => Some((session.clone(), cause.clone())),
            _ => None,
        })
        .await
    }

    /// Waits for the end of a call whose session ended. What was sent before may still be read.
    pub(crate) async fn ends_unavailable(&self, stream: &mut Streaming<Payload>) {
        let end = async {
            loop {
                match stream.message().await {
                    Ok(Some(_)) => {}
                    Ok(None) => return None,
                    Err(status) => return Some(status.code()),
                }
            }
        };
        let end = self.soon("end of the call", end).await;
        assert_eq!(end, Some(Code::Unavailable));
    }

    /// Waits until no server has a socket open.
    pub(crate) async fn all_sockets_closed(&self) {
        // A server that hangs does not look whether the other side is still there.
        self.set_all(|faults| faults.hang_tls = false);
        let what = "end of all sockets";
        self.until(what, || self.open_sockets() == 0).await;
    }
}

/// A strategy of an application: the last server of the list.
#[derive(Debug)]
pub(crate) struct Last;

impl Selector for Last {
    fn select<'a>(&mut self, candidates: &'a [Endpoint], _: &mut dyn Rng) -> &'a Endpoint {
        &candidates[candidates.len() - 1]
    }

    fn clone_box(&self) -> Box<dyn Selector> {
        Box::new(Self)
    }
}

/// The application that every reference server offers.
pub(crate) fn echo<R: Runtime>(channel: Channel<R>) -> EchoClient<Channel<R>> {
    EchoClient::new(channel)
}

/// Shortens the waits that a scenario is not about. A session counts as stable from its
/// second keep-alive on.
pub(crate) fn impatient<B: StackBuilder>(builder: B) -> B {
    builder.timing(impatient_timing()).backoff(Backoff {
        base: Duration::from_millis(20),
        ceiling: Duration::from_millis(200),
        jitter: Jitter::UpperHalf,
    })
}

pub(crate) fn impatient_timing() -> Timing {
    Timing {
        selection_wait: Duration::from_millis(20),
        stable_after: Duration::ZERO,
        ..Timing::default()
    }
}

/// Where requests for counts are counted: a loaded machine would let counts get old and ask again.
pub(crate) fn no_second_count() -> Timing {
    Timing {
        stale_count: Duration::from_secs(60),
        ..impatient_timing()
    }
}

/// A server with keep-alives ten times as fast as usual.
pub(crate) fn quick() -> ServerOptions {
    ServerOptions {
        model: ModelConfig {
            keep_alive_interval: Duration::from_millis(100),
            ..ModelConfig::default()
        },
        ..ServerOptions::default()
    }
}

/// Tells a measured time, and checks it: never early, and late by no more than a loaded machine
/// takes.
pub(crate) fn measured(what: &str, time: Duration, promised: std::ops::RangeInclusive<Duration>) {
    println!("measured: {what}: {:.3} s", time.as_secs_f64());
    assert!(time >= *promised.start(), "{what}: {time:?} is early");
    assert!(
        time <= *promised.end() + SLACK,
        "{what}: {time:?}, promised are {promised:?}"
    );
}

/// Polls what needs the servers' runtime, whichever runtime the caller is on.
async fn on_servers<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    poll_fn(|cx| {
        let _servers = SERVERS.enter();
        future.as_mut().poll(cx)
    })
    .await
}

/// Apart from any runtime under test, so that neither waits for the other's tasks.
static SERVERS: LazyLock<tokio::runtime::Runtime> = LazyLock::new(|| {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap()
});

/// What must come has this long on any machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// How much later than promised things may happen on a loaded machine of two cores.
const SLACK: Duration = Duration::from_secs(2);
