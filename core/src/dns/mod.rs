//! What is asked of name servers, how their answers are read, and what can be wrong with them (S1,
//! "DNS SRV lookup"; RFC 1035, 2782 and 6891).

mod answer;
mod error;
mod question;
mod servers;

pub(crate) use answer::{Answer, Unread};
pub use error::{LookupError, LookupErrorKind, NameServerError};
pub(crate) use question::Question;
pub(crate) use servers::{NoServers, SrvList};
pub use servers::{SrvRecord, SrvWarning};

use std::fmt;

/// What carries a DNS message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DnsTransport {
    /// One datagram each way.
    Udp,
    /// A connection, with the length before each message (RFC 7766).
    Tcp,
}

impl fmt::Display for DnsTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Udp => "UDP",
            Self::Tcp => "TCP",
        })
    }
}
