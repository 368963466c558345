//! One request under way on a transport: plain HTTP, or gRPC.

use super::{failures, grpc, transport::Transport};
use bytes::{Bytes, BytesMut};
use chronicle_connection::{Call, Failure, FailureKind, Reply};
use h2::{RecvStream, SendStream, client::ResponseFuture};
use http::{HeaderMap, Response, response::Parts};
use std::{
    future::Future,
    mem,
    pin::Pin,
    task::{Context, Poll, ready},
};

/// Dropping it resets the stream, where that is not over.
pub(super) struct Request {
    step: Step,
    kind: Kind,
    limit: usize,
    /// Kept for as long as the request is: without it, h2 takes the request for given up.
    _sent: SendStream<Bytes>,
}

enum Step {
    Sent(ResponseFuture),
    Http(Parts, BytesMut, RecvStream),
    Grpc(grpc::Messages, RecvStream),
}

enum Kind {
    Http,
    Unary,
    Stream,
}

impl Request {
    pub(super) fn http(
        transport: &mut Transport,
        request: http::Request<Bytes>,
        limit: usize,
    ) -> Result<Self, Failure> {
        Self::send(transport, request, Kind::Http, limit)
    }

    pub(super) fn unary(transport: &mut Transport, call: Call) -> Result<Self, Failure> {
        let limit = call.limit;
        Self::send(transport, grpc::request(call), Kind::Unary, limit)
    }

    pub(super) fn stream(transport: &mut Transport, call: Call) -> Result<Self, Failure> {
        let limit = call.limit;
        Self::send(transport, grpc::request(call), Kind::Stream, limit)
    }

    fn send(
        transport: &mut Transport,
        request: http::Request<Bytes>,
        kind: Kind,
        limit: usize,
    ) -> Result<Self, Failure> {
        let (head, body) = request.into_parts();
        let head = http::Request::from_parts(head, ());
        let (response, mut sent) = transport.send(head, body.is_empty())?;
        if !body.is_empty() {
            // h2 holds it until the server's window has room for it.
            sent.send_data(body, true)
                .map_err(|error| failures::from_h2(&error))?;
        }
        Ok(Self {
            step: Step::Sent(response),
            kind,
            limit,
            _sent: sent,
        })
    }

    /// The next reply. None follows a whole HTTP answer, the end of a call, or a failure.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Reply> {
        let reply = ready!(self.poll_reply(cx));
        // There may be more where this came from.
        cx.waker().wake_by_ref();
        Poll::Ready(reply.unwrap_or_else(Reply::Failed))
    }

    fn poll_reply(&mut self, cx: &mut Context<'_>) -> Poll<Result<Reply, Failure>> {
        loop {
            match &mut self.step {
                Step::Sent(response) => {
                    let response = ready!(Pin::new(response).poll(cx));
                    let response = response.map_err(|error| failures::from_h2(&error))?;
                    let (head, body) = response.into_parts();
                    let left = match self.kind {
                        Kind::Http => {
                            self.step = Step::Http(head, BytesMut::new(), body);
                            continue;
                        }
                        Kind::Unary => Some(1),
                        Kind::Stream => None,
                    };
                    if let Some(status) = grpc::early_end(&head) {
                        return Poll::Ready(Ok(Reply::Finished(status)));
                    }
                    self.step = Step::Grpc(grpc::Messages::new(self.limit, left), body);
                }
                Step::Http(head, read, body) => match ready!(poll_frame(body, cx))? {
                    Frame::Data(data) if data.len() > self.limit - read.len() => {
                        let text = format!("more than {} bytes", self.limit);
                        return Poll::Ready(Err(Failure::new(FailureKind::TooLarge, text)));
                    }
                    Frame::Data(data) => read.extend_from_slice(&data),
                    Frame::End(_) => {
                        let mut response = Response::new(mem::take(read).freeze());
                        *response.status_mut() = head.status;
                        *response.headers_mut() = mem::take(&mut head.headers);
                        return Poll::Ready(Ok(Reply::Http(response)));
                    }
                },
                Step::Grpc(messages, body) => {
                    if let Some(message) = messages.next()? {
                        return Poll::Ready(Ok(Reply::Message(message)));
                    }
                    match ready!(poll_frame(body, cx))? {
                        Frame::Data(data) => messages.feed(&data),
                        Frame::End(trailers) => {
                            return Poll::Ready(messages.end(&trailers).map(Reply::Finished));
                        }
                    }
                }
            }
        }
    }
}

/// A part of the body of an answer.
enum Frame {
    Data(Bytes),
    /// The trailers, which may be none.
    End(HeaderMap),
}

fn poll_frame(body: &mut RecvStream, cx: &mut Context<'_>) -> Poll<Result<Frame, Failure>> {
    let frame = match ready!(body.poll_data(cx)) {
        Some(data) => data.map(|data| {
            // What was read makes room for more. Fails only for more than was received.
            let _ = body.flow_control().release_capacity(data.len());
            Frame::Data(data)
        }),
        None => ready!(body.poll_trailers(cx)).map(|all| Frame::End(all.unwrap_or_default())),
    };
    Poll::Ready(frame.map_err(|error| failures::from_h2(&error)))
}
