//! The network: how long a message takes, what does not pass, and the transports.

use super::{ClientId, Host, ServerId, TransportKey, World, queue::Happening, serve::Ask};
use chronicle_connection::{Id, Reply};
use chronicle_reference_server::model::StreamKey;
use rand_core::Rng as _;
use std::{
    collections::{BTreeMap, BTreeSet},
    mem,
    time::{Duration, Instant},
};

/// How the network behaves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Network {
    /// How long a message takes, one way.
    pub latency: Latency,
    /// How many one-way trips pass until the client may send its first request: 4, which is one
    /// round trip for TCP and one for TLS 1.3.
    pub open_trips: u32,
}

impl Default for Network {
    fn default() -> Self {
        Self {
            latency: Latency::Fixed(Duration::from_millis(1)),
            open_trips: 4,
        }
    }
}

/// How long a message takes, one way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Latency {
    /// Always as long.
    Fixed(Duration),
    /// Drawn for each message, from the shortest to the longest. Messages on one transport and in
    /// one direction still arrive in order.
    Between(Duration, Duration),
}

/// Names a partition of a world's network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PartitionId(usize);

/// What is wrong between hosts, and what waits until it is not.
#[derive(Debug, Clone, Default)]
pub(super) struct Faults {
    partitions: BTreeMap<PartitionId, Partition>,
    next_partition: usize,
    slow: BTreeMap<Host, Duration>,
    /// Messages that cannot pass now, in the order of sending: TCP sends them again.
    held: Vec<Held>,
}

/// Nothing passes from the ones to the others.
#[derive(Debug, Clone)]
struct Partition {
    from: BTreeSet<Host>,
    to: BTreeSet<Host>,
}

#[derive(Debug, Clone)]
struct Held {
    from: Host,
    to: Host,
    happening: Happening,
}

impl Faults {
    pub(super) fn cuts(&self, from: Host, to: Host) -> bool {
        let mut partitions = self.partitions.values();
        partitions.any(|partition| partition.from.contains(&from) && partition.to.contains(&to))
    }

    fn slowness(&self, host: Host) -> Duration {
        self.slow.get(&host).copied().unwrap_or_default()
    }
}

/// A transport that a server has accepted.
#[derive(Debug, Clone)]
pub(super) struct Transport {
    pub(super) server: ServerId,
    /// When the last message arrives at the client; none overtakes it.
    pub(super) down_until: Instant,
    /// The same for messages to the server.
    pub(super) up_until: Instant,
    /// Nothing passes in either direction, and nobody notices.
    pub(super) is_black_hole: bool,
    /// Requests whose last reply went astray, and when it arrives: their next does not overtake it.
    pub(super) astray: Vec<(Id, Instant)>,
    /// The `Connect` streams on it, by the ids of their requests.
    pub(super) streams: Vec<(Id, StreamKey)>,
}

impl World {
    /// Lets nothing pass from the ones to the others until it is [healed](Self::heal_partition);
    /// a partition in both directions is two of these. What is sent meanwhile arrives afterwards,
    /// for TCP sends it again; but what clients and name servers send is lost.
    pub fn partition(
        &mut self,
        from: impl IntoIterator<Item = Host>,
        to: impl IntoIterator<Item = Host>,
    ) -> PartitionId {
        let partition = Partition {
            from: from.into_iter().collect(),
            to: to.into_iter().collect(),
        };
        let (from, to) = (partition.from.len(), partition.to.len());
        self.note(
            "network",
            &format!("nothing passes from {from} to {to} hosts"),
        );
        let id = PartitionId(self.faults.next_partition);
        self.faults.next_partition += 1;
        self.faults.partitions.insert(id, partition);
        id
    }

    /// Ends a partition. What waited is sent now, in order.
    pub fn heal_partition(&mut self, id: PartitionId) {
        self.note("network", "healed");
        self.faults.partitions.remove(&id);
        for Held {
            from,
            to,
            happening,
        } in mem::take(&mut self.faults.held)
        {
            self.send(from, to, happening);
        }
    }

    /// Makes every message from and to a host take longer, from here on.
    pub fn set_slow(&mut self, host: Host, by: Duration) {
        self.note(host.to_string(), &format!("slow by {by:?}"));
        self.faults.slow.insert(host, by);
    }

