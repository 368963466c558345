//! Why a lookup gave no servers.

use crate::{Endpoint, Failure, connection_string::SRV_PREFIX, event::Seconds};
use std::{fmt, time::Duration};

/// Why the servers of a name could not be looked up.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct LookupError {
    /// The name in the connection string.
    pub name: String,
    /// What went wrong.
    pub kind: LookupErrorKind,
}

/// What went wrong with a lookup.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum LookupErrorKind {
    /// The name does not exist (NXDOMAIN).
    NoSuchName {
        /// The name server that said so.
        server: Endpoint,
    },
    /// The name exists, without SRV records (NODATA).
    NoRecords {
        /// The name server that said so.
        server: Endpoint,
    },
    /// The records say that the service is not available there: every target is `.`, or every port
    /// 0 (RFC 2782).
    NotOffered {
        /// The name server that said so.
        server: Endpoint,
    },
    /// No target is a host name.
    NoHosts {
        /// The name server that sent them.
        server: Endpoint,
        /// The targets, with odd bytes escaped.
        targets: Vec<String>,
    },
    /// No name server gave an answer.
    NoAnswer {
        /// The last error of each that was asked, in their order.
        name_servers: Vec<(Endpoint, NameServerError)>,
    },
    /// There is no name server to ask.
    NoNameServers {
        /// Why they are not known; nothing where none is configured.
        cause: Option<Failure>,
    },
}

impl LookupError {
    /// Whether a name server has told that there are no servers. Otherwise nobody knows.
    pub fn is_authoritative(&self) -> bool {
        match self.kind {
            LookupErrorKind::NoSuchName { .. }
            | LookupErrorKind::NoRecords { .. }
            | LookupErrorKind::NotOffered { .. }
            | LookupErrorKind::NoHosts { .. } => true,
            LookupErrorKind::NoAnswer { .. } | LookupErrorKind::NoNameServers { .. } => false,
        }
    }
}

impl fmt::Display for LookupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = format_args!("{SRV_PREFIX}{}", self.name);
        match &self.kind {
            LookupErrorKind::NoSuchName { server } => {
                write!(f, "{name} does not exist (NXDOMAIN), says {server}")
            }
            LookupErrorKind::NoRecords { server } => {
                write!(f, "{name} has no SRV records, says {server}")
            }
            LookupErrorKind::NotOffered { server } => {
                write!(f, "{name}: service not available there, says {server}")
            }
            LookupErrorKind::NoHosts { server, targets } => {
                write!(f, "no SRV target of {name} is a host name, from {server}:")?;
                targets.iter().try_for_each(|target| write!(f, " {target}"))
            }
            LookupErrorKind::NoAnswer { name_servers } => {
                write!(f, "no name server answered for {name}")?;
                for (index, (server, error)) in name_servers.iter().enumerate() {
                    let separator = if index == 0 { ": " } else { "; " };
                    write!(f, "{separator}{server}: {error}")?;
                }
                Ok(())
            }
            LookupErrorKind::NoNameServers { cause } => {
                write!(f, "no name server to ask for {name}")?;
                if let Some(cause) = cause {
                    write!(f, " ({cause})")?;
                }
                f.write_str("; name one with srvNameServer in the connection string")
            }
        }
    }
}

impl std::error::Error for LookupError {}

/// Why one try at one name server gave no answer.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum NameServerError {
    /// Nothing that answers the question came in time.
    TimedOut {
        /// How long the server had.
        after: Duration,
    },
    /// SERVFAIL: the server could not find out.
    ServerFailure,
    /// REFUSED: the server does not want to say.
    Refused,
    /// Another code (RFC 6895 section 2.3).
    Code(u16),
    /// The server does not know EDNS; it is asked once more without.
    NoEdns,
    /// The answer does not fit into a datagram; the server is asked over TCP.
    Truncated,
    /// The server does not know, and refers to others: it is no resolver.
    Referral,
    /// What came in time cannot be read.
    Malformed(String),
    /// The server could not be asked.
    Failed(Failure),
}

impl fmt::Display for NameServerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TimedOut { after } => write!(f, "no answer within {}", Seconds(*after)),
            Self::ServerFailure => f.write_str("server failure (SERVFAIL)"),
            Self::Refused => f.write_str("refused to answer (REFUSED)"),
            Self::Code(code) => write!(f, "response code {code}"),
            Self::NoEdns => f.write_str("does not know EDNS"),
            Self::Truncated => f.write_str("answer was truncated"),
            Self::Referral => f.write_str("refers to other servers; it is no resolver"),
            Self::Malformed(text) => write!(f, "malformed answer: {text}"),
            Self::Failed(failure) => failure.fmt(f),
        }
    }
}
