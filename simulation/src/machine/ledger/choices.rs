//! Which servers a machine chooses, and why it gives up.

use super::{Broken, session::Stamp};
use chronicle_connection::{Endpoint, FatalError, NormalForm, State};
use std::{
    collections::{BTreeMap, BTreeSet},
    hash::Hasher,
    time::Duration,
};

/// The candidates of an attempt, with what each was seen to do.
#[derive(Debug, Clone)]
pub(super) struct Choices {
    candidates: Vec<Endpoint>,
    /// Chosen in vain since the last session.
    failed: BTreeSet<Endpoint>,
    /// Had sessions that were too short to be stable, since the last stable one; the newest last.
    /// Once all that are left rank behind, only that one still does for it.
    unstable: Vec<Endpoint>,
    /// Of those, whoever may have got that other chance: nobody can tell from outside whether a
    /// server whose transport is gone was still left.
    doubtful: BTreeSet<Endpoint>,
    /// Chosen in vain in this attempt.
    out: BTreeSet<Endpoint>,
    /// Their transport did not come about in this attempt, or ended.
    gone: BTreeSet<Endpoint>,
    /// How many clients they said in this attempt that they have.
    counts: BTreeMap<Endpoint, u64>,
    /// Were seen to find the contract incompatible in this attempt, or not to be able to compare.
    incompatible: BTreeSet<Endpoint>,
    /// Were seen to refuse credentials in this attempt.
    denied: BTreeSet<Endpoint>,
    had_session: bool,
    connect_timeout: Option<Duration>,
    /// When the first connect began.
    began: Option<Stamp>,
    /// What servers did around the input at hand, nobody can tell from outside.
    is_blurred: bool,
}

impl Choices {
    pub(super) fn new(connect_timeout: Option<Duration>) -> Self {
        Self {
            candidates: Vec::new(),
            failed: BTreeSet::new(),
            unstable: Vec::new(),
            doubtful: BTreeSet::new(),
            out: BTreeSet::new(),
            gone: BTreeSet::new(),
            counts: BTreeMap::new(),
            incompatible: BTreeSet::new(),
            denied: BTreeSet::new(),
            had_session: false,
            connect_timeout,
            began: None,
            is_blurred: false,
        }
    }

    /// Something arrives.
    pub(super) fn input(&mut self, is_blurred: bool) {
        self.is_blurred = is_blurred;
        self.blur();
    }

    /// Servers may have been dialled and given up without a word: they may be gone.
    fn blur(&mut self) {
        if self.is_blurred {
            self.gone.extend(self.candidates.iter().cloned());
        }
    }

    /// Told to connect.
    pub(super) fn told(&mut self, now: Stamp) {
        self.began.get_or_insert(now);
    }

    /// An attempt begins.
    pub(super) fn begins(&mut self, candidates: &[Endpoint]) {
        self.end();
        self.candidates = candidates.to_vec();
        self.blur();
        self.forgive();
    }

    /// An attempt is over; what was seen in it counts no longer.
    pub(super) fn end(&mut self) {
        self.candidates.clear();
        self.counts.clear();
        for seen in [
            &mut self.out,
            &mut self.gone,
            &mut self.incompatible,
            &mut self.denied,
        ] {
            seen.clear();
        }
    }

    pub(super) fn is_gone(&mut self, server: &Endpoint) {
        self.gone.insert(server.clone());
        self.forgive();
    }

    /// A server was asked how many clients it has; `None` where it did not say, or too late.
    pub(super) fn counts(&mut self, server: &Endpoint, count: Option<u64>) {
        match count {
            Some(count) => self.counts.insert(server.clone(), count),
            None => self.counts.remove(server),
        };
    }

    pub(super) fn is_incompatible(&mut self, server: &Endpoint) {
        self.incompatible.insert(server.clone());
    }

    pub(super) fn denies(&mut self, server: &Endpoint) {
        self.denied.insert(server.clone());
    }

    /// A chosen server failed.
    pub(super) fn fails(&mut self, server: &Endpoint) {
        self.failed.insert(server.clone());
        self.out.insert(server.clone());
        self.forgive();
    }

    /// A session ended.
    pub(super) fn lost(&mut self, server: &Endpoint, was_stable: bool) {
        self.end();
        self.unstable.retain(|other| !was_stable && other != server);
        self.doubtful.retain(|other| !was_stable && other != server);
        if !was_stable {
            self.unstable.push(server.clone());
        }
    }

    /// Servers of short sessions get another chance where all that are left rank behind; but the
    /// newest does not.
    fn forgive(&mut self) {
        let Some((newest, others)) = self.unstable.split_last() else {
            return;
        };
        let mut left = self.candidates.iter().filter(|one| !self.out.contains(one));
        if self.candidates.is_empty() || self.candidates.iter().any(|one| self.is_best(one)) {
            return;
        }
        if left.all(|server| self.surely_ranks_behind(server)) {
            self.doubtful.clear();
            self.unstable = vec![newest.clone()];
        } else {
            self.doubtful.extend(others.iter().cloned());
        }
    }

