//! All lives of one machine, as far as they can be told apart.

mod catalogue;
mod draws;
mod life;
mod path;
mod replies;
mod search;
#[cfg(test)]
mod tests;

pub use catalogue::explorations;
pub use draws::Draws;
pub use path::{Counterexample, Path};
pub use search::{Progress, Report};

use crate::{Checks, Machine, Setup, Trace, Violation};
use chronicle_connection::{Output, Request, State};
use draws::Script;
use life::{Choice, Life};
use path::Move;
use replies::Servers;
use search::Search;
use std::{fmt, rc::Rc, time::Instant};

/// Every order of the inputs that one machine can be given, breadth first.
///
/// In each state the machine is given, each in a life of its own:
/// - for each of its requests and transports, one reply of every kind that makes a difference: what
///   a good server says, every way to fail, and what no server may say;
/// - the last reply once more, and a transport that opens when nobody waits for it any more;
/// - every command, and every draw of its generator.
///
/// All of it at the moment of the state. What a good server says comes also exactly at the deadline,
/// and just after it to a machine that was not woken; so late come `Connect` and `Close` as well.
/// Time passes by ticks: after a second, at the deadline, and a minute after it; and by suspensions.
///
/// Two states are one where their [normal forms](Machine::normal_form) are, told apart by 128 bits
/// of a hash. So an exploration to some depth covers all that so many inputs can bring about, and a
/// counterexample is as short as any.
///
/// The rules are those of the [`Machine`] by its books, and those given to [`rule`](Self::rule), on
/// every step. And in each state:
/// - waking up for nothing, and late replies, leave the normal form as it is, and waking up half way
///   to the deadline makes no difference to what the deadline does;
/// - there is a deadline, unless the machine is idle or stopped: it never waits for ever;
/// - from here on, good answers alone lead to a session (or to the end, where the time for the first
///   connect is limited). What breaks a rule of the machine on that way is told with the good
///   answers, though other inputs might break it sooner.
///
/// ```
/// use chronicle_simulation::{Exploration, Setup, Start};
/// use std::time::Instant;
///
/// # #[allow(clippy::disallowed_methods)]
/// # fn main() {
/// let setup = Setup::new("chronicle://s1").patient();
/// let exploration = Exploration::new("one server", setup, Instant::now()).from(Start::Connected);
/// match exploration.run(2, |_| true) {
///     Ok(report) => println!("{report}"),
///     Err(counterexample) => panic!("{counterexample}"),
/// }
/// # }
/// ```
#[derive(Clone)]
pub struct Exploration {
    name: String,
    setup: Setup,
    began: Instant,
    start: Start,
    servers: Servers,
    rules: Vec<Rule>,
}

type Rule = Rc<dyn Fn(&Machine<Draws>, &[Output]) -> Result<(), String>>;

/// Where an exploration starts: so far along a life in which all goes well.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// Before the first `Connect`.
    Idle,
    /// Where this request is under way.
    Asked(Request),
    /// Where a session is up.
    Connected,
    /// Where a session of several keep-alives is up, long enough to be stable.
    Stable,
}

impl Exploration {
    /// The lives of a machine that is built like this, at that time.
    ///
    /// Random waits are switched off: what is left to chance is explored.
    ///
    /// # Panics
    /// Where the setup is not valid, or lists more than three servers.
    pub fn new(name: &str, setup: Setup, began: Instant) -> Self {
        let listed = setup.string.split(',').count();
        assert!(
            listed <= 3,
            "{name}: draws among {listed} servers are not explored"
        );
        Self {
            name: name.to_owned(),
            setup: setup.exact(),
            began,
            start: Start::Idle,
            servers: Servers { are_old: false },
            rules: Vec::new(),
        }
    }

    /// Starts somewhere else than before the first `Connect`.
    pub fn from(mut self, start: Start) -> Self {
        self.start = start;
        self
    }

    /// Where all goes well, servers lack `CheckCompatibility`. (They may lack it in any case.)
    pub fn with_old_servers(mut self) -> Self {
        self.servers.are_old = true;
        self
    }

    /// One more rule: it is given the machine after each step, and what came of the step.
    pub fn rule(
        mut self,
        rule: impl Fn(&Machine<Draws>, &[Output]) -> Result<(), String> + 'static,
    ) -> Self {
        self.rules.push(Rc::new(rule));
        self
    }

