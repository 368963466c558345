//! The network: how long a message takes, and the transports.

use super::{ServerId, TransportKey, World, queue::Happening};
use chronicle_connection::Reply;
use rand_core::Rng as _;
use std::time::{Duration, Instant};

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
}

impl World {
    /// One trip.
    pub(super) fn trip(&mut self) -> Duration {
        match self.network.latency {
            Latency::Fixed(latency) => latency,
            Latency::Between(shortest, longest) => {
                let span = longest.saturating_sub(shortest).as_micros() as u64;
                shortest + Duration::from_micros(self.rng.next_u64() % (span + 1))
            }
        }
    }

    /// Sends a reply to a client on one of its transports, or about it.
    pub(super) fn send_down(
        &mut self,
        key: TransportKey,
        id: chronicle_connection::Id,
        reply: Reply,
    ) {
        let arrives = self.now + self.trip();
        let Some(transport) = self.transports.get_mut(&key) else {
            return;
        };
        let at = arrives.max(transport.down_until);
        transport.down_until = at;
        let (client, via) = (key.0, Some(key));
        self.queue.push(
            at,
            Happening::ReplyArrives {
                client,
                id,
                reply,
                via,
            },
        );
    }

    /// Sends something to the server at the other end of a transport.
    pub(super) fn send_up(&mut self, key: TransportKey, happening: Happening) {
        let arrives = self.now + self.trip();
        let Some(transport) = self.transports.get_mut(&key) else {
            return;
        };
        let at = arrives.max(transport.up_until);
        transport.up_until = at;
        self.queue.push(at, happening);
    }

    pub(super) fn is_black_holed(&self, key: TransportKey) -> bool {
        let transport = self.transports.get(&key);
        transport.is_some_and(|transport| transport.is_black_hole)
    }
}
