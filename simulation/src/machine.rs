//! A connection with every checker around it.

mod ledger;
#[cfg(test)]
mod tests;

use crate::{Setup, Trace, trace::render_output};
use chronicle_connection::{
    CallMetadata, Command, Config, Connection, Input, NormalForm, Output, State, Stats, WaitReason,
};
use ledger::{Broken, Ledger};
use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng as _};
use std::{
    fmt,
    hash::Hasher,
    sync::Arc,
    time::{Duration, Instant},
};

/// A connection with every checker around it.
///
/// Checked on every step:
/// - ids rise, each ends once and as the table of the vocabulary says, and requests go only to
///   transports that are open;
/// - no `Connect` before the reservation was answered, failed or had its time, nor before the check
///   passed on that very transport (or is skipped by configuration);
/// - once the check has passed, that transport is the only one;
/// - one session at a time, reported exactly while it lasts, each with a fresh id;
/// - a session whose keep-alives or acknowledged answers are older than the threshold is gone, and
///   the deadline of a live one is never later than that;
/// - nothing is open and nothing in flight while idle, backing off or stopped, nothing but what the
///   state is for in any other, and the transport of a session ends with it;
/// - nothing is in flight for longer than it may be, and the deadline is never later than that;
/// - a selection that probes has a random wait, no longer than the longest and drawn anew, and so has
///   the first of each reconnect; no probe comes before its end, and no dial before its own;
/// - an attempt comes after a wait, unless it is the first or follows a stable session; the waits are
///   those of the ladder, and are kept;
/// - a server that failed since the last session, or had one too short since the last stable one, is
///   not chosen while there is one that did not; nor is any while another told a lower count;
/// - credentials go only where they are wanted, and a token that was rejected is not served again;
/// - nobody gives up but for what servers were seen to say, or for the time of the first connect;
/// - no event shows a secret;
/// - a lookup waits for one answer at a time, exactly while resolving;
/// - with outputs queued the deadline is not later than `now`, once drained it is;
/// - no request is forgotten without a `Cancel` or a `Close`;
/// - replies to unknown or finished ids change nothing and are counted, and so do extra ticks;
/// - after a `Close` nothing follows but `Cancel`, `Close` and one `Closed`, and after a `Failed`
///   nothing at all.
///
/// A rule that is broken panics with the end of the trace, so that no scenario can forget to look.
#[derive(Debug, Clone)]
pub struct Machine<R = ChaCha8Rng> {
    name: String,
    connection: Connection<R>,
    ledger: Ledger,
    checks: Checks,
    now: Instant,
}

/// How thoroughly a machine is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Checks {
    /// By the books, and by twins that show on each step that extra ticks and late replies change
    /// nothing.
    #[default]
    Every,
    /// By the books alone, which is several times faster.
    Books,
}

/// A rule that was broken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// By whom.
    pub whose: String,
    /// When, in virtual time.
    pub at: Duration,
    /// Which.
    pub rule: String,
}

impl Violation {
    pub(crate) fn new(whose: &str, at: Duration, rule: String) -> Self {
        Self {
            whose: whose.to_owned(),
            at,
            rule,
        }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {:?}: {}", self.whose, self.at, self.rule)
    }
}

impl Machine {
    /// Builds a machine; all its randomness comes from the seed.
    ///
    /// # Panics
    /// Where the setup is not valid.
    pub fn new(name: &str, setup: &Setup, seed: u64, now: Instant) -> Self {
        Self::sharing(name, setup, setup.config().into(), seed, now)
    }

    /// Builds a machine that shares the configuration of its setup with others.
    pub(crate) fn sharing(
        name: &str,
        setup: &Setup,
        config: Arc<Config>,
        seed: u64,
        now: Instant,
    ) -> Self {
        let rng = ChaCha8Rng::seed_from_u64(seed);
        Self::of(name, setup, config, rng, now)
    }
}

impl<R: Rng + Clone> Machine<R> {
    /// Builds a machine with a generator of its own.
    ///
    /// # Panics
    /// Where the setup is not valid.
    pub fn with_rng(name: &str, setup: &Setup, rng: R, now: Instant) -> Self {
        Self::of(name, setup, setup.config().into(), rng, now)
    }

    fn of(name: &str, setup: &Setup, config: Arc<Config>, rng: R, now: Instant) -> Self {
        Self {
            name: name.to_owned(),
            connection: Connection::new(config, setup.contract.clone(), rng, now),
            ledger: Ledger::new(setup),
            checks: Checks::default(),
            now,
        }
    }

    /// Checked as told.
    pub fn checked(mut self, checks: Checks) -> Self {
        self.checks = checks;
        self
    }

    /// Takes an input and gives all outputs, after every check. `at` is the time in the trace.
    ///
    /// # Panics
    /// Where a rule is broken.
    pub fn handle(
        &mut self,
        now: Instant,
        input: impl Into<Input>,
        trace: &mut Trace,
        at: Duration,
    ) -> Vec<Output> {
        match self.step(now, input.into(), trace, at) {
            Ok(outputs) => outputs,
            Err(violation) => panic!("{violation}\nthe trace ends with\n{}", trace.tail(60)),
        }
    }

