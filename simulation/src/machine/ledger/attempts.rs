//! What a machine does from attempt to attempt: the waits before them and within them.

use super::{Broken, session::Stamp};
use chronicle_connection::{Backoff, Jitter, NormalForm, State, Timing, WaitReason};
use std::{hash::Hasher, time::Duration};

/// The ladder of waits between attempts, and the random wait of each selection.
#[derive(Debug, Clone)]
pub(super) struct Attempts {
    backoff: Backoff,
    longest_lookup: Duration,
    longest_wait: Duration,
    /// Waits taken since the last stable session.
    step: u32,
    /// Attempts begun since the last session.
    attempt: u32,
    /// Since when the servers of the attempt at hand are looked up.
    looks_up: Option<Stamp>,
    /// An attempt was begun, or an unstable session lost: the next attempt comes after a wait.
    owes_wait: bool,
    /// A wait between attempts: since when, and for how long.
    resting: Option<(Stamp, Duration)>,
    selection: Option<Selection>,
    /// A session was lost, and nothing was dialled since.
    is_reconnect: bool,
    waits: Draws,
    dial_waits: Draws,
    /// From the dials of a selection to the end of its wait.
    gaps: Draws,
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
    /// The machine was not woken in time, and may have passed more than one deadline at once: of
    /// those, only the first was ever announced.
    has_jumped: bool,
}

/// Waits that are drawn at random.
#[derive(Debug, Clone, Copy, Default, Hash)]
struct Draws {
    last: Option<Duration>,
    /// How often in a row one was drawn that is exactly as long as the one before.
    repeated: u32,
}

impl Draws {
    fn take(&mut self, wait: Duration) -> Result<(), Broken> {
        let is_same = self.last.replace(wait) == Some(wait);
        self.repeated = if is_same { self.repeated + 1 } else { 0 };
        // Once may be chance, to the nanosecond as it is.
        Broken::unless(self.repeated < 2, || {
            format!("three waits in a row are {wait:?}: not drawn anew")
        })
    }
}

impl Attempts {
    pub(super) fn new(backoff: Backoff, timing: &Timing) -> Self {
        Self {
            backoff,
            longest_lookup: timing.lookup,
            longest_wait: timing.selection_wait,
            step: 0,
            attempt: 0,
            looks_up: None,
            owes_wait: false,
            resting: None,
            selection: None,
            is_reconnect: false,
            waits: Draws::default(),
            dial_waits: Draws::default(),
            gaps: Draws::default(),
            is_blurred: false,
            is_hurried: false,
        }
    }

    /// Something arrives.
    pub(super) fn input(&mut self, is_overdue: bool, is_sleep: bool) {
        self.is_blurred = is_overdue && is_sleep;
        self.is_hurried = false;
        if let Some(selection) = self.selection.as_mut().filter(|all| all.dial.is_some()) {
            selection.has_jumped |= is_overdue || is_sleep;
        }
    }

    /// The application does not want to wait.
    pub(super) fn hurried(&mut self) {
        self.is_hurried = true;
    }

    /// A session ended.
    pub(super) fn lost(&mut self, was_stable: bool) {
        self.is_reconnect = true;
        self.attempt = 0;
        self.owes_wait = !was_stable;
        if was_stable {
            self.step = 0;
        }
    }

