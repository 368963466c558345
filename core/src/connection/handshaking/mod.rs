//! The phase between choosing a server and its first keep-alive: reserve, prove, register (S2, "The
//! wire-compatibility handshake").

mod authenticating;
#[cfg(feature = "model-checking")]
mod normal_form;

use super::{
    Phase, WaitReason,
    attempt::{Attempt, Link, LinkChange, lost_unchosen},
    checking::{Checking, Verdict},
    connected::{Connected, read_keep_alive},
    context::{Context, timed_out, wrong_kind},
    earliest,
    fetching::Fetching,
};
use crate::{
    AttemptError, CallError, CandidateError, Code, Endpoint, Event, FatalError, Id, Output, Reply,
    Request, Session, config::Credentials,
};
use chronicle_connection_proto::{clients::ConnectRequest, paths};
use http::Method;
use prost::Message as _;
use rand_core::Rng;
use std::{mem, net::SocketAddr, time::Instant};
use uuid::Uuid;

#[derive(Debug, Clone)]
pub(super) struct Handshaking {
    attempt: Attempt,
    chosen: usize,
    /// Whether this server has rejected a token, and another was asked for.
    renewed: bool,
    step: Step,
}

#[derive(Debug, Clone)]
enum Step {
    /// The transport to the chosen server is not up yet; its deadline is with its link.
    Opening,
    /// All are on their way; when all are answered, the session is registered.
    Proving {
        on: Id,
        peer: SocketAddr,
        reserve: Option<(Id, Instant)>,
        check: Check,
        token: Option<Fetching>,
    },
    Registering {
        on: Id,
        peer: SocketAddr,
        stream: Id,
        connection_id: Uuid,
        sent: Instant,
        /// Of the credentials that were sent.
        generation: u64,
    },
}

#[derive(Debug, Clone)]
enum Check {
    Done,
    Running(Checking),
    /// To be made once more when the token is there.
    AwaitingToken(Checking),
}

impl Handshaking {
    pub(super) fn begin<R: Rng>(mut attempt: Attempt, chosen: usize, cx: &mut Context<R>) -> Phase {
        let link = attempt.candidates[chosen].link;
        if matches!(link, Link::Down) {
            attempt.dial(chosen, cx);
        }
        let handshaking = Self {
            attempt,
            chosen,
            renewed: false,
            step: Step::Opening,
        };
        match link {
            Link::Up { id, peer } => handshaking.prove(id, peer, cx),
            Link::Down | Link::Dialling { .. } => Phase::Handshaking(handshaking),
        }
    }

    pub(super) fn server(&self) -> &Endpoint {
        &self.attempt.candidates[self.chosen].server
    }

    /// What is known of every candidate when the time for the first connect is up.
    pub(super) fn cut_off(&self, earlier: AttemptError) -> AttemptError {
        self.attempt.cut_off(Some(self.chosen), earlier)
    }

    pub(super) fn hang_up<R: Rng>(&mut self, cx: &mut Context<R>) {
        self.attempt.hang_up_all_but(None, cx);
    }

    pub(super) fn deadline<R>(&self, cx: &Context<R>) -> Option<(Instant, WaitReason)> {
        let dial = self.attempt.deadline(WaitReason::Open);
        match &self.step {
            Step::Opening => dial,
            Step::Proving {
                reserve,
                check,
                token,
                ..
            } => earliest([
                dial,
                reserve.map(|(_, deadline)| (deadline, WaitReason::Reserve)),
                check
                    .awaited()
                    .map(|check| (check.deadline, WaitReason::Check)),
                token
                    .as_ref()
                    .map(|token| (token.deadline, WaitReason::Token)),
            ]),
            Step::Registering { sent, .. } => {
                let deadline = *sent + cx.config.timing.first_keep_alive;
                earliest([dial, Some((deadline, WaitReason::FirstKeepAlive))])
            }
        }
    }

    pub(super) fn expire<R: Rng>(mut self, due: Instant, cx: &mut Context<R>) -> Phase {
        if let Some((index, cause)) = self.attempt.expire_dial(due, cx) {
            return self.lost(index, cause, cx);
        }
        match &mut self.step {
            Step::Opening => Phase::Handshaking(self),
            Step::Proving {
                reserve,
                check,
                token,
                ..
            } => {
                if let Some((id, _)) = reserve.take_if(|(_, deadline)| *deadline <= due) {
                    cx.cancel(id);
                    let error = CallError::Failure(timed_out(cx.config.timing.reserve));
                    self.reserve_failed(error, cx);
                    return self.register_when_proven(cx);
                }
                if let Some(token) = token.take_if(|token| token.deadline <= due) {
                    let result = token.expire(cx);
                    return self.token_came(result, cx);
                }
                let is_open = matches!(check, Check::Running(_));
                let verdict = match check.awaited() {
                    Some(check) => check.expire(is_open, cx),
                    None => return Phase::Handshaking(self),
                };
                self.judged(verdict, cx)
            }
            Step::Registering { sent, .. } => {
                let waited = cx.now.saturating_duration_since(*sent);
                self.fail(CandidateError::NoKeepAlive { waited }, cx)
            }
        }
    }

