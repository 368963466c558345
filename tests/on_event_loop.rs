//! The scenarios of connections on the event loop of `examples/event_loop`: no async runtime, and no
//! part of the driver.
//!
//! Every client has a thread for its loop. What scenarios need on top of it is here: a view of where
//! the machine stands, and any number of subscribers.

#[path = "examples/event_loop/client/mod.rs"]
mod client;

use crate::scenarios::{
    stack::{Stack, StackBuilder, StackClient, StackEvents},
    world::World,
};
use chronicle_connection_driver::{
    ConnectError, Notice,
    core::{
        Backoff, CandidateError, Command, Config, ConfigBuilder, Connection, ConnectionString,
        Contract, DropCause, Endpoint, Event, FatalError, Session, State, Strategy, Timing,
    },
};
use chronicle_reference_server::{Answer, paths};
use client::{EventLoop, Handle, tls};
use rand_chacha::ChaCha12Rng;
use rand_core::SeedableRng as _;
use std::{
    fmt,
    sync::{Arc, Mutex},
    thread,
    time::{Duration, Instant},
};
use tokio::sync::{
    broadcast::{self, error::RecvError},
    watch,
};

mod connections {
    connection_scenarios!(tests! "event loop", crate::on_event_loop::Loop, async_std::task::block_on:);
}

/// The clock that keep-alives are measured by stands still while a machine is suspended. Whoever
/// notices tells; nothing else would end a session that the server has long forgotten.
#[test]
fn a_machine_that_slept_through_its_session_makes_a_new_one() {
    async_std::task::block_on(async {
        let world = World::<Loop>::start(1).await;
        let client = world.connect().await;
        let mut events = client.events();
        let first = world.connected(&mut events).await;
        client
            .handle
            .command(Command::Slept(Duration::from_secs(2)));
        world.pass(Duration::from_millis(300)).await;
        assert_eq!(client.session().as_ref(), Some(&first), "a nap is nothing");

        client
            .handle
            .command(Command::Slept(Duration::from_secs(60)));
        let (ended, cause) = world.disconnected(&mut events).await;
        assert_eq!(ended, first);
        let (DropCause::Silence { silent: time }
        | DropCause::Unacknowledged {
            unacknowledged: time,
        }) = cause
        else {
            panic!("{cause}");
        };
        assert!(time >= Duration::from_secs(60), "{time:?}");
        let second = world.connected(&mut events).await;
        assert_eq!(second.generation, 2);
        world
            .until("the newer session alone", || {
                world.stats(0).clients.len() == 1
            })
            .await;
        assert!(world.knows(0, &second));
    });
}

#[test]
fn a_machine_that_slept_while_it_connected_begins_anew() {
    async_std::task::block_on(async {
        let world = World::<Loop>::start(1).await;
        world.set(0, |faults| {
            faults.on(paths::CHECK_COMPATIBILITY).answer = Some(Answer::Hang);
        });
        let client = world.builder().start().unwrap();
        let mut events = client.events();
        let asked = || world.requests(paths::CHECK_COMPATIBILITY) >= 1;
        world.until("check", asked).await;
        client
            .handle
            .command(Command::Slept(Duration::from_secs(60)));
        let cause = world
            .event(&mut events, "failure", |event| match event {
                Event::CandidateFailed { cause, .. } => Some(cause.clone()),
                _ => None,
            })
            .await;
        assert!(matches!(cause, CandidateError::Call { .. }), "{cause}");
        world.set(0, |faults| {
            faults.on(paths::CHECK_COMPATIBILITY).answer = None;
        });
        world.connected(&mut events).await;
    });
}

/// Names the stack. Scenarios themselves run on async-std, which is no part of the client.
#[derive(Debug, Clone)]
pub(crate) struct Loop;

impl Stack for Loop {
    type Builder = Builder;
    type Client = Client;
    type Events = Events;

    fn here() -> Self {
        Self
    }

    fn client(string: ConnectionString) -> Builder {
        Builder {
            config: Config::builder(string),
            contract: Contract::default(),
            connect_timeout: None,
            extra_roots: String::new(),
        }
    }

    async fn pass_until(&self, at: Instant) {
        async_std::task::sleep(at.saturating_duration_since(Instant::now())).await;
    }
}

pub(crate) struct Builder {
    config: ConfigBuilder,
    contract: Contract,
    connect_timeout: Option<Option<Duration>>,
    extra_roots: String,
}

impl Builder {
    fn with(mut self, change: impl FnOnce(ConfigBuilder) -> ConfigBuilder) -> Self {
        self.config = change(self.config);
        self
    }

