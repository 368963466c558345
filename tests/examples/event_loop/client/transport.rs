//! One HTTP/2 connection over TLS, to one server.

use super::{
    Kit,
    dial::{Dial, Lookup},
    failures,
    socket::Socket,
};
use bytes::Bytes;
use chronicle_connection::{Endpoint, Failure, FailureKind, Reply};
use h2::{
    SendStream,
    client::{Builder, Connection, ResponseFuture, SendRequest},
};
use http::{Request, Uri, uri::PathAndQuery};
use std::{
    future::Future,
    net::SocketAddr,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Instant,
};

/// A transport that is opened, open, or going away. Dropping it closes the socket.
pub(super) struct Transport {
    to: Endpoint,
    step: Step,
}

enum Step {
    Resolving(Lookup),
    Dialling(Dial),
    Greeting(SocketAddr, Greeting),
    Open(Box<Open>),
}

type Greeting = Pin<
    Box<dyn Future<Output = Result<(SendRequest<Bytes>, Connection<Socket>), h2::Error>> + Send>,
>;

struct Open {
    requests: SendRequest<Bytes>,
    connection: Connection<Socket>,
    /// Whether the machine knows that the server sent GOAWAY.
    is_told: bool,
    ended: Option<Failure>,
}

impl Transport {
    pub(super) fn open(kit: &Kit, to: Endpoint) -> Self {
        let step = Step::Resolving(Lookup::new(kit, &to));
        Self { to, step }
    }

    /// When this must be polled at the latest.
    pub(super) fn timeout(&self) -> Option<Instant> {
        match &self.step {
            Step::Dialling(dial) => dial.timeout(),
            Step::Resolving(_) | Step::Greeting(..) | Step::Open(_) => None,
        }
    }

    /// Goes on, and gives the news: that it is open or failed, then GOAWAY, then the end.
    pub(super) fn poll(&mut self, kit: &Kit, cx: &mut Context<'_>) -> Poll<Reply> {
        if let Step::Open(open) = &mut self.step {
            return open.poll(cx);
        }
        let opened = ready!(self.poll_open(kit, cx));
        Poll::Ready(match opened {
            Ok(peer) => Reply::Opened { peer },
            Err(failure) => Reply::Failed(failure),
        })
    }

    fn poll_open(&mut self, kit: &Kit, cx: &mut Context<'_>) -> Poll<Result<SocketAddr, Failure>> {
        loop {
            self.step = match &mut self.step {
                Step::Resolving(lookup) => {
                    let addresses = ready!(lookup.poll())?;
                    Step::Dialling(Dial::new(self.to.clone(), addresses))
                }
                Step::Dialling(dial) => {
                    let (peer, socket) = ready!(dial.poll(kit))?;
                    Step::Greeting(peer, Box::pin(Builder::new().handshake(socket)))
                }
                Step::Greeting(peer, greeting) => {
                    let peer = *peer;
                    let greeted = ready!(greeting.as_mut().poll(cx));
                    let (requests, connection) =
                        greeted.map_err(|error| failures::from_h2(&error))?;
                    self.step = Step::Open(Box::new(Open {
                        requests,
                        connection,
                        is_told: false,
                        ended: None,
                    }));
                    // The connection has not been asked yet, so nothing would wake the loop for it.
                    cx.waker().wake_by_ref();
                    return Poll::Ready(Ok(peer));
                }
                Step::Open(_) => return Poll::Pending,
            };
        }
    }

    /// Sends a request whose URI is a path. Its body, if any, goes with the stream.
    pub(super) fn send(
        &mut self,
        request: Request<()>,
        is_whole: bool,
    ) -> Result<(ResponseFuture, SendStream<Bytes>), Failure> {
        let Step::Open(open) = &mut self.step else {
            return Err(Failure::new(
                FailureKind::Closed,
                "the transport is not open",
            ));
        };
        let (mut parts, ()) = request.into_parts();
        let path = parts.uri.path_and_query().map_or("/", PathAndQuery::as_str);
        parts.uri = Uri::builder()
            .scheme("https")
            .authority(self.to.to_string())
            .path_and_query(path)
            .build()
            .map_err(|error| Failure::new(FailureKind::Protocol, error.to_string()))?;
        open.requests
            .send_request(Request::from_parts(parts, ()), is_whole)
            .map_err(|error| failures::from_h2(&error))
    }
}

impl Open {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Reply> {
        if self.ended.is_none() {
            self.ended = match Pin::new(&mut self.connection).poll(cx) {
                Poll::Pending => None,
                Poll::Ready(Ok(())) => {
                    Some(Failure::new(FailureKind::Closed, "closed by the server"))
                }
                Poll::Ready(Err(error)) => Some(failures::from_h2(&error)),
            };
        }
        // With streams alive, h2 tells of a GOAWAY only whoever wants to send.
        if !self.is_told
            && let Poll::Ready(Err(error)) = self.requests.poll_ready(cx)
            && error.is_go_away()
            && error.is_remote()
        {
            self.is_told = true;
            cx.waker().wake_by_ref();
            let code = error.reason().map_or(0, u32::from);
            return Poll::Ready(Reply::GoingAway { code });
        }
        match &self.ended {
            Some(failure) => Poll::Ready(Reply::Closed(failure.clone())),
            None => Poll::Pending,
        }
    }
}
