//! The phase in which one server is selected: the random wait, the dials and the counts (S1, "How
//! least-connections picks a server").

use super::{
    Phase, WaitReason,
    attempt::{Attempt, Count, Link, LinkChange, lost_unchosen},
    context::Context,
    earliest, random,
};
use crate::{Id, Reply, Strategy};
use http::Method;
use rand_core::Rng;
use std::{
    mem,
    time::{Duration, Instant},
};

#[derive(Debug, Clone)]
pub(super) struct Selecting {
    attempt: Attempt,
    step: Step,
}

#[derive(Debug, Clone)]
enum Step {
    /// Nothing to ask; the choice is made when the wait is over.
    Waiting {
        until: Instant,
    },
    Probing(Probing),
}

#[derive(Debug, Clone)]
struct Probing {
    /// The candidates that are asked.
    pool: Vec<usize>,
    next: Next,
    /// When the first count came in.
    first_count: Option<Instant>,
    /// Whether stale counts were asked for once more.
    asked_again: bool,
}

/// What comes next of a probe.
#[derive(Debug, Clone, Copy)]
enum Next {
    /// The candidates are dialled, and later asked.
    Dial { at: Instant, ask_at: Instant },
    /// They are asked, all in the same instant.
    Ask { at: Instant },
    /// Those that have not answered are maximally loaded.
    GiveUp { at: Instant },
}

impl Selecting {
    pub(super) fn begin<R: Rng>(mut attempt: Attempt, cx: &mut Context<R>) -> Phase {
        let pool = attempt.pool(cx);
        let least_connections = matches!(cx.strategy, Strategy::LeastConnections { .. });
        let fresh_reconnect = mem::take(&mut cx.memory.fresh_reconnect);
        if least_connections && pool.len() > 1 {
            return Self::probe(attempt, pool, cx);
        }
        if !fresh_reconnect {
            return attempt.choose(cx);
        }
        let until = attempt.wait_over(cx);
        let step = Step::Waiting { until };
        Phase::Selecting(Self { attempt, step })
    }

    /// Probes candidates that were not probed yet, when the wait of this attempt is over.
    pub(super) fn probe<R: Rng>(
        mut attempt: Attempt,
        pool: Vec<usize>,
        cx: &mut Context<R>,
    ) -> Phase {
        let is_first = attempt.wait_over.is_none();
        let ask_at = attempt.wait_over(cx).max(cx.now);
        // Within the wait, so that the handshakes hide in it and do not come in a burst either.
        let longest = if is_first {
            ask_at - cx.now
        } else {
            Duration::ZERO
        };
        let dial_at = cx.now + random::duration(&mut cx.rng, Duration::ZERO, longest);
        let next = Next::Dial {
            at: dial_at,
            ask_at,
        };
        let probing = Probing::new(pool, next, cx);
        Phase::Selecting(Self {
            attempt,
            step: Step::Probing(probing),
        })
    }

    pub(super) fn attempt(&self) -> &Attempt {
        &self.attempt
    }

    pub(super) fn hang_up<R: Rng>(&mut self, cx: &mut Context<R>) {
        self.attempt.hang_up_all_but(None, cx);
    }

    pub(super) fn deadline(&self) -> Option<(Instant, WaitReason)> {
        let own = match &self.step {
            Step::Waiting { until } => (*until, WaitReason::SelectionWait),
            Step::Probing(probing) => match probing.next {
                Next::Dial { at, .. } => (at, WaitReason::DialWait),
                Next::Ask { at } => (at, WaitReason::SelectionWait),
                Next::GiveUp { at } => (at, WaitReason::Counts),
            },
        };
        earliest([Some(own), self.attempt.deadline(WaitReason::Open)])
    }

    pub(super) fn expire<R: Rng>(mut self, due: Instant, cx: &mut Context<R>) -> Phase {
        if let Some((index, cause)) = self.attempt.expire_dial(due, cx) {
            lost_unchosen(&mut self.attempt.candidates[index], cause);
            return self.proceed(cx);
        }
        let Step::Probing(probing) = &mut self.step else {
            return self.attempt.choose(cx);
        };
        match probing.next {
            Next::Dial { ask_at, .. } => {
                probing.next = Next::Ask { at: ask_at };
                for index in &probing.pool {
                    self.attempt.dial(*index, cx);
                }
            }
            Next::Ask { .. } => probing.ask_all(&mut self.attempt, cx),
            Next::GiveUp { .. } => {
                for index in &probing.pool {
                    let candidate = &mut self.attempt.candidates[*index];
                    candidate.stop_asking(cx);
                    if matches!(candidate.count, Count::Unasked) {
                        candidate.count = Count::Unknown;
                    }
                }
            }
        }
        self.proceed(cx)
    }

    pub(super) fn on_reply<R: Rng>(mut self, id: Id, reply: &Reply, cx: &mut Context<R>) -> Phase {
        match self.attempt.on_link_reply(id, reply, cx) {
            LinkChange::NotMine => {}
            LinkChange::Up(index) => {
                if let Step::Probing(Probing {
                    next: Next::GiveUp { .. },
                    ..
                }) = self.step
                {
                    ask(&mut self.attempt, index, cx);
                }
                return self.proceed(cx);
            }
            LinkChange::Lost(index, cause) => {
                lost_unchosen(&mut self.attempt.candidates[index], cause);
                return self.proceed(cx);
            }
        }
        let asked = self.attempt.candidates.iter_mut().find(
            |candidate| matches!(candidate.count, Count::Asking { id: mine, .. } if mine == id),
        );
        let (Some(candidate), Step::Probing(probing)) = (asked, &mut self.step) else {
            cx.ignore(id, reply);
            return Phase::Selecting(self);
        };
        candidate.count = match reply {
            Reply::Http(response) => match count_of(response) {
                Some(count) => Count::Known(count),
                None => Count::Unknown,
            },
            Reply::Failed(_) => Count::Unknown,
            Reply::NameServers(_)
            | Reply::Opened { .. }
            | Reply::GoingAway { .. }
            | Reply::Closed(_)
            | Reply::Message(_)
            | Reply::Finished(_) => {
                cx.cancel(id);
                Count::Unknown
            }
        };
        if matches!(candidate.count, Count::Known(_)) {
            probing.first_count.get_or_insert(cx.now);
        }
        self.proceed(cx)
    }