    pub(super) fn on_reply<R: Rng>(mut self, id: Id, reply: &Reply, cx: &mut Context<R>) -> Phase {
        match self.attempt.on_link_reply(id, reply, cx) {
            LinkChange::NotMine => {}
            LinkChange::Up(index) => {
                return match self.attempt.candidates[index].link {
                    Link::Up { id, peer } if index == self.chosen => self.prove(id, peer, cx),
                    Link::Up { .. } | Link::Down | Link::Dialling { .. } => {
                        Phase::Handshaking(self)
                    }
                };
            }
            LinkChange::Lost(index, cause) => return self.lost(index, cause, cx),
        }
        match &mut self.step {
            Step::Proving {
                reserve: reserve @ Some(_),
                ..
            } if reserve.is_some_and(|(mine, _)| mine == id) => {
                *reserve = None;
                if let Some(error) = reserve_error(id, reply, cx) {
                    self.reserve_failed(error, cx);
                }
                self.register_when_proven(cx)
            }
            Step::Proving {
                check: Check::Running(check),
                ..
            } if check.id == id => {
                let verdict = check.on_reply(reply, cx);
                self.judged(verdict, cx)
            }
            Step::Proving {
                token: token @ Some(_),
                ..
            } if token.as_ref().is_some_and(|token| token.id == id) => {
                let result = token
                    .take()
                    .map_or(Ok(()), |token| token.on_reply(reply, cx));
                self.token_came(result, cx)
            }
            Step::Registering { stream, .. } if *stream == id => self.on_stream_reply(reply, cx),
            Step::Opening | Step::Proving { .. } | Step::Registering { .. } => {
                cx.ignore(id, reply);
                Phase::Handshaking(self)
            }
        }
    }

    /// Sends the reservation and the check without waiting in between: the reservation is made
    /// first, and a round trip is saved.
    fn prove<R: Rng>(mut self, on: Id, peer: SocketAddr, cx: &mut Context<R>) -> Phase {
        let reserve = cx.http(on, Method::POST, RESERVE_PATH, RESERVE_LIMIT);
        let reserve_deadline = cx.now + cx.config.timing.reserve;
        let check = if cx.config.skip_compatibility_check {
            self.attempt.hang_up_all_but(Some(self.chosen), cx);
            Check::Done
        } else {
            Check::Running(Checking::begin(on, cx))
        };
        if let Some(tokens) = &mut cx.tokens {
            // A request on an earlier transport ended with it.
            tokens.abandon();
        }
        let token = match cx.lacks_token() {
            true => Fetching::begin(on, cx),
            false => None,
        };
        self.step = Step::Proving {
            on,
            peer,
            reserve: Some((reserve, reserve_deadline)),
            check,
            token,
        };
        Phase::Handshaking(self)
    }

    fn reserve_failed<R: Rng>(&self, cause: CallError, cx: &mut Context<R>) {
        cx.emit(Event::ReserveFailed {
            server: self.server().clone(),
            cause,
        });
    }

    fn judged<R: Rng>(mut self, verdict: Verdict, cx: &mut Context<R>) -> Phase {
        match verdict {
            Verdict::Pending => Phase::Handshaking(self),
            Verdict::Failed(cause) => self.fail(cause, cx),
            Verdict::Unauthenticated(status) => self.check_unauthenticated(status, cx),
            Verdict::NeedsToken => self.await_token(cx),
            Verdict::Compatible {
                server_version,
                missing_on_server,
            } => {
                if let Step::Proving { check, .. } = &mut self.step {
                    *check = Check::Done;
                }
                self.attempt.hang_up_all_but(Some(self.chosen), cx);
                cx.emit(Event::Compatible {
                    server: self.server().clone(),
                    server_version,
                    missing_on_server,
                });
                self.register_when_proven(cx)
            }
        }
    }

    /// Opens the stream of keep-alives, once nothing is awaited any more.
    fn register_when_proven<R: Rng>(mut self, cx: &mut Context<R>) -> Phase {
        let Step::Proving {
            on,
            peer,
            reserve: None,
            check: Check::Done,
            token: None,
        } = self.step
        else {
            return Phase::Handshaking(self);
        };
        if cx.lacks_token() {
            // The one at hand when the handshake began was rejected meanwhile, or has expired.
            self.step = Step::Proving {
                on,
                peer,
                reserve: None,
                check: Check::Done,
                token: Fetching::begin(on, cx),
            };
            return Phase::Handshaking(self);
        }
        let mut random = [0; 16];
        cx.rng.fill_bytes(&mut random);
        let connection_id = uuid::Builder::from_random_bytes(random).into_uuid();
        let client = &cx.config.client;
        let request = ConnectRequest {
            connection_id: connection_id.to_string(),
            client_version: client.version.clone(),
            is_running_with_debugger: client.is_running_with_debugger,
            process_id: client.process_id,
            process_path: client.process_path.clone(),
            machine_name: client.machine_name.clone(),
            client_type: CLIENT_TYPE.to_owned(),
        };
        let generation = cx.token_generation();
        let stream = cx.call(
            Output::ServerStream,
            on,
            paths::CONNECT,
            true,
            request.encode_to_vec().into(),
            KEEP_ALIVE_LIMIT,
        );
        self.step = Step::Registering {
            on,
            peer,
            stream,
            connection_id,
            sent: cx.now,
            generation,
        };
        Phase::Handshaking(self)
    }

