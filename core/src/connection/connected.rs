//! The phase in which a session is up: keep-alives, their answers and the two clocks (S2, "Staying
//! connected").

use super::{
    Phase, WaitReason,
    attempt::Attempt,
    backing_off::BackingOff,
    context::{Context, check_limit, wrong_kind},
    earliest,
    fetching::Fetching,
    handshaking::KEEP_ALIVE_LIMIT,
};
use crate::{Code, DropCause, Event, Id, Output, Reply, Session, Status, TokenError};
use bytes::Bytes;
use chronicle_connection_proto::{clients::ConnectionKeepAlive, paths};
use prost::Message as _;
use rand_core::Rng;
use std::{mem, time::Instant};

#[derive(Debug, Clone)]
pub(super) struct Connected {
    session: Session,
    on: Id,
    stream: Id,
    /// Of the credentials that the stream was opened with.
    generation: u64,
    first_keep_alive: Instant,
    last_keep_alive: Instant,
    /// The sending of the newest acknowledged answer; `None` where the server takes no answers.
    acknowledged: Option<Instant>,
    /// Answers under way, oldest first.
    answers: Vec<Answer>,
    /// The newest answer while nothing is known of it: it holds back the next one.
    newest: Option<Answer>,
    /// A keep-alive that could not be answered at once.
    pending: bool,
    token: Option<Fetching>,
    refusal: Refusal,
}

#[derive(Debug, Clone, Copy)]
struct Answer {
    id: Id,
    sent: Instant,
    /// Of the credentials that it carried.
    generation: u64,
}

/// Whether the server refused the credentials of an answer.
#[derive(Debug, Clone)]
enum Refusal {
    No,
    /// It did, with this status; a new token is awaited.
    Renewing(Status),
    /// The new token was sent, and nothing is known of it yet.
    Retried,
}

impl Connected {
    /// The first keep-alive of a session arrived; `registered` is when `Connect` was sent.
    pub(super) fn begin<R: Rng>(
        session: Session,
        on: Id,
        stream: Id,
        generation: u64,
        registered: Instant,
        cx: &mut Context<R>,
    ) -> Phase {
        cx.stats.sessions += 1;
        cx.stats.keep_alives += 1;
        cx.memory.attempt = 0;
        cx.memory.failed.clear();
        cx.memory.connect_deadline = None;
        cx.memory.last_error = None;
        cx.emit(Event::Connected(session.clone()));
        let mut connected = Self {
            session,
            on,
            stream,
            generation,
            first_keep_alive: cx.now,
            last_keep_alive: cx.now,
            acknowledged: Some(registered),
            answers: Vec::new(),
            newest: None,
            pending: true,
            token: None,
            refusal: Refusal::No,
        };
        connected.answer_pending(cx);
        Phase::Connected(connected)
    }

    pub(super) fn session(&self) -> &Session {
        &self.session
    }

    pub(super) fn hang_up<R: Rng>(&self, cx: &mut Context<R>) {
        cx.close(self.on);
    }

    pub(super) fn deadline<R: Rng>(&self, cx: &Context<R>) -> Option<(Instant, WaitReason)> {
        let timing = &cx.config.timing;
        let pace = self.newest.map(|newest| newest.sent + timing.answer_pace);
        // As of then: where the token is over by then, there is nothing to wake up for.
        let pace = pace.filter(|at| self.may_answer((*at).max(cx.now), cx));
        earliest([
            Some((
                self.last_keep_alive + timing.keep_alive,
                WaitReason::KeepAlive,
            )),
            self.acknowledged
                .map(|sent| (sent + timing.keep_alive, WaitReason::Acknowledgement)),
            self.answers
                .first()
                .map(|oldest| (oldest.sent + timing.keep_alive, WaitReason::Acknowledgement)),
            pace.map(|at| (at, WaitReason::AnswerPace)),
            self.token_deadline(cx),
        ])
    }

