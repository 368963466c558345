//! The words between a [`Connection`](crate::Connection) and whoever performs its I/O.
//!
//! Few, owned and dumb: an [`Output`] opens an id, [`Reply`]s bear that id back.
//!
//! | Output | Replies it may get | Ends with |
//! |---|---|---|
//! | [`Output::NameServers`] | [`Reply::NameServers`] or [`Reply::Failed`] | the reply |
//! | [`Output::Dns`] | any number of [`Reply::Message`]s, or [`Reply::Failed`] | [`Output::Cancel`] or the failure |
//! | [`Output::Open`] | [`Reply::Opened`], later [`Reply::GoingAway`] and [`Reply::Closed`]; or [`Reply::Failed`] | [`Output::Close`], `Closed` or the failure |
//! | [`Output::Http`] | [`Reply::Http`] or [`Reply::Failed`] | the reply |
//! | [`Output::Unary`] | [`Reply::Message`], then [`Reply::Finished`]; or [`Reply::Failed`] | `Finished` or the failure |
//! | [`Output::ServerStream`] | [`Reply::Message`]s, then [`Reply::Finished`]; or [`Reply::Failed`] | `Finished`, the failure or [`Output::Cancel`] |
//!
//! [`Output::Cancel`] ends any request, [`Output::Close`] ends a transport and every request on it.
//! Both are binding: the work and its sockets are dropped. Replies that cross with them are ignored.

use crate::{DnsTransport, Endpoint, Event, Failure, Status};
use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use std::{fmt, net::SocketAddr, time::Duration};

/// Names one request of a connection. Ids rise and are never used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Id(pub(crate) u64);

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{}", self.0)
    }
}

/// What a connection is told.
#[derive(Debug, Clone)]
pub enum Input {
    /// A wish of the application, or news of the clock.
    Command(Command),
    /// What came of a request.
    Reply {
        /// The id of the output that asked.
        id: Id,
        /// What came back.
        reply: Reply,
    },
}

impl From<Command> for Input {
    fn from(command: Command) -> Self {
        Self::Command(command)
    }
}

/// Commands may be given in any state, any number of times, and are never an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Command {
    /// Connect, and stay connected. While backing off: try at once.
    Connect,
    /// Close for good. Cancels all that is in flight; nothing follows but `Cancel`, `Close` and
    /// [`Event::Closed`].
    Close,
    /// Nothing happened; deadlines that have passed fire.
    Tick,
    /// A server rejected the credentials of this generation (see
    /// [`Connection::call_metadata`](crate::Connection::call_metadata)): get new ones. Ends in an
    /// [`Event::Token`], at once where there are newer ones already; without any effect where the
    /// credentials are no tokens.
    RefreshToken {
        /// The generation that was rejected.
        rejected: u64,
    },
    /// The machine was suspended for this long while the clock of `now` stood still. Every
    /// remembered instant ages by it.
    Slept(Duration),
}

/// What came of a request. `Debug` shows no body, which may hold a token.
#[derive(Clone)]
pub enum Reply {
    /// The name servers of the platform, in its order.
    NameServers(Vec<Endpoint>),
    /// The transport is open: TCP connected, TLS validated, `h2` agreed.
    Opened {
        /// The address of the socket's other end.
        peer: SocketAddr,
    },
    /// The peer sent GOAWAY; requests in flight may still finish (RFC 9113 section 6.8).
    GoingAway {
        /// The HTTP/2 error code, 0 being NO_ERROR.
        code: u32,
    },
    /// The open transport ended, and with it every request on it.
    Closed(Failure),
    /// The whole HTTP response.
    Http(Response<Bytes>),
    /// One gRPC message, without its five-byte prefix; or one DNS message, without the length that
    /// TCP puts before it.
    Message(Bytes),
    /// The call is over, with this status.
    Finished(Status),
    /// The request failed below HTTP, or its answer passed the limit.
    Failed(Failure),
}