    /// Chooses once every candidate that was asked has answered or failed, and the counts are fresh.
    fn proceed<R: Rng>(mut self, cx: &mut Context<R>) -> Phase {
        let Step::Probing(probing) = &mut self.step else {
            return Phase::Selecting(self);
        };
        let candidates = &self.attempt.candidates;
        let is_settled = |index: &usize| candidates[*index].is_settled();
        if !probing.pool.iter().all(is_settled) {
            return Phase::Selecting(self);
        }
        let stale = probing
            .first_count
            .is_some_and(|first| cx.now > first + cx.config.timing.stale_count);
        if stale && !probing.asked_again {
            probing.asked_again = true;
            probing.ask_all(&mut self.attempt, cx);
            return self.proceed(cx);
        }
        self.attempt.choose(cx)
    }
}

impl Probing {
    fn new<R: Rng>(pool: Vec<usize>, next: Next, cx: &mut Context<R>) -> Self {
        let pool = match cx.strategy {
            Strategy::LeastConnections {
                max_probes: Some(most),
            } => random::some_of(&mut cx.rng, &pool, most.get()),
            Strategy::LeastConnections { max_probes: None }
            | Strategy::RoundRobin
            | Strategy::Random
            | Strategy::Custom(_) => pool,
        };
        Self {
            pool,
            next,
            first_count: None,
            asked_again: false,
        }
    }

    /// Asks all that can be reached; from now on they have their time, however late it is.
    fn ask_all<R: Rng>(&mut self, attempt: &mut Attempt, cx: &mut Context<R>) {
        self.next = Next::GiveUp {
            at: cx.now + cx.config.timing.count,
        };
        for index in &self.pool {
            ask(attempt, *index, cx);
        }
    }
}

/// Asks a candidate for its count, or once more where it gave one, if it can be reached.
fn ask<R: Rng>(attempt: &mut Attempt, index: usize, cx: &mut Context<R>) {
    let candidate = &mut attempt.candidates[index];
    let Link::Up { id: on, .. } = candidate.link else {
        return;
    };
    let before = match candidate.count {
        Count::Unasked => None,
        Count::Known(count) => Some(count),
        Count::Asking { .. } | Count::Unknown => return,
    };
    candidate.count = Count::Asking {
        id: cx.http(on, Method::GET, COUNT_PATH, COUNT_LIMIT),
        before,
    };
}

/// The count in an answer: any 2xx whose body is digits, with white space around them at most.
fn count_of(response: &http::Response<bytes::Bytes>) -> Option<u64> {
    if !response.status().is_success() || response.body().len() > COUNT_LIMIT {
        return None;
    }
    let text = std::str::from_utf8(response.body()).ok()?;
    let digits = text.trim_matches(|c: char| c.is_ascii_whitespace());
    // `u64` alone would take a leading `+`.
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    digits.parse().ok()
}

const COUNT_PATH: &str = "/connections/count";
const COUNT_LIMIT: usize = 64;

#[cfg(feature = "model-checking")]
impl Selecting {
    pub(super) fn normal_form<H: std::hash::Hasher>(&self, form: &mut crate::NormalForm<H>) {
        let Self { attempt, step } = self;
        attempt.normal_form(form);
        let probing = match step {
            Step::Waiting { until } => {
                form.value(0);
                return form.instant(*until);
            }
            Step::Probing(probing) => probing,
        };
        form.value(1);
        let Probing {
            pool,
            next,
            first_count,
            asked_again,
        } = probing;
        form.value((pool, asked_again));
        match *next {
            Next::Dial { at, ask_at } => {
                form.value(0);
                form.instant(at);
                form.instant(ask_at);
            }
            Next::Ask { at } => {
                form.value(1);
                form.instant(at);
            }
            Next::GiveUp { at } => {
                form.value(2);
                form.instant(at);
            }
        }
        form.optional(*first_count, crate::NormalForm::instant);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(status: u16, body: &'static str) -> Option<u64> {
        let mut response = http::Response::new(body.into());
        *response.status_mut() = http::StatusCode::from_u16(status).unwrap();
        count_of(&response)
    }

    #[test]
    fn a_count_is_any_success_with_digits() {
        assert_eq!(count(200, "7"), Some(7));
        assert_eq!(count(206, " \r\n12\t"), Some(12));
        assert_eq!(count(200, "007"), Some(7));
        assert_eq!(count(200, "18446744073709551615"), Some(u64::MAX));
    }

    #[test]
    fn anything_else_is_no_count() {
        for body in [
            "",
            " ",
            "-1",
            "+1",
            "1.0",
            "1 2",
            "٣",
            "not-a-number",
            "<html>",
            "1\u{a0}",
            "18446744073709551616",
        ] {
            assert_eq!(count(200, body), None, "{body:?}");
        }
        for status in [199, 301, 307, 404, 500] {
            assert_eq!(count(status, "7"), None, "{status}");
        }
        let long = format!("{:>65}", 1);
        assert_eq!(count(200, Box::leak(long.into_boxed_str())), None);
    }
}
