//! From records to a list of servers.

use crate::{Endpoint, Host, connection_string::host_name};
use hickory_proto::rr::{Name, rdata::SRV};
use std::{cmp::Reverse, fmt};

/// A server as DNS tells it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SrvRecord {
    /// Target and port.
    pub server: Endpoint,
    /// Lower comes first.
    pub priority: u16,
    /// Among equals in priority, higher comes first.
    pub weight: u16,
}

impl fmt::Display for SrvRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (server, priority, weight) = (&self.server, self.priority, self.weight);
        write!(f, "{server} (priority {priority}, weight {weight})")
    }
}

/// What was odd about the records of a name, and did not keep the others from being used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SrvWarning {
    /// The target is no host name; the record was dropped.
    NotAHost {
        /// The target, with odd bytes escaped.
        target: String,
    },
    /// There were more records than are used; the last in order were left out.
    TooMany {
        /// How many.
        left_out: usize,
    },
}

impl fmt::Display for SrvWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotAHost { target } => write!(f, "target {target} is no host name"),
            Self::TooMany { left_out } => {
                let servers = match left_out {
                    1 => "server was",
                    _ => "servers were",
                };
                write!(
                    f,
                    "{left_out} {servers} left out, since at most {MAX_SERVERS} are used"
                )
            }
        }
    }
}

/// The servers that records name: priorities ascending, weights descending, then as they came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SrvList {
    /// At least one, each server once.
    pub(crate) records: Vec<SrvRecord>,
    pub(crate) warnings: Vec<SrvWarning>,
}

/// Why records name no server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NoServers {
    /// They say that the service is not offered (RFC 2782: the target `.`).
    NotOffered,
    /// None of the targets is a host name: these, or the first of them.
    NotHosts(Vec<String>),
}

impl SrvList {
    pub(crate) fn new(mut srv: Vec<SRV>) -> Result<Self, NoServers> {
        srv.retain(|srv| !srv.target.is_root() && srv.port != 0);
        srv.sort_by_key(|srv| (srv.priority, Reverse(srv.weight)));
        let mut list = Self {
            records: Vec::new(),
            warnings: Vec::new(),
        };
        let mut odd = Vec::new();
        let mut left_out = 0;
        for srv in srv {
            let Some(host) = host_of(&srv.target) else {
                if odd.len() < MAX_SERVERS {
                    odd.push(srv.target.to_ascii());
                }
                continue;
            };
            let server = Endpoint::new(Host::Name(host), srv.port);
            if list.records.iter().any(|record| record.server == server) {
                continue;
            }
            if list.records.len() == MAX_SERVERS {
                left_out += 1;
                continue;
            }
            list.records.push(SrvRecord {
                server,
                priority: srv.priority,
                weight: srv.weight,
            });
        }
        if list.records.is_empty() {
            return Err(if odd.is_empty() {
                NoServers::NotOffered
            } else {
                NoServers::NotHosts(odd)
            });
        }
        let odd = odd
            .into_iter()
            .map(|target| SrvWarning::NotAHost { target });
        list.warnings.extend(odd);
        if left_out > 0 {
            list.warnings.push(SrvWarning::TooMany { left_out });
        }
        Ok(list)
    }

    /// The servers alone.
    pub(crate) fn servers(&self) -> Vec<Endpoint> {
        let records = self.records.iter();
        records.map(|record| record.server.clone()).collect()
    }
}

/// The target as a host name, without the trailing dot; an address is none.
fn host_of(target: &Name) -> Option<String> {
    let labels: Option<Vec<_>> = target
        .iter()
        .map(|label| std::str::from_utf8(label).ok())
        .map(|label| label.filter(|label| !label.contains('.')))
        .collect();
    host_name(&labels?.join("."))
}

/// As many as a connection string may list. No more odd targets are told either.
const MAX_SERVERS: usize = 64;
