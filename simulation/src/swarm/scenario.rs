//! What a scenario is made of.

use crate::{Disorder, DnsFaults, Fault, Reachable, Told};
use chronicle_connection::{Code, Request};
use chronicle_reference_server::model::{Age, FirstKeepAlive};
use std::{fmt, time::Duration};

/// A life of a cluster, as plain data.
#[derive(Debug, Clone, PartialEq)]
pub struct Scenario {
    /// All that is random in the world comes from it.
    pub seed: u64,
    /// The shortest and the longest trip of a message.
    pub latency: (Duration, Duration),
    /// Whether twins show on every step that extra ticks and late replies change nothing.
    pub has_twins: bool,
    /// The servers, up from the start.
    pub servers: Vec<ServerPlan>,
    /// Whether servers ask who calls, and if so, whether they take each other's tokens.
    pub authentication: Option<bool>,
    /// How long tokens live.
    pub token_life: Duration,
    /// How many name servers there are.
    pub name_servers: usize,
    /// The servers that DNS tells, in the beginning and after all is healed.
    pub listed: Vec<ServerNo>,
    /// The clients.
    pub clients: Vec<ClientPlan>,
    /// What happens, by time.
    pub actions: Vec<(Duration, Action)>,
    /// When all is healed.
    pub length: Duration,
}

/// Counts servers from 0, and is shown as the world shows them: `s1` for the first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ServerNo(pub usize);

/// Counts clients from 0, and is shown as the world shows them: `c1` for the first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ClientNo(pub usize);

impl fmt::Debug for ServerNo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "s{}", self.0 + 1)
    }
}

impl fmt::Debug for ClientNo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "c{}", self.0 + 1)
    }
}

/// A server.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerPlan {
    /// Which methods it knows.
    pub age: Age,
    /// Whether its contract fits those of the clients.
    pub speech: Speech,
    /// When it sends the first keep-alive.
    pub first_keep_alive: FirstKeepAlive,
    /// Between two keep-alives.
    pub interval: Duration,
    /// Between two looks for clients to evict.
    pub evict_check: Duration,
    /// Whether the check asks who calls.
    pub checks_callers: bool,
    /// What is wrong with it for ever.
    pub curse: Option<Wrong>,
}

/// What a server says about contracts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Speech {
    /// They fit.
    Fits,
    /// They do not.
    Differs {
        /// Whether it says so beside a flag that says yes.
        says_yes: bool,
    },
}

/// What is wrong with a server.
#[derive(Debug, Clone, PartialEq)]
pub enum Wrong {
    /// One kind of request.
    Asked(Request, Fault),
    /// Dials do not come about.
    Dialled(Reachable),
    /// Streams are open, and no keep-alive is sent.
    Silent,
}

/// A client.
#[derive(Debug, Clone, PartialEq)]
pub struct ClientPlan {
    /// When it is told to connect; never where `None`.
    pub starts: Option<Duration>,
    /// How it finds servers.
    pub finds: Finds,
    /// How it chooses one.
    pub choice: Choice,
    /// How it proves who it is.
    pub proof: Proof,
    /// Whether it connects without a check.
    pub skips_check: bool,
    /// How long its first connect may take.
    pub connect_timeout: Option<Duration>,
    /// The longest wait between attempts.
    pub ceiling: Duration,
    /// Whether waits between attempts are spread.
    pub has_jitter: bool,
    /// Whether a debugger is attached, so that nobody evicts it.
    pub has_debugger: bool,
}

/// How a client finds servers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Finds {
    /// By a list.
    List(Vec<ServerNo>),
    /// By DNS.
    Name {
        /// The one name server that it asks; those of the platform where `None`.
        asks: Option<usize>,
    },
}

/// How a client chooses a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Choice {
    /// By counts of all.
    LeastConnections,
    /// By counts of so many.
    LeastOf(usize),
    /// In turn.
    RoundRobin,
    /// Any.
    Random,
    /// The first that is offered.
    First,
}

/// How a client proves who it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Proof {
    /// Not at all.
    None,
    /// By the right key.
    Key,
    /// By another key.
    WrongKey,
    /// By the right id and secret.
    Secret,
    /// By another secret.
    WrongSecret,
}

/// Something that happens.
#[derive(Debug, Clone, PartialEq)]
#[allow(
    missing_docs,
    reason = "the switches of the world, which tells what they do"
)]
pub enum Action {
    Crash(ServerNo),
    Start(ServerNo),
    Restart(ServerNo),
    GoAway(ServerNo, u32),
    FinishStreams(ServerNo, Code),
    PauseServer(ServerNo, Duration),
    SlowServer(ServerNo, Duration),
    GoesWrong(ServerNo, Wrong),
    GoesRight(ServerNo),
    ForgetTokens(ServerNo),
    Speak(ServerNo, Speech),
    SlowClient(ClientNo, Duration),
    BlackHole(ClientNo),
    LoseTransport(ClientNo, Told),
    Pause(ClientNo, Duration),
    Suspend(ClientNo, Duration),
    Close(ClientNo),
    Connect(ClientNo),
    Tick(ClientNo),
    RefreshToken(ClientNo, u64),
    Partition(Vec<ServerNo>, Vec<ClientNo>, Ways),
    HealPartitions,
    Dns(usize, DnsFaults),
    Unconfigured(bool),
    List(Vec<ServerNo>),
    Disorder(Disorder),
}

/// Which ways a partition cuts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ways {
    /// Both.
    Both,
    /// From clients to servers.
    Up,
    /// From servers to clients.
    Down,
}

impl Scenario {
    /// The servers that a client may find once all is healed.
    pub fn candidates(&self, client: &ClientPlan) -> Vec<ServerNo> {
        match &client.finds {
            Finds::List(servers) => servers.clone(),
            Finds::Name { .. } => self.listed.clone(),
        }
    }

    fn is_used(&self, server: ServerNo) -> bool {
        let mut clients = self.clients.iter().filter(|one| one.starts.is_some());
        clients.any(|client| self.candidates(client).contains(&server))
    }
}

/// One line for each part that plays a part.
impl fmt::Display for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (shortest, longest) = self.latency;
        writeln!(
            f,
            "seed {}: trips of {shortest:?} to {longest:?}, healed after {:?}",
            self.seed, self.length
        )?;
        match self.authentication {
            None => writeln!(f, "servers ask nobody who calls")?,
            Some(trust) => writeln!(
                f,
                "servers ask who calls, take each other's tokens: {trust}, which live {:?}",
                self.token_life
            )?,
        }
        for (index, server) in self.servers.iter().enumerate() {
            if self.is_used(ServerNo(index)) {
                writeln!(f, "{:?}: {server:?}", ServerNo(index))?;
            }
        }
        if self.name_servers > 0 {
            writeln!(
                f,
                "dns: {} servers tell {:?}",
                self.name_servers, self.listed
            )?;
        }
        for (index, client) in self.clients.iter().enumerate() {
            if client.starts.is_some() {
                writeln!(f, "{:?}: {client:?}", ClientNo(index))?;
            }
        }
        for (at, action) in &self.actions {
            writeln!(f, "{:>9.3} s  {action:?}", at.as_secs_f64())?;
        }
        Ok(())
    }
}
