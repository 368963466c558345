//! What each output must be by the books, and what must hold once all of them are out.

use super::{Asked, Broken, Check, Ledger, Pending, Phase, Reserve, Transport, session::Stamp};
use crate::{id_of, request_of, trace::render_output, wire::connection_id_of};
use chronicle_connection::{
    Call, Connection, Endpoint, Event, Id, Output, Request, Session, State,
};
use rand_core::Rng;
use std::{
    sync::Arc,
    time::{Duration, Instant},
};

impl Ledger {
    /// Enters an output.
    pub(in crate::machine) fn output(
        &mut self,
        now: Instant,
        output: &Output,
    ) -> Result<(), Broken> {
        if let Some(id) = id_of(output) {
            let rises = self.newest.is_none_or(|newest| id > newest);
            self.newest = Some(id);
            Broken::unless(rises, || {
                format!("ids must rise: {}", render_output(output))
            })?;
        }
        self.is_silent_after_the_end(output)?;
        let stamp = self.stamp(now);
        match output {
            Output::NameServers { id } => self.look_up(stamp, *id, self.timing.lookup),
            Output::Dns { id, .. } => self.look_up(stamp, *id, self.timing.lookup_try),
            Output::Open { id, to } => {
                self.attempts.dials(stamp)?;
                let transport = Transport {
                    to: to.clone(),
                    dialled: stamp,
                    phase: Phase::Dialling,
                    reserve: Reserve::NotMade,
                    check: Check::NotPassed,
                    checked: None,
                    refused: None,
                };
                self.transports.insert(*id, transport);
                Ok(())
            }
            Output::Http { id, on, limit, .. }
            | Output::Unary(Call { id, on, limit, .. })
            | Output::ServerStream(Call { id, on, limit, .. }) => {
                Broken::unless(*limit > 0, || {
                    format!("no limit: {}", render_output(output))
                })?;
                self.request(stamp, output, *id, *on)
            }
            Output::Cancel(id) => self.cancel(now, *id),
            Output::Close(id) => self.close(*id),
            Output::Event(event) => self.event(now, event),
        }
    }

    /// What holds once everything has been put out.
    pub(in crate::machine) fn settled<R: Rng>(
        &mut self,
        now: Instant,
        connection: &Connection<R>,
    ) -> Result<(), Broken> {
        let (session, deadline) = (connection.session(), connection.poll_timeout());
        Broken::unless(session == self.sessions.live(), || {
            format!("events and state disagree about the session: {session:?}")
        })?;
        // Most steps are those of sessions, which are not cloned for it.
        let state = match session {
            Some(_) => None,
            None => Some(connection.state()),
        };
        let state = state.as_ref();
        let holds_nothing = matches!(
            state,
            Some(State::Idle | State::BackingOff | State::Stopped)
        );
        let is_empty = self.transports.is_empty() && self.requests.is_empty();
        Broken::unless(is_empty || !holds_nothing, || {
            format!("{state:?} with something open: {self:?}")
        })?;
        Broken::unless(
            (state == Some(&State::Resolving)) == self.lookup.is_some(),
            || format!("{state:?}, and the lookup in flight is {:?}", self.lookup),
        )?;
        Broken::unless(
            deadline.is_some() == connection.wait_reason().is_some(),
            || "a deadline without a reason, or the other way round".to_owned(),
        )?;
        let stamped = deadline.map(|deadline| self.stamp(deadline));
        self.attempts.settled(
            self.stamp(now),
            state,
            stamped.zip(connection.wait_reason()),
        )?;
        self.choices.settled(state, stamped)?;
        let ended = self.ended_on;
        let is_closed = ended.is_none_or(|id| !self.transports.contains_key(&id));
        Broken::unless(is_closed, || {
            "the transport of a session outlives it".to_owned()
        })?;
        let is_over = self.is_closed || self.has_failed;
        Broken::unless(is_over || !self.is_closing, || {
            "told to close, and no `Closed` followed".to_owned()
        })?;
        // While one is being selected there are many transports, and no need to look at each.
        let has_rivals = self.transports.len() > 1 && state != Some(&State::Selecting);
        let has_won = |one: &Transport| one.check == Check::Passed;
        let registers = |one: &Pending| one.what == Request::Connect;
        let has_winner = has_rivals
            && (self.transports.values().any(has_won) || self.requests.values().any(registers));
        Broken::unless(!has_winner, || {
            "transports that lost are open beside the one whose check has passed".to_owned()
        })?;
        self.sessions.settled(self.timing.keep_alive, stamped)?;
        self.is_watched(state, stamped)?;
        // Who has stopped does nothing any more, and is asked for nothing.
        if state != Some(&State::Stopped) {
            let served = || connection.call_metadata().generation;
            self.tokens.settled(served)?;
        }
        Ok(())
    }

