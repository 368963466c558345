//! What application calls go through.

use crate::{
    Runtime,
    body::ResponseBody,
    calls,
    deadline::deadline,
    pool::{Lease, Live},
    retry::{self, Refresh},
    runtime::sleep_until,
};
use chronicle_connection::{CallMetadata, Command, Failure};
use futures_util::future::{BoxFuture, Either, select};
use http::{Request, Response, header};
use std::{
    fmt,
    sync::Arc,
    task::{Context, Poll},
};
use tokio::sync::{mpsc, watch};
use tonic::{Status, body::Body};
use tower_service::Service;

/// A gRPC channel to the server of the live session: takes any stub that tonic generates.
///
/// Calls travel on transports of their own, so they neither disturb the session nor share its fate
/// with a full window. They carry the credentials of the connection, and fail with `UNAVAILABLE`
/// when there is no session, when the session ends, and for whatever else befalls their transport.
/// A `grpc-timeout` (tonic's `Request::set_timeout`) is kept here as well: `DEADLINE_EXCEEDED`.
///
/// A call that the server refuses as `UNAUTHENTICATED` before any message of its answer is sent once
/// more with a new token, if its request is one complete message of at most 1 MiB and its method is
/// unary in the [contract](crate::Builder::contract) or the call [`Retryable`](crate::Retryable).
/// Nothing else is ever sent twice.
///
/// Clones are handles. The client closes when its last handle is dropped, channels included; calls
/// under way do not count.
pub struct Channel<R: Runtime> {
    runtime: R,
    live: watch::Receiver<Option<Live<R>>>,
    waits: bool,
    /// Where calls carry tokens.
    refresh: Option<Refresh>,
    /// Keeps the client open.
    handle: mpsc::UnboundedSender<Command>,
}

impl<R: Runtime> Channel<R> {
    pub(crate) fn new(
        runtime: R,
        live: watch::Receiver<Option<Live<R>>>,
        handle: mpsc::UnboundedSender<Command>,
    ) -> Self {
        Self {
            runtime,
            live,
            waits: false,
            refresh: None,
            handle,
        }
    }

    pub(crate) fn refreshing(mut self, refresh: Option<Refresh>) -> Self {
        self.refresh = refresh;
        self
    }

    /// The same channel, whose calls wait for a session, within their deadline, where there is
    /// none.
    pub fn wait_for_ready(mut self) -> Self {
        self.waits = true;
        self
    }
}

impl<R: Runtime> Service<Request<Body>> for Channel<R> {
    type Response = Response<Body>;
    type Error = Status;
    type Future = BoxFuture<'static, Result<Response<Body>, Status>>;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), Status>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        let runtime = self.runtime.clone();
        let live = self.live.clone();
        let waits = self.waits;
        let refresh = self.refresh.clone();
        let commands = self.handle.downgrade();
        Box::pin(async move {
            let deadline = deadline(request.headers());
            let answer = async {
                let Some(refresh) = refresh else {
                    let (lease, metadata) = a_lease(live, waits).await?;
                    return send(lease, metadata, request).await;
                };
                // The client's own takes its place, or none while there is no token.
                request.headers_mut().remove(header::AUTHORIZATION);
                let (request, copy) = refresh.keep(request);
                let (lease, metadata) = a_lease(live.clone(), waits).await?;
                let refused = metadata.generation;
                let Some(copy) = copy else {
                    return send(lease, metadata, request).await;
                };
                let answer = copy.first_of(send(lease, metadata, request).await).await;
                if !retry::is_unauthenticated(&answer)
                    || !refresh.brings_newer(refused, &live, &commands).await
                {
                    return answer;
                }
                // The stream of the first call is free before the second needs one.
                drop(answer);
                let (lease, metadata) = a_lease(live, waits).await?;
                send(lease, metadata, copy.into_request()).await
            };
            let Some(at) = deadline else {
                return Ok(answer.await?.map(Body::new));
            };
            let mut timer = sleep_until(&runtime, at);
            match select(std::pin::pin!(answer), &mut timer).await {
                Either::Left((answer, _)) => Ok(answer?.map(|body| Body::new(body.until(timer)))),
                Either::Right(_) => Err(Status::deadline_exceeded("no answer in time")),
            }
        })
    }
}

/// A stream to the server of the session that is up, and what a call on it must carry.
async fn a_lease<R: Runtime>(
    mut live: watch::Receiver<Option<Live<R>>>,
    waits: bool,
) -> Result<(Lease<R>, CallMetadata), Status> {
    loop {
        let session = match waits {
            false => live.borrow().clone(),
            true => match live.wait_for(Option::is_some).await {
                Ok(session) => session.clone(),
                Err(_) => return Err(Status::unavailable("the client is closed")),
            },
        };
        let Some(session) = session else {
            return Err(Status::unavailable("there is no session with a server"));
        };
        match session.pool.lease().await {
            Some(Ok(lease)) => {
                // The wait may have been long, and credentials are replaced meanwhile.
                let now = live.borrow();
                let now = now
                    .as_ref()
                    .filter(|live| Arc::ptr_eq(&live.pool, &session.pool));
                let metadata = now.map(|live| live.metadata.clone());
                return Ok((lease, metadata.unwrap_or(session.metadata)));
            }
            Some(Err(failure)) => return Err(unavailable(&failure)),
            // Nothing was sent yet.
            None if waits => {
                let is_news = |live: &Option<Live<R>>| {
                    live.as_ref()
                        .is_none_or(|live| !Arc::ptr_eq(&live.pool, &session.pool))
                };
                // An error is the end of the client, which the next round tells.
                let _ = live.wait_for(is_news).await;
            }
            None => return Err(Status::unavailable("the session has ended")),
        }
    }
}

async fn send<R: Runtime>(
    lease: Lease<R>,
    metadata: CallMetadata,
    mut request: Request<Body>,
) -> Result<Response<ResponseBody<R>>, Status> {
    let lease = Arc::new(lease);
    for (name, value) in &metadata.headers {
        request.headers_mut().insert(name, value.clone());
    }
    let lane = lease.lane().clone();
    let response = lane
        .send(request, Arc::clone(&lease))
        .await
        .map_err(|failure| unavailable(&failure))?;
    if let Some(refusal) = calls::refusal(response.status(), response.headers()) {
        let code = tonic::Code::from_i32(refusal.code as i32);
        return Err(Status::new(code, refusal.to_string()));
    }
    let has_status = calls::status(response.headers()).is_some();
    Ok(response.map(|body| ResponseBody::new(body, lease, has_status)))
}

pub(crate) fn unavailable(failure: &Failure) -> Status {
    Status::unavailable(failure.to_string())
}

impl<R: Runtime> Clone for Channel<R> {
    fn clone(&self) -> Self {
        Self {
            runtime: self.runtime.clone(),
            live: self.live.clone(),
            waits: self.waits,
            refresh: self.refresh.clone(),
            handle: self.handle.clone(),
        }
    }
}

impl<R: Runtime> fmt::Debug for Channel<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Channel")
            .field("waits", &self.waits)
            .finish_non_exhaustive()
    }
}