    fn spawn(self, connect_timeout: Option<Duration>) -> Result<Client, ConnectError> {
        let timeout = self.connect_timeout.unwrap_or(connect_timeout);
        // Versions are those of this workspace, as the driver's are.
        let info = chronicle_connection_driver::core::ClientInfo {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            ..Default::default()
        };
        let config = self.config.client(info).connect_timeout(timeout).build()?;
        let tls = tls::config(config.skip_tls_validation(), self.extra_roots.as_bytes()).unwrap();
        let mut seed = [0; 32];
        getrandom::fill(&mut seed).unwrap();
        let rng = ChaCha12Rng::from_seed(seed);
        let connection = Connection::new(config, self.contract, rng, Instant::now());
        let (event_loop, handle) = EventLoop::new(connection, tls).unwrap();
        let (events, first) = broadcast::channel(256);
        let (view, seen) = watch::channel(View {
            state: State::Idle,
            was_connected: false,
            failed: None,
        });
        let client = Client {
            handle: Arc::new(handle),
            view: seen,
            events: events.downgrade(),
            first: Arc::new(Mutex::new(Some(Events(first)))),
        };
        thread::spawn(move || {
            let told = event_loop.run(|news, state| {
                view.send_modify(|view| {
                    for event in news {
                        view.take_in(&event);
                        // Nobody may be listening.
                        let _ = events.send(event);
                    }
                    view.state = state;
                });
            });
            told.unwrap();
        });
        Ok(client)
    }
}

impl StackBuilder for Builder {
    type Client = Client;

    fn strategy(self, strategy: Strategy) -> Self {
        self.with(|config| config.strategy(strategy))
    }

    fn skip_tls_validation(self, skip: bool) -> Self {
        self.with(|config| config.skip_tls_validation(skip))
    }

    fn extra_roots(mut self, pem: &str) -> Self {
        self.extra_roots = pem.to_owned();
        self
    }

    fn contract(mut self, contract: Contract) -> Self {
        self.contract = contract;
        self
    }

    fn connect_timeout(mut self, timeout: Option<Duration>) -> Self {
        self.connect_timeout = Some(timeout);
        self
    }

    fn timing(self, timing: Timing) -> Self {
        self.with(|config| config.timing(timing))
    }

    fn backoff(self, backoff: Backoff) -> Self {
        self.with(|config| config.backoff(backoff))
    }

    fn start(self) -> Result<Client, ConnectError> {
        self.spawn(None)
    }

    async fn connect(self) -> Result<Client, ConnectError> {
        let client = self.spawn(Some(Config::DEFAULT_CONNECT_TIMEOUT))?;
        client.wait(|view| view.was_connected.then_some(())).await?;
        Ok(client)
    }

    async fn resolve(
        self,
        mut on_event: impl FnMut(&Event),
    ) -> Result<Vec<Endpoint>, ConnectError> {
        let client = self.start()?;
        let mut events = client.events();
        loop {
            let Some(Notice::Event(event)) = events.next().await else {
                return Err(ConnectError::Closed);
            };
            on_event(&event);
            match event {
                Event::Connecting { candidates, .. } => return Ok(candidates),
                Event::BackingOff { .. } => return Ok(vec![]),
                _ => {}
            }
        }
    }
}

/// Where the machine of a client stands.
struct View {
    state: State,
    was_connected: bool,
    failed: Option<FatalError>,
}

impl View {
    fn take_in(&mut self, event: &Event) {
        match event {
            Event::Connected(_) => self.was_connected = true,
            Event::Failed(error) => self.failed = Some(error.clone()),
            _ => {}
        }
    }

    fn session(&self) -> Option<&Session> {
        match &self.state {
            State::Connected(session) => Some(session),
            _ => None,
        }
    }
}

#[derive(Clone)]
pub(crate) struct Client {
    handle: Arc<Handle>,
    view: watch::Receiver<View>,
    events: broadcast::WeakSender<Event>,
    first: Arc<Mutex<Option<Events>>>,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Client").field(&self.state()).finish()
    }
}

impl Client {
    /// Waits for what `find` finds, or the reason why it never will.
    async fn wait<T>(&self, find: impl Fn(&View) -> Option<T>) -> Result<T, ConnectError> {
        let mut view = self.view.clone();
        let decided = |view: &View| find(view).is_some() || view.state == State::Stopped;
        let view = view.wait_for(decided).await;
        let view = view.map_err(|_| ConnectError::Closed)?;
        find(&view).ok_or_else(|| {
            let failed = view.failed.clone();
            failed.map_or(ConnectError::Closed, ConnectError::Failed)
        })
    }
}

impl StackClient for Client {
    type Events = Events;

    fn session(&self) -> Option<Session> {
        self.view.borrow().session().cloned()
    }

    fn state(&self) -> State {
        self.view.borrow().state.clone()
    }

    fn events(&self) -> Events {
        let first = self.first.lock().unwrap().take();
        first.unwrap_or_else(|| {
            Events(match self.events.upgrade() {
                Some(events) => events.subscribe(),
                None => broadcast::channel(1).1,
            })
        })
    }

    async fn connected(&self) -> Result<Session, ConnectError> {
        self.wait(|view| view.session().cloned()).await
    }

    async fn close(&self) {
        self.handle.command(Command::Close);
        let mut view = self.view.clone();
        while view.changed().await.is_ok() {}
    }
}

pub(crate) struct Events(broadcast::Receiver<Event>);

impl StackEvents for Events {
    async fn next(&mut self) -> Option<Notice> {
        match self.0.recv().await {
            Ok(event) => Some(Notice::Event(event)),
            Err(RecvError::Lagged(lost)) => Some(Notice::Lagged(lost)),
            Err(RecvError::Closed) => None,
        }
    }
}