    /// What is in flight belongs to the state, and is given up in time.
    fn is_watched(&self, state: Option<&State>, deadline: Option<Stamp>) -> Result<(), Broken> {
        let ends_in_time =
            |sent: Stamp, limit| deadline.is_some_and(|due| due.since(sent) <= limit);
        for one in self.requests.values() {
            Broken::unless(belongs(state, one.what), || {
                format!("{one:?} is in flight while {state:?}")
            })?;
            let timing = &self.timing;
            let limit = match one.what {
                Request::Count => timing.count,
                Request::Reserve => timing.reserve,
                Request::Token => timing.token,
                Request::CheckCompatibility
                | Request::GetDescriptorSet
                | Request::GetVersionInfo => timing.check,
                // Of a session, the keep-alives on it are watched.
                Request::Connect if state.is_none() => continue,
                Request::Connect => timing.first_keep_alive,
                Request::KeepAlive => timing.keep_alive,
            };
            Broken::unless(ends_in_time(one.sent, limit), || {
                format!("{one:?} is in flight, and may be for longer than {limit:?}")
            })?;
        }
        // A session looks nothing up and dials nobody.
        if state.is_none() {
            return Ok(());
        }
        let lookup = self.lookup.map(|asked| (asked.sent, asked.limit));
        // Ids rise with time, so the first was dialled first.
        let mut transports = self.transports.values();
        let dialling = transports.find(|one| one.phase == Phase::Dialling);
        let dialling = dialling.map(|one| (one.dialled, self.timing.open));
        for (sent, limit) in [lookup, dialling].into_iter().flatten() {
            Broken::unless(ends_in_time(sent, limit), || {
                format!("{state:?}, and what is awaited may take longer than {limit:?}")
            })?;
        }
        Ok(())
    }

    fn look_up(&mut self, sent: Stamp, id: Id, limit: Duration) -> Result<(), Broken> {
        let is_only = self.lookup.replace(Asked { id, sent, limit }).is_none();
        Broken::unless(is_only, || "two requests of a lookup at a time".to_owned())
    }

    fn is_silent_after_the_end(&mut self, output: &Output) -> Result<(), Broken> {
        let is_allowed = match output {
            Output::Cancel(_) | Output::Close(_) => return Ok(()),
            Output::Event(Event::Closed) => {
                let is_first = !self.is_closed;
                self.is_closed = true;
                is_first && self.is_closing
            }
            Output::NameServers { .. }
            | Output::Dns { .. }
            | Output::Open { .. }
            | Output::Http { .. }
            | Output::Unary(_)
            | Output::ServerStream(_) => !self.is_closing,
            // What was due before the `Close` came happened before it.
            Output::Event(_) => !self.is_closing || self.is_overdue && !self.is_closed,
        };
        Broken::unless(is_allowed && !self.has_failed, || {
            format!("around the end: {}", render_output(output))
        })
    }

