//! What a machine does from attempt to attempt: the waits before them and within them.

use super::{Broken, session::Stamp};
use chronicle_connection::{Backoff, Jitter, NormalForm, State, Timing, WaitReason};
use std::{hash::Hasher, time::Duration};

/// The ladder of waits between attempts, and the random wait of each selection.
#[derive(Debug, Clone)]
pub(super) struct Attempts {
    backoff: Backoff,
    longest_wait: Duration,
    /// Waits taken since the last stable session.
    step: u32,
    /// A wait between attempts: since when, and for how long.
    resting: Option<(Stamp, Duration)>,
    selection: Option<Selection>,
    /// A session was lost, and nothing was dialled since.
    is_reconnect: bool,
    last_wait: Option<Duration>,
    /// How often in a row a wait was drawn that is exactly as long as the one before.
    repeated: u32,
    /// The machine was suspended while a deadline was overdue: whether what begins now began before
    /// or after that, nobody can tell from outside.
    is_blurred: bool,
    /// The input at hand tells the machine to connect at once.
    is_hurried: bool,
}

/// The selection of one attempt, with what its deadlines announce.
#[derive(Debug, Clone, Copy, Default)]
struct Selection {
    /// When the wait began: not before the servers that rank behind are all that is left, maybe.
    began: Option<Stamp>,
    /// When servers are dialled.
    dial: Option<Stamp>,
    /// When the wait is over: servers are asked, or one is chosen.
    over: Option<Stamp>,
    is_blurred: bool,
}

impl Attempts {
    pub(super) fn new(backoff: Backoff, timing: &Timing) -> Self {
        Self {
            backoff,
            longest_wait: timing.selection_wait,
            step: 0,
            resting: None,
            selection: None,
            is_reconnect: false,
            last_wait: None,
            repeated: 0,
            is_blurred: false,
            is_hurried: false,
        }
    }

    /// Something arrives.
    pub(super) fn input(&mut self, is_blurred: bool) {
        self.is_blurred = is_blurred;
        self.is_hurried = false;
    }

    /// The application does not want to wait.
    pub(super) fn hurried(&mut self) {
        self.is_hurried = true;
    }

    /// A session ended.
    pub(super) fn lost(&mut self, was_stable: bool) {
        self.is_reconnect = true;
        if was_stable {
            self.step = 0;
        }
    }

    /// A wait was announced.
    pub(super) fn backs_off(&mut self, now: Stamp, wait: Duration) -> Result<(), Broken> {
        self.step += 1;
        self.resting = (!self.is_blurred).then_some((now, wait));
        let rung = self.rung(self.step);
        let shortest = match self.backoff.jitter {
            Jitter::UpperHalf => rung / 2,
            Jitter::None => rung,
        };
        Broken::unless((shortest..=rung).contains(&wait), || {
            format!("wait {} of the ladder is {wait:?}, not {rung:?}", self.step)
        })
    }

    /// What the ladder has for a wait: the base, doubled for each before, up to the ceiling.
    fn rung(&self, step: u32) -> Duration {
        let doubled = (1..step).try_fold(self.backoff.base, |wait, _| {
            (wait < self.backoff.ceiling).then(|| wait.saturating_mul(2))
        });
        doubled.map_or(self.backoff.ceiling, |wait| wait.min(self.backoff.ceiling))
    }

    /// An attempt begins, with a lookup or with a list.
    pub(super) fn begins(&mut self, now: Stamp) -> Result<(), Broken> {
        let Some((since, wait)) = self.resting.take() else {
            return Ok(());
        };
        Broken::unless(now.since(since) >= wait || self.is_hurried, || {
            let waited = now.since(since);
            format!("an attempt after {waited:?}, and the ladder says {wait:?}")
        })
    }

    /// A selection begins.
    pub(super) fn selects(&mut self) {
        self.selection = Some(Selection {
            is_blurred: self.is_blurred,
            ..Selection::default()
        });
    }

