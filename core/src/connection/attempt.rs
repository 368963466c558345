//! One attempt: its candidates, what is known of each, and which of them is best.

use super::{
    Phase, WaitReason,
    backing_off::BackingOff,
    context::{Context, timed_out, wrong_kind},
    earliest,
    handshaking::Handshaking,
    random,
    resolving::Resolving,
    selecting::Selecting,
};
use crate::{
    AttemptError, CandidateError, Endpoint, Event, Failure, FailureKind, FatalError, Id,
    LookupError, Reply, Servers, Strategy,
};
use rand_core::Rng;
use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};

#[derive(Debug, Clone)]
pub(super) struct Attempt {
    pub(super) candidates: Vec<Candidate>,
    /// When the random wait is over, which comes before anybody is asked for a count.
    pub(super) wait_over: Option<Instant>,
    /// Why the candidates are those of an earlier lookup.
    lookup: Option<Box<LookupError>>,
}

#[derive(Debug, Clone)]
pub(super) struct Candidate {
    pub(super) server: Endpoint,
    pub(super) link: Link,
    pub(super) count: Count,
    /// Why the candidate is out for this attempt.
    pub(super) out: Option<Box<CandidateError>>,
}

/// The transport to a candidate.
#[derive(Debug, Clone, Copy)]
pub(super) enum Link {
    /// None, or no longer; it is dialled (again) when the candidate is chosen.
    Down,
    Dialling {
        id: Id,
        deadline: Instant,
    },
    Up {
        id: Id,
        peer: SocketAddr,
    },
}

/// How many clients a candidate has.
#[derive(Debug, Clone, Copy)]
pub(super) enum Count {
    Unasked,
    Asking {
        id: Id,
        /// What it answered the first time.
        before: Option<u64>,
    },
    Known(u64),
    /// Asked or dialled in vain: maximally loaded.
    Unknown,
}

/// What a reply meant to the transports of an attempt.
pub(super) enum LinkChange {
    /// The id is no transport of this attempt.
    NotMine,
    /// The candidate's transport is up.
    Up(usize),
    /// The candidate's transport is gone, for this reason.
    Lost(usize, CandidateError),
}

impl Attempt {
    /// Resolves the servers and begins to select one.
    pub(super) fn begin<R: Rng>(cx: &mut Context<R>) -> Phase {
        cx.memory.attempt = cx.memory.attempt.saturating_add(1);
        cx.stats.attempts += 1;
        match cx.config.servers.clone() {
            Servers::List(servers) => Self::select(servers, None, cx),
            Servers::Srv(name) => Resolving::begin(name, cx),
        }
    }

    /// Begins to select one of the servers of this attempt.
    pub(super) fn select<R: Rng>(
        servers: Vec<Endpoint>,
        lookup: Option<Box<LookupError>>,
        cx: &mut Context<R>,
    ) -> Phase {
        let attempt = Self::new(&servers, lookup);
        cx.emit(Event::Connecting {
            attempt: cx.memory.attempt,
            candidates: servers,
        });
        Selecting::begin(attempt, cx)
    }

    /// The servers as far as they are known, none of them tried.
    pub(super) fn untried<R>(cx: &Context<R>) -> Self {
        match &cx.config.servers {
            Servers::List(servers) => Self::new(servers, None),
            Servers::Srv(_) => Self::new(&cx.memory.last_good, None),
        }
    }

    fn new(servers: &[Endpoint], lookup: Option<Box<LookupError>>) -> Self {
        let untried = |server: &Endpoint| Candidate {
            server: server.clone(),
            link: Link::Down,
            count: Count::Unasked,
            out: None,
        };
        Self {
            candidates: servers.iter().map(untried).collect(),
            wait_over: None,
            lookup,
        }
    }

