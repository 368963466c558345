//! Machines, server models and a network in virtual time.

mod client;
mod disorder;
mod dns;
mod network;
mod perform;
mod queue;
mod serve;
mod server;
mod switches;

pub use client::{Client, ClientId, SessionChange};
pub use disorder::{Disorder, Told};
pub use dns::{DnsAnswer, DnsFaults, Forgery, NameServerId};
pub use network::{Latency, Network, PartitionId};
pub use server::{Arrival, Fault, Load, Reachable, Server, ServerId};

use crate::{Checks, Setup, Trace, Violation};
use chronicle_connection::{Command, Config, Endpoint, Id, Input};
use chronicle_reference_server::model::ModelConfig;
use queue::{Happening, Queue};
use rand_chacha::ChaCha8Rng;
use rand_core::{Rng as _, SeedableRng as _};
use std::{
    collections::BTreeMap,
    fmt,
    sync::Arc,
    time::{Duration, Instant},
};

/// A world: clients, servers, the network between them, and a clock that jumps.
///
/// 1. Add servers and clients; give commands, such as [`connect`](Self::connect).
/// 2. Let time pass with [`run_for`](Self::run_for) or [`run_until`](Self::run_until), and throw
///    switches in between.
/// 3. Look at [`client`](Self::client), [`server`](Self::server) and [`trace`](Self::trace).
///
/// Each client's machine is checked on every step, and the world checks what only both sides
/// together know: a client that its server has forgotten notices within the threshold, counted from
/// its next step; and what a client finds in DNS is what name servers told, whole and in order.
///
/// ```
/// use chronicle_simulation::{Setup, World};
/// use std::time::{Duration, Instant};
///
/// # #[allow(clippy::disallowed_methods)]
/// # fn main() {
/// let mut world = World::new(Instant::now(), 7);
/// world.add_servers(3);
/// let client = world.add_client(Setup::new("chronicle://s1,s2,s3"));
/// world.connect(client);
/// world.run_for(Duration::from_secs(2));
/// assert!(world.client(client).session().is_some());
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct World {
    base: Instant,
    now: Instant,
    rng: ChaCha8Rng,
    network: Network,
    faults: network::Faults,
    disorder: Disorder,
    /// Some reply may have gone astray.
    was_disorderly: bool,
    late: disorder::Late,
    dns: dns::Dns,
    queue: Queue,
    clients: Vec<Client>,
    servers: Vec<Server>,
    by_endpoint: BTreeMap<Endpoint, ServerId>,
    recording: Recording,
    checks: Checks,
    trace: Trace,
    session_changes: Vec<SessionChange>,
    violation: Option<Violation>,
}

/// Names a transport in the world: by who dialled, and the id it has there.
type TransportKey = (ClientId, Id);

/// A client or a server of a world.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Host {
    /// A client.
    Client(ClientId),
    /// A server.
    Server(ServerId),
    /// A name server.
    NameServer(NameServerId),
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Client(client) => client.fmt(f),
            Self::Server(server) => server.fmt(f),
            Self::NameServer(server) => server.endpoint().fmt(f),
        }
    }
}

/// What a world keeps of what happens; `Default` keeps everything, which costs memory and time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Recording {
    /// The trace.
    pub trace: bool,
    /// Each dial and request, at its server.
    pub arrivals: bool,
    /// Each event, at its client.
    pub events: bool,
}

impl Recording {
    /// Keeps nothing but counts and [`SessionChange`]s.
    pub const NOTHING: Self = Self {
        trace: false,
        arrivals: false,
        events: false,
    };
}

impl Default for Recording {
    fn default() -> Self {
        Self {
            trace: true,
            arrivals: true,
            events: true,
        }
    }
}

impl World {
    /// An empty world. `base` is where its time starts; all that is random comes from the seed.
    pub fn new(base: Instant, seed: u64) -> Self {
        Self {
            base,
            now: base,
            rng: ChaCha8Rng::seed_from_u64(seed),
            network: Network::default(),
            faults: network::Faults::default(),
            disorder: Disorder::default(),
            was_disorderly: false,
            late: disorder::Late::default(),
            dns: dns::Dns::default(),
            queue: Queue::default(),
            clients: Vec::new(),
            servers: Vec::new(),
            by_endpoint: BTreeMap::new(),
            recording: Recording::default(),
            checks: Checks::default(),
            trace: Trace::default(),
            session_changes: Vec::new(),
            violation: None,
        }
    }

