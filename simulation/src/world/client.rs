//! A client: a machine, and the process that it lives in.

use super::{ServerId, World, network::Transports, queue::Happening, server::Memory};
use crate::{Checks, Machine, Setup};
use chronicle_connection::{
    Command, Config, Event, Id, Input, Output, Reply, Session, State, Stats, WaitReason,
};
use std::{
    fmt, mem,
    sync::Arc,
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
    /// The earliest wake that is planned.
    wake: Option<Instant>,
    registration: Option<Registration>,
    pub(super) transports: Transports,
    pub(super) in_flight: InFlight,
}

/// What the client of a session believes.
#[derive(Debug, Clone)]
struct Registration {
    server: ServerId,
    connection_id: String,
    /// The memory of the server when it was last seen to know it.
    known_in: Option<Memory>,
    /// Since when the server does not know it.
    forgotten: Option<Instant>,
}

/// Requests that have not ended, each with its transport.
#[derive(Debug, Clone, Default)]
pub(super) struct InFlight(Vec<(Id, Id)>);

impl InFlight {
    pub(super) fn begin(&mut self, request: Id, on: Id) {
        self.0.push((request, on));
    }

    /// Gives the transport of a request that was in flight.
    pub(super) fn end(&mut self, request: Id) -> Option<Id> {
        let at = self.0.iter().position(|(id, _)| *id == request)?;
        Some(self.0.swap_remove(at).1)
    }

    pub(super) fn end_all_on(&mut self, transport: Id) {
        self.0.retain(|(_, on)| *on != transport);
    }
}

/// A session of a client has come up or ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionChange {
    /// When.
    pub at: Duration,
    /// Whose.
    pub client: ClientId,
    /// With whom.
    pub server: ServerId,
    /// Whether it came up.
    pub is_up: bool,
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

impl Process {
    fn runs(&self) -> bool {
        match self {
            Self::Runs => true,
            Self::Paused(_) | Self::Suspended { .. } => false,
        }
    }
}

impl Client {
    pub(super) fn new(
        id: ClientId,
        setup: &Setup,
        config: Arc<Config>,
        seed: u64,
        now: Instant,
        checks: Checks,
    ) -> Self {
        let machine = Machine::sharing(&id.to_string(), setup, config, seed, now);
        Self {
            machine: machine.checked(checks),
            events: Vec::new(),
            threshold: setup.timing.keep_alive,
            process: Process::Runs,
            behind: Duration::ZERO,
            wake: None,
            registration: None,
            transports: Transports::default(),
            in_flight: InFlight::default(),
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
        self.machine.connection().session().cloned()
    }

    /// What its connection has counted.
    pub fn stats(&self) -> &Stats {
        self.machine.stats()
    }

    /// Why its next deadline exists.
    pub fn wait_reason(&self) -> Option<WaitReason> {
        self.machine.wait_reason()
    }

    /// Whether it has a session.
    pub fn is_connected(&self) -> bool {
        self.registration.is_some()
    }

    /// The server of its session, while it has one.
    pub fn server(&self) -> Option<ServerId> {
        let registration = self.registration.as_ref()?;
        Some(registration.server)
    }

    /// When its machine wants to be woken, by the clock of the world.
    fn due(&self) -> Option<Instant> {
        let due = self.machine.poll_timeout()?;
        Some(due + self.behind)
    }
}

impl World {
    /// Stops the process of a client for a while, as SIGSTOP does: its clock goes on, and what
    /// arrives waits. One that is stopped already stays so, for as long as it was to be.
    pub fn pause(&mut self, client: ClientId, duration: Duration) {
        if !self.clients[client.0].process.runs() {
            return;
        }
        self.note(client.to_string(), &format!("paused for {duration:?}"));
        self.clients[client.0].process = Process::Paused(Vec::new());
        let at = self.now + duration;
        self.queue.push(at, Happening::ClientResumes(client));
    }

