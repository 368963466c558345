//! Machines, server models and a network in virtual time.

mod client;
mod network;
mod perform;
mod queue;
mod serve;
mod server;
mod switches;

pub use client::{Client, ClientId};
pub use network::{Latency, Network};
pub use server::{Arrival, Fault, Reachable, Server, ServerId};

use crate::{Setup, Trace};
use chronicle_connection::{Command, Endpoint, Id};
use chronicle_reference_server::model::ModelConfig;
use network::Transport;
use queue::{Happening, Queue};
use rand_chacha::ChaCha8Rng;
use rand_core::{Rng as _, SeedableRng as _};
use std::{
    collections::BTreeMap,
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
/// together know: a client that its server has forgotten notices within the threshold.
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
    queue: Queue,
    clients: Vec<Client>,
    servers: Vec<Server>,
    /// Transports that a server has accepted, by who dialled and the id it gave them.
    transports: BTreeMap<TransportKey, Transport>,
    trace: Trace,
}

/// Names a transport in the world.
type TransportKey = (ClientId, Id);

impl World {
    /// An empty world. `base` is where its time starts; all that is random comes from the seed.
    pub fn new(base: Instant, seed: u64) -> Self {
        Self {
            base,
            now: base,
            rng: ChaCha8Rng::seed_from_u64(seed),
            network: Network::default(),
            queue: Queue::default(),
            clients: Vec::new(),
            servers: Vec::new(),
            transports: BTreeMap::new(),
            trace: Trace::default(),
        }
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
        self.servers.push(Server::new(id, model, self.now));
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
        let id = ClientId(self.clients.len());
        let seed = self.rng.next_u64();
        self.clients.push(Client::new(id, &setup, seed, self.now));
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
    pub fn command(&mut self, client: ClientId, command: Command) {
        self.deliver(client, command.into());
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
        let all = self.transports.values();
        all.filter(|transport| transport.server == server).count()
    }

    /// All that has happened.
    pub fn trace(&self) -> &Trace {
        &self.trace
    }

    /// Lets time pass.
    pub fn run_for(&mut self, duration: Duration) {
        let until = self.now + duration;
        while let Some(happening) = self.queue.pop_until(until) {
            self.happen(happening);
        }
        self.now = until;
    }

    /// Lets time pass until something holds, for at most so long; tells whether it did.
    pub fn run_until(&mut self, at_most: Duration, holds: impl Fn(&Self) -> bool) -> bool {
        let until = self.now + at_most;
        while !holds(self) {
            let Some(happening) = self.queue.pop_until(until) else {
                self.now = until;
                return false;
            };
            self.happen(happening);
        }
        true
    }

    fn happen(&mut self, (at, happening): (Instant, Happening)) {
        self.now = at;
        match happening {
            Happening::ClientWakes(client) => self.wake(client),
            Happening::ClientResumes(client) => self.resume(client),
            Happening::ServerWakes(server) => self.pump(server),
            Happening::DialArrives { client, id, to } => self.accept(client, id, &to),
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
                    self.deliver(client, chronicle_connection::Input::Reply { id, reply });
                }
            }
        }
    }

    fn server_at(&self, endpoint: &Endpoint) -> Option<ServerId> {
        let mut servers = self.servers.iter();
        let found = servers.position(|server| server.endpoint() == endpoint);
        found.map(ServerId)
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