    pub(super) fn dials(&mut self, now: Stamp) -> Result<(), Broken> {
        let is_reconnect = std::mem::take(&mut self.is_reconnect);
        let Some(selection) = self.selection else {
            return Err(Broken("a dial before an attempt".to_owned()));
        };
        let has_waited = selection.dial.or(selection.over).is_some();
        let may = !is_reconnect || selection.is_blurred || self.never_waits();
        Broken::unless(has_waited || may, || {
            "a reconnect dials without its random wait".to_owned()
        })?;
        let is_early = selection.dial.is_some_and(|dial| now.is_before(dial));
        Broken::unless(!is_early, || "a dial before its time".to_owned())
    }

    /// A server is asked for its count.
    pub(super) fn probes(&self, now: Stamp) -> Result<(), Broken> {
        // Where both deadlines were overdue, only the first was ever seen.
        let due = self.selection.and_then(|all| all.over.or(all.dial));
        let has_waited = due.is_some_and(|due| !now.is_before(due));
        let is_blurred = self.selection.is_some_and(|all| all.is_blurred);
        Broken::unless(has_waited || is_blurred || self.never_waits(), || {
            "a probe before the random wait of its selection is over".to_owned()
        })
    }

    /// Writes what the waits of before can be held against the machine for.
    pub(super) fn normal_form<H: Hasher>(&self, now: Stamp, form: &mut NormalForm<H>) {
        let Self {
            backoff: _,
            longest_wait: _,
            step: _,
            resting,
            selection,
            is_reconnect,
            last_wait,
            repeated,
            // Of the last input, and forgotten with the next.
            is_blurred: _,
            is_hurried: _,
        } = self;
        // From the ceiling on, all rungs are one.
        form.value(self.rung(self.step.saturating_add(1)));
        form.value((is_reconnect, last_wait, repeated));
        form.value(resting.map(|(since, wait)| (now.since(since), wait)));
        form.optional(*selection, |form, selection| {
            let Selection {
                began,
                dial,
                over,
                is_blurred,
            } = selection;
            form.value(is_blurred);
            form.value(began.map(|began| now.since(began)));
            form.value([dial, over].map(|due| due.map(|due| now.until(due))));
        });
    }

    fn never_waits(&self) -> bool {
        self.longest_wait.is_zero()
    }

    /// What holds of the next deadline, once everything has been put out; the state is `None` in a
    /// session.
    pub(super) fn settled(
        &mut self,
        now: Stamp,
        state: Option<&State>,
        deadline: Option<(Stamp, WaitReason)>,
    ) -> Result<(), Broken> {
        let Some((deadline, reason)) = deadline else {
            return Ok(());
        };
        if let (Some(State::BackingOff), Some((since, wait))) = (state, self.resting) {
            Broken::unless(deadline.since(since) <= wait, || {
                format!("backs off for longer than the {wait:?} that were announced")
            })?;
        }
        let (Some(State::Selecting), Some(selection)) = (state, &mut self.selection) else {
            return Ok(());
        };
        let announced = match reason {
            WaitReason::DialWait => &mut selection.dial,
            WaitReason::SelectionWait => &mut selection.over,
            WaitReason::NameServers
            | WaitReason::Lookup
            | WaitReason::Counts
            | WaitReason::Open
            | WaitReason::Reserve
            | WaitReason::Check
            | WaitReason::Token
            | WaitReason::TokenRefresh
            | WaitReason::FirstKeepAlive
            | WaitReason::KeepAlive
            | WaitReason::Acknowledgement
            | WaitReason::AnswerPace
            | WaitReason::Backoff
            | WaitReason::ConnectTimeout => return Ok(()),
        };
        let is_new = announced.replace(deadline).is_none();
        selection.is_blurred |= self.is_blurred;
        if selection.is_blurred {
            return Ok(());
        }
        let wait = deadline.since(*selection.began.get_or_insert(now));
        Broken::unless(wait <= self.longest_wait, || {
            format!("a selection waits {wait:?}: too long")
        })?;
        if is_new && reason == WaitReason::SelectionWait {
            let is_same = self.last_wait.replace(wait) == Some(wait);
            self.repeated = if is_same { self.repeated + 1 } else { 0 };
        }
        // Once may be chance, to the nanosecond as it is.
        Broken::unless(self.repeated < 2 || self.never_waits(), || {
            format!("three waits in a row are {wait:?}: not drawn anew")
        })
    }
}
