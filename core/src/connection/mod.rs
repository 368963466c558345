//! The machine.
//!
//! ```text
//!             Connect
//!     Idle ───────────────► Resolving ◄──────────────┐
//!                             │   │ no servers       │
//!             servers; at once│   └────────────────┐ │ the wait is over,
//!             if they are     │                    │ │ or Connect
//!             listed          ▼         all failed │ │
//!                           Selecting ────────────►┤ │
//!                             │   ▲                │ │
//!                      chosen │   │ failed, others │ │
//!                             ▼   │ are left       ▼ │
//!                           Handshaking ───────► BackingOff ◄──┐
//!                             │         all                    │
//!             first keep-alive│         failed                 │ dropped,
//!                             ▼                                │ unstable
//!                           Connected ─────────────────────────┘
//!                             │ dropped, stable: Resolving
//!
//!     any ── Close, or nothing left to try ──► Stopped
//! ```

mod attempt;
mod backing_off;
mod checking;
mod connected;
mod context;
mod fetching;
mod handshaking;
#[cfg(feature = "model-checking")]
mod normal_form;
mod random;
mod resolving;
mod selecting;
mod state;

pub use state::{CallMetadata, State, Stats, WaitReason};

use crate::{
    Command, Config, Contract, Event, FatalError, Id, Input, Output, Reply, Session, TokenError,
};
use attempt::Attempt;
use backing_off::BackingOff;
use connected::Connected;
use context::Context;
use handshaking::Handshaking;
use rand_core::Rng;
use resolving::Resolving;
use selecting::Selecting;
use std::{
    collections::VecDeque,
    mem,
    sync::Arc,
    time::{Duration, Instant},
};

/// The connection of one client: finds a server, proves that both speak the same contract,
/// registers, answers keep-alives, notices when the session is gone, and comes back.
///
/// It does no I/O, reads no clock and draws no randomness but from the generator it is given. To
/// drive it:
///
/// 1. After any [`handle`](Self::handle), drain [`poll_output`](Self::poll_output): perform what it
///    asks for, in order.
/// 2. Wait until [`poll_timeout`](Self::poll_timeout), a reply or a command.
/// 3. Pass it to [`handle`](Self::handle), or [`Command::Tick`] if it was only the time. Repeat.
///
/// Waking up too often changes nothing, so a driver may be sloppy and still right.
///
/// That is all there is to a driver, and below is its skeleton. One that runs, on two threads and a
/// channel each way, is `simulation/examples/threads.rs` in the workspace
/// (`cargo run -p chronicle-simulation --example threads`).
///
/// ```
/// use chronicle_connection::{Command, Config, Connection, ConnectionString, Contract, Input, Output};
/// use rand_chacha::{ChaCha12Rng, rand_core::SeedableRng};
/// use std::time::Instant;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let mut inbox = std::iter::empty::<Input>();
/// # fn perform(_: Output) {}
/// let config = Config::builder("chronicle://localhost".parse()?).build()?;
/// let rng = ChaCha12Rng::from_seed([0; 32]); // from the system, in an application
/// let mut connection = Connection::new(config, Contract::default(), rng, Instant::now());
///
/// let mut input = Input::from(Command::Connect);
/// loop {
///     connection.handle(Instant::now(), input);
///     while let Some(output) = connection.poll_output() {
///         perform(output); // replies arrive in the inbox, each with the id of its output
///     }
///     let Some(_deadline) = connection.poll_timeout() else { break };
///     // A real inbox waits for a reply or the deadline, and then gives `Command::Tick`.
///     match inbox.next() {
///         Some(next) => input = next,
///         None => break,
///     }
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Connection<R> {
    context: Context<R>,
    phase: Phase,
    /// The next deadline and its reason, as of the last step: it is asked for more often than it
    /// changes.
    due: Option<(Instant, WaitReason)>,
    /// The last `now`.
    given: Instant,
    /// How far the time of this machine is ahead of the `now`s it is given: the time slept.
    ahead: Duration,
}

#[derive(Debug, Clone, Default)]
enum Phase {
    #[default]
    Idle,
    Resolving(Resolving),
    Selecting(Selecting),
    Handshaking(Handshaking),
    Connected(Connected),
    BackingOff(BackingOff),
    Stopped,
}

impl<R: Rng> Connection<R> {
    /// Builds a connection and does nothing else. Any number of them may share a configuration.
    pub fn new(config: impl Into<Arc<Config>>, contract: Contract, rng: R, now: Instant) -> Self {
        Self {
            context: Context::new(config.into(), contract, rng, now),
            phase: Phase::Idle,
            due: None,
            given: now,
            ahead: Duration::ZERO,
        }
    }

