//! What can be asked of a connection.

use crate::{Endpoint, Session};
use http::HeaderMap;

/// Where a connection stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// Not told to connect yet.
    Idle,
    /// Looking the servers up in DNS.
    Resolving,
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

/// What an application call must carry now.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CallMetadata {
    /// The entries to set, replacing what stands there. Secret values are marked sensitive.
    pub headers: HeaderMap,
    /// The generation of the credentials, for
    /// [`Command::RefreshToken`](crate::Command::RefreshToken); 0 where they cannot be refreshed.
    pub generation: u64,
}

/// Why a deadline exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WaitReason {
    /// The platform has yet to tell its name servers.
    NameServers,
    /// A name server has yet to answer.
    Lookup,
    /// The random wait before the dials of a selection.
    DialWait,
    /// The random wait before a selection.
    SelectionWait,
    /// Servers have yet to tell how many clients they have.
    Counts,
    /// A transport is being opened.
    Open,
    /// The reservation.
    Reserve,
    /// The compatibility check.
    Check,
    /// A token request.
    Token,
    /// A token is to be refreshed ahead of its expiry.
    TokenRefresh,
    /// The first keep-alive.
    FirstKeepAlive,
    /// The next keep-alive.
    KeepAlive,
    /// The acknowledgement of an answer.
    Acknowledgement,
    /// The newest answer holds back the pending one.
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
