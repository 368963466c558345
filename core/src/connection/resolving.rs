//! The phase that looks the servers of a name up in DNS (S1, "DNS SRV lookup").
//!
//! Each name server in turn, twice: over UDP; once more without EDNS if it does not know that; over
//! TCP if the answer does not fit. What does not answer the question is ignored until the deadline
//! of the try, since anybody can send a datagram.

use super::{
    Phase, WaitReason,
    attempt::Attempt,
    backing_off::BackingOff,
    context::{Context, check_limit, timed_out, wrong_kind},
};
use crate::{
    AttemptError, DnsTransport, Endpoint, Event, Id, LookupError, LookupErrorKind, NameServerError,
    Reply,
    dns::{Answer, NoServers, Question, SrvList, Unread},
};
use bytes::Bytes;
use rand_core::Rng;
use std::time::Instant;

#[derive(Debug, Clone)]
pub(super) struct Resolving {
    lookup: Lookup,
    step: Step,
}

#[derive(Debug, Clone)]
struct Lookup {
    /// As in the connection string.
    name: String,
    began: Instant,
    /// The last error of each name server, in the order of the first.
    errors: Vec<(Endpoint, NameServerError)>,
}

#[derive(Debug, Clone)]
enum Step {
    /// The platform is asked whom to ask.
    NameServers(Id),
    Asking(Box<Try>),
}

/// One question to one name server.
#[derive(Debug, Clone)]
struct Try {
    id: Id,
    servers: Vec<Endpoint>,
    way: Way,
    question: Question,
    began: Instant,
    deadline: Instant,
    /// What is wrong with the last message that claimed to be the answer.
    malformed: Option<String>,
}

/// How a name server is asked.
#[derive(Debug, Clone, Copy)]
struct Way {
    /// Counts the name servers, through all rounds.
    turn: usize,
    transport: DnsTransport,
    edns: bool,
}

impl Way {
    fn first(turn: usize) -> Self {
        Self {
            turn,
            transport: DnsTransport::Udp,
            edns: true,
        }
    }

    fn server(self, servers: &[Endpoint]) -> &Endpoint {
        &servers[self.turn % servers.len()]
    }
}

impl Resolving {
    /// Looks the servers of a name up afresh. Of earlier answers nothing is used but the last good
    /// list, where nobody answers now.
    pub(super) fn begin<R: Rng>(name: String, cx: &mut Context<R>) -> Phase {
        cx.emit(Event::Resolving {
            attempt: cx.memory.attempt,
            name: name.clone(),
        });
        let lookup = Lookup {
            name,
            began: cx.now,
            errors: Vec::new(),
        };
        match cx.config.srv_name_server.clone() {
            Some(server) => lookup.ask(vec![server], Way::first(0), cx),
            None => Phase::Resolving(Self {
                lookup,
                step: Step::NameServers(cx.name_servers()),
            }),
        }
    }

    /// What is known when the lookup is cut.
    pub(super) fn error(&self) -> AttemptError {
        let error = (!self.lookup.errors.is_empty()).then(|| self.lookup.no_answer());
        AttemptError {
            lookup: error.map(|kind| Box::new(self.lookup.error(kind))),
            candidates: Vec::new(),
        }
    }

    pub(super) fn hang_up<R: Rng>(&mut self, cx: &mut Context<R>) {
        match &self.step {
            Step::NameServers(id) => cx.cancel_lookup(*id),
            Step::Asking(asked) => cx.cancel_lookup(asked.id),
        }
    }

    pub(super) fn deadline<R>(&self, cx: &Context<R>) -> (Instant, WaitReason) {
        let end = self.lookup.end(cx);
        match &self.step {
            Step::NameServers(_) => (end, WaitReason::NameServers),
            Step::Asking(asked) => (asked.deadline.min(end), WaitReason::Lookup),
        }
    }

    pub(super) fn expire<R: Rng>(mut self, cx: &mut Context<R>) -> Phase {
        self.hang_up(cx);
        // As of now, and not as of the deadline: after a pause there is no time for another try.
        let is_over = cx.now >= self.lookup.end(cx);
        match self.step {
            Step::NameServers(_) => {
                let cause = Some(timed_out(cx.config.timing.lookup));
                self.lookup
                    .fail(LookupErrorKind::NoNameServers { cause }, cx)
            }
            Step::Asking(mut asked) => {
                let error = match asked.malformed.take() {
                    Some(text) => NameServerError::Malformed(text),
                    None => NameServerError::TimedOut {
                        after: cx.now.saturating_duration_since(asked.began),
                    },
                };
                self.lookup.try_failed(&asked, error, cx);
                if is_over {
                    let kind = self.lookup.no_answer();
                    return self.lookup.fail(kind, cx);
                }
                self.lookup.ask_next(*asked, cx)
            }
        }
    }

