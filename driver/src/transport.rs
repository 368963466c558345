//! One HTTP/2 connection over TLS, to one server.

use crate::{
    Runtime,
    dial::{dial, resolve},
    failures,
    runtime::Executor,
    socket::{Control, Health, Socket},
    tls::Tls,
};
use chronicle_connection::{Endpoint, Failure, FailureKind};
use http::{
    Request, Response, Uri,
    uri::{Authority, PathAndQuery, Scheme},
};
use hyper::{
    body::Incoming,
    client::conn::http2::{Builder, SendRequest},
};
use std::{future::Future, mem, net::SocketAddr, sync::Arc};
use tokio::sync::watch;
use tonic::body::Body;

/// An open transport. Dropping it closes the socket, whatever still runs on it.
pub(crate) struct Transport {
    lane: Lane,
    peer: SocketAddr,
    control: Arc<dyn Control>,
}

/// Sends requests on a transport, without keeping it open.
#[derive(Clone)]
pub(crate) struct Lane {
    requests: SendRequest<Body>,
    authority: Authority,
    health: watch::Receiver<Health>,
}

impl Transport {
    /// Opens a transport to a server, or to just one of its addresses.
    ///
    /// # Errors
    /// What is wrong with each address, when none works.
    pub(crate) async fn open<R: Runtime>(
        runtime: &R,
        tls: &Tls,
        to: &Endpoint,
        address: Option<SocketAddr>,
    ) -> Result<Self, Failure> {
        let authority = Authority::try_from(to.to_string())
            .map_err(|error| Failure::new(FailureKind::Protocol, error.to_string()))?;
        let addresses = match address {
            Some(address) => vec![address],
            None => resolve(runtime, to).await?,
        };
        let (peer, stream) = dial(runtime, tls, to, addresses).await?;
        let (socket, control) = Socket::new(stream);
        let health = control.health();
        let (requests, connection) = http2(runtime)
            .handshake(socket)
            .await
            .map_err(|error| connection_failure(&health, &error))?;
        runtime.spawn(async move {
            // How it ended is in its health.
            let _ = connection.await;
        });
        let lane = Lane {
            requests,
            authority,
            health,
        };
        Ok(Self {
            lane,
            peer,
            control,
        })
    }

    /// The address at the other end of the socket.
    pub(crate) fn peer(&self) -> SocketAddr {
        self.peer
    }

    pub(crate) fn lane(&self) -> &Lane {
        &self.lane
    }

    /// What is known of the other side, and news of it.
    pub(crate) fn health(&self) -> &watch::Receiver<Health> {
        self.lane.health()
    }
}

impl Drop for Transport {
    fn drop(&mut self) {
        self.control.shut();
    }
}

impl Lane {
    pub(crate) fn health(&self) -> &watch::Receiver<Health> {
        &self.health
    }

    /// Sends a request; scheme and authority of its URI become those of the transport. It is under
    /// way when this returns: requests leave in the order of the calls.
    pub(crate) fn send(
        mut self,
        mut request: Request<Body>,
    ) -> impl Future<Output = Result<Response<Incoming>, Failure>> + Send {
        let mut parts = mem::take(request.uri_mut()).into_parts();
        parts.scheme = Some(Scheme::HTTPS);
        parts.authority = Some(self.authority.clone());
        parts
            .path_and_query
            .get_or_insert(PathAndQuery::from_static("/"));
        // Cannot fail: all three parts are there.
        *request.uri_mut() = Uri::from_parts(parts).unwrap_or_default();
        let sent = self.requests.send_request(request);
        async move { sent.await.map_err(|error| self.failure(&error)) }
    }

    /// What an error of a request or a body means.
    pub(crate) fn failure(&self, error: &hyper::Error) -> Failure {
        connection_failure(&self.health, error)
    }
}

/// The end of the connection, where there is one, tells more than the error that it caused.
fn connection_failure(health: &watch::Receiver<Health>, error: &hyper::Error) -> Failure {
    let ended = health.borrow().ended.clone();
    ended.unwrap_or_else(|| failures::from_hyper(error))
}

fn http2<R: Runtime>(runtime: &R) -> Builder<Executor<R>> {
    let mut builder = Builder::new(Executor(runtime.clone()));
    builder
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(STREAM_WINDOW * MAX_STREAMS)
        // Calls that were cancelled while an answer was under way must not end the connection, as
        // they would once these defaults are used up.
        .max_concurrent_reset_streams(1024)
        .max_local_error_reset_streams(None);
    builder
}

/// The most streams that are put on one transport: unread, they fill its window and no more.
pub(crate) const MAX_STREAMS: u32 = 100;
const STREAM_WINDOW: u32 = 256 * 1024;
