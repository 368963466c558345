//! The two bodies of an application call, which share its stream.

use crate::{Runtime, calls, channel::unavailable, pool::Lease, runtime::Sleep, transport::Lane};
use bytes::Bytes;
use futures_util::{FutureExt, task::AtomicWaker};
use h2::Reason;
use http_body::{Body as HttpBody, Frame, SizeHint};
use hyper::body::Incoming;
use std::{
    future::poll_fn,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, ready},
};
use tonic::{Status, body::Body};

/// One call, as long as somebody wants its answer. Dropping it ends the request as well.
pub(crate) struct Call<R: Runtime>(Arc<Stream<R>>);

/// The stream of a call. It is free once both bodies are gone.
struct Stream<R: Runtime> {
    _lease: Lease<R>,
    is_over: AtomicBool,
    request: AtomicWaker,
}

impl<R: Runtime> Call<R> {
    pub(crate) fn new(lease: Lease<R>) -> Self {
        Self(Arc::new(Stream {
            _lease: lease,
            is_over: AtomicBool::new(false),
            request: AtomicWaker::new(),
        }))
    }
}

impl<R: Runtime> Drop for Call<R> {
    fn drop(&mut self) {
        self.0.is_over.store(true, Ordering::Release);
        self.0.request.wake();
    }
}

/// What the application sends. It ends with the call: HTTP/2 would keep the stream, and the slot
/// with it, until the application thinks of ending its side.
pub(crate) struct RequestBody<R: Runtime> {
    body: Body,
    stream: Arc<Stream<R>>,
}

impl<R: Runtime> RequestBody<R> {
    pub(crate) fn new(body: Body, call: &Call<R>) -> Self {
        Self {
            body,
            stream: Arc::clone(&call.0),
        }
    }
}

impl<R: Runtime> HttpBody for RequestBody<R> {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        self.stream.request.register(cx.waker());
        if self.stream.is_over.load(Ordering::Acquire) {
            let mut status = Status::cancelled("the call is over");
            status.set_source(Arc::new(h2::Error::from(Reason::CANCEL)));
            return Poll::Ready(Some(Err(status)));
        }
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// What the server answers.
pub(crate) struct ResponseBody<R: Runtime> {
    /// `None` once it is over.
    answer: Option<(Incoming, Call<R>)>,
    lane: Lane,
    /// Whether `grpc-status` was seen.
    has_status: bool,
    deadline: Option<Sleep>,
    /// The first frame, where it was looked at ahead of time.
    first: Option<Result<Frame<Bytes>, Status>>,
}

impl<R: Runtime> ResponseBody<R> {
    pub(crate) fn new(body: Incoming, lane: Lane, call: Call<R>, has_status: bool) -> Self {
        Self {
            answer: Some((body, call)),
            lane,
            has_status,
            deadline: None,
            first: None,
        }
    }

    /// Waits for the first frame. It is handed on like all others.
    pub(crate) async fn await_first(&mut self) {
        self.first = poll_fn(|cx| Pin::new(&mut *self).poll_frame(cx)).await;
    }

    /// The first frame, where it was waited for and is not handed on yet.
    pub(crate) fn first(&self) -> Option<&Frame<Bytes>> {
        self.first.as_ref()?.as_ref().ok()
    }

    /// Ends it when the timer does.
    pub(crate) fn until(mut self, deadline: Sleep) -> Self {
        self.deadline = Some(deadline);
        self
    }

    fn fail(&mut self, status: Status) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        self.answer = None;
        Poll::Ready(Some(Err(status)))
    }
}

impl<R: Runtime> HttpBody for ResponseBody<R> {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let this = &mut *self;
        if let Some(first) = this.first.take() {
            return Poll::Ready(Some(first));
        }
        let Some((body, _)) = &mut this.answer else {
            return Poll::Ready(None);
        };
        if let Some(deadline) = &mut this.deadline
            && deadline.poll_unpin(cx).is_ready()
        {
            return this.fail(Status::deadline_exceeded("the answer did not end in time"));
        }
        match ready!(Pin::new(body).poll_frame(cx)) {
            Some(Ok(frame)) => {
                let trailers = frame.trailers_ref();
                this.has_status |= trailers.is_some_and(|all| calls::status(all).is_some());
                Poll::Ready(Some(Ok(frame)))
            }
            Some(Err(error)) => {
                let status = unavailable(&this.lane.failure(&error));
                this.fail(status)
            }
            None if this.has_status => {
                this.answer = None;
                Poll::Ready(None)
            }
            None => this.fail(Status::unavailable("the answer ended without grpc-status")),
        }
    }

    fn is_end_stream(&self) -> bool {
        if self.first.is_some() {
            return false;
        }
        match &self.answer {
            Some((body, _)) => self.has_status && body.is_end_stream(),
            None => true,
        }
    }
}