    /// A wait was announced.
    pub(super) fn backs_off(&mut self, now: Stamp, wait: Duration) -> Result<(), Broken> {
        self.looks_up = None;
        let is_owed = std::mem::take(&mut self.owes_wait);
        Broken::unless(is_owed, || "backs off and nothing has failed".to_owned())?;
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

    /// An attempt begins with a lookup.
    pub(super) fn looks_up(&mut self, now: Stamp, attempt: u32) -> Result<(), Broken> {
        self.looks_up = Some(now);
        self.begins(now, attempt)
    }

    /// A selection begins, and with it the attempt where there was nothing to look up.
    pub(super) fn selects(&mut self, now: Stamp, attempt: u32) -> Result<(), Broken> {
        self.selection = Some(Selection {
            is_blurred: self.is_blurred,
            ..Selection::default()
        });
        if self.looks_up.take().is_none() {
            return self.begins(now, attempt);
        }
        let begun = self.attempt;
        Broken::unless(attempt == begun, || {
            format!("attempt {begun} goes on as attempt {attempt}")
        })
    }

    fn begins(&mut self, now: Stamp, attempt: u32) -> Result<(), Broken> {
        let before = std::mem::replace(&mut self.attempt, attempt);
        Broken::unless(attempt == before.saturating_add(1), || {
            format!("attempt {attempt} comes after {before} others")
        })?;
        let is_owed = std::mem::replace(&mut self.owes_wait, true);
        Broken::unless(!is_owed, || {
            "an attempt without the wait that comes before it".to_owned()
        })?;
        let Some((since, wait)) = self.resting.take() else {
            return Ok(());
        };
        Broken::unless(now.since(since) >= wait || self.is_hurried, || {
            let waited = now.since(since);
            format!("an attempt after {waited:?}, and the ladder says {wait:?}")
        })
    }

    pub(super) fn dials(&mut self, now: Stamp) -> Result<(), Broken> {
        let is_reconnect = std::mem::take(&mut self.is_reconnect);
        let Some(selection) = self.selection else {
            return Err(Broken("a dial before an attempt".to_owned()));
        };
        let due = selection.dial.or(selection.over);
        let may = !is_reconnect || selection.is_blurred || self.never_waits();
        Broken::unless(due.is_some() || may, || {
            "a reconnect dials without its random wait".to_owned()
        })?;
        let is_early = due.is_some_and(|due| now.is_before(due));
        Broken::unless(!is_early, || "a dial before its time".to_owned())
    }

    /// A server is asked for its count.
    pub(super) fn probes(&mut self, now: Stamp) -> Result<(), Broken> {
        let never_waits = self.never_waits();
        let is_known = |all: &&mut Selection| !all.is_blurred && !never_waits;
        let Some(selection) = self.selection.as_mut().filter(is_known) else {
            return Ok(());
        };
        if selection.over.is_none() {
            // The wait was over with the wait for the dials.
            selection.over = selection.dial;
            if !selection.has_jumped && selection.dial.is_some() {
                self.gaps.take(Duration::ZERO)?;
            }
        }
        let has_waited = selection.over.is_some_and(|over| !now.is_before(over));
        Broken::unless(has_waited, || {
            "a probe before the random wait of its selection is over".to_owned()
        })
    }

    /// Writes what the waits of before can be held against the machine for.
    pub(super) fn normal_form<H: Hasher>(&self, now: Stamp, form: &mut NormalForm<H>) {
        let Self {
            backoff: _,
            longest_lookup: _,
            longest_wait: _,
            step: _,
            // Only told, and counted alike by the machine.
            attempt: _,
            looks_up,
            owes_wait,
            resting,
            selection,
            is_reconnect,
            waits,
            dial_waits,
            gaps,
            // Of the last input, and forgotten with the next.
            is_blurred: _,
            is_hurried: _,
        } = self;
        // From the ceiling on, all rungs are one.
        form.value(self.rung(self.step.saturating_add(1)));
        form.value((owes_wait, is_reconnect, waits, dial_waits, gaps));
        form.value(looks_up.map(|since| now.since(since)));
        form.value(resting.map(|(since, wait)| (now.since(since), wait)));
        form.optional(*selection, |form, selection| {
            let Selection {
                began,
                dial,
                over,
                is_blurred,
                has_jumped,
            } = selection;
            form.value((is_blurred, has_jumped));
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
        if let (Some(State::Resolving), Some(since)) = (state, self.looks_up) {
            Broken::unless(deadline.since(since) <= self.longest_lookup, || {
                format!("a lookup may take longer than {:?}", self.longest_lookup)
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
        if !is_new {
            return Ok(());
        }
        if reason == WaitReason::DialWait {
            return self.dial_waits.take(wait);
        }
        if let Some(dial) = selection.dial {
            self.gaps.take(deadline.since(dial))?;
        }
        self.waits.take(wait)
    }
}
