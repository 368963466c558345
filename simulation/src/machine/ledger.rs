//! What a machine has open and in flight, seen from outside, and the rules that hold for it.

mod attempts;
mod choices;
mod normal_form;
mod rules;
mod secrets;
mod session;
mod tokens;

use crate::Setup;
use attempts::Attempts;
use choices::Choices;
use chronicle_connection::{Code, Command, Endpoint, Id, Input, Reply, Request, Schema, Timing};
use chronicle_connection_proto::clients::{
    CompatibilityResponse, ConnectionKeepAlive, DescriptorSetResponse,
};
use prost::Message as _;
use secrets::Secrets;
use session::{Sessions, Stamp};
use std::{
    collections::BTreeMap,
    net::SocketAddr,
    sync::Arc,
    time::{Duration, Instant},
};
use tokens::Tokens;

/// A rule that was broken.
pub(super) struct Broken(pub(super) String);

impl Broken {
    pub(super) fn unless(holds: bool, rule: impl FnOnce() -> String) -> Result<(), Self> {
        if holds { Ok(()) } else { Err(Self(rule())) }
    }
}

/// The books of one machine. Inputs and outputs are entered; what contradicts the books is a rule
/// that the machine broke.
#[derive(Debug, Clone)]
pub(super) struct Ledger {
    timing: Timing,
    check_is_skipped: bool,
    newest: Option<Id>,
    transports: BTreeMap<Id, Transport>,
    requests: BTreeMap<Id, Pending>,
    lookup: Option<Asked>,
    sessions: Sessions,
    /// The transport of the live session.
    session_on: Option<Id>,
    /// The transport of a session that has ended.
    ended_on: Option<Id>,
    attempts: Attempts,
    choices: Choices,
    secrets: Secrets,
    tokens: Tokens,
    /// What the input at hand has ended. The machine may have given it up just before, where a
    /// deadline was overdue, or answer a reply of the wrong kind by dropping the request.
    may_be_dropped: Vec<Id>,
    /// A transport that the input at hand has ended, while a deadline was overdue: what fired first
    /// may still have used it.
    gone: Option<(Id, Transport)>,
    /// A transport that opened when nobody waited for it any more.
    opened_late: Option<Id>,
    /// By how much the past is older than the clock says.
    aged: Duration,
    is_closing: bool,
    is_closed: bool,
    /// Gave up for good; there is nothing to close then.
    has_failed: bool,
    /// Deadlines were overdue, and what they start comes before what the input at hand does.
    is_overdue: bool,
}

/// A transport that is dialling or open.
#[derive(Debug, Clone)]
struct Transport {
    to: Endpoint,
    dialled: Stamp,
    phase: Phase,
    reserve: Reserve,
    check: Check,
    /// When the check began, with its fallback.
    checked: Option<Stamp>,
    /// A request of the check that was refused for want of credentials; so it may be made once more
    /// with them.
    refused: Option<Request>,
}

