//! The sessions of a fleet, followed.

use super::Times;
use crate::{ClientId, ServerId, SessionChange};
use std::{collections::BTreeMap, mem, time::Duration};

/// Follows the sessions of a fleet.
#[derive(Debug)]
pub(super) struct Watch {
    /// The numbers of the clients.
    numbers: BTreeMap<ClientId, usize>,
    /// Rising.
    servers: Vec<ServerId>,
    /// For each client, since when it has no session.
    away_since: Vec<Option<Duration>>,
    had_session: Vec<bool>,
    sessions: usize,
    started: usize,
    /// The most clients without a session since somebody asked.
    away: usize,
    connecting: Vec<Duration>,
    reconnecting: Vec<Duration>,
    /// How many changes were seen.
    seen: usize,
}

impl Watch {
    pub(super) fn new(clients: &[ClientId], servers: Vec<ServerId>) -> Self {
        Self {
            away_since: vec![None; clients.len()],
            had_session: vec![false; clients.len()],
            numbers: clients.iter().copied().zip(0..).collect(),
            servers,
            sessions: 0,
            started: 0,
            away: 0,
            connecting: Vec::new(),
            reconnecting: Vec::new(),
            seen: 0,
        }
    }

    /// A client is told to connect.
    pub(super) fn starts(&mut self, client: usize, at: Duration) {
        self.started += 1;
        self.away = self.away.max(self.started - self.sessions);
        self.away_since[client] = Some(at);
    }

    /// Takes in what has happened since the last time, of all that has happened.
    pub(super) fn look(&mut self, changes: &[SessionChange]) {
        for change in &changes[self.seen..] {
            if let Some(&client) = self.numbers.get(&change.client) {
                self.change(client, change);
            }
        }
        self.seen = changes.len();
    }

    /// How many clients have a session.
    pub(super) fn sessions(&self) -> usize {
        self.sessions
    }

    /// Every session that came up, of all that has happened: when, and with which server.
    pub(super) fn new_sessions(&self, changes: &[SessionChange]) -> Vec<(Duration, usize)> {
        let new = changes.iter().filter(|change| change.is_up);
        let pairs = new.filter_map(|change| {
            let server = self.servers.binary_search(&change.server).ok()?;
            Some((change.at, server))
        });
        pairs.collect()
    }

    /// How many that were told to connect had no session, at most, since the last time.
    pub(super) fn away(&mut self) -> usize {
        let now = self.started - self.sessions;
        mem::replace(&mut self.away, now).max(now)
    }

    /// How long connecting and reconnecting took.
    pub(super) fn times(&mut self) -> (Times, Times) {
        let connecting = mem::take(&mut self.connecting);
        let reconnecting = mem::take(&mut self.reconnecting);
        (Times::of(connecting), Times::of(reconnecting))
    }

    fn change(&mut self, client: usize, change: &SessionChange) {
        if !change.is_up {
            self.sessions -= 1;
            self.away = self.away.max(self.started - self.sessions);
            self.away_since[client] = Some(change.at);
            return;
        }
        self.sessions += 1;
        let Some(since) = self.away_since[client].take() else {
            return;
        };
        match mem::replace(&mut self.had_session[client], true) {
            true => self.reconnecting.push(change.at - since),
            false => self.connecting.push(change.at - since),
        }
    }
}
