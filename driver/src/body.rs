//! The answer to an application call.

use crate::{
    Runtime, calls, channel::unavailable, http2::Incoming, pool::Lease, runtime::Sleep,
    transport::Lane,
};
use bytes::Bytes;
use futures_util::FutureExt;
use http_body::{Body as HttpBody, Frame};
use std::{
    future::poll_fn,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};
use tonic::Status;

/// What the server answers.
pub(crate) struct ResponseBody<R: Runtime> {
    /// `None` once it is over, which ends the request as well. The stream is free once both are gone.
    answer: Option<(Incoming, Arc<Lease<R>>)>,
    lane: Lane,
    /// Whether `grpc-status` was seen.
    has_status: bool,
    deadline: Option<Sleep>,
    /// The first frame, where it was looked at ahead of time.
    first: Option<Result<Frame<Bytes>, Status>>,
}

impl<R: Runtime> ResponseBody<R> {
    pub(crate) fn new(body: Incoming, lease: Arc<Lease<R>>, has_status: bool) -> Self {
        Self {
            lane: lease.lane().clone(),
            answer: Some((body, lease)),
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
