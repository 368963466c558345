//! Which servers a machine chooses, and why it gives up.

use super::{Broken, session::Stamp};
use chronicle_connection::{Endpoint, FatalError, NormalForm, State};
use std::{collections::BTreeSet, hash::Hasher, time::Duration};

/// The candidates of an attempt, with what each was seen to do.
#[derive(Debug, Clone)]
pub(super) struct Choices {
    candidates: Vec<Endpoint>,
    /// Chosen in vain since the last session.
    failed: BTreeSet<Endpoint>,
    /// Had the last session, which was too short to be stable.
    unstable: Option<Endpoint>,
    /// Chosen in vain in this attempt.
    out: BTreeSet<Endpoint>,
    /// Their transport did not come about in this attempt, or ended.
    gone: BTreeSet<Endpoint>,
    /// Were seen to find the contract incompatible in this attempt, or not to be able to compare.
    incompatible: BTreeSet<Endpoint>,
    /// Were seen to refuse credentials in this attempt.
    denied: BTreeSet<Endpoint>,
    had_session: bool,
    connect_timeout: Option<Duration>,
    /// When the first connect began.
    began: Option<Stamp>,
}

impl Choices {
    pub(super) fn new(connect_timeout: Option<Duration>) -> Self {
        Self {
            candidates: Vec::new(),
            failed: BTreeSet::new(),
            unstable: None,
            out: BTreeSet::new(),
            gone: BTreeSet::new(),
            incompatible: BTreeSet::new(),
            denied: BTreeSet::new(),
            had_session: false,
            connect_timeout,
            began: None,
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
    }

    /// An attempt is over; what was seen in it counts no longer.
    pub(super) fn end(&mut self) {
        self.candidates.clear();
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
    }

    /// A session ended.
    pub(super) fn lost(&mut self, server: &Endpoint, was_stable: bool) {
        self.end();
        self.unstable = (!was_stable).then(|| server.clone());
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
            out,
            gone,
            incompatible,
            denied,
            had_session,
            connect_timeout,
            began,
        } = self;
        form.value((candidates, failed, unstable, out, gone));
        form.value((incompatible, denied, had_session));
        let began = began.filter(|_| !had_session && connect_timeout.is_some());
        form.value(began.map(|began| now.since(began)));
    }

    /// A server that fails whoever chooses it captures nobody while another works.
    pub(super) fn chooses(&self, server: &Endpoint) -> Result<(), Broken> {
        let is_candidate = self.candidates.contains(server) && !self.out.contains(server);
        Broken::unless(is_candidate, || {
            format!("{server} is chosen, which is no candidate or out")
        })?;
        let is_better = |other: &&Endpoint| {
            let seen = [&self.failed, &self.out, &self.gone];
            seen.iter().all(|seen| !seen.contains(other)) && self.unstable.as_ref() != Some(*other)
        };
        let better = self.candidates.iter().find(is_better);
        let ranks_behind = self.failed.contains(server) || self.unstable.as_ref() == Some(server);
        Broken::unless(!ranks_behind || better.is_none(), || {
            let better = better.map(ToString::to_string).unwrap_or_default();
            format!("{server} is chosen, which failed since the last session; {better} did not")
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