/// What a connection asks for, or tells. `Debug` shows no body, which may hold a secret.
#[derive(Clone)]
pub enum Output {
    /// Read which name servers the platform is configured to use, afresh each time.
    NameServers {
        /// Names the request.
        id: Id,
    },
    /// Send a DNS message to a name server, and pass on whatever that server sends back until this
    /// is cancelled: a forged datagram must not end a query.
    Dns {
        /// Names the query.
        id: Id,
        /// The name server. A host name is resolved by whoever performs this.
        server: Endpoint,
        /// UDP: from a fresh random port of its own. TCP: on a connection of its own.
        transport: DnsTransport,
        /// The message, without the length that TCP puts before it.
        message: Bytes,
        /// The most bytes that one message of the answer may have.
        limit: usize,
    },
    /// Open a transport: resolve the host, connect TCP, TLS with ALPN `h2` alone, HTTP/2.
    Open {
        /// Names the transport from here on.
        id: Id,
        /// The server; its certificate is checked against the host.
        to: Endpoint,
    },
    /// Send one HTTP request. The URI is a path; scheme and authority are the transport's.
    /// Redirects are not followed.
    Http {
        /// Names the request.
        id: Id,
        /// The transport to send it on.
        on: Id,
        /// The request, body included.
        request: Request<Bytes>,
        /// The most bytes of body to read; a longer one is [`FailureKind::TooLarge`](crate::FailureKind::TooLarge).
        limit: usize,
    },
    /// Call a unary gRPC method.
    Unary(Call),
    /// Call a server-streaming gRPC method.
    ServerStream(Call),
    /// Drop a request.
    Cancel(Id),
    /// Drop a transport, with every request on it.
    Close(Id),
    /// Something happened that the application may want to know.
    Event(Event),
}

/// A gRPC call. `Debug` shows no message.
#[derive(Clone)]
pub struct Call {
    /// Names the call.
    pub id: Id,
    /// The transport to call on.
    pub on: Id,
    /// `/package.Service/Method`.
    pub path: &'static str,
    /// Metadata beyond what gRPC itself needs. Secret values are marked sensitive.
    pub metadata: HeaderMap,
    /// The request message, without its five-byte prefix.
    pub message: Bytes,
    /// The most bytes that one message of the answer may have; a longer one is
    /// [`FailureKind::TooLarge`](crate::FailureKind::TooLarge).
    pub limit: usize,
}

impl fmt::Debug for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NameServers(servers) => f.debug_tuple("NameServers").field(servers).finish(),
            Self::Opened { peer } => f.debug_struct("Opened").field("peer", peer).finish(),
            Self::GoingAway { code } => f.debug_struct("GoingAway").field("code", code).finish(),
            Self::Closed(failure) => f.debug_tuple("Closed").field(failure).finish(),
            Self::Http(response) => f
                .debug_struct("Http")
                .field("status", &response.status())
                .field("bytes", &response.body().len())
                .finish(),
            Self::Message(message) => write!(f, "Message({} bytes)", message.len()),
            Self::Finished(status) => f.debug_tuple("Finished").field(status).finish(),
            Self::Failed(failure) => f.debug_tuple("Failed").field(failure).finish(),
        }
    }
}

impl fmt::Debug for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NameServers { id } => f.debug_struct("NameServers").field("id", id).finish(),
            Self::Dns {
                id,
                server,
                transport,
                message,
                limit,
            } => f
                .debug_struct("Dns")
                .field("id", id)
                .field("server", server)
                .field("transport", transport)
                .field("bytes", &message.len())
                .field("limit", limit)
                .finish(),
            Self::Open { id, to } => f
                .debug_struct("Open")
                .field("id", id)
                .field("to", to)
                .finish(),
            Self::Http {
                id,
                on,
                request,
                limit,
            } => f
                .debug_struct("Http")
                .field("id", id)
                .field("on", on)
                .field("method", request.method())
                .field("uri", request.uri())
                .field("bytes", &request.body().len())
                .field("limit", limit)
                .finish(),
            Self::Unary(call) => f.debug_tuple("Unary").field(call).finish(),
            Self::ServerStream(call) => f.debug_tuple("ServerStream").field(call).finish(),
            Self::Cancel(id) => f.debug_tuple("Cancel").field(id).finish(),
            Self::Close(id) => f.debug_tuple("Close").field(id).finish(),
            Self::Event(event) => f.debug_tuple("Event").field(event).finish(),
        }
    }
}

impl fmt::Debug for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call")
            .field("id", &self.id)
            .field("on", &self.on)
            .field("path", &self.path)
            .field("metadata", &self.metadata)
            .field("bytes", &self.message.len())
            .field("limit", &self.limit)
            .finish()
    }
}
