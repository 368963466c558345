//! The machine.

use crate::{Config, Contract, Endpoint, Id, Input, Output, Session};
use http::HeaderMap;
use rand_core::Rng;
use std::{marker::PhantomData, time::Instant};

/// The connection of one client.
#[derive(Debug, Clone)]
pub struct Connection<R> {
    rng: PhantomData<R>,
}

impl<R: Rng> Connection<R> {
    /// Builds a connection and does nothing else.
    pub fn new(_config: Config, _contract: Contract, _rng: R, _now: Instant) -> Self {
        Self { rng: PhantomData }
    }

    /// Takes an input at a time.
    pub fn handle(&mut self, _now: Instant, _input: impl Into<Input>) {}

    /// The next output, in order.
    pub fn poll_output(&mut self) -> Option<Output> {
        None
    }

    /// When to call [`handle`](Self::handle) at the latest.
    pub fn poll_timeout(&self) -> Option<Instant> {
        None
    }

    /// Where the connection stands.
    pub fn state(&self) -> State {
        State::Idle
    }

    /// Why the next deadline exists.
    pub fn wait_reason(&self) -> Option<WaitReason> {
        None
    }

    /// What was counted.
    pub fn stats(&self) -> &Stats {
        const NONE: &Stats = &Stats {
            attempts: 0,
            sessions: 0,
            keep_alives: 0,
            answers: 0,
            acknowledged: 0,
            ignored_replies: 0,
        };
        NONE
    }

    /// What an application call must carry now.
    pub fn call_metadata(&self) -> HeaderMap {
        HeaderMap::new()
    }

    #[cfg(test)]
    fn id() -> Id {
        Id(0)
    }
}

/// Where a connection stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// Not told to connect yet.
    Idle,
    /// Choosing a server.
    Selecting,
    /// Proving, registering and waiting for the first keep-alive.
    Handshaking {
        /// The chosen server.
        server: Endpoint,
    },
    /// A session is up.
    Connected(Session),
    /// Waiting before the next attempt.
    BackingOff,
    /// Closed, or given up for good.
    Stopped,
}

/// Why a deadline exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WaitReason {
    /// The random wait before the dials of a selection.
    DialWait,
    /// The random wait before a selection.
    SelectionWait,
    /// Servers have yet to tell how many clients they have.
    Counts,
    /// The transport to the chosen server.
    Open,
    /// The reservation.
    Reserve,
    /// The compatibility check.
    Check,
    /// The first keep-alive.
    FirstKeepAlive,
    /// The next keep-alive.
    KeepAlive,
    /// The acknowledgement of an answer.
    Acknowledgement,
    /// The newest answer is old enough to send the pending one.
    AnswerPace,
    /// The wait before the next attempt.
    Backoff,
    /// The first connect as a whole.
    ConnectTimeout,
}

/// What a connection has counted since it was built.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stats {
    /// Attempts begun.
    pub attempts: u64,
    /// Sessions that came up.
    pub sessions: u64,
    /// Keep-alives received.
    pub keep_alives: u64,
    /// Answers sent.
    pub answers: u64,
    /// Answers acknowledged.
    pub acknowledged: u64,
    /// Replies to unknown or finished requests.
    pub ignored_replies: u64,
}