    /// Sets what is kept of what happens from here on.
    pub fn set_recording(&mut self, recording: Recording) {
        self.recording = recording;
        self.trace.set_recording(recording.trace);
    }

    /// Sets how thoroughly the machines of clients are checked that are added from here on.
    pub fn set_checks(&mut self, checks: Checks) {
        self.checks = checks;
    }

    /// Sets how the network behaves from here on.
    pub fn set_network(&mut self, network: Network) {
        self.network = network;
    }

    /// Adds a current server with default behaviour: the first is `s1:35000`, the next `s2:35000`.
    pub fn add_server(&mut self) -> ServerId {
        self.add_server_with(ModelConfig::default())
    }

    /// Adds a server that behaves as told.
    pub fn add_server_with(&mut self, model: ModelConfig) -> ServerId {
        let id = ServerId(self.servers.len());
        let server = Server::new(id, model, self.now);
        self.by_endpoint.insert(server.endpoint().clone(), id);
        self.servers.push(server);
        id
    }

    /// Adds servers with default behaviour.
    pub fn add_servers(&mut self, count: usize) -> Vec<ServerId> {
        (0..count).map(|_| self.add_server()).collect()
    }

    /// Adds a client that has not been told to connect yet.
    ///
    /// # Panics
    /// Where the setup is not valid.
    pub fn add_client(&mut self, setup: Setup) -> ClientId {
        self.push_client(&setup, setup.config().into())
    }

    /// Adds clients that share a configuration, and have not been told to connect yet.
    ///
    /// # Panics
    /// Where the setup is not valid.
    pub fn add_clients(&mut self, count: usize, setup: &Setup) -> Vec<ClientId> {
        let config = Arc::new(setup.config());
        (0..count)
            .map(|_| self.push_client(setup, config.clone()))
            .collect()
    }

    fn push_client(&mut self, setup: &Setup, config: Arc<Config>) -> ClientId {
        let id = ClientId(self.clients.len());
        let seed = self.rng.next_u64();
        let client = Client::new(id, setup, config, seed, self.now, self.checks);
        self.clients.push(client);
        id
    }

    /// Tells a client to connect.
    pub fn connect(&mut self, client: ClientId) {
        self.command(client, Command::Connect);
    }

    /// Tells a client to close.
    pub fn close(&mut self, client: ClientId) {
        self.command(client, Command::Close);
    }

    /// Gives a client a command, at this moment.
    ///
    /// # Panics
    /// Where a rule is broken, as [`run_for`](Self::run_for) does.
    pub fn command(&mut self, client: ClientId, command: Command) {
        self.try_command(client, command).ok();
        self.must_hold();
    }

    /// Gives a client a command, at this moment.
    ///
    /// # Errors
    /// Where a rule is broken, now or before.
    pub fn try_command(&mut self, client: ClientId, command: Command) -> Result<(), Violation> {
        self.deliver(client, command.into());
        self.violation.clone().map_or(Ok(()), Err)
    }

    /// Since the start of the world.
    pub fn elapsed(&self) -> Duration {
        self.now - self.base
    }

    /// A client.
    ///
    /// # Panics
    /// Where it belongs to another world.
    pub fn client(&self, id: ClientId) -> &Client {
        &self.clients[id.0]
    }

    /// All clients.
    pub fn clients(&self) -> impl Iterator<Item = &Client> {
        self.clients.iter()
    }

    /// The names of all clients.
    pub fn client_ids(&self) -> impl Iterator<Item = ClientId> + use<> {
        (0..self.clients.len()).map(ClientId)
    }

    /// The names of all servers.
    pub fn server_ids(&self) -> impl Iterator<Item = ServerId> + use<> {
        (0..self.servers.len()).map(ServerId)
    }

    /// A server.
    ///
    /// # Panics
    /// Where it belongs to another world.
    pub fn server(&self, id: ServerId) -> &Server {
        &self.servers[id.0]
    }

    /// What a server would answer if it were asked for its count now.
    pub fn count(&mut self, server: ServerId) -> u64 {
        self.servers[server.0].model.count(self.now)
    }

    /// How many transports a server has accepted and not seen the end of.
    pub fn open_transports(&self, server: ServerId) -> usize {
        self.transports_to(server).len()
    }

    /// Every session that came up or ended, in order.
    pub fn session_changes(&self) -> &[SessionChange] {
        &self.session_changes
    }