    fn token_deadline<R>(&self, cx: &Context<R>) -> Option<(Instant, WaitReason)> {
        if let Some(token) = &self.token {
            return Some((token.deadline, WaitReason::Token));
        }
        let due = cx.tokens.as_ref()?.due(cx.now)?;
        Some((due, WaitReason::TokenRefresh))
    }

    pub(super) fn expire<R: Rng>(mut self, due: Instant, cx: &mut Context<R>) -> Phase {
        let threshold = cx.config.timing.keep_alive;
        if self.last_keep_alive + threshold <= due {
            let silent = cx.now - self.last_keep_alive;
            return self.drop_session(DropCause::Silence { silent }, cx);
        }
        if let Some(sent) = self.acknowledged
            && sent + threshold <= due
        {
            let unacknowledged = cx.now - sent;
            return self.drop_session(DropCause::Unacknowledged { unacknowledged }, cx);
        }
        while let Some(oldest) = self.answers.first().copied()
            && oldest.sent + threshold <= due
        {
            cx.cancel(oldest.id);
            self.ended(oldest.id);
        }
        match self.token_deadline(cx) {
            Some((at, WaitReason::Token)) if at <= due => {
                let result = self.token.take().map_or(Ok(()), |token| token.expire(cx));
                return self.token_came(result, cx);
            }
            Some((at, _)) if at <= due => self.token = Fetching::begin(self.on, cx),
            Some(_) | None => {}
        }
        self.answer_pending(cx);
        Phase::Connected(self)
    }

    /// A server rejected the token of a generation: gets a newer one, if there is none yet.
    pub(super) fn refresh_token<R: Rng>(mut self, rejected: u64, cx: &mut Context<R>) -> Phase {
        cx.reject_token(rejected);
        let Some(tokens) = &cx.tokens else {
            return Phase::Connected(self);
        };
        if tokens.token(cx.now).is_some() {
            cx.tell_token(None);
        } else if self.token.is_none() {
            if tokens.is_throttled(cx.now) {
                cx.tell_token(Some(TokenError::Throttled));
            } else {
                self.token = Fetching::begin(self.on, cx);
            }
        }
        Phase::Connected(self)
    }

    pub(super) fn on_reply<R: Rng>(mut self, id: Id, reply: &Reply, cx: &mut Context<R>) -> Phase {
        if id == self.on {
            let cause = match reply {
                Reply::GoingAway { code } => DropCause::GoingAway { code: *code },
                Reply::Closed(failure) => DropCause::TransportClosed(failure.clone()),
                Reply::NameServers(_)
                | Reply::Opened { .. }
                | Reply::Http(_)
                | Reply::Message(_)
                | Reply::Finished(_)
                | Reply::Failed(_) => {
                    self.hang_up(cx);
                    DropCause::TransportClosed(wrong_kind())
                }
            };
            return self.drop_session(cause, cx);
        }
        if id == self.stream {
            return self.on_stream_reply(reply, cx);
        }
        if let Some(token) = self.token.take_if(|token| token.id == id) {
            let result = token.on_reply(reply, cx);
            return self.token_came(result, cx);
        }
        match self.answers.iter().copied().find(|answer| answer.id == id) {
            Some(answer) => self.on_answer_reply(answer, reply, cx),
            None => {
                cx.ignore(id, reply);
                Phase::Connected(self)
            }
        }
    }

    fn on_stream_reply<R: Rng>(mut self, reply: &Reply, cx: &mut Context<R>) -> Phase {
        let cause = match reply {
            Reply::Message(message) => match read_keep_alive(message) {
                Ok(id) if id == self.session.connection_id.to_string() => {
                    cx.stats.keep_alives += 1;
                    self.last_keep_alive = cx.now;
                    self.pending = true;
                    self.answer_pending(cx);
                    return Phase::Connected(self);
                }
                Ok(connection_id) => DropCause::ForeignKeepAlive { connection_id },
                Err(text) => DropCause::MalformedKeepAlive(text),
            },
            Reply::Finished(status) => {
                if status.code == Code::Unauthenticated {
                    cx.reject_token(self.generation);
                }
                DropCause::StreamEnded(status.clone())
            }
            Reply::Failed(failure) => DropCause::StreamFailed(failure.clone()),
            Reply::NameServers(_)
            | Reply::Opened { .. }
            | Reply::GoingAway { .. }
            | Reply::Closed(_)
            | Reply::Http(_) => DropCause::StreamFailed(wrong_kind()),
        };
        self.drop_session(cause, cx)
    }