    /// Takes an input and gives all outputs, after every check. `at` is the time in the trace.
    ///
    /// # Errors
    /// Where a rule is broken. The machine is of no use afterwards.
    pub fn step(
        &mut self,
        now: Instant,
        input: Input,
        trace: &mut Trace,
        at: Duration,
    ) -> Result<Vec<Output>, Violation> {
        trace.input(at, &self.name, &input);
        let is_late = self.ledger.is_late(&input);
        let overdue = self.poll_timeout().is_some_and(|due| due < now);
        self.now = self.now.max(now);

        let is_awaited = matches!(input, Input::Reply { .. }) && !is_late && !overdue;
        let before = self.stats().ignored_replies;
        let twin = (is_late && self.checks == Checks::Every).then(|| self.connection.clone());

        self.ledger.input(self.now, &input, overdue);
        self.connection.handle(now, input);
        let drained = drain(&mut self.connection, self.now);
        let checked = drained.and_then(|outputs| {
            for output in &outputs {
                trace.output(at, &self.name, output);
            }
            for output in &outputs {
                self.ledger.output(self.now, output)?;
            }
            self.ledger.settled(self.now, &self.connection)?;
            let ignored = self.stats().ignored_replies - before;
            Broken::unless(!is_awaited || ignored == 0, || {
                "a reply was ignored although its request was never ended".to_owned()
            })?;
            Broken::unless(!is_late || ignored == 1, || {
                format!("a reply that nobody waits for was counted {ignored} times as ignored")
            })?;
            if let Some(twin) = twin {
                self.late_reply_changed_nothing(twin, &outputs)?;
            }
            match self.checks {
                Checks::Every => self.tick_changes_nothing()?,
                Checks::Books => {}
            }
            Ok(outputs)
        });
        checked.map_err(|Broken(rule)| Violation::new(&self.name, at, rule))
    }

    /// The name in the trace.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The connection itself.
    pub fn connection(&self) -> &Connection<R> {
        &self.connection
    }

    /// When the machine wants to be woken.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.connection.poll_timeout()
    }

    /// What an application call must carry now.
    pub fn call_metadata(&self) -> CallMetadata {
        self.connection.call_metadata()
    }

    /// Why it wants to be woken.
    pub fn wait_reason(&self) -> Option<WaitReason> {
        self.connection.wait_reason()
    }

    /// Where the connection stands.
    pub fn state(&self) -> State {
        self.connection.state()
    }

    /// What it has counted.
    pub fn stats(&self) -> &Stats {
        self.connection.stats()
    }

    /// Whether the session's server was found not to know answers, which stops the clock of
    /// acknowledgements.
    pub fn answers_are_unknown(&self) -> bool {
        self.ledger.answers_are_unknown()
    }

    /// Writes the state of the connection and of the books, as far as it decides what can follow.
    pub fn normal_form<H: Hasher>(&self, form: &mut NormalForm<H>) {
        let Self {
            name: _,
            connection,
            ledger,
            checks: _,
            now,
        } = self;
        connection.normal_form(form);
        ledger.normal_form(*now, form);
    }

    /// The connection's generator.
    pub(crate) fn generator(&mut self) -> &mut R {
        self.connection.generator()
    }

    /// A reply that nobody waits for does what a tick would have done, and is counted. (Only a
    /// transport that opened too late is closed on top of it.)
    fn late_reply_changed_nothing(
        &self,
        mut before: Connection<R>,
        outputs: &[Output],
    ) -> Result<(), Broken> {
        before.handle(self.now, Command::Tick);
        let expected = render(&drain(&mut before, self.now)?);
        let mut outputs = render(outputs);
        if let Some(id) = self.ledger.opened_late() {
            // Between what was overdue and what is due now.
            let close = render_output(&Output::Close(id));
            let closed = outputs.iter().position(|output| *output == close);
            Broken::unless(closed.is_some(), || {
                format!("{id} opened too late and is not closed")
            })?;
            closed.map(|at| outputs.remove(at));
        }
        Broken::unless(
            outputs == expected && is_same(&self.connection, &before),
            || format!("a late reply changed something: expected the outputs {expected:?}"),
        )
    }

    /// Waking up for nothing, now or before the deadline, is a no-op.
    fn tick_changes_nothing(&self) -> Result<(), Broken> {
        let halfway = self.connection.poll_timeout().map_or(self.now, |due| {
            self.now + due.saturating_duration_since(self.now) / 2
        });
        let mut twin = self.connection.clone();
        for now in [self.now, halfway] {
            twin.handle(now, Command::Tick);
            let outputs = render(&drain(&mut twin, now)?);
            Broken::unless(
                outputs.is_empty()
                    && is_same(&self.connection, &twin)
                    && self.connection.stats() == twin.stats(),
                || format!("a spurious tick changed something; it put out {outputs:?}"),
            )?;
        }
        Ok(())
    }
}

/// Takes all outputs, and holds the deadline against them on the way.
fn drain<R: Rng>(connection: &mut Connection<R>, now: Instant) -> Result<Vec<Output>, Broken> {
    let mut outputs = Vec::with_capacity(2);
    loop {
        let timeout = connection.poll_timeout();
        let Some(output) = connection.poll_output() else {
            let is_later = timeout.is_none_or(|due| due > now);
            Broken::unless(is_later, || {
                "drained, and the deadline is not later than now: a hot loop".to_owned()
            })?;
            return Ok(outputs);
        };
        Broken::unless(timeout.is_some_and(|due| due <= now), || {
            let output = render_output(&output);
            format!("the deadline is later than now while this is queued: {output}")
        })?;
        outputs.push(output);
    }
}

fn render(outputs: &[Output]) -> Vec<String> {
    outputs.iter().map(render_output).collect()
}

fn is_same<R: Rng>(one: &Connection<R>, other: &Connection<R>) -> bool {
    one.state() == other.state()
        && one.poll_timeout() == other.poll_timeout()
        && one.wait_reason() == other.wait_reason()
}
