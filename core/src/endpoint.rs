//! Where a server listens: a host and a port.

use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
};

/// The port of a Chronicle server where none is given (S1).
pub const DEFAULT_PORT: u16 = 35000;

/// A host as it stands in a connection string or an SRV target.
///
/// Two hosts are equal when they name the same machine by the rules of DNS: case is folded and one
/// trailing dot dropped before a name gets here.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Host {
    /// A DNS name, in lower case and without a trailing dot.
    Name(String),
    /// An address; IPv6 is written in brackets.
    Ip(IpAddr),
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Ip(IpAddr::V4(address)) => address.fmt(f),
            Self::Ip(IpAddr::V6(address)) => write!(f, "[{address}]"),
        }
    }
}

impl From<Ipv4Addr> for Host {
    fn from(address: Ipv4Addr) -> Self {
        Self::Ip(address.into())
    }
}

impl From<Ipv6Addr> for Host {
    fn from(address: Ipv6Addr) -> Self {
        Self::Ip(address.into())
    }
}

/// A server: host and port. Prints as it is written in a URI authority.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Endpoint {
    /// The host to resolve, to dial and to check the certificate against.
    pub host: Host,
    /// The TCP port, never 0.
    pub port: u16,
}

impl Endpoint {
    /// An endpoint of a host and a port.
    pub fn new(host: Host, port: u16) -> Self {
        Self { host, port }
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}