    /// Takes an input at a time: fires the deadlines before `now`, applies the input, fires those
    /// at `now`.
    ///
    /// A reply that arrives exactly at its deadline wins. A deadline that is overdue fires as of
    /// `now`. A `now` before an earlier one is taken for that one.
    pub fn handle(&mut self, now: Instant, input: impl Into<Input>) {
        self.given = now;
        let now = now.checked_add(self.ahead).unwrap_or(now);
        self.context.now = self.context.now.max(now);
        self.fire(|deadline, now| deadline < now);
        match input.into() {
            Input::Command(command) => self.on_command(command),
            Input::Reply { id, reply } => self.on_reply(id, &reply),
        }
        self.due = self.deadline();
        self.fire(|deadline, now| deadline <= now);
    }

    /// The next output, in order; `None` once drained.
    pub fn poll_output(&mut self) -> Option<Output> {
        let output = self.context.outputs.pop_front();
        if output.is_none() {
            // Machines are idle most of their lives, and an empty queue costs half a machine.
            self.context.outputs = VecDeque::new();
        }
        debug_assert!(
            output.is_some()
                || self
                    .due
                    .is_none_or(|(deadline, _)| deadline > self.context.now),
            "a deadline in the past would spin the driver's loop"
        );
        output
    }

    /// When [`handle`](Self::handle) must be called at the latest: not later than its last `now`
    /// while outputs are queued, later than that once they are drained, `None` where only an input
    /// can change anything.
    pub fn poll_timeout(&self) -> Option<Instant> {
        if !self.context.outputs.is_empty() {
            return Some(self.given);
        }
        // `None` is out of reach: every instant of this machine is `ahead` of one it was given.
        self.due?.0.checked_sub(self.ahead)
    }

    /// Where the connection stands.
    pub fn state(&self) -> State {
        match &self.phase {
            Phase::Idle => State::Idle,
            Phase::Resolving(_) => State::Resolving,
            Phase::Selecting(_) => State::Selecting,
            Phase::Handshaking(handshaking) => State::Handshaking {
                server: handshaking.server().clone(),
            },
            Phase::Connected(connected) => State::Connected(connected.session().clone()),
            Phase::BackingOff(_) => State::BackingOff,
            Phase::Stopped => State::Stopped,
        }
    }

    /// The session, while one is up.
    pub fn session(&self) -> Option<&Session> {
        match &self.phase {
            Phase::Connected(connected) => Some(connected.session()),
            Phase::Idle
            | Phase::Resolving(_)
            | Phase::Selecting(_)
            | Phase::Handshaking(_)
            | Phase::BackingOff(_)
            | Phase::Stopped => None,
        }
    }

    /// Why the next deadline exists; `None` where there is none.
    pub fn wait_reason(&self) -> Option<WaitReason> {
        self.due.map(|(_, reason)| reason)
    }

    /// What was counted since the connection was built.
    pub fn stats(&self) -> &Stats {
        &self.context.stats
    }

    /// What an application call must carry now.
    pub fn call_metadata(&self) -> CallMetadata {
        self.context.call_metadata()
    }

    fn on_command(&mut self, command: Command) {
        match command {
            Command::Tick => {}
            Command::Slept(slept) => {
                let ahead = self.ahead.saturating_add(slept).min(LONGEST_SLEEP);
                let now = self.context.now.checked_add(ahead - self.ahead);
                self.context.now = now.unwrap_or(self.context.now);
                self.ahead = ahead;
            }
            Command::Connect => self.advance(|phase, cx| match phase {
                Phase::Idle => {
                    cx.memory.connect_deadline =
                        cx.config.connect_timeout.map(|timeout| cx.now + timeout);
                    Attempt::begin(cx)
                }
                Phase::BackingOff(_) => Attempt::begin(cx),
                Phase::Resolving(_)
                | Phase::Selecting(_)
                | Phase::Handshaking(_)
                | Phase::Connected(_)
                | Phase::Stopped => phase,
            }),
            Command::RefreshToken { rejected } => self.advance(|phase, cx| match phase {
                Phase::Connected(connected) => connected.refresh_token(rejected, cx),
                Phase::Idle
                | Phase::Resolving(_)
                | Phase::Selecting(_)
                | Phase::Handshaking(_)
                | Phase::BackingOff(_) => {
                    cx.reject_token(rejected);
                    cx.tell_token(Some(TokenError::NoSession));
                    phase
                }
                Phase::Stopped => phase,
            }),
            Command::Close => {
                if matches!(self.phase, Phase::Stopped) {
                    return;
                }
                self.context.withdraw_requests();
                self.hang_up();
                self.context.emit(Event::Closed);
                self.enter(Phase::Stopped);
            }
        }
    }