    /// One trip.
    pub(super) fn trip(&mut self, from: Host, to: Host) -> Duration {
        let trip = match self.network.latency {
            Latency::Fixed(latency) => latency,
            Latency::Between(shortest, longest) => {
                let span = longest.saturating_sub(shortest).as_micros() as u64;
                shortest + Duration::from_micros(self.rng.next_u64() % (span + 1))
            }
        };
        if self.faults.slow.is_empty() {
            return trip;
        }
        trip + self.faults.slowness(from) + self.faults.slowness(to)
    }

    /// Sends a reply to a client on one of its transports, or about it.
    pub(super) fn send_down(&mut self, key: TransportKey, id: Id, reply: Reply) {
        let (client, via) = (key.0, Some(key));
        if let Some(server) = self.transport(key).map(|transport| transport.server) {
            let happening = Happening::ReplyArrives {
                client,
                id,
                reply,
                via,
            };
            self.send(Host::Server(server), Host::Client(client), happening);
        }
    }

    /// Sends something to the server at the other end of a transport.
    pub(super) fn send_up(&mut self, key: TransportKey, happening: Happening) {
        if let Some(server) = self.transport(key).map(|transport| transport.server) {
            self.send(Host::Client(key.0), Host::Server(server), happening);
        }
    }

    /// Sends a message from host to host; on a transport, none overtakes another.
    pub(super) fn send(&mut self, from: Host, to: Host, happening: Happening) {
        if self.faults.cuts(from, to) {
            return self.faults.held.push(Held {
                from,
                to,
                happening,
            });
        }
        let arrives = self.now + self.trip(from, to);
        let last = match &happening {
            Happening::ReplyArrives { .. } if self.was_disorderly => {
                return self.plan(arrives, happening);
            }
            Happening::ReplyArrives { via, .. } => via
                .and_then(|key| self.transport_mut(key))
                .map(|transport| &mut transport.down_until),
            Happening::RequestArrives(Ask { key, .. })
            | Happening::CancelArrives(key, _)
            | Happening::CloseArrives(key) => self
                .transport_mut(*key)
                .map(|transport| &mut transport.up_until),
            Happening::DialArrives { .. }
            | Happening::ServerAnswers { .. }
            | Happening::ClientWakes(_)
            | Happening::ClientResumes(_)
            | Happening::ServerWakes(_)
            | Happening::ServerResumes(_) => None,
        };
        let at = match last {
            Some(last) => {
                *last = arrives.max(*last);
                *last
            }
            None => arrives,
        };
        self.queue.push(at, happening);
    }

    pub(super) fn transport(&self, key: TransportKey) -> Option<&Transport> {
        self.clients[key.0.0].transports.get(key.1)
    }

    pub(super) fn transport_mut(&mut self, key: TransportKey) -> Option<&mut Transport> {
        self.clients[key.0.0].transports.get_mut(key.1)
    }

    pub(super) fn is_black_holed(&self, key: TransportKey) -> bool {
        self.transport(key)
            .is_some_and(|transport| transport.is_black_hole)
    }

    /// Every open transport to a server.
    pub(super) fn transports_to(&self, server: ServerId) -> Vec<TransportKey> {
        let mut keys = Vec::new();
        for (index, client) in self.clients.iter().enumerate() {
            let to_it = client.transports.iter();
            let to_it = to_it.filter(|(_, transport)| transport.server == server);
            keys.extend(to_it.map(|(id, _)| (ClientId(index), *id)));
        }
        keys
    }
}

/// The transports of one client. Ids rise, so the list is in their order.
#[derive(Debug, Clone, Default)]
pub(super) struct Transports(Vec<(Id, Transport)>);

impl Transports {
    pub(super) fn insert(&mut self, id: Id, transport: Transport) {
        let at = self.0.partition_point(|(other, _)| *other < id);
        self.0.insert(at, (id, transport));
    }

    pub(super) fn get(&self, id: Id) -> Option<&Transport> {
        let at = self.position(id)?;
        Some(&self.0[at].1)
    }

    pub(super) fn get_mut(&mut self, id: Id) -> Option<&mut Transport> {
        let at = self.position(id)?;
        Some(&mut self.0[at].1)
    }

    pub(super) fn remove(&mut self, id: Id) -> Option<Transport> {
        let at = self.position(id)?;
        Some(self.0.remove(at).1)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &(Id, Transport)> {
        self.0.iter()
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Transport> {
        self.0.iter_mut().map(|(_, transport)| transport)
    }

    fn position(&self, id: Id) -> Option<usize> {
        self.0.binary_search_by_key(&id, |(other, _)| *other).ok()
    }
}