/// What a lookup waits for.
#[derive(Debug, Clone, Copy)]
struct Asked {
    id: Id,
    sent: Stamp,
    limit: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Dialling,
    /// Open, with the address of its other end.
    Open(SocketAddr),
    /// Open, too late to be of use.
    Late,
    GoingAway,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Check {
    NotPassed,
    /// The server's contract could be read: it is up to the client.
    Readable,
    Passed,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reserve {
    NotMade,
    Pending,
    Over,
}

/// A request in flight.
#[derive(Debug, Clone)]
struct Pending {
    on: Id,
    what: Request,
    /// When it was sent; of the check's requests, the first.
    sent: Stamp,
    /// Of `Connect`: the id it registers.
    connection_id: Option<Arc<str>>,
    /// Of the token that it carries; 0 where it carries none.
    generation: u64,
    /// Of a check: whether its message says that all is well.
    is_compatible: bool,
}

impl Ledger {
    pub(super) fn new(setup: &Setup) -> Self {
        Self {
            attempts: Attempts::new(setup.backoff.clone(), &setup.timing),
            choices: Choices::new(setup.connect_timeout),
            secrets: Secrets::new(&setup.connection_string()),
            timing: setup.timing.clone(),
            check_is_skipped: setup.skips_check(),
            newest: None,
            transports: BTreeMap::new(),
            requests: BTreeMap::new(),
            lookup: None,
            tokens: Tokens::default(),
            sessions: Sessions::default(),
            session_on: None,
            ended_on: None,
            may_be_dropped: Vec::new(),
            gone: None,
            opened_late: None,
            aged: Duration::ZERO,
            is_closing: false,
            is_closed: false,
            has_failed: false,
            is_overdue: false,
        }
    }

    /// Whether an input is a reply that nobody waits for.
    pub(super) fn is_late(&self, input: &Input) -> bool {
        match input {
            Input::Command(_) => false,
            Input::Reply { id, .. } => {
                !self.transports.contains_key(id)
                    && !self.requests.contains_key(id)
                    && !self.is_looked_up(*id)
            }
        }
    }

    pub(super) fn answers_are_unknown(&self) -> bool {
        self.sessions.answers_are_unknown()
    }

    fn is_looked_up(&self, id: Id) -> bool {
        self.lookup.is_some_and(|asked| asked.id == id)
    }

    /// Whether the machine has used an id at all.
    fn is_minted(&self, id: Id) -> bool {
        self.newest.is_some_and(|newest| id <= newest)
    }

    /// The transport that the input at hand has opened although nobody waited for it any more.
    pub(super) fn opened_late(&self) -> Option<Id> {
        self.opened_late
    }

    /// Enters an input, before the machine sees it. `overdue`: a deadline of the machine has passed
    /// and fires first.
    pub(super) fn input(&mut self, now: Instant, input: &Input, overdue: bool) {
        self.may_be_dropped.clear();
        self.gone = None;
        self.opened_late = None;
        self.is_overdue = overdue;
        let is_sleep = matches!(input, Input::Command(Command::Slept(_)));
        self.attempts.input(overdue, is_sleep);
        self.choices.input(overdue && is_sleep);
        let now = self.stamp(now);
        self.sessions.look(now, self.timing.keep_alive);
        match input {
            Input::Command(Command::Slept(duration)) => {
                self.aged = self.aged.saturating_add(*duration);
                let now = Stamp {
                    aged: self.aged,
                    ..now
                };
                self.sessions.look(now, self.timing.keep_alive);
            }
            Input::Command(Command::Close) => self.is_closing |= !self.has_failed,
            Input::Command(Command::Connect) => {
                self.choices.told(now);
                self.attempts.hurried();
            }
            Input::Command(Command::RefreshToken { rejected }) => self.tokens.reject(*rejected),
            Input::Command(Command::Tick) => {}
            Input::Reply { id, reply } => {
                if overdue {
                    let on_it = self.requests.iter().filter(|(_, one)| one.on == *id);
                    self.may_be_dropped
                        .extend(on_it.map(|(request, _)| *request));
                    self.may_be_dropped.push(*id);
                }
                self.reply(now, *id, reply);
            }
        }
    }

    fn reply(&mut self, now: Stamp, id: Id, reply: &Reply) {
        if self.transports.contains_key(&id) {
            self.transport_reply(now, id, reply);
        } else if let Some(pending) = self.requests.get(&id) {
            let pending = pending.clone();
            self.request_reply(now, id, &pending, reply);
        } else if self.is_looked_up(id) {
            // Messages do not end a query, and what is of the wrong kind is cancelled.
            if matches!(reply, Reply::NameServers(_) | Reply::Failed(_)) {
                self.lookup = None;
                // A query gets no name servers: it has failed, and the machine drops it.
                if matches!(reply, Reply::NameServers(_)) {
                    self.may_be_dropped.push(id);
                }
            }
        } else if matches!(reply, Reply::Opened { .. }) && self.is_minted(id) {
            self.opened_late = Some(id);
        }
    }

    fn transport_reply(&mut self, now: Stamp, id: Id, reply: &Reply) {
        let Some(transport) = self.transports.get_mut(&id) else {
            return;
        };
        match reply {
            Reply::Opened { peer } if transport.phase == Phase::Dialling => {
                let is_late = now.since(transport.dialled) > self.timing.open;
                transport.phase = if is_late {
                    Phase::Late
                } else {
                    Phase::Open(*peer)
                };
            }
            Reply::GoingAway { .. } if transport.phase != Phase::Dialling => {
                self.choices.is_gone(&transport.to);
                transport.phase = Phase::GoingAway;
            }
            Reply::Closed(_) if transport.phase != Phase::Dialling => {
                self.choices.is_gone(&transport.to);
                let gone = self.transports.remove(&id).filter(|_| self.is_overdue);
                self.gone = gone.map(|transport| (id, transport));
                self.requests.retain(|_, pending| pending.on != id);
            }
            Reply::Failed(_) if transport.phase == Phase::Dialling => {
                self.choices.is_gone(&transport.to);
                self.transports.remove(&id);
            }
            // Of the wrong kind: it is up to the machine to close the transport.
            Reply::NameServers(_)
            | Reply::Opened { .. }
            | Reply::GoingAway { .. }
            | Reply::Closed(_)
            | Reply::Failed(_)
            | Reply::Http(_)
            | Reply::Message(_)
            | Reply::Finished(_) => self.choices.is_gone(&transport.to),
        }
    }

    fn request_reply(&mut self, now: Stamp, id: Id, pending: &Pending, reply: &Reply) {
        self.witness(pending, reply);
        match (pending.what, reply) {
            (Request::Count | Request::Reserve | Request::Token, Reply::Http(_))
            | (_, Reply::Failed(_)) => {
                self.end(id);
            }
            (Request::CheckCompatibility, Reply::Message(message)) => {
                let verdict = CompatibilityResponse::decode(message.clone()).is_ok_and(|verdict| {
                    verdict.is_compatible && verdict.incompatibilities.is_empty()
                });
                if let Some(pending) = self.requests.get_mut(&id) {
                    pending.is_compatible = verdict;
                }
            }
            // Of what the client itself compares, the ledger knows only that it could be read.
            (Request::CheckCompatibility | Request::GetDescriptorSet, Reply::Finished(status)) => {
                let in_time = now.since(pending.sent) <= self.timing.check;
                let is_ok = status.code == Code::Ok;
                if let Some(transport) = self.transports.get_mut(&pending.on)
                    && is_ok
                    && in_time
                    && pending.is_compatible
                {
                    transport.check = if pending.what == Request::CheckCompatibility {
                        Check::Passed
                    } else {
                        Check::Readable
                    };
                }
                self.end(id);
            }
            (Request::Connect, Reply::Message(message)) => {
                if let Ok(keep_alive) = ConnectionKeepAlive::decode(message.clone()) {
                    self.sessions.keep_alive(now, &keep_alive.connection_id);
                }
            }
            (Request::KeepAlive, Reply::Finished(status)) => {
                self.sessions.answered(pending.sent, status);
                self.end(id);
            }
            (Request::GetDescriptorSet, Reply::Message(message)) => {
                let text = DescriptorSetResponse::decode(message.clone());
                let schema = text.map(|text| Schema::from_source_text(&text.schema_definition));
                if let Some(pending) = self.requests.get_mut(&id) {
                    pending.is_compatible = matches!(schema, Ok(Ok(_)));
                }
            }
            (Request::GetVersionInfo | Request::Connect, Reply::Finished(_)) => self.end(id),
            (Request::GetVersionInfo | Request::KeepAlive, Reply::Message(_)) => {}
            // Of the wrong kind: that request has failed, and the machine may have to drop it.
            (
                Request::Count
                | Request::Reserve
                | Request::Token
                | Request::CheckCompatibility
                | Request::GetDescriptorSet
                | Request::GetVersionInfo
                | Request::Connect
                | Request::KeepAlive,
                Reply::NameServers(_)
                | Reply::Opened { .. }
                | Reply::GoingAway { .. }
                | Reply::Closed(_)
                | Reply::Http(_)
                | Reply::Message(_)
                | Reply::Finished(_),
            ) => {
                self.end(id);
                self.may_be_dropped.push(id);
            }
        }
    }

    /// Remembers what a server says of contracts and credentials.
    fn witness(&mut self, pending: &Pending, reply: &Reply) {
        let Some(transport) = self.transports.get_mut(&pending.on) else {
            return;
        };
        let server = &transport.to;
        let status = if let Reply::Finished(status) = reply {
            Some(status.code)
        } else {
            None
        };
        if status == Some(Code::Unauthenticated) {
            transport.refused = Some(pending.what);
            // Of a version it says less: that is unknown then. And where a deadline fired first, the
            // machine may have given the request up.
            if pending.what != Request::GetVersionInfo && !self.is_overdue {
                self.tokens.reject(pending.generation);
            }
            self.choices.denies(server);
        }
        let may_refuse = match pending.what {
            Request::CheckCompatibility => status == Some(Code::Ok) && !pending.is_compatible,
            // What it is told, the client compares by itself; and what nobody can compare is refused.
            Request::GetDescriptorSet => status.is_some(),
            Request::Token => {
                if let Reply::Http(response) = reply {
                    match response.status().as_u16() {
                        400 | 401 | 403 => self.choices.denies(server),
                        _ => self.secrets.token(response.body()),
                    }
                }
                false
            }
            Request::Count => {
                // What came after its time was not heard.
                let count = count_of(reply).filter(|_| !self.is_overdue);
                self.choices.counts(server, count);
                false
            }
            Request::Reserve | Request::GetVersionInfo | Request::Connect | Request::KeepAlive => {
                false
            }
        };
        if may_refuse {
            self.choices.is_incompatible(server);
        }
    }

    /// A request is over.
    fn end(&mut self, id: Id) {
        let Some(pending) = self.requests.remove(&id) else {
            return;
        };
        if pending.what == Request::Reserve
            && let Some(transport) = self.transports.get_mut(&pending.on)
        {
            transport.reserve = Reserve::Over;
        }
    }

    fn stamp(&self, at: Instant) -> Stamp {
        Stamp {
            at,
            aged: self.aged,
        }
    }
}

/// The count in an answer: 2xx, and digits with white space around them at most.
fn count_of(reply: &Reply) -> Option<u64> {
    let Reply::Http(response) = reply else {
        return None;
    };
    let text = std::str::from_utf8(response.body()).ok()?;
    let digits = text.trim_matches(|c: char| c.is_ascii_whitespace());
    let is_number = response.status().is_success() && digits.bytes().all(|b| b.is_ascii_digit());
    digits
        .parse()
        .ok()
        .filter(|_| is_number && text.len() <= 64)
}