    fn on_answer_reply<R: Rng>(
        mut self,
        answer: Answer,
        reply: &Reply,
        cx: &mut Context<R>,
    ) -> Phase {
        match reply {
            // The answer to an answer is empty; only its status counts.
            Reply::Message(_) => return Phase::Connected(self),
            Reply::Finished(status) if status.code == Code::Ok => {
                cx.stats.acknowledged += 1;
                if matches!(self.refusal, Refusal::Retried) {
                    self.refusal = Refusal::No;
                }
                self.acknowledged = self.acknowledged.map(|sent| sent.max(answer.sent));
            }
            Reply::Finished(status) if status.is_unimplemented() => self.acknowledged = None,
            Reply::Finished(status) if status.code == Code::Unauthenticated => {
                if !self.renews(answer.generation, status, cx) {
                    return self.drop_session(DropCause::Credentials(status.clone()), cx);
                }
            }
            // No other failure drops the session by itself: the clock decides.
            Reply::Finished(_) | Reply::Failed(_) => {}
            Reply::NameServers(_)
            | Reply::Opened { .. }
            | Reply::GoingAway { .. }
            | Reply::Closed(_)
            | Reply::Http(_) => {
                cx.cancel(answer.id);
            }
        }
        self.ended(answer.id);
        self.answer_pending(cx);
        Phase::Connected(self)
    }

    /// Whether refused credentials can be, or have been, renewed: once.
    fn renews<R: Rng>(&mut self, generation: u64, status: &Status, cx: &mut Context<R>) -> bool {
        cx.reject_token(generation);
        let Some(tokens) = &cx.tokens else {
            return false;
        };
        if tokens.token(cx.now).is_some() {
            // The refusal of an older token says nothing of the newest.
            self.pending = true;
            return true;
        }
        match self.refusal {
            Refusal::No => {
                self.refusal = Refusal::Renewing(status.clone());
                if self.token.is_none() {
                    self.token = Fetching::begin(self.on, cx);
                }
                true
            }
            Refusal::Renewing(_) => true,
            Refusal::Retried => false,
        }
    }

    /// Answers once more with the new token, if the old one was refused.
    fn token_came<R: Rng>(mut self, result: Result<(), TokenError>, cx: &mut Context<R>) -> Phase {
        match (mem::replace(&mut self.refusal, Refusal::No), result) {
            (Refusal::Renewing(_), Ok(())) => {
                self.refusal = Refusal::Retried;
                self.pending = true;
                self.answer_pending(cx);
            }
            (Refusal::Renewing(status), Err(_)) => {
                return self.drop_session(DropCause::Credentials(status), cx);
            }
            (refusal @ (Refusal::No | Refusal::Retried), _) => {
                self.refusal = refusal;
                self.answer_pending(cx);
            }
        }
        Phase::Connected(self)
    }

    fn ended(&mut self, id: Id) {
        self.answers.retain(|answer| answer.id != id);
        self.newest.take_if(|newest| newest.id == id);
    }

    /// Whether there is something to answer, and at a time nothing but the newest answer holds it
    /// back.
    fn may_answer<R: Rng>(&self, at: Instant, cx: &Context<R>) -> bool {
        // Without the token that is on its way the answer would be refused.
        let awaits_token = self.token.is_some() && cx.lacks_token_at(at);
        self.pending && !awaits_token && self.answers.len() < MOST_ANSWERS
    }

