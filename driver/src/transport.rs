//! One HTTP/2 connection over TLS, to one server.

use crate::{
    Runtime,
    dial::{dial, resolve},
    failures,
    http2::{self, Incoming},
    socket::{Control, Health, Socket},
    tls::Tls,
};
use bytes::Bytes;
use chronicle_connection::{Endpoint, Failure, FailureKind};
use futures_util::{FutureExt, future::BoxFuture};
use h2::client::SendRequest;
use http::{
    Request, Response, Uri,
    uri::{Authority, PathAndQuery, Scheme},
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
    requests: SendRequest<Bytes>,
    spawn: Arc<dyn Fn(BoxFuture<'static, ()>) + Send + Sync>,
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
        let (requests, connection) = http2::builder()
            .handshake(socket)
            .await
            .map_err(|error| connection_failure(&health, &error))?;
        runtime.spawn(async move {
            // How it ended is in its health.
            let _ = connection.await;
        });
        let runtime = runtime.clone();
        let lane = Lane {
            requests,
            spawn: Arc::new(move |task| runtime.spawn(task)),
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
    /// way when this returns: requests leave in the order of the calls. `held` is dropped with the
    /// body of the request.
    pub(crate) fn send(
        self,
        mut request: Request<Body>,
        held: impl Send + 'static,
    ) -> impl Future<Output = Result<Response<Incoming>, Failure>> + Send {
        let mut parts = mem::take(request.uri_mut()).into_parts();
        parts.scheme = Some(Scheme::HTTPS);
        parts.authority = Some(self.authority.clone());
        parts
            .path_and_query
            .get_or_insert(PathAndQuery::from_static("/"));
        // Cannot fail: all three parts are there.
        *request.uri_mut() = Uri::from_parts(parts).unwrap_or_default();
        let begun = http2::begin(self.requests.clone(), request).map(|(sending, response)| {
            let mut sending = sending.map(|()| drop(held)).boxed();
            // Most bodies leave at once.
            if (&mut sending).now_or_never().is_none() {
                (self.spawn)(sending);
            }
            response
        });
        async move {
            let answered = match begun {
                Ok(response) => response.await,
                Err(error) => Err(error),
            };
            answered.map_err(|error| self.failure(&error))
        }
    }

    /// What an error of a request or a body means.
    pub(crate) fn failure(&self, error: &h2::Error) -> Failure {
        connection_failure(&self.health, error)
    }
}

/// The end of the connection, where there is one, tells more than the error that it caused.
fn connection_failure(health: &watch::Receiver<Health>, error: &h2::Error) -> Failure {
    let ended = health.borrow().ended.clone();
    ended.unwrap_or_else(|| failures::from_h2(error))
}
