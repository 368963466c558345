//! What is going to happen, in order.

use super::{ClientId, ServerId, TransportKey, serve::Ask};
use chronicle_connection::{Id, Reply};
use std::{cmp::Reverse, collections::BinaryHeap, time::Instant};

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
/// What happens is kept apart from the heap, so that the heap moves small things only.
#[derive(Debug, Clone, Default)]
pub(super) struct Queue {
    heap: BinaryHeap<Reverse<(Instant, u64, usize)>>,
    planned: Vec<Option<Happening>>,
    free: Vec<usize>,
    sequence: u64,
}

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
        self.heap.push(Reverse((at, self.sequence, slot)));
        self.sequence += 1;
    }

    /// The next that happens at `until` or before.
    pub(super) fn pop_until(&mut self, until: Instant) -> Option<(Instant, Happening)> {
        let Reverse((at, _, slot)) = *self.heap.peek()?;
        if at > until {
            return None;
        }
        self.heap.pop();
        self.free.push(slot);
        let happening = self.planned[slot].take()?;
        Some((at, happening))
    }
}