    /// What it is called.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Explores all lives of so many inputs, for as long as it is told to go on. It is asked before
    /// each state that is gone on from.
    ///
    /// # Errors
    /// A shortest life that breaks a rule.
    pub fn run(
        &self,
        depth: usize,
        go_on: impl FnMut(&Progress) -> bool,
    ) -> Result<Report, Box<Counterexample>> {
        Search::new(self)?.run(depth, go_on)
    }

    /// Lives one life again, with every checker of the [`Machine`], and with its trace.
    ///
    /// # Errors
    /// The rule that it breaks.
    pub fn replay(&self, path: &Path) -> (Trace, Result<(), Violation>) {
        let mut trace = Trace::default();
        let broken = self.relive(path, &mut trace, |_, _, _| {});
        (trace, broken)
    }

    /// Lives a life again, and shows each choice before it is made.
    fn relive(
        &self,
        path: &Path,
        trace: &mut Trace,
        mut show: impl FnMut(&Life, &Choice, Script),
    ) -> Result<(), Violation> {
        let mut life = Life::new(&self.setup, self.began).checked(Checks::Every);
        while let Some(choice) = self.overture(&life) {
            show(&life, &choice, Script::default());
            self.step(&mut life, &choice, Script::default(), trace)?;
        }
        for Move { choice, script } in &path.0 {
            let menu = life.menu(self.servers);
            let Some(choice) = menu.get(usize::from(*choice)) else {
                return Err(life.violation(format!("there is no choice {choice} here")));
            };
            show(&life, choice, *script);
            let before = life.fingerprint();
            self.step(&mut life, choice, *script, trace)?;
            life.is_as_before(choice, before)?;
        }
        life.is_sound()?;
        self.recovers(&life, trace, |_| false, show).map(|_| ())
    }

    /// The next choice on the way to the start; `None` once it is reached.
    fn overture(&self, life: &Life) -> Option<Choice> {
        let is_reached = match self.start {
            Start::Idle => true,
            Start::Asked(request) => life.asks(request),
            Start::Connected => matches!(life.machine().state(), State::Connected(_)),
            Start::Stable => life.machine().stats().keep_alives >= STABLE_AFTER,
        };
        match is_reached {
            true => None,
            false => life.good(self.servers).or_else(|| life.beat()),
        }
    }

    fn step(
        &self,
        life: &mut Life,
        choice: &Choice,
        script: Script,
        trace: &mut Trace,
    ) -> Result<(), Violation> {
        let outputs = life.apply(choice, script, trace)?;
        for rule in &self.rules {
            rule(life.machine(), &outputs).map_err(|rule| life.violation(rule))?;
        }
        Ok(())
    }

    /// Whether good answers lead from a state to a session, or to where they are known to; gives the
    /// states on the way.
    fn recovers(
        &self,
        from: &Life,
        trace: &mut Trace,
        is_known: impl Fn(u128) -> bool,
        mut show: impl FnMut(&Life, &Choice, Script),
    ) -> Result<Vec<u128>, Violation> {
        let mut life = from.clone();
        let mut way = Vec::new();
        let may_end = self.setup.connect_timeout.is_some()
            || matches!(from.machine().state(), State::Stopped);
        while way.len() < LONGEST_WAY {
            let fingerprint = life.fingerprint();
            if is_known(fingerprint) {
                return Ok(way);
            }
            way.push(fingerprint);
            let Some(choice) = life.good(self.servers) else {
                let has_ended = matches!(life.machine().state(), State::Stopped);
                return match has_ended && !may_end {
                    true => Err(life.violation("good answers lead to the end".to_owned())),
                    false => Ok(way),
                };
            };
            show(&life, &choice, Script::default());
            life.apply(&choice, Script::default(), trace)?;
        }
        Err(life.violation(format!("{LONGEST_WAY} good answers lead to no session")))
    }
}

impl fmt::Debug for Exploration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Exploration")
            .field("name", &self.name)
            .field("start", &self.start)
            .field("rules", &self.rules.len())
            .finish_non_exhaustive()
    }
}

/// Keep-alives a second apart: more than a session needs to count as stable.
const STABLE_AFTER: u64 = 8;

/// Any state is but a few attempts from a session.
const LONGEST_WAY: usize = 60;
