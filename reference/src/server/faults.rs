//! What can be made to go wrong with a server while it runs.

use crate::model::ModelConfig;
use bytes::Bytes;
use chronicle_connection::Code;
use std::{collections::BTreeMap, time::Duration};

/// How a server behaves and misbehaves. Plain data: what is set here acts from the next use on,
/// what is set back no longer does. It outlives a restart.
#[derive(Debug, Clone, Default)]
pub struct Faults {
    /// The server behind the port: keep-alives, eviction, age, verdict.
    pub model: ModelConfig,
    /// Accept TCP and say nothing; what waits then goes on when this is set back.
    pub hang_tls: bool,
    /// Which protocols TLS agrees to.
    pub alpn: Alpn,
    pub(super) requests: BTreeMap<String, Fault>,
}

impl Faults {
    /// What is wrong with the requests of a path; see [`paths`](crate::paths).
    pub fn on(&mut self, path: &str) -> &mut Fault {
        self.requests.entry(path.to_owned()).or_default()
    }

    pub(super) fn of(&self, path: &str) -> Option<&Fault> {
        self.requests.get(path)
    }
}

/// What is wrong with a kind of request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Fault {
    /// Wait for so long before anything else.
    pub delay: Duration,
    /// Do not ask the server behind the port.
    pub answer: Option<Answer>,
}

/// What comes in place of the right answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// Nothing, for as long as this is set; then what a request would get that comes in then.
    Hang,
    /// A gRPC status and its message.
    Grpc(Code, String),
    /// An HTTP status and a body of `text/html`, without `grpc-status`: what stands between
    /// client and server may answer so, or a server without the endpoint.
    Http(u16, Bytes),
    /// An HTTP status and an error of OAuth, as a token endpoint refuses.
    OAuth(u16, String),
    /// HTTP 429 with `Retry-After`.
    Busy {
        /// In whole seconds.
        retry_after: Duration,
    },
    /// HTTP 307 to this place.
    Redirect(String),
}

/// Which protocols TLS agrees to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Alpn {
    /// `h2` and `http/1.1`.
    #[default]
    Http2,
    /// `http/1.1` alone: a client that offers others gets an alert.
    Http1,
    /// Does not know ALPN: the handshake succeeds without a protocol.
    Unknown,
}

impl Alpn {
    pub(super) fn protocols(self) -> Vec<Vec<u8>> {
        match self {
            Self::Http2 => vec![b"h2".to_vec(), b"http/1.1".to_vec()],
            Self::Http1 => vec![b"http/1.1".to_vec()],
            Self::Unknown => vec![],
        }
    }
}
