//! The normal form of a connection, for model checkers.
//!
//! Everything is taken apart without `..`, so that a new field breaks the build instead of being
//! forgotten: two states that differ in it would be taken for one.

use super::{Connection, Context, Phase, context::Memory};
use crate::{NormalForm, Servers, Strategy};
use rand_core::Rng;
use std::{collections::BTreeSet, hash::Hasher};

impl<R: Rng> Connection<R> {
    /// Writes the whole state of this connection, as far as it decides what can follow.
    ///
    /// Left out are the generator, since whoever compares states must see to its draws; what is
    /// built in (configuration and contract) and counters that only rise. Instants count from the
    /// time of this connection, so a state is the same whenever it is reached.
    ///
    /// Queued outputs are written as they stand, ids and all; so drain them first.
    ///
    /// Only with the feature `model-checking`.
    pub fn normal_form<H: Hasher>(&self, form: &mut NormalForm<H>) {
        let Self {
            context,
            phase,
            due,
            given,
            // The time slept only tells the two clocks apart. It matters by itself at its cap, 100
            // years.
            ahead,
        } = self;
        form.count_from(context.now);
        // Other than zero where time ran backwards.
        form.instant(given.checked_add(*ahead).unwrap_or(*given));
        form.optional(*due, |form, (at, reason)| {
            form.instant(at);
            form.value(reason);
        });
        context.normal_form(form);
        match phase {
            Phase::Idle => form.value(0),
            Phase::Resolving(resolving) => {
                form.value(1);
                resolving.normal_form(form);
            }
            Phase::Selecting(selecting) => {
                form.value(2);
                selecting.normal_form(form);
            }
            Phase::Handshaking(handshaking) => {
                form.value(3);
                handshaking.normal_form(context, form);
            }
            Phase::Connected(connected) => {
                form.value(4);
                connected.normal_form(context, form);
            }
            Phase::BackingOff(backing_off) => {
                form.value(5);
                backing_off.normal_form(form);
            }
            Phase::Stopped => form.value(6),
        }
    }

    /// The generator, to script what it draws next.
    ///
    /// Only with the feature `model-checking`.
    pub fn generator(&mut self) -> &mut R {
        &mut self.context.rng
    }
}

impl<R: Rng> Context<R> {
    fn normal_form<H: Hasher>(&self, form: &mut NormalForm<H>) {
        let Self {
            config,
            strategy,
            contract: _,
            rng: _,
            now: _,
            outputs,
            // Rises only; but for whether a session has been up.
            stats: _,
            memory,
            tokens,
            next_id: _,
        } = self;
        match strategy {
            Strategy::LeastConnections { .. } | Strategy::RoundRobin | Strategy::Random => {}
            Strategy::Custom(selector) => form.value(format!("{selector:?}")),
        }
        form.value(outputs.len());
        for output in outputs {
            form.value(format!("{output:?}"));
        }
        form.value(self.is_initial());
        let Memory {
            // Only told.
            attempt: _,
            step,
            failed,
            unstable,
            round_robin,
            fresh_reconnect,
            connect_deadline,
            last_good,
            last_error,
        } = memory;
        // From the ceiling on, all rungs are one.
        form.value(config.backoff.wait(step.saturating_add(1)));
        // Of those, only the newest is told apart.
        let older: BTreeSet<_> = unstable.iter().collect();
        form.value((failed, older, unstable.last()));
        if matches!(strategy, Strategy::RoundRobin) {
            form.value(round_robin);
        }
        form.value(fresh_reconnect);
        form.optional(*connect_deadline, |form, at| {
            form.instant(at);
            // Told when this deadline has come, and never else.
            form.value(last_error);
        });
        if matches!(config.servers, Servers::Srv(_)) {
            form.value(last_good);
        }
        form.optional(tokens.as_ref(), |form, tokens| {
            tokens.normal_form(self.now, form);
        });
    }

    /// Writes a generation of credentials: none, or by how many it is behind the newest.
    pub(super) fn write_generation<H: Hasher>(&self, generation: u64, form: &mut NormalForm<H>) {
        let newest = self.tokens.as_ref().map_or(0, |all| all.generation());
        form.value((generation > 0).then(|| newest.saturating_sub(generation)));
    }
}
