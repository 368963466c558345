//! What networks and adapters do to replies: overtaking, repeating, delaying, losing.

use super::{ClientId, TransportKey, World, network::Transport, queue::Happening};
use chronicle_connection::{Failure, FailureKind, Id, Reply};
use rand_core::Rng as _;
use std::time::{Duration, Instant};

/// How replies go astray, in percent of all; `Default` is not at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Disorder {
    /// So many are overtaken by replies to other requests of their transport.
    pub reordered: u32,
    /// So many that end a request, a transport or a dial arrive a second time, later.
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
        self.lateness = self.lateness.max(disorder.by);
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

    /// When a reply arrives that the network alone would bring at an instant, after all that it must
    /// not overtake. A second copy is on its way then, too, where one is drawn.
    pub(super) fn in_disorder(
        &mut self,
        key: TransportKey,
        id: Id,
        reply: &Reply,
        at: Instant,
    ) -> Instant {
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
        let again =
            (is_end(reply) && self.is_drawn(disorder.duplicated)).then(|| self.up_to(AGAIN));
        let Some(transport) = self.transport_mut(key) else {
            return at;
        };
        let arrives = transport.arrives(id, at, late, now);
        if let Some(again) = again {
            let happening = Happening::ReplyArrives {
                client: key.0,
                id,
                reply: reply.clone(),
                via: Some(key),
            };
            self.queue.push(arrives + again, happening);
        }
        arrives
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

/// Whether nothing may follow a reply.
fn is_end(reply: &Reply) -> bool {
    match reply {
        Reply::Http(_) | Reply::Finished(_) | Reply::Failed(_) | Reply::Closed(_) => true,
        Reply::NameServers(_)
        | Reply::Opened { .. }
        | Reply::GoingAway { .. }
        | Reply::Message(_) => false,
    }
}

const OVERTAKEN: Duration = Duration::from_millis(50);

const AGAIN: Duration = Duration::from_secs(8);