    /// Suspends the machine of a client for a while: its clock stands still, and it is told
    /// afterwards for how long. One that is stopped already stays as it is.
    pub fn suspend(&mut self, client: ClientId, duration: Duration) {
        if !self.clients[client.0].process.runs() {
            return;
        }
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
        let inbox = match mem::replace(&mut client.process, Process::Runs) {
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
        let client = &mut self.clients[id.0];
        if client.wake != Some(self.now) {
            return;
        }
        client.wake = None;
        match client.process {
            // The deadline may have moved since this wake was planned.
            Process::Runs if client.due().is_some_and(|due| due > self.now) => self.plan_wake(id),
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
        match &input {
            Input::Reply {
                id,
                reply: Reply::Http(_) | Reply::Finished(_) | Reply::Failed(_),
            } => {
                client.in_flight.end(*id);
            }
            Input::Reply { .. } | Input::Command(_) => {}
        }
        let now = self.now - client.behind;
        let outputs = match client.machine.step(now, input, &mut self.trace, at) {
            Ok(outputs) => outputs,
            Err(violation) => return self.violated(violation),
        };
        for output in outputs {
            match output {
                Output::Event(event) => self.hear(id, event),
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

    fn hear(&mut self, id: ClientId, event: Event) {
        let at = self.elapsed();
        match &event {
            Event::Connected(session) => {
                let connection_id = session.connection_id.to_string();
                if let Some(server) = self.server_at(&session.server) {
                    self.clients[id.0].registration = Some(Registration {
                        server,
                        connection_id,
                        known_in: None,
                        forgotten: None,
                    });
                    self.tell_change(id, server, true);
                }
            }
            Event::Disconnected { .. } | Event::Closed => {
                if let Some(registration) = self.clients[id.0].registration.take() {
                    self.tell_change(id, registration.server, false);
                }
            }
            Event::Resolved { records, .. } => self.must_have_told(id, records),
            Event::Resolving { .. }
            | Event::LookupTryFailed { .. }
            | Event::LastGoodListUsed { .. }
            | Event::Connecting { .. }
            | Event::Selected { .. }
            | Event::ReserveFailed { .. }
            | Event::Compatible { .. }
            | Event::Token { .. }
            | Event::CandidateFailed { .. }
            | Event::BackingOff { .. }
            | Event::Failed(_) => {}
        }
        if self.recording.events {
            self.clients[id.0].events.push((at, event));
        }
    }

    fn tell_change(&mut self, client: ClientId, server: ServerId, is_up: bool) {
        self.session_changes.push(SessionChange {
            at: self.now - self.base,
            client,
            server,
            is_up,
        });
    }

    /// A wake that comes too early is planned again when it comes, so that a deadline that moves
    /// away costs nothing.
    fn plan_wake(&mut self, id: ClientId) {
        let client = &mut self.clients[id.0];
        if let Some(due) = client.due()
            && client.wake.is_none_or(|planned| planned > due)
        {
            client.wake = Some(due);
            self.queue.push(due, Happening::ClientWakes(id));
        }
    }

    /// The rule that only both sides together can check: whom its server does not know any more
    /// does not believe to be connected for longer than the threshold, and than what the server said
    /// before is late. It counts from the next step of the client, whose process may be stopped.
    fn notices_when_forgotten(&mut self, id: ClientId) {
        let client = &mut self.clients[id.0];
        let Some(registration) = &mut client.registration else {
            return;
        };
        let server = &self.servers[registration.server.0];
        let memory = Some(server.memory());
        if registration.known_in == memory {
            return;
        }
        if server.knows(&registration.connection_id) || client.machine.answers_are_unknown() {
            registration.known_in = memory;
            registration.forgotten = None;
            return;
        }
        let age = self.now - *registration.forgotten.get_or_insert(self.now);
        if age > client.threshold + self.late.by(self.now, client.threshold) {
            self.breaks(
                id,
                format!("believes to be connected {age:?} after its server forgot it"),
            );
        }
    }

    pub(super) fn note(&mut self, whose: impl AsRef<str>, what: &str) {
        self.trace.note(self.now - self.base, whose.as_ref(), what);
    }
}