    /// Answers the pending keep-alive if the newest answer does not hold it back.
    fn answer_pending<R: Rng>(&mut self, cx: &mut Context<R>) {
        let held_back = self
            .newest
            .is_some_and(|newest| cx.now < newest.sent + cx.config.timing.answer_pace);
        if held_back || !self.may_answer(cx.now, cx) {
            return;
        }
        let generation = cx.token_generation();
        let answer = ConnectionKeepAlive {
            connection_id: self.session.connection_id.to_string(),
        };
        let id = cx.call(
            Output::Unary,
            self.on,
            paths::CONNECTION_KEEP_ALIVE,
            true,
            answer.encode_to_vec().into(),
            KEEP_ALIVE_LIMIT,
        );
        cx.stats.answers += 1;
        let answer = Answer {
            id,
            sent: cx.now,
            generation,
        };
        self.answers.push(answer);
        self.newest = Some(answer);
        self.pending = false;
    }

    /// Ends the session and goes for the next one by the very same path.
    fn drop_session<R: Rng>(mut self, cause: DropCause, cx: &mut Context<R>) -> Phase {
        if let Some(token) = self.token.take() {
            token.abandon(cx);
        }
        if !matches!(cause, DropCause::TransportClosed(_)) {
            self.hang_up(cx);
        }
        let server = self.session.server.clone();
        cx.emit(Event::Disconnected {
            session: self.session,
            cause,
            lasted: cx.now - self.first_keep_alive,
        });
        cx.memory.fresh_reconnect = true;
        let span = self.last_keep_alive - self.first_keep_alive;
        if span <= cx.config.timing.stable_after {
            // Or it would have the fewest clients of all, and be chosen again.
            cx.memory.add_unstable(server);
            return BackingOff::begin(None, cx);
        }
        cx.memory.step = 0;
        cx.memory.unstable.clear();
        Attempt::begin(cx)
    }
}

/// The connection id in a keep-alive, or what is wrong with it.
pub(super) fn read_keep_alive(message: &Bytes) -> Result<String, String> {
    check_limit(message, KEEP_ALIVE_LIMIT).map_err(|failure| failure.to_string())?;
    match ConnectionKeepAlive::decode(message.clone()) {
        Ok(keep_alive) => Ok(keep_alive.connection_id),
        Err(error) => Err(error.to_string()),
    }
}

const MOST_ANSWERS: usize = 3;

#[cfg(feature = "model-checking")]
impl Connected {
    pub(super) fn normal_form<R: Rng, H: std::hash::Hasher>(
        &self,
        cx: &Context<R>,
        form: &mut crate::NormalForm<H>,
    ) {
        let Self {
            session,
            on,
            stream,
            generation,
            first_keep_alive,
            last_keep_alive,
            acknowledged,
            answers,
            newest,
            pending,
            token,
            refusal,
        } = self;
        let Session {
            connection_id,
            server,
            peer,
            // Rises only.
            generation: _,
        } = session;
        form.name(connection_id.to_string());
        form.value((server, peer));
        form.id(*on);
        form.id(*stream);
        cx.write_generation(*generation, form);
        form.instant(*first_keep_alive);
        form.instant(*last_keep_alive);
        form.optional(*acknowledged, crate::NormalForm::instant);
        let write_answer = |form: &mut crate::NormalForm<H>, answer: &Answer| {
            let Answer {
                id,
                sent,
                generation,
            } = answer;
            form.id(*id);
            form.instant(*sent);
            cx.write_generation(*generation, form);
        };
        form.list(answers.iter(), write_answer);
        form.optional(newest.as_ref(), write_answer);
        form.value(pending);
        form.optional(token.as_ref(), |form, token| token.normal_form(form));
        match refusal {
            Refusal::No => form.value(0),
            Refusal::Renewing(status) => form.value((1, status)),
            Refusal::Retried => form.value(2),
        }
    }
}