    pub(super) fn on_reply<R: Rng>(self, id: Id, reply: &Reply, cx: &mut Context<R>) -> Phase {
        match self.step {
            Step::NameServers(mine) if mine == id => {
                let cause = match reply {
                    Reply::NameServers(servers) if servers.is_empty() => None,
                    Reply::NameServers(servers) => {
                        return self.lookup.ask(servers.clone(), Way::first(0), cx);
                    }
                    Reply::Failed(failure) => Some(failure.clone()),
                    Reply::Opened { .. }
                    | Reply::GoingAway { .. }
                    | Reply::Closed(_)
                    | Reply::Http(_)
                    | Reply::Message(_)
                    | Reply::Finished(_) => {
                        cx.cancel(id);
                        Some(wrong_kind())
                    }
                };
                self.lookup
                    .fail(LookupErrorKind::NoNameServers { cause }, cx)
            }
            Step::Asking(asked) if asked.id == id => self.lookup.on_reply(asked, reply, cx),
            Step::NameServers(_) | Step::Asking(_) => {
                cx.ignore(id, reply);
                Phase::Resolving(self)
            }
        }
    }
}

impl Lookup {
    fn on_reply<R: Rng>(
        mut self,
        mut asked: Box<Try>,
        reply: &Reply,
        cx: &mut Context<R>,
    ) -> Phase {
        let answer = match reply {
            Reply::Message(message) => match asked.read(message) {
                Ok(answer) => answer,
                Err(unread) => {
                    if let Unread::Malformed(text) = unread {
                        asked.malformed = Some(text);
                    }
                    let step = Step::Asking(asked);
                    return Phase::Resolving(Resolving { lookup: self, step });
                }
            },
            Reply::Failed(failure) => {
                let error = NameServerError::Failed(failure.clone());
                self.try_failed(&asked, error, cx);
                return self.ask_next(*asked, cx);
            }
            Reply::NameServers(_)
            | Reply::Opened { .. }
            | Reply::GoingAway { .. }
            | Reply::Closed(_)
            | Reply::Http(_)
            | Reply::Finished(_) => Answer::Failed(NameServerError::Failed(wrong_kind())),
        };
        cx.cancel(asked.id);
        let server = asked.server().clone();
        let kind = match answer {
            Answer::NoSuchName => LookupErrorKind::NoSuchName { server },
            Answer::NoRecords => LookupErrorKind::NoRecords { server },
            Answer::Records(records) => match SrvList::new(records) {
                Ok(list) => return resolved(list, &asked, cx),
                Err(NoServers::NotOffered) => LookupErrorKind::NotOffered { server },
                Err(NoServers::NotHosts(targets)) => LookupErrorKind::NoHosts { server, targets },
            },
            Answer::Failed(error) => {
                self.try_failed(&asked, error.clone(), cx);
                return match error {
                    NameServerError::NoEdns => {
                        let edns = false;
                        self.ask(asked.servers, Way { edns, ..asked.way }, cx)
                    }
                    NameServerError::Truncated if asked.way.transport == DnsTransport::Udp => {
                        let transport = DnsTransport::Tcp;
                        let way = Way {
                            transport,
                            ..asked.way
                        };
                        self.ask(asked.servers, way, cx)
                    }
                    NameServerError::TimedOut { .. }
                    | NameServerError::ServerFailure
                    | NameServerError::Refused
                    | NameServerError::Code(_)
                    | NameServerError::Truncated
                    | NameServerError::Referral
                    | NameServerError::Malformed(_)
                    | NameServerError::Failed(_) => self.ask_next(*asked, cx),
                };
            }
        };
        self.fail(kind, cx)
    }

    /// Goes on to the next name server, or gives up after the last round.
    fn ask_next<R: Rng>(self, asked: Try, cx: &mut Context<R>) -> Phase {
        let turn = asked.way.turn + 1;
        if turn == asked.servers.len() * ROUNDS {
            let kind = self.no_answer();
            return self.fail(kind, cx);
        }
        self.ask(asked.servers, Way::first(turn), cx)
    }

