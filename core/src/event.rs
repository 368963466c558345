//! What happened to a connection, for applications and logs.

use crate::{
    AttemptError, CallError, CandidateError, DnsTransport, DropCause, Endpoint, FatalError,
    Incompatibility, LookupError, NameServerError, SrvRecord, SrvWarning, TokenError,
};
use std::{fmt, net::SocketAddr, time::Duration};
use uuid::Uuid;

/// Something that happened to a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// An attempt to connect begins by looking its servers up in DNS.
    Resolving {
        /// As in [`Connecting`](Self::Connecting).
        attempt: u32,
        /// The name in the connection string.
        name: String,
    },
    /// A name server was asked and gave no answer. It is asked in another way, or others are, while
    /// there is time.
    LookupTryFailed {
        /// The name server.
        server: Endpoint,
        /// How it was asked.
        transport: DnsTransport,
        /// Why there is no answer.
        error: NameServerError,
        /// How long this try took.
        took: Duration,
    },
    /// DNS told the servers.
    Resolved {
        /// The name server that answered.
        server: Endpoint,
        /// How it was asked.
        transport: DnsTransport,
        /// The servers in order: priorities ascending, weights descending, then as they came.
        records: Vec<SrvRecord>,
        /// What was odd, and did not matter.
        warnings: Vec<SrvWarning>,
        /// How long this try took.
        took: Duration,
    },
    /// Nobody could tell the servers; those that the last good lookup gave are used.
    LastGoodListUsed {
        /// Why nobody could.
        error: Box<LookupError>,
    },
    /// An attempt to connect begins with these candidates.
    Connecting {
        /// 1 for the first attempt after the start or after a session, then one more each.
        attempt: u32,
        /// The servers that were resolved for this attempt.
        candidates: Vec<Endpoint>,
    },
    /// The load balancer chose a server.
    Selected {
        /// The chosen server.
        server: Endpoint,
        /// How many clients it said it has, where it was asked and answered.
        count: Option<u64>,
    },
    /// The chosen server did not take the reservation; the attempt goes on without one.
    ReserveFailed {
        /// The chosen server.
        server: Endpoint,
        /// Why not.
        cause: CallError,
    },
    /// The server found the contract of this client compatible.
    Compatible {
        /// The chosen server.
        server: Endpoint,
        /// The version that the server tells, where it does.
        server_version: String,
        /// What only this client knows, because it is newer than the server.
        missing_on_server: Vec<Incompatibility>,
    },
    /// A token was fetched, or was not.
    Token {
        /// The generation of the newest token; 0 where there never was one.
        generation: u64,
        /// For how long the newest token is valid still; `None` where none is at hand.
        expires_in: Option<Duration>,
        /// Why there is no newer one.
        error: Option<TokenError>,
    },
    /// A chosen server failed; the next best is tried, if there is one.
    CandidateFailed {
        /// The server.
        server: Endpoint,
        /// Why it is out for this attempt.
        cause: CandidateError,
    },
    /// An attempt failed; the next begins after a wait.
    BackingOff {
        /// What became of every candidate; nothing after an unstable session.
        error: Option<AttemptError>,
        /// The wait.
        wait: Duration,
    },
    /// The first keep-alive arrived: the session is up.
    Connected(Session),
    /// The session is gone. What follows is an attempt to connect again.
    Disconnected {
        /// The session that ended.
        session: Session,
        /// Why.
        cause: DropCause,
        /// For how long it was connected.
        lasted: Duration,
    },
    /// The connection gave up for good.
    Failed(FatalError),
    /// The connection was closed on demand.
    Closed,
}

/// One session with one server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Session {
    /// The connection id that the server knows; observers and reducers register with it.
    pub connection_id: Uuid,
    /// The server, as resolved.
    pub server: Endpoint,
    /// The address at the other end of the session's socket.
    pub peer: SocketAddr,
    /// 1 for the first session of this connection, then one more each.
    pub generation: u64,
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Resolving { attempt, name } => {
                write!(f, "looking up the servers of {name}, attempt {attempt}")
            }
            Self::LookupTryFailed {
                server,
                transport,
                error,
                took,
            } => write!(
                f,
                "name server {server} over {transport}: {error} (after {})",
                Millis(*took)
            ),
            Self::Resolved {
                server,
                transport,
                records,
                warnings,
                took,
            } => {
                write!(f, "name server {server} over {transport} told")?;
                records
                    .iter()
                    .try_for_each(|record| write!(f, " {record}"))?;
                write!(f, " (after {})", Millis(*took))?;
                warnings
                    .iter()
                    .try_for_each(|warning| write!(f, "; {warning}"))
            }
            Self::LastGoodListUsed { error } => {
                write!(f, "{error}; using the servers of the last good lookup")
            }
            Self::Connecting {
                attempt,
                candidates,
            } => {
                write!(f, "connecting, attempt {attempt}, to")?;
                candidates
                    .iter()
                    .try_for_each(|candidate| write!(f, " {candidate}"))
            }
            Self::Selected {
                server,
                count: Some(count),
            } => {
                let clients = if *count == 1 { "client" } else { "clients" };
                write!(f, "selected {server}, which has {count} {clients}")
            }
            Self::Selected {
                server,
                count: None,
            } => write!(f, "selected {server}"),
            Self::ReserveFailed { server, cause } => {
                write!(
                    f,
                    "{server} took no reservation ({cause}); going on without"
                )
            }
            Self::Compatible {
                server,
                server_version,
                missing_on_server,
            } => {
                write!(f, "{server} is compatible")?;
                if !server_version.is_empty() {
                    write!(f, ", version {server_version}")?;
                }
                if let Some(first) = missing_on_server.first() {
                    write!(f, ", older and without {}", first.path)?;
                }
                match missing_on_server.len() {
                    0 | 1 => Ok(()),
                    count => write!(f, " and {} more", count - 1),
                }
            }
            Self::Token {
                generation,
                expires_in,
                error: None,
            } => match expires_in {
                Some(left) => write!(
                    f,
                    "token {generation} is there, valid for {}",
                    Seconds(*left)
                ),
                None => write!(f, "token {generation} is there"),
            },
            Self::Token {
                error: Some(error), ..
            } => write!(f, "no new token: {error}"),
            Self::CandidateFailed { server, cause } => write!(f, "{server} failed: {cause}"),
            Self::BackingOff {
                error: Some(error),
                wait,
            } => write!(f, "{error}; next attempt in {}", Seconds(*wait)),
            Self::BackingOff { error: None, wait } => write!(
                f,
                "the session was too short to be stable; next attempt in {}",
                Seconds(*wait)
            ),
            Self::Connected(session) => write!(
                f,
                "connected to {} at {}, connection {}",
                session.server, session.peer, session.connection_id
            ),
            Self::Disconnected {
                session,
                cause,
                lasted,
            } => write!(
                f,
                "disconnected from {} after {}: {cause}",
                session.server,
                Seconds(*lasted)
            ),
            Self::Failed(error) => write!(f, "gave up: {error}"),
            Self::Closed => f.write_str("closed"),
        }
    }
}

/// A short duration as a person reads it: `5.2 ms`.
struct Millis(Duration);

impl fmt::Display for Millis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.1} ms", self.0.as_secs_f64() * 1e3)
    }
}

/// A duration as a person reads it: `5.2 s`.
pub(crate) struct Seconds(pub(crate) Duration);

impl fmt::Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.1} s", self.0.as_secs_f64())
    }
}
