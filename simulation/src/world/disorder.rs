//! What networks and adapters do to replies: overtaking, repeating, delaying, losing.

use super::{ClientId, TransportKey, World, network::Transport, queue::Happening};
use chronicle_connection::{Failure, FailureKind, Id, Reply};
use rand_core::Rng as _;
use std::time::{Duration, Instant};

/// How replies go astray, in percent of all; `Default` is not at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Disorder {
    /// So many are overtaken by replies to other requests of their transport, or of none.
    pub reordered: u32,
    /// So many that end a request, a transport or a dial in vain arrive a second time, later; and so
    /// many messages of name servers.
    pub duplicated: u32,
    /// So many come late.
    pub late: u32,
    /// By up to so much: more than a deadline, or less.
    pub by: Duration,
}

/// Who is told that a transport is lost. The other side sees nothing pass any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Told {
    /// Both sides.
    Both,
    /// The client.
    Client,
    /// The server.
    Server,
}

impl World {
    /// Sets how replies go astray from here on.
    pub fn set_disorder(&mut self, disorder: Disorder) {
        self.note("network", &format!("{disorder:?}"));
        self.disorder = disorder;
        self.was_disorderly = true;
    }

    /// Loses one open transport of a client, drawn at random; none where it has none.
    pub fn lose_transport(&mut self, client: ClientId, told: Told) {
        let open: Vec<Id> = self.clients[client.0]
            .transports
            .iter()
            .map(|(id, _)| *id)
            .collect();
        if open.is_empty() {
            return;
        }
        let key = (client, open[self.rng.next_u64() as usize % open.len()]);
        self.note(client.to_string(), &format!("loses {} ({told:?})", key.1));
        let (server, streams) = match self.transport(key) {
            Some(transport) => (transport.server, transport.streams.clone()),
            None => return,
        };
        match told {
            Told::Both | Told::Client => {
                let failure = Failure::new(FailureKind::Reset, "the connection is lost");
                self.break_transport(key, &failure);
            }
            Told::Server => {
                if let Some(transport) = self.transport_mut(key) {
                    transport.is_black_hole = true;
                    transport.streams.clear();
                }
            }
        }
        match told {
            Told::Both | Told::Server => {
                self.end_streams(server, streams.into_iter().map(|(_, stream)| stream));
            }
            Told::Client => {}
        }
    }

    /// How many transports of a client are open, as far as anything passes on them.
    pub fn live_transports(&self, client: ClientId) -> usize {
        let transports = self.clients[client.0].transports.iter();
        transports.filter(|(_, one)| !one.is_black_hole).count()
    }

    /// Plans what happens; replies go astray on the way. The instant is when the network alone would
    /// bring them. Where a second copy is drawn, it is planned, too.
    pub(super) fn plan(&mut self, at: Instant, happening: Happening) {
        let (true, Happening::ReplyArrives { id, reply, via, .. }) =
            (self.was_disorderly, &happening)
        else {
            return self.queue.push(at, happening);
        };
        let (disorder, now) = (self.disorder, self.now);
        let mut late = Duration::ZERO;
        for (percent, most) in [
            (disorder.reordered, OVERTAKEN),
            (disorder.late, disorder.by),
        ] {
            if self.is_drawn(percent) {
                late += self.up_to(most);
            }
        }
        let is_twice = may_come_twice(reply, *via) && self.is_drawn(disorder.duplicated);
        let again = is_twice.then(|| self.up_to(AGAIN));
        let arrives = match via.and_then(|key| self.transport_mut(key)) {
            Some(transport) => transport.arrives(*id, at, late, now),
            None => at + late,
        };
        if via.is_some() && !late.is_zero() {
            self.late.note(now, arrives);
        }
        if let Some(again) = again {
            self.queue.push(arrives + again, happening.clone());
        }
        self.queue.push(arrives, happening);
    }

    fn is_drawn(&mut self, percent: u32) -> bool {
        percent > 0 && self.rng.next_u64() % 100 < u64::from(percent)
    }

    fn up_to(&mut self, most: Duration) -> Duration {
        Duration::from_micros(self.rng.next_u64() % (most.as_micros() as u64 + 1))
    }
}

impl Transport {
    /// The replies to one request stay in order, and replies that are not late stay in order.
    fn arrives(&mut self, id: Id, at: Instant, late: Duration, now: Instant) -> Instant {
        self.astray.retain(|(_, last)| *last > now);
        let at = at.max(self.down_until);
        let own = self.astray.iter_mut().find(|(astray, _)| *astray == id);
        if let Some((_, last)) = own {
            *last = (at + late).max(*last);
            return *last;
        }
        if late.is_zero() {
            self.down_until = at;
        } else {
            self.astray.push((id, at + late));
        }
        at + late
    }
}

/// What has come late on transports, or is going to.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Late {
    /// At most by so much after it was sent.
    by: Duration,
    /// When the last of it arrives.
    until: Option<Instant>,
}

impl Late {
    fn note(&mut self, sent: Instant, arrives: Instant) {
        self.by = self.by.max(arrives - sent);
        self.until = self.until.max(Some(arrives));
    }

    /// By how much anything was late at most, if it has come within so long or is going to.
    pub(super) fn by(&self, now: Instant, within: Duration) -> Duration {
        match self.until {
            Some(until) if now <= until + within => self.by,
            Some(_) | None => Duration::ZERO,
        }
    }
}

/// Whether a reply may come twice: nothing may follow it, or it is a datagram.
fn may_come_twice(reply: &Reply, via: Option<TransportKey>) -> bool {
    match reply {
        Reply::Http(_)
        | Reply::Finished(_)
        | Reply::Failed(_)
        | Reply::Closed(_)
        | Reply::NameServers(_) => true,
        // But for name servers, messages come on transports.
        Reply::Message(_) => via.is_none(),
        Reply::Opened { .. } | Reply::GoingAway { .. } => false,
    }
}

const OVERTAKEN: Duration = Duration::from_millis(50);

const AGAIN: Duration = Duration::from_secs(8);