    fn on_stream_reply<R: Rng>(mut self, reply: &Reply, cx: &mut Context<R>) -> Phase {
        let Step::Registering {
            on,
            peer,
            stream,
            connection_id,
            sent,
            generation,
        } = self.step
        else {
            return Phase::Handshaking(self);
        };
        let error = match reply {
            Reply::Message(message) => match read_keep_alive(message) {
                Ok(id) if id == connection_id.to_string() => {
                    let session = Session {
                        connection_id,
                        server: self.server().clone(),
                        peer,
                        generation: cx.stats.sessions + 1,
                    };
                    return Connected::begin(session, on, stream, generation, sent, cx);
                }
                Ok(other) => CallError::Malformed(format!(
                    "the first keep-alive is for another connection, {other:?}"
                )),
                Err(text) => CallError::Malformed(text),
            },
            Reply::Finished(status) if status.code == Code::Unauthenticated => {
                cx.reject_token(generation);
                if cx.tokens.is_none() || mem::replace(&mut self.renewed, true) {
                    let had_credentials = !matches!(cx.config.credentials, Credentials::None);
                    return self.refused(Request::Connect, status.clone(), had_credentials, cx);
                }
                self.step = Step::Proving {
                    on,
                    peer,
                    reserve: None,
                    check: Check::Done,
                    token: Fetching::begin(on, cx),
                };
                return Phase::Handshaking(self);
            }
            Reply::Finished(status) if status.code == Code::Ok => {
                CallError::Malformed("the stream ended before its first keep-alive".to_owned())
            }
            Reply::Finished(status) => CallError::Status(status.clone()),
            Reply::Failed(failure) => CallError::Failure(failure.clone()),
            Reply::NameServers(_)
            | Reply::Opened { .. }
            | Reply::GoingAway { .. }
            | Reply::Closed(_)
            | Reply::Http(_) => CallError::Failure(wrong_kind()),
        };
        let request = Request::Connect;
        self.fail(CandidateError::Call { request, error }, cx)
    }

    /// A transport is gone: that of the chosen server ends its handshake, others may be dialled
    /// again if their turn comes.
    fn lost<R: Rng>(mut self, index: usize, cause: CandidateError, cx: &mut Context<R>) -> Phase {
        if index == self.chosen {
            return self.fail(cause, cx);
        }
        lost_unchosen(&mut self.attempt.candidates[index], cause);
        Phase::Handshaking(self)
    }

    /// The chosen server is out for this attempt, and behind the others until the next session.
    fn fail<R: Rng>(mut self, cause: CandidateError, cx: &mut Context<R>) -> Phase {
        if let Step::Proving { token, .. } = &mut self.step
            && let Some(token) = token.take()
        {
            token.abandon(cx);
        }
        let server = self.server().clone();
        self.attempt.rule_out(self.chosen, cause.clone(), cx);
        cx.memory.failed.insert(server.clone());
        cx.emit(Event::CandidateFailed {
            server: server.clone(),
            cause: cause.clone(),
        });
        if let CandidateError::Credentials(error) = cause
            && cx.is_initial()
        {
            self.hang_up(cx);
            cx.emit(Event::Failed(FatalError::Credentials { server, error }));
            return Phase::Stopped;
        }
        self.attempt.choose(cx)
    }
}

impl Check {
    fn awaited(&self) -> Option<&Checking> {
        match self {
            Self::Running(checking) | Self::AwaitingToken(checking) => Some(checking),
            Self::Done => None,
        }
    }
}

fn reserve_error<R: Rng>(id: Id, reply: &Reply, cx: &mut Context<R>) -> Option<CallError> {
    match reply {
        Reply::Http(response) if response.status().is_success() => None,
        Reply::Http(response) => Some(CallError::Http(response.status().as_u16())),
        Reply::Failed(failure) => Some(CallError::Failure(failure.clone())),
        Reply::NameServers(_)
        | Reply::Opened { .. }
        | Reply::GoingAway { .. }
        | Reply::Closed(_)
        | Reply::Message(_)
        | Reply::Finished(_) => {
            cx.cancel(id);
            Some(CallError::Failure(wrong_kind()))
        }
    }
}

/// What `ClientType` says of this library.
pub(super) const CLIENT_TYPE: &str = "Rust";

/// A keep-alive holds one id.
pub(super) const KEEP_ALIVE_LIMIT: usize = 4 * 1024;

const RESERVE_PATH: &str = "/connections/reserve";
const RESERVE_LIMIT: usize = 4 * 1024;