    fn ask<R: Rng>(self, servers: Vec<Endpoint>, way: Way, cx: &mut Context<R>) -> Phase {
        let server = way.server(&servers).clone();
        let number = cx.rng.next_u32() as u16;
        let Ok((question, message)) = Question::new(&self.name, number, way.edns) else {
            // Out of reach: a connection string takes no name that cannot be asked for.
            let kind = self.no_answer();
            return self.fail(kind, cx);
        };
        let asked = Try {
            id: cx.dns(server, way.transport, message, MESSAGE_LIMIT),
            servers,
            way,
            question,
            began: cx.now,
            deadline: cx.now + cx.config.timing.lookup_try,
            malformed: None,
        };
        Phase::Resolving(Resolving {
            lookup: self,
            step: Step::Asking(Box::new(asked)),
        })
    }

    fn try_failed<R: Rng>(&mut self, asked: &Try, error: NameServerError, cx: &mut Context<R>) {
        let server = asked.server().clone();
        match self.errors.iter_mut().find(|(known, _)| *known == server) {
            Some((_, last)) => *last = error.clone(),
            None => self.errors.push((server.clone(), error.clone())),
        }
        cx.emit(Event::LookupTryFailed {
            server,
            transport: asked.way.transport,
            error,
            took: cx.now.saturating_duration_since(asked.began),
        });
    }

    /// Fails the attempt, unless nobody has told anything and an earlier lookup has.
    fn fail<R: Rng>(self, kind: LookupErrorKind, cx: &mut Context<R>) -> Phase {
        let error = Box::new(self.error(kind));
        if error.is_authoritative() {
            cx.memory.last_good.clear();
        }
        let servers = cx.memory.last_good.clone();
        if !servers.is_empty() {
            cx.emit(Event::LastGoodListUsed {
                error: error.clone(),
            });
            return Attempt::select(servers, Some(error), cx);
        }
        let error = AttemptError {
            lookup: Some(error),
            candidates: Vec::new(),
        };
        cx.memory.last_error = Some(error.clone());
        BackingOff::begin(Some(error), cx)
    }

    fn error(&self, kind: LookupErrorKind) -> LookupError {
        let name = self.name.clone();
        LookupError { name, kind }
    }

    fn no_answer(&self) -> LookupErrorKind {
        let name_servers = self.errors.clone();
        LookupErrorKind::NoAnswer { name_servers }
    }

    /// When the time of the lookup as a whole is up.
    fn end<R>(&self, cx: &Context<R>) -> Instant {
        self.began + cx.config.timing.lookup
    }
}

impl Try {
    fn server(&self) -> &Endpoint {
        self.way.server(&self.servers)
    }

    fn read(&self, message: &Bytes) -> Result<Answer, Unread> {
        check_limit(message, MESSAGE_LIMIT)
            .map_err(|failure| Unread::Malformed(failure.to_string()))?;
        Answer::read(message, &self.question)
    }
}

fn resolved<R: Rng>(list: SrvList, asked: &Try, cx: &mut Context<R>) -> Phase {
    let servers = list.servers();
    cx.memory.last_good.clone_from(&servers);
    cx.emit(Event::Resolved {
        server: asked.server().clone(),
        transport: asked.way.transport,
        records: list.records,
        warnings: list.warnings,
        took: cx.now.saturating_duration_since(asked.began),
    });
    Attempt::select(servers, None, cx)
}

/// How often each name server is asked.
const ROUNDS: usize = 2;

/// What the length before a message over TCP can say.
const MESSAGE_LIMIT: usize = 65_535;

#[cfg(feature = "model-checking")]
impl Resolving {
    pub(super) fn normal_form<H: std::hash::Hasher>(&self, form: &mut crate::NormalForm<H>) {
        let Self { lookup, step } = self;
        let Lookup {
            name,
            began,
            errors,
        } = lookup;
        form.value((name, errors));
        form.instant(*began);
        let asked = match step {
            Step::NameServers(id) => {
                form.value(0);
                return form.id(*id);
            }
            Step::Asking(asked) => asked,
        };
        form.value(1);
        let Try {
            id,
            servers,
            way,
            // Its number is a name that was drawn; the rest follows from the name and the way.
            question: _,
            began,
            deadline,
            malformed,
        } = &**asked;
        let Way {
            turn,
            transport,
            edns,
        } = way;
        form.id(*id);
        form.value((servers, turn, transport, edns, malformed));
        form.instant(*began);
        form.instant(*deadline);
    }
}
