//! The session of a machine, as its events and its clocks tell it.

use super::Broken;
use chronicle_connection::{Code, NormalForm, Session, Status};
use std::{
    collections::BTreeSet,
    hash::Hasher,
    time::{Duration, Instant},
};

/// An instant, with how much older than the clock says everything was by then.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Stamp {
    pub(super) at: Instant,
    pub(super) aged: Duration,
}

impl Stamp {
    /// Whether this stamp, which was made later, is before a deadline.
    pub(super) fn is_before(self, deadline: Self) -> bool {
        let aged = self.aged.saturating_sub(deadline.aged);
        let at = self.at.checked_add(aged);
        at.is_some_and(|at| at < deadline.at)
    }

    /// From this stamp to a deadline that was stamped earlier; zero where it has passed.
    pub(super) fn until(self, deadline: Self) -> Duration {
        let aged = self.aged.saturating_sub(deadline.aged);
        let left = deadline.at.saturating_duration_since(self.at);
        left.saturating_sub(aged)
    }

    /// From an earlier stamp to this one, suspensions included.
    pub(super) fn since(self, earlier: Self) -> Duration {
        let awake = self.at.saturating_duration_since(earlier.at);
        awake.saturating_add(self.aged - earlier.aged)
    }
}

/// At most one live session, and what was before it.
#[derive(Debug, Clone, Default)]
pub(super) struct Sessions {
    live: Option<Live>,
    generation: u64,
    used_ids: BTreeSet<String>,
}

#[derive(Debug, Clone)]
struct Live {
    session: Session,
    connected: Stamp,
    /// When the newest keep-alive arrived.
    keep_alive: Stamp,
    /// When the newest acknowledged answer was sent.
    acknowledged: Stamp,
    answers_are_unknown: bool,
    /// One of the clocks has run out; nothing that arrives now may save the session.
    is_over: bool,
}

impl Sessions {
    pub(super) fn live(&self) -> Option<&Session> {
        self.live.as_ref().map(|live| &live.session)
    }

    pub(super) fn answers_are_unknown(&self) -> bool {
        self.live
            .as_ref()
            .is_some_and(|live| live.answers_are_unknown)
    }

    /// A session whose clock has run out by now cannot be saved.
    pub(super) fn look(&mut self, now: Stamp, threshold: Duration) {
        if let Some(live) = &mut self.live {
            live.is_over |= now.since(live.keep_alive) > threshold
                || !live.answers_are_unknown && now.since(live.acknowledged) > threshold;
        }
    }

    pub(super) fn keep_alive(&mut self, now: Stamp, connection_id: &str) {
        if let Some(live) = &mut self.live
            && !live.is_over
            && live.session.connection_id.to_string() == connection_id
        {
            live.keep_alive = now;
        }
    }

    pub(super) fn answered(&mut self, sent: Stamp, status: &Status) {
        if let Some(live) = &mut self.live {
            live.answers_are_unknown |= status.is_unimplemented();
            if status.code == Code::Ok {
                live.acknowledged = live.acknowledged.max(sent);
            }
        }
    }

    pub(super) fn connected(
        &mut self,
        now: Stamp,
        connect_sent: Stamp,
        session: &Session,
    ) -> Result<(), Broken> {
        Broken::unless(self.live.is_none(), || "two live sessions".to_owned())?;
        let is_fresh = self.used_ids.insert(session.connection_id.to_string());
        Broken::unless(is_fresh, || "a connection id was used again".to_owned())?;
        Broken::unless(session.connection_id.get_version_num() == 4, || {
            "the connection id is not a UUID of version 4".to_owned()
        })?;
        self.generation += 1;
        Broken::unless(session.generation == self.generation, || {
            format!("session {} has another generation", self.generation)
        })?;
        self.live = Some(Live {
            session: session.clone(),
            connected: now,
            keep_alive: now,
            acknowledged: connect_sent,
            answers_are_unknown: false,
            is_over: false,
        });
        Ok(())
    }

    /// Gives whether it was stable.
    pub(super) fn disconnected(
        &mut self,
        now: Stamp,
        session: &Session,
        lasted: Duration,
        stable_after: Duration,
    ) -> Result<bool, Broken> {
        let Some(live) = self.live.take() else {
            return Err(Broken("a session ended that was not live".to_owned()));
        };
        Broken::unless(live.session == *session, || {
            "another session ended than the one that was live".to_owned()
        })?;
        let (awake, all) = (now.at - live.connected.at, now.since(live.connected));
        Broken::unless((awake..=all).contains(&lasted), || {
            format!("the session lasted {all:?}, not {lasted:?}")
        })?;
        Ok(live.keep_alive.since(live.connected) > stable_after)
    }

    /// The session is over without a word, by a `Close`.
    pub(super) fn stopped(&mut self) {
        self.live = None;
    }

    /// Writes what the next session event and the clocks are held against.
    pub(super) fn normal_form<H: Hasher>(&self, now: Stamp, form: &mut NormalForm<H>) {
        let Self {
            live,
            // Rises only.
            generation: _,
            // Names that were drawn to be unique: whether one comes again is up to the generator.
            used_ids: _,
        } = self;
        form.optional(live.as_ref(), |form, live| {
            let Live {
                session:
                    Session {
                        connection_id,
                        server,
                        peer,
                        generation: _,
                    },
                connected,
                keep_alive,
                acknowledged,
                answers_are_unknown,
                is_over,
            } = live;
            form.name(connection_id.to_string());
            form.value((server, peer, answers_are_unknown, is_over));
            form.instant(connected.at);
            for stamp in [connected, keep_alive, acknowledged] {
                form.value(now.since(*stamp));
            }
        });
    }

    /// What holds while a session is live and everything has been put out.
    pub(super) fn settled(
        &self,
        threshold: Duration,
        deadline: Option<Stamp>,
    ) -> Result<(), Broken> {
        let Some(live) = &self.live else {
            return Ok(());
        };
        Broken::unless(!live.is_over, || {
            "a session lives on although one of its clocks had run out".to_owned()
        })?;
        let clocks = [
            Some((live.keep_alive, "keep-alive")),
            (!live.answers_are_unknown).then_some((live.acknowledged, "acknowledged answer")),
        ];
        for (since, what) in clocks.into_iter().flatten() {
            let is_watched = deadline.is_some_and(|due| due.since(since) <= threshold);
            Broken::unless(is_watched, || {
                format!("the deadline does not watch the newest {what}")
            })?;
        }
        Ok(())
    }
}
