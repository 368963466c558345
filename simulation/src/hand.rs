//! One machine, answered by hand.

use crate::{
    Machine, Setup, Trace, connection_id_of, endpoint, id_of, request_of, trace::render_output,
    transport_of,
};
use bytes::Bytes;
use chronicle_connection::{
    Command, DnsTransport, Endpoint, Event, Id, Input, Output, Reply, Request, Session, State,
};
use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};

/// One machine whose outputs wait until they are answered, one by one.
///
/// ```
/// use chronicle_connection::Request;
/// use chronicle_simulation::{Hand, Setup, compatible, http, keep_alive, ok};
/// use std::time::Instant;
///
/// # #[allow(clippy::disallowed_methods)]
/// # fn main() {
/// let mut hand = Hand::new(Instant::now(), Setup::new("chronicle://s1"));
/// hand.connect();
/// let transport = hand.take_open("s1");
/// hand.open(transport);
/// let reserve = hand.take(Request::Reserve, transport);
/// let check = hand.take(Request::CheckCompatibility, transport);
/// hand.reply(reserve, http(200, ""));
/// hand.reply(check, compatible());
/// hand.reply(check, ok());
/// let stream = hand.take(Request::Connect, transport);
/// let id = hand.connection_id();
/// hand.reply(stream, keep_alive(&id));
/// assert_eq!(hand.session().map(|session| session.generation), Some(1));
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Hand {
    base: Instant,
    now: Instant,
    machine: Machine,
    outbox: Vec<Output>,
    events: Vec<Event>,
    connection_id: String,
    trace: Trace,
}

impl Hand {
    /// A machine that has not been told to connect.
    ///
    /// # Panics
    /// Where the setup is not valid.
    pub fn new(base: Instant, setup: Setup) -> Self {
        Self::seeded(base, setup, 1)
    }

    /// A machine with its own seed.
    ///
    /// # Panics
    /// Where the setup is not valid.
    pub fn seeded(base: Instant, setup: Setup, seed: u64) -> Self {
        Self {
            base,
            now: base,
            machine: Machine::new("c1", &setup, seed, base),
            outbox: Vec::new(),
            events: Vec::new(),
            connection_id: String::new(),
            trace: Trace::default(),
        }
    }

    /// Gives an input at this moment, and keeps what is put out.
    pub fn input(&mut self, input: impl Into<Input>) {
        let at = self.now.saturating_duration_since(self.base);
        let outputs = self.machine.handle(self.now, input, &mut self.trace, at);
        for output in outputs {
            if let Output::Event(event) = output {
                self.events.push(event);
                continue;
            }
            if request_of(&output) == Some(Request::Connect) {
                self.connection_id = connection_id_of(&output).unwrap_or_default();
            }
            self.outbox.push(output);
        }
    }

    /// Tells the machine to connect.
    pub fn connect(&mut self) {
        self.input(Command::Connect);
    }

    /// Replies to a request or a transport.
    pub fn reply(&mut self, id: Id, reply: Reply) {
        self.input(Input::Reply { id, reply });
    }

    /// Tells that a transport is open.
    pub fn open(&mut self, transport: Id) {
        self.reply(transport, Reply::Opened { peer: peer() });
    }

    /// Since the machine was built.
    pub fn elapsed(&self) -> Duration {
        self.now - self.base
    }

    /// Lets time pass, waking the machine exactly when it wants to be woken.
    pub fn wait(&mut self, duration: Duration) {
        let until = self.now + duration;
        while let Some(due) = self.machine.poll_timeout()
            && due <= until
        {
            self.now = due;
            self.input(Command::Tick);
        }
        self.now = until;
    }

    /// Lets time pass until something holds.
    ///
    /// # Panics
    /// Where it does not hold after a thousand wake-ups, or there is no further deadline.
    pub fn wait_until(&mut self, holds: impl Fn(&Self) -> bool) {
        for _ in 0..1000 {
            if holds(self) {
                return;
            }
            let Some(due) = self.machine.poll_timeout() else {
                break;
            };
            self.now = due;
            self.input(Command::Tick);
        }
        panic!("waited in vain; {}", self.describe());
    }

    /// Lets time pass without waking the machine: its process sleeps, its clock does not.
    pub fn oversleep(&mut self, duration: Duration) {
        self.now += duration;
    }

    /// Turns the clock back.
    pub fn turn_back(&mut self, duration: Duration) {
        self.now -= duration;
    }

    /// Until the machine wants to be woken.
    pub fn timeout(&self) -> Option<Duration> {
        let due = self.machine.poll_timeout()?;
        Some(due.saturating_duration_since(self.now))
    }

    /// The machine.
    pub fn machine(&self) -> &Machine {
        &self.machine
    }

    /// Where its connection stands.
    pub fn state(&self) -> State {
        self.machine.state()
    }

    /// Its session, while it has one.
    pub fn session(&self) -> Option<Session> {
        self.machine.connection().session().cloned()
    }