    fn request(&mut self, mut sent: Stamp, output: &Output, id: Id, on: Id) -> Result<(), Broken> {
        if self.gone.as_ref().is_some_and(|(gone, _)| *gone == on) {
            self.may_be_dropped.push(id);
            return Ok(());
        }
        let what = request_of(output);
        let (Some(what), Some(transport)) = (what, self.transports.get_mut(&on)) else {
            let output = render_output(output);
            return Err(Broken(format!("unknown request or transport: {output}")));
        };
        // What was overdue happened before the input at hand, such as a GOAWAY.
        let was_open = self.may_be_dropped.contains(&on) && transport.phase == Phase::GoingAway;
        Broken::unless(
            matches!(transport.phase, Phase::Open(_)) || was_open,
            || {
                let output = render_output(output);
                format!("a request on a transport that is not open: {output}")
            },
        )?;
        let may_carry = match what {
            Request::Count | Request::Reserve | Request::Token => false,
            Request::CheckCompatibility | Request::GetDescriptorSet => {
                transport.refused == Some(what)
            }
            Request::GetVersionInfo | Request::Connect | Request::KeepAlive => true,
        };
        Broken::unless(may_carry || !carries_credentials(output), || {
            format!("{what} carries credentials")
        })?;
        match what {
            Request::Reserve => {
                let is_first = transport.reserve == Reserve::NotMade;
                transport.reserve = Reserve::Pending;
                Broken::unless(is_first, || {
                    "a second reservation on a transport".to_owned()
                })?;
            }
            Request::Connect => {
                let is_only = self.requests.values().all(|one| one.what != what);
                Broken::unless(transport.reserve == Reserve::Over, || {
                    "`Connect` before the reservation was over".to_owned()
                })?;
                Broken::unless(
                    transport.check == Check::Passed || self.check_is_skipped,
                    || "`Connect` without a passed check on its transport".to_owned(),
                )?;
                Broken::unless(is_only, || "a second `Connect` in flight".to_owned())?;
            }
            Request::KeepAlive => self.answer(output, on)?,
            Request::Token => {
                let is_only = self.requests.values().all(|one| one.what != what);
                Broken::unless(transport.reserve != Reserve::NotMade, || {
                    "credentials for a server that was not chosen".to_owned()
                })?;
                Broken::unless(is_only, || "a second token request in flight".to_owned())?;
            }
            Request::Count => self.attempts.probes(sent)?,
            Request::CheckCompatibility | Request::GetDescriptorSet | Request::GetVersionInfo => {
                sent = *transport.checked.get_or_insert(sent);
            }
        }
        let pending = Pending {
            on,
            what,
            sent,
            generation: match carries_credentials(output) {
                true => self.tokens.newest(),
                false => 0,
            },
            connection_id: connection_id_of(output).map(Arc::from),
            is_compatible: false,
        };
        self.requests.insert(id, pending);
        Ok(())
    }

    fn answer(&self, output: &Output, on: Id) -> Result<(), Broken> {
        let id = connection_id_of(output);
        let has_stream = self.requests.values().any(|one| {
            one.what == Request::Connect
                && one.on == on
                && one.connection_id.as_deref() == id.as_deref()
        });
        // A deadline that was overdue fires before the input at hand, which may end the stream.
        let session = self.sessions.live().filter(|_| self.is_overdue);
        let had_stream = session.is_some_and(|session| {
            self.session_on == Some(on) && Some(session.connection_id.to_string()) == id
        });
        Broken::unless(has_stream || had_stream, || {
            "an answer without the stream that it belongs to".to_owned()
        })?;
        let answers = self.requests.values();
        let in_flight = answers.filter(|one| one.what == Request::KeepAlive).count();
        Broken::unless(in_flight < MAX_ANSWERS, || {
            format!("more than {MAX_ANSWERS} answers in flight")
        })
    }

    fn cancel(&mut self, now: Instant, id: Id) -> Result<(), Broken> {
        if self.lookup.take_if(|asked| asked.id == id).is_some() {
            return Ok(());
        }
        let Some(pending) = self.requests.remove(&id) else {
            let may = self.may_be_dropped.contains(&id);
            return Broken::unless(may, || format!("{id} is cancelled and not in flight"));
        };
        if pending.what == Request::Reserve
            && self.stamp(now).since(pending.sent) >= self.timing.reserve
            && let Some(transport) = self.transports.get_mut(&pending.on)
        {
            transport.reserve = Reserve::Over;
        }
        Ok(())
    }

    fn close(&mut self, id: Id) -> Result<(), Broken> {
        self.requests.retain(|_, pending| pending.on != id);
        let closed = self.transports.remove(&id);
        let never_opened = |one: &&Transport| matches!(one.phase, Phase::Dialling | Phase::Late);
        if let Some(given_up) = closed.as_ref().filter(never_opened) {
            self.choices.is_gone(&given_up.to);
        }
        let is_open = closed.is_some();
        let may = is_open || self.may_be_dropped.contains(&id) || self.opened_late == Some(id);
        Broken::unless(may, || format!("{id} is closed and not open"))
    }

