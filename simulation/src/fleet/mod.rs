//! Fleets: many clients and servers, something that happens to them, and what the whole of them
//! shows.
//!
//! A [`Fleet`] says how many there are and what happens; [`Fleet::run`] plays it in a
//! [`World`](crate::World) and gives a [`Report`], plain data that [`plot`](crate::plot) draws. A
//! [`Comparison`] plays variants of one fleet with one seed.
//!
//! ```
//! use chronicle_simulation::fleet::{Fleet, FleetError, Scenario};
//! use std::time::Instant;
//!
//! # #[allow(clippy::disallowed_methods)]
//! # fn main() -> Result<(), FleetError> {
//! let fleet = Fleet {
//!     clients: 20,
//!     servers: 3,
//!     ..Fleet::new(Scenario::ColdStart)
//! };
//! let report = fleet.run(Instant::now(), |_| {})?;
//! assert_eq!(report.away, 0, "everybody has a session at the end");
//! # Ok(())
//! # }
//! ```

mod compare;
mod plan;
mod report;
mod run;
mod watch;

pub use compare::{Comparison, Group, Variant};
pub use plan::Mark;
pub use report::{Outage, Report, Sample, Spread, Summary, Times};
pub use run::Progress;

use crate::{Violation, plural};
use chronicle_connection::Strategy;
use std::{fmt, num::NonZeroUsize};

/// A fleet, and what happens to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fleet {
    /// How many clients: 1 to 100,000.
    pub clients: usize,
    /// How many servers: 1 to 1,000. Of more than 64, each client knows 64 that are drawn for it, as
    /// it would from a name server that rotates its answers.
    pub servers: usize,
    /// How clients choose.
    pub balancing: Balancing,
    /// What happens.
    pub scenario: Scenario,
    /// Where all that is random comes from.
    pub seed: u64,
    /// Whether clients wait a random while before a selection, as they do.
    pub has_selection_wait: bool,
    /// Whether the waits between attempts are jittered, as they are.
    pub has_backoff_jitter: bool,
    /// Whether servers count reservations, as they do. Clients reserve all the same.
    pub has_reservations: bool,
}

impl Fleet {
    /// A thousand clients that ask all of ten servers, with seed 1 and nothing switched off.
    pub fn new(scenario: Scenario) -> Self {
        Self {
            clients: 1_000,
            servers: 10,
            balancing: Balancing::LeastConnections { max_probes: None },
            scenario,
            seed: 1,
            has_selection_wait: true,
            has_backoff_jitter: true,
            has_reservations: true,
        }
    }

    /// Checks the numbers.
    ///
    /// # Errors
    /// [`FleetError`] where there are none, or too many.
    pub fn check(&self) -> Result<(), FleetError> {
        let within = |what, number, most| match (1..=most).contains(&number) {
            true => Ok(()),
            false => Err(FleetError::OutOfRange { what, number, most }),
        };
        within("clients", self.clients, MAX_CLIENTS)?;
        within("servers", self.servers, MAX_SERVERS)
    }

    /// How many of the servers each client knows.
    pub fn known_servers(&self) -> usize {
        self.servers.min(MOST_KNOWN)
    }

    /// What is switched off, for texts; empty where nothing is.
    pub fn switched_off(&self) -> Vec<&'static str> {
        let all = [
            (self.has_selection_wait, "no wait before selections"),
            (self.has_backoff_jitter, "no jitter between attempts"),
            (self.has_reservations, "no reservations"),
        ];
        let off = all.into_iter().filter(|(is_on, _)| !is_on);
        off.map(|(_, text)| text).collect()
    }
}

/// `1000 clients on 10 servers, least-connections asking all, seed 1`
impl fmt::Display for Fleet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (clients, servers) = (self.clients, self.servers);
        write!(
            f,
            "{clients} {} on {servers} {}, ",
            plural("client", clients),
            plural("server", servers),
        )?;
        if self.known_servers() < servers {
            write!(f, "of which each client knows {}, ", self.known_servers())?;
        }
        write!(f, "{}", self.balancing)?;
        for text in self.switched_off() {
            write!(f, ", {text}")?;
        }
        write!(f, ", seed {}", self.seed)
    }
}

