//! The normal form of the books: two states with different books are two states.

use super::{Asked, Check, Ledger, Pending, Phase, Reserve, Transport};
use chronicle_connection::{Id, NormalForm};
use std::{collections::BTreeMap, hash::Hasher, time::Instant};

impl Ledger {
    /// Writes what the books hold against the machine from `now` on.
    pub(in crate::machine) fn normal_form<H: Hasher>(
        &self,
        now: Instant,
        form: &mut NormalForm<H>,
    ) {
        let Self {
            timing: _,
            check_is_skipped: _,
            // Rises only.
            newest: _,
            transports,
            requests,
            lookup,
            sessions,
            session_on,
            ended_on,
            attempts,
            choices,
            // Looked for in events, and changed by nothing else than tokens.
            secrets: _,
            tokens,
            // Of the last input, and forgotten with the next.
            may_be_dropped: _,
            gone: _,
            opened_late: _,
            is_overdue: _,
            // Counted in what is written of the past.
            aged: _,
            is_closing,
            is_closed,
            has_failed,
        } = self;
        form.count_from(now);
        form.value((is_closing, is_closed, has_failed));
        form.optional(*lookup, |form, asked| {
            let Asked { id, sent, limit } = asked;
            form.id(id);
            form.value((self.stamp(now).since(sent), limit));
        });
        form.optional(*session_on, NormalForm::id);
        let ended_on = ended_on.filter(|id| transports.contains_key(id));
        form.optional(ended_on, NormalForm::id);
        sessions.normal_form(self.stamp(now), form);
        attempts.normal_form(self.stamp(now), form);
        choices.normal_form(self.stamp(now), form);
        tokens.normal_form(form);
        in_order(transports, form, |form, transport| {
            let Transport {
                to,
                dialled,
                phase,
                reserve,
                check,
                checked,
                refused,
            } = transport;
            form.value(to);
            let dialled = (*phase == Phase::Dialling).then_some(*dialled);
            // Of no matter once the check has passed.
            let is_checking = *check != Check::Passed;
            form.value(refused.filter(|_| is_checking));
            let checked = checked.filter(|_| is_checking);
            form.value([dialled, checked].map(|at| at.map(|at| self.stamp(now).since(at))));
            match phase {
                Phase::Dialling => form.value(0),
                Phase::Open(peer) => form.value((1, peer)),
                Phase::Late => form.value(2),
                Phase::GoingAway => form.value(3),
            }
            form.value(match check {
                Check::NotPassed => 0,
                Check::Readable => 1,
                Check::Passed => 2,
            });
            form.value(match reserve {
                Reserve::NotMade => 0,
                Reserve::Pending => 1,
                Reserve::Over => 2,
            });
        });
        in_order(requests, form, |form, request| {
            let Pending {
                on,
                what,
                sent,
                generation,
                connection_id,
                is_compatible,
            } = request;
            form.value(tokens.behind(*generation));
            form.id(*on);
            form.value((what, is_compatible));
            form.value(self.stamp(now).since(*sent));
            form.optional(
                connection_id.as_deref().map(str::to_owned),
                NormalForm::name,
            );
        });
    }
}

/// Writes what has ids in the order of their numbers, which depends on the state alone.
fn in_order<T, H: Hasher>(
    all: &BTreeMap<Id, T>,
    form: &mut NormalForm<H>,
    mut write: impl FnMut(&mut NormalForm<H>, &T),
) {
    let mut all: Vec<_> = all
        .iter()
        .map(|(id, one)| (form.number(*id), one))
        .collect();
    all.sort_unstable_by_key(|(number, _)| *number);
    form.list(all.into_iter(), |form, (number, one)| {
        form.value(number);
        write(form, one);
    });
}