    fn on_reply(&mut self, id: Id, reply: &Reply) {
        self.advance(|phase, cx| match phase {
            Phase::Resolving(resolving) => resolving.on_reply(id, reply, cx),
            Phase::Selecting(selecting) => selecting.on_reply(id, reply, cx),
            Phase::Handshaking(handshaking) => handshaking.on_reply(id, reply, cx),
            Phase::Connected(connected) => connected.on_reply(id, reply, cx),
            Phase::Idle | Phase::BackingOff(_) | Phase::Stopped => {
                cx.ignore(id, reply);
                phase
            }
        });
    }

    /// Fires what is due, one deadline at a time: what is not due with it must wait for its turn,
    /// since the input at hand may come first.
    fn fire(&mut self, is_due: fn(Instant, Instant) -> bool) {
        let mut fired = 0;
        while let Some((deadline, reason)) = self.due
            && is_due(deadline, self.context.now)
        {
            fired += 1;
            debug_assert!(
                fired <= MOST_FIRED,
                "{reason:?} fires without end: what it starts is due at once"
            );
            if reason == WaitReason::ConnectTimeout {
                self.give_up();
            } else {
                self.advance(|phase, cx| match phase {
                    Phase::Resolving(resolving) => resolving.expire(cx),
                    Phase::Selecting(selecting) => selecting.expire(deadline, cx),
                    Phase::Handshaking(handshaking) => handshaking.expire(deadline, cx),
                    Phase::Connected(connected) => connected.expire(deadline, cx),
                    Phase::BackingOff(_) => Attempt::begin(cx),
                    Phase::Idle | Phase::Stopped => phase,
                });
            }
            self.due = self.deadline();
        }
    }

    /// Ends the first connect, whose time is up, with an attempt in flight or not.
    fn give_up(&mut self) {
        let earlier = self.context.memory.last_error.take().unwrap_or_default();
        let last = match &self.phase {
            Phase::Resolving(resolving) => {
                let mut last = resolving.error();
                last.fill_in(earlier);
                last
            }
            Phase::Selecting(selecting) => selecting.attempt().cut_off(None, earlier),
            Phase::Handshaking(handshaking) => handshaking.cut_off(earlier),
            Phase::BackingOff(_) | Phase::Idle | Phase::Connected(_) | Phase::Stopped => {
                Attempt::untried(&self.context).cut_off(None, earlier)
            }
        };
        self.hang_up();
        let timeout = self.context.config.connect_timeout.unwrap_or_default();
        self.context
            .emit(Event::Failed(FatalError::ConnectTimeout { timeout, last }));
        self.enter(Phase::Stopped);
    }

    fn hang_up(&mut self) {
        let cx = &mut self.context;
        match &mut self.phase {
            Phase::Idle | Phase::BackingOff(_) | Phase::Stopped => {}
            Phase::Resolving(resolving) => resolving.hang_up(cx),
            Phase::Selecting(selecting) => selecting.hang_up(cx),
            Phase::Handshaking(handshaking) => handshaking.hang_up(cx),
            Phase::Connected(connected) => connected.hang_up(cx),
        }
    }

    fn deadline(&self) -> Option<(Instant, WaitReason)> {
        let cx = &self.context;
        let phase = match &self.phase {
            Phase::Idle | Phase::Stopped => return None,
            Phase::Resolving(resolving) => Some(resolving.deadline(cx)),
            Phase::Selecting(selecting) => selecting.deadline(),
            Phase::Handshaking(handshaking) => handshaking.deadline(cx),
            Phase::Connected(connected) => connected.deadline(cx),
            Phase::BackingOff(backing_off) => Some(backing_off.deadline()),
        };
        let connect = cx.memory.connect_deadline;
        earliest([phase, connect.map(|at| (at, WaitReason::ConnectTimeout))])
    }

    fn advance(&mut self, step: impl FnOnce(Phase, &mut Context<R>) -> Phase) {
        let phase = mem::take(&mut self.phase);
        let next = step(phase, &mut self.context);
        self.enter(next);
    }

    fn enter(&mut self, phase: Phase) {
        self.phase = phase;
    }
}

fn earliest(
    deadlines: impl IntoIterator<Item = Option<(Instant, WaitReason)>>,
) -> Option<(Instant, WaitReason)> {
    deadlines.into_iter().flatten().min()
}

/// Far beyond what can be due at one instant: a deadline for each server that fits into an answer of
/// DNS, and a few more.
const MOST_FIRED: u32 = 10_000;

/// Far beyond any sleep, and near enough for the arithmetic of instants.
const LONGEST_SLEEP: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);