    /// The candidates of the best rank that are not out: those that have not failed since the last
    /// session, nor had one that was too short since the last stable one; or else the others.
    pub(super) fn pool<R>(&self, cx: &mut Context<R>) -> Vec<usize> {
        let left =
            || (0..self.candidates.len()).filter(|index| self.candidates[*index].out.is_none());
        let best = |cx: &Context<R>| -> Vec<usize> {
            left()
                .filter(|index| !cx.memory.ranks_behind(&self.candidates[*index].server))
                .collect()
        };
        let mut pool = best(cx);
        if pool.is_empty() {
            cx.memory.forgive();
            pool = best(cx);
        }
        if pool.is_empty() {
            left().collect()
        } else {
            pool
        }
    }

    /// Takes the best of what is left, or ends the attempt.
    pub(super) fn choose<R: Rng>(self, cx: &mut Context<R>) -> Phase {
        let pool = self.pool(cx);
        let chosen = match &mut cx.strategy {
            _ if pool.is_empty() => return self.fail(cx),
            Strategy::LeastConnections { .. } => match self.least_loaded(&pool, &mut cx.rng) {
                Some(index) => Some(index),
                None => return Selecting::probe(self, pool, cx),
            },
            Strategy::RoundRobin => {
                let len = self.candidates.len();
                let all: Vec<_> = (0..len).collect();
                let start = match &cx.memory.round_robin {
                    Some((last, index)) => {
                        let is_last = |candidate: &Candidate| candidate.server == *last;
                        let last = self.candidates.iter().position(is_last);
                        last.map_or(*index, |last| last + 1) % len
                    }
                    None => random::one_of(&mut cx.rng, &all).copied().unwrap_or(0),
                };
                pool.iter()
                    .copied()
                    .min_by_key(|index| (index + len - start) % len)
            }
            Strategy::Random => random::one_of(&mut cx.rng, &pool).copied(),
            Strategy::Custom(selector) => {
                let servers: Vec<_> = pool
                    .iter()
                    .map(|index| self.candidates[*index].server.clone())
                    .collect();
                let selected = selector.select(&servers, &mut cx.rng);
                servers
                    .iter()
                    .position(|server| server == selected)
                    .and_then(|position| pool.get(position).copied())
            }
        };
        let Some(chosen) = chosen.or(pool.first().copied()) else {
            return self.fail(cx);
        };
        let candidate = &self.candidates[chosen];
        cx.memory.round_robin = Some((candidate.server.clone(), chosen));
        cx.emit(Event::Selected {
            server: candidate.server.clone(),
            count: match candidate.count {
                Count::Known(count) => Some(count),
                Count::Unasked | Count::Asking { .. } | Count::Unknown => None,
            },
        });
        Handshaking::begin(self, chosen, cx)
    }

    /// The lowest count; else one of those reached; else one of those still dialled. `None` where
    /// all are yet to be probed.
    fn least_loaded(&self, pool: &[usize], rng: &mut impl Rng) -> Option<usize> {
        if let [only] = pool {
            return Some(*only);
        }
        let best = pool.iter().filter_map(|index| self.load(*index)).min()?;
        let best: Vec<_> = pool
            .iter()
            .copied()
            .filter(|index| self.load(*index) == Some(best))
            .collect();
        random::one_of(rng, &best).copied()
    }

    /// Orders candidates: counted by their counts, then reached, then still dialled.
    fn load(&self, index: usize) -> Option<(u8, u64)> {
        let candidate = &self.candidates[index];
        match (candidate.count, candidate.link) {
            (Count::Known(count), _) => Some((0, count)),
            (Count::Unasked | Count::Unknown | Count::Asking { .. }, Link::Up { .. })
            | (Count::Unknown | Count::Asking { .. }, Link::Down) => Some((1, 0)),
            (Count::Unasked | Count::Unknown | Count::Asking { .. }, Link::Dialling { .. }) => {
                Some((2, 0))
            }
            (Count::Unasked, Link::Down) => None,
        }
    }

    /// When the random wait of this attempt is over. It is drawn once.
    pub(super) fn wait_over<R: Rng>(&mut self, cx: &mut Context<R>) -> Instant {
        let longest = cx.config.timing.selection_wait;
        let draw = || cx.now + random::duration(&mut cx.rng, Duration::ZERO, longest);
        *self.wait_over.get_or_insert_with(draw)
    }