    /// The first rule that was broken; nothing happens after it.
    pub fn violation(&self) -> Option<&Violation> {
        self.violation.as_ref()
    }

    /// All that has happened.
    pub fn trace(&self) -> &Trace {
        &self.trace
    }

    /// Lets time pass.
    ///
    /// # Panics
    /// Where a rule is broken, with the end of the trace.
    pub fn run_for(&mut self, duration: Duration) {
        self.try_run_for(duration).ok();
        self.must_hold();
    }

    /// Lets time pass.
    ///
    /// # Errors
    /// Where a rule is broken, now or before.
    pub fn try_run_for(&mut self, duration: Duration) -> Result<(), Violation> {
        self.try_run_until(duration, |_| false)?;
        Ok(())
    }

    /// Lets time pass until something holds, for at most so long; tells whether it did.
    ///
    /// # Panics
    /// Where a rule is broken, with the end of the trace.
    pub fn run_until(&mut self, at_most: Duration, holds: impl Fn(&Self) -> bool) -> bool {
        let held = self.try_run_until(at_most, holds);
        self.must_hold();
        held.unwrap_or(false)
    }

    /// Lets time pass until something holds, for at most so long; tells whether it did.
    ///
    /// # Errors
    /// Where a rule is broken, now or before.
    pub fn try_run_until(
        &mut self,
        at_most: Duration,
        holds: impl Fn(&Self) -> bool,
    ) -> Result<bool, Violation> {
        let until = self.now + at_most;
        loop {
            if let Some(violation) = &self.violation {
                return Err(violation.clone());
            }
            if holds(self) {
                return Ok(true);
            }
            let Some((at, happening)) = self.queue.pop_until(until) else {
                self.now = until;
                return Ok(false);
            };
            self.now = at;
            self.happen(happening);
        }
    }

    fn happen(&mut self, happening: Happening) {
        let happening = match self.kept_by_paused(happening) {
            Some(happening) => happening,
            None => return,
        };
        match happening {
            Happening::ClientWakes(client) => self.wake(client),
            Happening::ClientResumes(client) => self.resume(client),
            Happening::ServerWakes(server) => self.wake_server(server),
            Happening::ServerResumes(server) => self.resume_server(server),
            Happening::DialArrives { client, id, server } => self.accept(client, id, server),
            Happening::RequestArrives(call) => self.arrive(call),
            Happening::ServerAnswers { call, replies } => self.answer(&call, replies),
            Happening::CancelArrives(key, id) => self.cancelled(key, id),
            Happening::CloseArrives(key) => self.closed_by_client(key),
            Happening::ReplyArrives {
                client,
                id,
                reply,
                via,
            } => {
                let is_lost = via.is_some_and(|key| self.is_black_holed(key));
                if !is_lost {
                    self.deliver(client, Input::Reply { id, reply });
                }
            }
        }
    }

    fn server_at(&self, endpoint: &Endpoint) -> Option<ServerId> {
        self.by_endpoint.get(endpoint).copied()
    }

    fn violated(&mut self, violation: Violation) {
        self.violation.get_or_insert(violation);
    }

    /// A rule that only the world can check.
    fn breaks(&mut self, whose: impl fmt::Display, rule: impl Into<String>) {
        let violation = Violation::new(&whose.to_string(), self.elapsed(), rule.into());
        self.violated(violation);
    }

    fn must_hold(&self) {
        if let Some(violation) = &self.violation {
            panic!("{violation}\nthe trace ends with\n{}", self.trace.tail(60));
        }
    }
}

/// Plays a scenario twice with the same seed and compares the traces byte for byte.
///
/// # Panics
/// Where the traces differ: something is random that does not come from the seed.
pub fn replay(base: Instant, seed: u64, scenario: impl Fn(&mut World)) -> World {
    let mut once = World::new(base, seed);
    scenario(&mut once);
    let mut again = World::new(base, seed);
    scenario(&mut again);
    let (once_lines, again_lines) = (once.trace.as_str().lines(), again.trace.as_str().lines());
    let mut lines = once_lines.zip(again_lines);
    if let Some((first, second)) = lines.find(|(first, second)| first != second) {
        panic!("seed {seed} gave two traces: {first:?}, then {second:?}");
    }
    assert_eq!(
        once.trace.as_str().len(),
        again.trace.as_str().len(),
        "seed {seed} gave two traces of different length"
    );
    once
}
