//! The phase between attempts (S2, "Staying connected": capped exponential backoff).

use super::{Phase, WaitReason, context::Context};
use crate::{AttemptError, Event};
use rand_core::Rng;
use std::time::Instant;

#[derive(Debug, Clone)]
pub(super) struct BackingOff {
    until: Instant,
}

impl BackingOff {
    /// Waits out the next rung of the ladder.
    pub(super) fn begin<R: Rng>(error: Option<AttemptError>, cx: &mut Context<R>) -> Phase {
        let wait = cx.next_wait();
        cx.emit(Event::BackingOff { error, wait });
        Phase::BackingOff(Self {
            until: cx.now + wait,
        })
    }

    pub(super) fn deadline(&self) -> (Instant, WaitReason) {
        (self.until, WaitReason::Backoff)
    }
}

#[cfg(feature = "model-checking")]
impl BackingOff {
    pub(super) fn normal_form<H: std::hash::Hasher>(&self, form: &mut crate::NormalForm<H>) {
        let Self { until } = self;
        form.instant(*until);
    }
}