/// How the clients of a fleet choose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Balancing {
    /// As [`Strategy::LeastConnections`].
    LeastConnections {
        /// How many servers each client asks; all it knows where `None`.
        max_probes: Option<NonZeroUsize>,
    },
    /// As [`Strategy::RoundRobin`].
    RoundRobin,
    /// As [`Strategy::Random`].
    Random,
}

impl Balancing {
    /// As the connection string has it.
    pub fn name(self) -> &'static str {
        match self {
            Self::LeastConnections { .. } => "least-connections",
            Self::RoundRobin => "round-robin",
            Self::Random => "random",
        }
    }

    fn strategy(self) -> Strategy {
        match self {
            Self::LeastConnections { max_probes } => Strategy::LeastConnections { max_probes },
            Self::RoundRobin => Strategy::RoundRobin,
            Self::Random => Strategy::Random,
        }
    }
}

impl fmt::Display for Balancing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::LeastConnections { max_probes: None } => {
                f.write_str("least-connections asking all")
            }
            Self::LeastConnections {
                max_probes: Some(count),
            } => write!(f, "least-connections asking {count}"),
            Self::RoundRobin | Self::Random => f.write_str(self.name()),
        }
    }
}

/// What happens to a fleet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scenario {
    /// All clients start at the same instant.
    ColdStart,
    /// One server after the other says goodbye, goes down, and comes back empty.
    RollingRestart,
    /// A third of the servers dies at once, and comes back after a minute.
    Crash,
    /// Half of the clients cannot reach half of the servers for half a minute.
    Partition,
    /// One server goes down and up every few seconds while clients start.
    Flap,
}

impl Scenario {
    /// All there are.
    pub const ALL: [Self; 5] = [
        Self::ColdStart,
        Self::RollingRestart,
        Self::Crash,
        Self::Partition,
        Self::Flap,
    ];

    /// As on the command line: `cold-start`.
    pub fn name(self) -> &'static str {
        match self {
            Self::ColdStart => "cold-start",
            Self::RollingRestart => "rolling-restart",
            Self::Crash => "crash",
            Self::Partition => "partition",
            Self::Flap => "flap",
        }
    }

    /// What happens, and when.
    pub fn about(self) -> &'static str {
        match self {
            Self::ColdStart => "all clients start at the same instant; 60 s",
            Self::RollingRestart => {
                "from 20 s on, one server after the other takes no new clients and sends GOAWAY, is \
                 down a second later, and is back, empty, after 3.5 s; one every 5.5 s, then 30 s"
            }
            Self::Crash => {
                "at 20 s a third of the servers dies, and is back, empty, at 80 s; 140 s"
            }
            Self::Partition => {
                "from 20 s to 50 s nothing passes between half of the clients and half of the \
                 servers; 110 s"
            }
            Self::Flap => {
                "half of the clients start; from 20 s to 80 s the others do, while one server dies every \
                 6 s and is back, empty, 3 s later; 120 s"
            }
        }
    }
}

impl fmt::Display for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Why a fleet has no report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FleetError {
    /// There are too few or too many of something.
    OutOfRange {
        /// Of what.
        what: &'static str,
        /// How many were asked for.
        number: usize,
        /// How many there can be.
        most: usize,
    },
    /// A client broke a rule that the checkers watch.
    Broken(Violation),
}

impl fmt::Display for FleetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OutOfRange { what, number, most } => {
                write!(f, "{number} {what} cannot be simulated; give 1 to {most}")
            }
            Self::Broken(violation) => write!(f, "a rule was broken: {violation}"),
        }
    }
}

impl std::error::Error for FleetError {}

impl From<Violation> for FleetError {
    fn from(violation: Violation) -> Self {
        Self::Broken(violation)
    }
}

/// What a connection string holds.
const MOST_KNOWN: usize = 64;
const MAX_CLIENTS: usize = 100_000;
const MAX_SERVERS: usize = 1_000;
