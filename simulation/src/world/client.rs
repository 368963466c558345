//! A client: a machine, and the process that it lives in.

use super::{
    World,
    queue::{Happening, Plan},
};
use crate::{Machine, Setup};
use chronicle_connection::{Command, Event, Input, Output, Session, State, Stats, WaitReason};
use std::{
    fmt,
    time::{Duration, Instant},
};

/// Names a client of a world.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClientId(pub(super) usize);

impl fmt::Display for ClientId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "c{}", self.0 + 1)
    }
}

/// A client of a world.
#[derive(Debug, Clone)]
pub struct Client {
    machine: Machine,
    events: Vec<(Duration, Event)>,
    threshold: Duration,
    process: Process,
    /// How far the client's clock is behind the world's, for the time it was suspended.
    behind: Duration,
    wake: Option<Plan>,
    /// Since when the server of its session does not know it.
    forgotten: Option<Instant>,
}

/// Whether the client's process runs.
#[derive(Debug, Clone)]
enum Process {
    Runs,
    /// Stopped, with what arrives meanwhile.
    Paused(Vec<Input>),
    /// Stopped, its clock too.
    Suspended {
        since: Instant,
        inbox: Vec<Input>,
    },
}

impl Client {
    pub(super) fn new(id: ClientId, setup: &Setup, seed: u64, now: Instant) -> Self {
        Self {
            machine: Machine::new(&id.to_string(), setup, seed, now),
            events: Vec::new(),
            threshold: setup.timing.keep_alive,
            process: Process::Runs,
            behind: Duration::ZERO,
            wake: None,
            forgotten: None,
        }
    }

    /// All its events, each with when it happened.
    pub fn events(&self) -> &[(Duration, Event)] {
        &self.events
    }

    /// Where its connection stands.
    pub fn state(&self) -> State {
        self.machine.state()
    }

    /// Its session, while it has one.
    pub fn session(&self) -> Option<Session> {
        match self.machine.state() {
            State::Connected(session) => Some(session),
            State::Idle
            | State::Resolving
            | State::Selecting
            | State::Handshaking { .. }
            | State::BackingOff
            | State::Stopped => None,
        }
    }

    /// What its connection has counted.
    pub fn stats(&self) -> &Stats {
        self.machine.stats()
    }

    /// Why its next deadline exists.
    pub fn wait_reason(&self) -> Option<WaitReason> {
        self.machine.wait_reason()
    }
}

impl World {
    /// Stops the process of a client for a while, as SIGSTOP does: its clock goes on, and what
    /// arrives waits.
    pub fn pause(&mut self, client: ClientId, duration: Duration) {
        self.note(client.to_string(), &format!("paused for {duration:?}"));
        self.clients[client.0].process = Process::Paused(Vec::new());
        let at = self.now + duration;
        self.queue.push(at, Happening::ClientResumes(client));
    }

    /// Suspends the machine of a client for a while: its clock stands still, and it is told
    /// afterwards for how long.
    pub fn suspend(&mut self, client: ClientId, duration: Duration) {
        self.note(client.to_string(), &format!("suspended for {duration:?}"));
        self.clients[client.0].process = Process::Suspended {
            since: self.now,
            inbox: Vec::new(),
        };
        let at = self.now + duration;
        self.queue.push(at, Happening::ClientResumes(client));
    }

    pub(super) fn resume(&mut self, id: ClientId) {
        self.note(id.to_string(), "resumed");
        let client = &mut self.clients[id.0];
        let inbox = match std::mem::replace(&mut client.process, Process::Runs) {
            Process::Runs => Vec::new(),
            Process::Paused(inbox) => inbox,
            Process::Suspended { since, mut inbox } => {
                let slept = self.now - since;
                client.behind += slept;
                inbox.insert(0, Command::Slept(slept).into());
                inbox
            }
        };
        for input in inbox {
            self.deliver(id, input);
        }
        self.deliver(id, Command::Tick.into());
    }

    pub(super) fn wake(&mut self, id: ClientId) {
        self.clients[id.0].wake = None;
        match self.clients[id.0].process {
            Process::Runs => self.deliver(id, Command::Tick.into()),
            Process::Paused(_) | Process::Suspended { .. } => {}
        }
    }

    /// Gives a client an input, or keeps it until its process runs again.
    pub(super) fn deliver(&mut self, id: ClientId, input: Input) {
        let at = self.elapsed();
        let client = &mut self.clients[id.0];
        match &mut client.process {
            Process::Runs => {}
            Process::Paused(inbox) | Process::Suspended { inbox, .. } => {
                inbox.push(input);
                return;
            }
        }
        let now = self.now - client.behind;
        let outputs = client.machine.handle(now, input, &mut self.trace, at);
        for output in outputs {
            match output {
                Output::Event(event) => self.clients[id.0].events.push((at, event)),
                Output::NameServers { .. }
                | Output::Dns { .. }
                | Output::Open { .. }
                | Output::Http { .. }
                | Output::Unary(_)
                | Output::ServerStream(_)
                | Output::Cancel(_)
                | Output::Close(_) => self.perform(id, output),
            }
        }
        self.plan_wake(id);
        self.notices_when_forgotten(id);
    }

    fn plan_wake(&mut self, id: ClientId) {
        let client = &mut self.clients[id.0];
        let due = client.machine.poll_timeout();
        let due = due.map(|due| due + client.behind);
        if client.wake.map(|(at, _)| at) == due {
            return;
        }
        if let Some(plan) = client.wake.take() {
            self.queue.remove(plan);
        }
        client.wake = due.map(|due| self.queue.push(due, Happening::ClientWakes(id)));
    }

    /// The rule that only both sides together can check: whom its server does not know any more
    /// does not believe to be connected for longer than the threshold.
    fn notices_when_forgotten(&mut self, id: ClientId) {
        let client = &self.clients[id.0];
        let is_forgotten = client.session().is_some_and(|session| {
            let server = self.server_at(&session.server);
            let connection_id = session.connection_id.to_string();
            server.is_none_or(|server| !self.server(server).knows(&connection_id))
        });
        let client = &mut self.clients[id.0];
        if !is_forgotten || client.machine.answers_are_unknown() {
            client.forgotten = None;
            return;
        }
        let since = *client.forgotten.get_or_insert(self.now);
        assert!(
            self.now - since <= client.threshold,
            "{id} believes to be connected {:?} after its server forgot it; the trace ends with\n{}",
            self.now - since,
            self.trace.tail(60)
        );
    }

    pub(super) fn note(&mut self, whose: impl AsRef<str>, what: &str) {
        self.trace.note(self.now - self.base, whose.as_ref(), what);
    }
}