    /// Whether a server is left for sure, and has not failed.
    fn is_best(&self, server: &Endpoint) -> bool {
        self.is_left(server) && !self.may_rank_behind(server)
    }

    fn is_left(&self, server: &Endpoint) -> bool {
        !self.out.contains(server) && !self.gone.contains(server)
    }

    fn may_rank_behind(&self, server: &Endpoint) -> bool {
        self.failed.contains(server) || self.unstable.contains(server)
    }

    fn surely_ranks_behind(&self, server: &Endpoint) -> bool {
        let is_unstable = self.unstable.contains(server) && !self.doubtful.contains(server);
        self.failed.contains(server) || is_unstable
    }

    pub(super) fn connected(&mut self) {
        self.end();
        self.had_session = true;
        self.failed.clear();
    }

    /// Writes what the choices of before can be held against the machine for.
    pub(super) fn normal_form<H: Hasher>(&self, now: Stamp, form: &mut NormalForm<H>) {
        let Self {
            candidates,
            failed,
            unstable,
            doubtful,
            out,
            gone,
            counts,
            incompatible,
            denied,
            had_session,
            connect_timeout,
            began,
            // Of the last input, and forgotten with the next.
            is_blurred: _,
        } = self;
        form.value((candidates, failed, out, gone, counts));
        // Of those, only the newest is told apart.
        let all: BTreeSet<_> = unstable.iter().collect();
        form.value((all, unstable.last(), doubtful));
        form.value((incompatible, denied, had_session));
        let began = began.filter(|_| !had_session && connect_timeout.is_some());
        form.value(began.map(|began| now.since(began)));
    }

    /// A server that fails whoever chooses it captures nobody while another works, and of those that
    /// told how many clients they have it is one with the fewest.
    pub(super) fn chooses(&self, server: &Endpoint, count: Option<u64>) -> Result<(), Broken> {
        let is_candidate = self.candidates.contains(server) && !self.out.contains(server);
        Broken::unless(is_candidate, || {
            format!("{server} is chosen, which is no candidate or out")
        })?;
        let is_behind = self.surely_ranks_behind(server);
        let mut best = self.candidates.iter().filter(|other| self.is_best(other));
        let better = best.next().filter(|_| is_behind);
        Broken::unless(better.is_none(), || {
            let better = better.map(ToString::to_string).unwrap_or_default();
            format!("{server} is chosen, which failed since the last session; {better} did not")
        })?;
        let told = self.counts.get(server);
        let is_told = count.is_none() || told.is_none_or(|told| Some(*told) == count);
        Broken::unless(is_told, || {
            format!("{server} is chosen for a count of {count:?}, and it told {told:?}")
        })?;
        let is_rival = |other| self.is_left(other) && (is_behind || !self.may_rank_behind(other));
        let rivals = self.counts.iter().filter(|(other, _)| is_rival(other));
        let lowest = rivals.map(|(_, count)| *count).min();
        let is_lowest = lowest.is_none_or(|lowest| count.is_some_and(|count| count <= lowest));
        Broken::unless(is_lowest, || {
            format!("{server} is chosen for a count of {count:?}, and there is one of {lowest:?}")
        })
    }

    /// The first connect gives up when its time is over, and not later.
    pub(super) fn settled(
        &self,
        state: Option<&State>,
        deadline: Option<Stamp>,
    ) -> Result<(), Broken> {
        let is_trying = state != Some(&State::Stopped) && !self.had_session;
        let (true, Some(began), Some(timeout)) = (is_trying, self.began, self.connect_timeout)
        else {
            return Ok(());
        };
        let is_watched = deadline.is_some_and(|deadline| deadline.since(began) <= timeout);
        Broken::unless(is_watched, || {
            format!("the first connect is not watched to end within {timeout:?}")
        })
    }

    /// Nobody gives up but for what servers were seen to say, or for the time of the first connect.
    pub(super) fn gives_up(&self, now: Stamp, error: &FatalError) -> Result<(), Broken> {
        let is_founded = match error {
            FatalError::Incompatible(error) => {
                let servers = error.candidates.iter().map(|(server, _)| server);
                error.lookup.is_none()
                    && servers.eq(&self.candidates)
                    && self.incompatible.len() == self.candidates.len()
            }
            FatalError::Credentials { server, .. } => {
                !self.had_session && self.denied.contains(server)
            }
            FatalError::ConnectTimeout { timeout, .. } => {
                let began = self.began.filter(|_| !self.had_session);
                Some(*timeout) == self.connect_timeout
                    && began.is_some_and(|began| now.since(began) >= *timeout)
            }
        };
        Broken::unless(is_founded, || format!("gave up without a reason: {error}"))
    }
}
