//! What is going to happen, in order.

use super::{ClientId, ServerId, TransportKey, serve::Ask};
use chronicle_connection::{Endpoint, Id, Reply};
use std::{collections::BTreeMap, time::Instant};

/// Something that happens at an instant.
#[derive(Debug, Clone)]
pub(super) enum Happening {
    ClientWakes(ClientId),
    ClientResumes(ClientId),
    ServerWakes(ServerId),
    DialArrives {
        client: ClientId,
        id: Id,
        to: Endpoint,
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

/// Names what is planned, so that it can be taken back.
pub(super) type Plan = (Instant, u64);

/// By instant, then in the order of planning.
#[derive(Debug, Clone, Default)]
pub(super) struct Queue {
    planned: BTreeMap<Plan, Happening>,
    sequence: u64,
}

impl Queue {
    pub(super) fn push(&mut self, at: Instant, happening: Happening) -> Plan {
        let plan = (at, self.sequence);
        self.sequence += 1;
        self.planned.insert(plan, happening);
        plan
    }

    pub(super) fn remove(&mut self, plan: Plan) {
        self.planned.remove(&plan);
    }

    /// The next that happens at `until` or before.
    pub(super) fn pop_until(&mut self, until: Instant) -> Option<(Instant, Happening)> {
        let first = self.planned.first_entry()?;
        let (at, _) = *first.key();
        (at <= until).then(|| (at, first.remove()))
    }
}