    /// The connection id of the newest `Connect`.
    pub fn connection_id(&self) -> String {
        self.connection_id.clone()
    }

    /// What is put out and not taken yet, in order. Events are not among it.
    pub fn outbox(&self) -> &[Output] {
        &self.outbox
    }

    /// Takes everything from the outbox.
    pub fn take_all(&mut self) -> Vec<Output> {
        std::mem::take(&mut self.outbox)
    }

    /// Takes the events since the last time.
    pub fn events(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.events)
    }

    /// Takes the oldest output that fits, if there is one.
    pub fn find(&mut self, fits: impl Fn(&Output) -> bool) -> Option<Output> {
        let at = self.outbox.iter().position(fits)?;
        Some(self.outbox.remove(at))
    }

    /// Takes the oldest dial, with the name of the server.
    pub fn find_open(&mut self) -> Option<(Id, String)> {
        match self.find(|output| matches!(output, Output::Open { .. }))? {
            Output::Open { id, to } => Some((id, to.host.to_string())),
            Output::NameServers { .. }
            | Output::Dns { .. }
            | Output::Http { .. }
            | Output::Unary(_)
            | Output::ServerStream(_)
            | Output::Cancel(_)
            | Output::Close(_)
            | Output::Event(_) => None,
        }
    }

    /// Takes the dial to a server.
    ///
    /// # Panics
    /// Where there is none.
    pub fn take_open(&mut self, server: &str) -> Id {
        let to = endpoint(server);
        let fits =
            |output: &Output| matches!(output, Output::Open { to: other, .. } if *other == to);
        let found = self.find(fits);
        self.id(found, &format!("Open {to}"))
    }

    /// Takes the question of who the name servers are.
    ///
    /// # Panics
    /// Where there is none.
    pub fn take_name_servers(&mut self) -> Id {
        let found = self.find(|output| matches!(output, Output::NameServers { .. }));
        self.id(found, "NameServers")
    }

    /// Takes the oldest question to a name server, if there is one.
    pub fn find_dns(&mut self) -> Option<DnsQuery> {
        match self.find(|output| matches!(output, Output::Dns { .. }))? {
            Output::Dns {
                id,
                server,
                transport,
                message,
                ..
            } => Some(DnsQuery {
                id,
                server,
                transport,
                message,
            }),
            Output::NameServers { .. }
            | Output::Open { .. }
            | Output::Http { .. }
            | Output::Unary(_)
            | Output::ServerStream(_)
            | Output::Cancel(_)
            | Output::Close(_)
            | Output::Event(_) => None,
        }
    }

    /// Takes the question to a name server.
    ///
    /// # Panics
    /// Where there is none.
    pub fn take_dns(&mut self) -> DnsQuery {
        match self.find_dns() {
            Some(query) => query,
            None => panic!("no Dns; {}", self.describe()),
        }
    }

    /// Takes a request on a transport.
    ///
    /// # Panics
    /// Where there is none.
    pub fn take(&mut self, request: Request, on: Id) -> Id {
        let found = self.find_request(request, on);
        self.id(found, &format!("{request} on {on}"))
    }

    /// Takes a request on a transport, if there is one.
    pub fn find_request(&mut self, request: Request, on: Id) -> Option<Output> {
        self.find(|output| request_of(output) == Some(request) && transport_of(output) == Some(on))
    }

    /// Whether a request of a kind waits for an answer.
    pub fn asks(&self, request: Request) -> bool {
        let mut outbox = self.outbox.iter();
        outbox.any(|output| request_of(output) == Some(request))
    }

    /// Whether a transport has been closed, and takes the `Close`.
    pub fn is_closed(&mut self, transport: Id) -> bool {
        self.find(|output| matches!(output, Output::Close(id) if *id == transport))
            .is_some()
    }

    /// Whether a request has been cancelled, and takes the `Cancel`.
    pub fn is_cancelled(&mut self, request: Id) -> bool {
        self.find(|output| matches!(output, Output::Cancel(id) if *id == request))
            .is_some()
    }

    /// Everything that happened.
    pub fn trace(&self) -> &Trace {
        &self.trace
    }

    fn id(&self, output: Option<Output>, what: &str) -> Id {
        match output.as_ref().and_then(id_of) {
            Some(id) => id,
            None => panic!("no {what}; {}", self.describe()),
        }
    }

    fn describe(&self) -> String {
        let outbox: Vec<String> = self.outbox.iter().map(render_output).collect();
        let (state, trace) = (self.machine.state(), self.trace.tail(40));
        format!("in {state:?} the outbox holds {outbox:?}; the trace ends with\n{trace}")
    }
}

/// A question to a name server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DnsQuery {
    /// Names the query.
    pub id: Id,
    /// The name server.
    pub server: Endpoint,
    /// How it is asked.
    pub transport: DnsTransport,
    /// The message.
    pub message: Bytes,
}

fn peer() -> SocketAddr {
    SocketAddr::from(([10, 0, 0, 1], chronicle_connection::DEFAULT_PORT))
}