    pub(super) fn dial<R: Rng>(&mut self, index: usize, cx: &mut Context<R>) {
        let candidate = &mut self.candidates[index];
        candidate.link = Link::Dialling {
            id: cx.open(candidate.server.clone()),
            deadline: cx.now + cx.config.timing.open,
        };
    }

    /// Takes a reply to a transport of this attempt.
    pub(super) fn on_link_reply<R: Rng>(
        &mut self,
        id: Id,
        reply: &Reply,
        cx: &mut Context<R>,
    ) -> LinkChange {
        let found = self
            .candidates
            .iter()
            .position(|candidate| match candidate.link {
                Link::Down => false,
                Link::Dialling { id: mine, .. } | Link::Up { id: mine, .. } => mine == id,
            });
        let Some(index) = found else {
            return LinkChange::NotMine;
        };
        let candidate = &mut self.candidates[index];
        let (cause, ended) = match (candidate.link, reply) {
            (Link::Dialling { .. }, Reply::Opened { peer }) => {
                candidate.link = Link::Up { id, peer: *peer };
                return LinkChange::Up(index);
            }
            (Link::Dialling { .. }, Reply::Failed(failure)) => {
                (CandidateError::Unreachable(failure.clone()), true)
            }
            (Link::Up { .. }, Reply::Closed(failure)) => {
                (CandidateError::Closed(failure.clone()), true)
            }
            (Link::Up { .. }, Reply::GoingAway { code }) => {
                (CandidateError::GoingAway { code: *code }, false)
            }
            _ => (CandidateError::Closed(wrong_kind()), false),
        };
        if !ended {
            cx.close(id);
        }
        candidate.link = Link::Down;
        LinkChange::Lost(index, cause)
    }

    /// When the first dial is given up.
    pub(super) fn deadline(&self, reason: WaitReason) -> Option<(Instant, WaitReason)> {
        earliest(
            self.candidates
                .iter()
                .map(|candidate| match candidate.link {
                    Link::Dialling { deadline, .. } => Some((deadline, reason)),
                    Link::Down | Link::Up { .. } => None,
                }),
        )
    }

    /// Gives up one dial that is due.
    pub(super) fn expire_dial<R: Rng>(
        &mut self,
        due: Instant,
        cx: &mut Context<R>,
    ) -> Option<(usize, CandidateError)> {
        let expired = self.candidates.iter().position(|candidate| {
            matches!(candidate.link, Link::Dialling { deadline, .. } if deadline <= due)
        })?;
        self.hang_up(expired, cx);
        let cause = CandidateError::Unreachable(timed_out(cx.config.timing.open));
        Some((expired, cause))
    }

    /// Closes the transport of a candidate.
    pub(super) fn hang_up<R: Rng>(&mut self, index: usize, cx: &mut Context<R>) {
        let candidate = &mut self.candidates[index];
        match candidate.link {
            Link::Down => {}
            Link::Dialling { id, .. } | Link::Up { id, .. } => cx.close(id),
        }
        candidate.link = Link::Down;
        candidate.count = match candidate.count {
            Count::Asking { before, .. } => before.map_or(Count::Unknown, Count::Known),
            count @ (Count::Unasked | Count::Known(_) | Count::Unknown) => count,
        };
    }

    /// Closes every transport but that of one candidate.
    pub(super) fn hang_up_all_but<R: Rng>(&mut self, kept: Option<usize>, cx: &mut Context<R>) {
        for index in (0..self.candidates.len()).filter(|index| Some(*index) != kept) {
            self.hang_up(index, cx);
        }
    }

    /// Puts a candidate out for the rest of this attempt.
    pub(super) fn rule_out<R: Rng>(
        &mut self,
        index: usize,
        cause: CandidateError,
        cx: &mut Context<R>,
    ) {
        self.hang_up(index, cx);
        self.candidates[index].out = Some(Box::new(cause));
    }

