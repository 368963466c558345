//! What is going to happen, in order.

use super::{ClientId, ServerId, TransportKey, serve::Ask};
use chronicle_connection::{Id, Reply};
use std::{
    cmp::Reverse,
    collections::BinaryHeap,
    time::{Duration, Instant},
};

/// Something that happens at an instant.
#[derive(Debug, Clone)]
pub(super) enum Happening {
    ClientWakes(ClientId),
    ClientResumes(ClientId),
    ServerWakes(ServerId),
    ServerResumes(ServerId),
    DialArrives {
        client: ClientId,
        id: Id,
        server: ServerId,
    },
    RequestArrives(Ask),
    /// A server that took its time.
    ServerAnswers {
        call: Ask,
        replies: Vec<Reply>,
    },
    CancelArrives(TransportKey, Id),
    CloseArrives(TransportKey),
    ReplyArrives {
        client: ClientId,
        id: Id,
        reply: Reply,
        /// The transport that carries it; it may have become a black hole meanwhile.
        via: Option<TransportKey>,
    },
}

/// By instant, then in the order of planning.
///
/// Most of what is planned is far off, such as the wakes of idle clients, and most of what happens
/// was planned just before. So what is near has a small heap of its own. What happens is kept apart
/// from both, for heaps move their entries about.
#[derive(Debug, Clone, Default)]
pub(super) struct Queue {
    near: BinaryHeap<Reverse<Entry>>,
    far: BinaryHeap<Reverse<Entry>>,
    /// Everything before it is in `near`, everything else in `far`.
    horizon: Option<Instant>,
    planned: Vec<Option<Happening>>,
    free: Vec<usize>,
    sequence: u64,
}

/// When, the order of planning, and where in `planned` it is.
type Entry = (Instant, u64, usize);

impl Queue {
    pub(super) fn push(&mut self, at: Instant, happening: Happening) {
        let slot = match self.free.pop() {
            Some(slot) => {
                self.planned[slot] = Some(happening);
                slot
            }
            None => {
                self.planned.push(Some(happening));
                self.planned.len() - 1
            }
        };
        let entry = Reverse((at, self.sequence, slot));
        self.sequence += 1;
        if self.horizon.is_some_and(|horizon| at < horizon) {
            self.near.push(entry);
        } else {
            self.far.push(entry);
        }
    }

    /// The next that happens at `until` or before.
    pub(super) fn pop_until(&mut self, until: Instant) -> Option<(Instant, Happening)> {
        if self.near.is_empty() {
            self.move_horizon();
        }
        let Reverse((at, _, slot)) = *self.near.peek()?;
        if at > until {
            return None;
        }
        self.near.pop();
        self.free.push(slot);
        let happening = self.planned[slot].take()?;
        Some((at, happening))
    }

    fn move_horizon(&mut self) {
        let Some(Reverse((first, ..))) = self.far.peek() else {
            return;
        };
        let horizon = *first + NEAR;
        self.horizon = Some(horizon);
        while let Some(Reverse((at, ..))) = self.far.peek()
            && *at < horizon
        {
            self.near.extend(self.far.pop());
        }
    }
}

const NEAR: Duration = Duration::from_millis(20);
