//! The other side for tests: a TLS server that hands every HTTP/2 connection to the test.

use crate::{
    Runtime,
    pool::{Live, Pool},
    tls::Tls,
    tokio_runtime::Tokio,
    transport::Transport,
};
use bytes::Bytes;
use chronicle_connection::{CallMetadata, Endpoint, Failure, Host, Session};
use h2::{Reason, RecvStream, server::SendResponse};
use http::Request;
use rcgen::{CertificateParams, KeyPair};
use std::{future::Future, net::SocketAddr, sync::Arc, time::Duration};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{mpsc, oneshot},
};
use tokio_rustls::{TlsAcceptor, rustls::ServerConfig};
use uuid::Uuid;

pub(crate) type Incoming = (Request<RecvStream>, SendResponse<Bytes>);

/// A listener with a certificate of its own.
pub(crate) struct Server {
    listener: TcpListener,
    pub(crate) acceptor: TlsAcceptor,
    /// What a client has to trust.
    pub(crate) root: String,
}

/// One accepted connection.
pub(crate) struct Peer {
    pub(crate) requests: mpsc::UnboundedReceiver<Incoming>,
    pub(crate) orders: mpsc::UnboundedSender<Order>,
    /// Completes when the client is gone.
    pub(crate) gone: oneshot::Receiver<()>,
}

pub(crate) enum Order {
    GoAwayGracefully,
    GoAway(Reason),
    Drop,
}

impl Server {
    pub(crate) async fn new() -> Self {
        let names = ["localhost".to_owned(), "127.0.0.1".to_owned()];
        Self::with(CertificateParams::new(names).unwrap(), &[b"h2"]).await
    }

    pub(crate) async fn with(certificate: CertificateParams, alpn: &[&[u8]]) -> Self {
        let key = KeyPair::generate().unwrap();
        let certificate = certificate.self_signed(&key).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let key = key.serialize_der().try_into().unwrap();
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], key)
            .unwrap();
        config.alpn_protocols = alpn.iter().map(|name| name.to_vec()).collect();
        Self {
            listener: TcpListener::bind("127.0.0.1:0").await.unwrap(),
            acceptor: Arc::new(config).into(),
            root: certificate.pem(),
        }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.listener.local_addr().unwrap()
    }

    pub(crate) fn endpoint(&self, host: &str) -> Endpoint {
        let host = match host.parse() {
            Ok(address) => Host::Ip(address),
            Err(_) => Host::Name(host.to_owned()),
        };
        Endpoint::new(host, self.address().port())
    }

    pub(crate) fn trust(&self) -> Tls {
        Tls::new(false, self.root.as_bytes(), None).unwrap()
    }

    pub(crate) async fn tcp(&self) -> TcpStream {
        self.listener.accept().await.unwrap().0
    }

    /// Accepts one connection and serves it until the client or an order ends it.
    pub(crate) async fn accept(&self) -> Option<Peer> {
        self.accept_with(&h2::server::Builder::new()).await
    }

    pub(crate) async fn accept_with(&self, http2: &h2::server::Builder) -> Option<Peer> {
        let stream = self.acceptor.accept(self.tcp().await).await.ok()?;
        let mut connection = http2.handshake::<_, Bytes>(stream).await.ok()?;
        let (request_sender, requests) = mpsc::unbounded_channel();
        let (orders, mut order_receiver) = mpsc::unbounded_channel();
        let (gone_sender, gone) = oneshot::channel();
        tokio::spawn(async move {
            loop {
                tokio::select! {
                    request = connection.accept() => match request {
                        Some(Ok(request)) => { let _ = request_sender.send(request); }
                        Some(Err(_)) | None => break,
                    },
                    Some(order) = order_receiver.recv() => match order {
                        Order::GoAwayGracefully => connection.graceful_shutdown(),
                        Order::GoAway(reason) => connection.abrupt_shutdown(reason),
                        Order::Drop => break,
                    },
                }
            }
            drop(connection);
            let _ = gone_sender.send(());
        });
        Some(Peer {
            requests,
            orders,
            gone,
        })
    }

    /// Opens a transport to this server, and shows both ends of it.
    pub(crate) async fn connected(&self) -> (Transport, Peer) {
        let (transport, peer) =
            soon(async { tokio::join!(self.open("localhost"), self.accept()) }).await;
        (transport.unwrap(), peer.unwrap())
    }

    /// Transports of a session with this server.
    pub(crate) fn pool(&self) -> Arc<Pool<Tokio>> {
        let session = Session {
            connection_id: Uuid::nil(),
            server: self.endpoint("localhost"),
            peer: self.address(),
            generation: 1,
        };
        let runtime = Tokio::current().unwrap();
        let timeout = Duration::from_secs(20);
        Arc::new(Pool::new(runtime, self.trust(), session, timeout))
    }

    /// A session with this server.
    pub(crate) fn live(&self) -> Live<Tokio> {
        Live {
            pool: self.pool(),
            metadata: CallMetadata::default(),
        }
    }

    pub(crate) async fn open(&self, host: &str) -> Result<Transport, Failure> {
        open(&self.trust(), &self.endpoint(host)).await
    }
}

pub(crate) async fn open(tls: &Tls, to: &Endpoint) -> Result<Transport, Failure> {
    let runtime = Tokio::current().unwrap();
    Transport::open(&runtime, tls, to, None).await
}

/// The output of a future that has no reason to take long.
pub(crate) async fn soon<T>(future: impl Future<Output = T>) -> T {
    let limit = Duration::from_secs(20);
    tokio::time::timeout(limit, future)
        .await
        .expect("takes far too long")
}