    /// What is known of every candidate.
    pub(super) fn error(&self) -> AttemptError {
        AttemptError {
            lookup: self.lookup.clone(),
            candidates: self
                .candidates
                .iter()
                .map(|candidate| (candidate.server.clone(), candidate.out.as_deref().cloned()))
                .collect(),
        }
    }

    /// What is known of every candidate when the time for the first connect is up: why it is out, or
    /// was out of an earlier attempt, or how far it has come.
    pub(super) fn cut_off(&self, chosen: Option<usize>, earlier: AttemptError) -> AttemptError {
        let mut error = self.error();
        error.fill_in(earlier);
        let timed_out = |text| Failure::new(FailureKind::TimedOut, text);
        for (index, candidate) in self.candidates.iter().enumerate() {
            let cause = match candidate.link {
                Link::Dialling { .. } => CandidateError::Unreachable(timed_out("not open yet")),
                Link::Up { .. } if chosen == Some(index) => {
                    CandidateError::Closed(timed_out("cut off"))
                }
                Link::Up { .. } | Link::Down => continue,
            };
            error.candidates[index].1.get_or_insert(cause);
        }
        error
    }

    /// Every candidate is out: stop if all refused, else back off. A list that DNS did not confirm is
    /// not known to be all.
    fn fail<R: Rng>(self, cx: &mut Context<R>) -> Phase {
        let error = self.error();
        let refused = |(_, cause): &(Endpoint, Option<CandidateError>)| {
            matches!(cause, Some(CandidateError::Incompatible(_)))
        };
        if error.lookup.is_none() && error.candidates.iter().all(refused) {
            cx.emit(Event::Failed(FatalError::Incompatible(error)));
            return Phase::Stopped;
        }
        cx.memory.last_error = Some(error.clone());
        BackingOff::begin(Some(error), cx)
    }
}

impl Candidate {
    /// Takes the candidate by its first count, or for maximally loaded, where it is being asked.
    pub(super) fn stop_asking<R: Rng>(&mut self, cx: &mut Context<R>) {
        if let Count::Asking { id, before } = self.count {
            cx.cancel(id);
            self.count = before.map_or(Count::Unknown, Count::Known);
        }
    }

    /// Whether the candidate has nothing more to say about its count.
    pub(super) fn is_settled(&self) -> bool {
        self.out.is_some() || matches!(self.count, Count::Known(_) | Count::Unknown)
    }
}

/// A transport that ended before its candidate was chosen.
pub(super) fn lost_unchosen(candidate: &mut Candidate, cause: CandidateError) {
    candidate.count = match candidate.count {
        Count::Unasked | Count::Asking { before: None, .. } => {
            candidate.out = Some(Box::new(cause));
            Count::Unknown
        }
        Count::Asking {
            before: Some(count),
            ..
        } => Count::Known(count),
        Count::Unknown if matches!(cause, CandidateError::Unreachable(_)) => {
            candidate.out = Some(Box::new(cause));
            Count::Unknown
        }
        count @ (Count::Known(_) | Count::Unknown) => count,
    };
}

#[cfg(feature = "model-checking")]
impl Attempt {
    pub(super) fn normal_form<H: std::hash::Hasher>(&self, form: &mut crate::NormalForm<H>) {
        let Self {
            candidates,
            wait_over,
            lookup,
        } = self;
        form.optional(*wait_over, crate::NormalForm::ahead);
        form.value(lookup);
        form.list(candidates.iter(), |form, candidate| {
            let Candidate {
                server,
                link,
                count,
                out,
            } = candidate;
            form.value((server, out));
            match *link {
                Link::Down => form.value(0),
                Link::Dialling { id, deadline } => {
                    form.value(1);
                    form.id(id);
                    form.instant(deadline);
                }
                Link::Up { id, peer } => {
                    form.value((2, peer));
                    form.id(id);
                }
            }
            match *count {
                Count::Unasked => form.value(0),
                Count::Asking { id, before } => {
                    form.value((1, before));
                    form.id(id);
                }
                Count::Known(count) => form.value((2, count)),
                Count::Unknown => form.value(3),
            }
        });
    }
}