    fn event(&mut self, now: Instant, event: &Event) -> Result<(), Broken> {
        self.secrets.are_kept_by(event)?;
        let stamp = self.stamp(now);
        match event {
            Event::Connected(session) => {
                self.choices.connected();
                self.connected(now, session)
            }
            Event::Disconnected {
                session, lasted, ..
            } => {
                let stable_after = self.timing.stable_after;
                let ended = self
                    .sessions
                    .disconnected(stamp, session, *lasted, stable_after);
                let was_stable = ended?;
                self.attempts.lost(was_stable);
                self.choices.lost(&session.server, was_stable);
                self.ended_on = self.session_on.take();
                Ok(())
            }
            Event::BackingOff { wait, .. } => {
                self.choices.end();
                self.attempts.backs_off(stamp, *wait)
            }
            Event::Resolving { attempt, .. } => self.attempts.looks_up(stamp, *attempt),
            Event::Connecting {
                attempt,
                candidates,
            } => {
                self.choices.begins(candidates);
                self.attempts.selects(stamp, *attempt)
            }
            Event::Selected { server, count } => self.choices.chooses(server, *count),
            Event::Token { generation, .. } => {
                self.tokens.told(*generation);
                Ok(())
            }
            Event::CandidateFailed { server, .. } => {
                self.choices.fails(server);
                Ok(())
            }
            Event::Failed(error) => {
                self.has_failed = true;
                self.choices.gives_up(stamp, error)
            }
            Event::Closed => {
                self.sessions.stopped();
                Ok(())
            }
            Event::Compatible { server, .. } => self.compatible(server),
            Event::LookupTryFailed { .. }
            | Event::Resolved { .. }
            | Event::LastGoodListUsed { .. }
            | Event::ReserveFailed { .. } => Ok(()),
        }
    }

    fn compatible(&mut self, server: &Endpoint) -> Result<(), Broken> {
        let gone = self.gone.as_mut().map(|(_, transport)| transport);
        let mut transports = self.transports.values_mut().chain(gone);
        let judged = transports.find(|one| one.to == *server && one.check != Check::NotPassed);
        let Some(transport) = judged else {
            let text = "compatible without a check that could tell";
            return Err(Broken(text.to_owned()));
        };
        transport.check = Check::Passed;
        Ok(())
    }

    fn connected(&mut self, now: Instant, session: &Session) -> Result<(), Broken> {
        let connection_id = session.connection_id.to_string();
        let mut requests = self.requests.values();
        let connect = requests.find(|one| {
            one.what == Request::Connect && one.connection_id.as_deref() == Some(&*connection_id)
        });
        let transport = connect.and_then(|one| self.transports.get(&one.on));
        let (Some(connect), Some(transport)) = (connect, transport) else {
            let text = "connected without a live `Connect` stream";
            return Err(Broken(text.to_owned()));
        };
        let is_its_server = transport.to == session.server;
        let is_its_peer = transport.phase == Phase::Open(session.peer);
        Broken::unless(is_its_server && is_its_peer, || {
            "connected to another server than the transport's".to_owned()
        })?;
        let (now, sent) = (self.stamp(now), connect.sent);
        let waited = now.since(sent);
        Broken::unless(waited <= self.timing.first_keep_alive, || {
            format!("connected {waited:?} after `Connect`")
        })?;
        self.session_on = Some(connect.on);
        self.sessions.connected(now, sent, session)
    }
}

/// Whether a request may be in flight in a state; `None` is a session.
fn belongs(state: Option<&State>, what: Request) -> bool {
    match state {
        Some(State::Idle | State::Resolving | State::BackingOff | State::Stopped) => false,
        Some(State::Selecting) => what == Request::Count,
        Some(State::Handshaking { .. }) => !matches!(what, Request::Count | Request::KeepAlive),
        Some(State::Connected(_)) | None => {
            matches!(what, Request::Connect | Request::KeepAlive | Request::Token)
        }
    }
}

fn carries_credentials(output: &Output) -> bool {
    let headers = match output {
        Output::Http { request, .. } => request.headers(),
        Output::Unary(call) | Output::ServerStream(call) => &call.metadata,
        Output::NameServers { .. }
        | Output::Dns { .. }
        | Output::Open { .. }
        | Output::Cancel(_)
        | Output::Close(_)
        | Output::Event(_) => return false,
    };
    headers.contains_key("authorization") || headers.contains_key("api-key")
}

const MAX_ANSWERS: usize = 3;
