//! A plain client on real sockets, which trusts a server's own certificate and nothing else.

use bytes::Bytes;
use chronicle_connection_proto::{
    SESSION_DESCRIPTOR_SET,
    clients::{CompatibilityRequest, CompatibilityResponse, ConnectRequest, ConnectionKeepAlive},
};
use chronicle_reference_server::{Server, echo::echo_client::EchoClient, paths};
use http::{HeaderMap, Method, Request, Response, StatusCode, Uri, uri::PathAndQuery};
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::{
    ClientConfig, RootCertStore,
    pki_types::{CertificateDer, ServerName, pem::PemObject as _},
};
use std::{
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};
use tokio::{net::TcpStream, task::JoinHandle, time::timeout};
use tokio_rustls::{TlsConnector, client::TlsStream};
use tonic::{Status, Streaming, body::Body, client::Grpc};
use tonic_prost::ProstCodec;

/// One HTTP/2 connection.
#[derive(Clone)]
pub(crate) struct Client {
    http: http2::SendRequest<Body>,
    origin: Uri,
}

impl Client {
    pub(crate) async fn new(server: &Server) -> Self {
        Self::open(server).await.0
    }

    /// A client, and the end of its connection.
    pub(crate) async fn open(server: &Server) -> (Self, JoinHandle<hyper::Result<()>>) {
        let stream = tls(server, "localhost", &[b"h2"]).await.unwrap();
        assert_eq!(stream.get_ref().1.alpn_protocol(), Some(b"h2".as_slice()));
        let (http, connection) = http2::handshake(TokioExecutor::new(), TokioIo::new(stream))
            .await
            .unwrap();
        let origin = Uri::try_from(format!("https://{}", server.endpoint())).unwrap();
        (Self { http, origin }, tokio::spawn(connection))
    }

    pub(crate) fn echo(&self) -> EchoClient<Self> {
        EchoClient::with_origin(self.clone(), self.origin.clone())
    }

    pub(crate) async fn unary<Q, A>(&self, path: &'static str, question: Q) -> Result<A, Status>
    where
        Q: prost::Message + 'static,
        A: prost::Message + Default + 'static,
    {
        let (mut grpc, path) = self.grpc(path).await?;
        let answer = grpc.unary(tonic::Request::new(question), path, ProstCodec::default());
        Ok(answer.await?.into_inner())
    }

    async fn stream<Q, A>(&self, path: &'static str, question: Q) -> Result<Streaming<A>, Status>
    where
        Q: prost::Message + 'static,
        A: prost::Message + Default + 'static,
    {
        let (mut grpc, path) = self.grpc(path).await?;
        let codec = ProstCodec::default();
        let answer = grpc.server_streaming(tonic::Request::new(question), path, codec);
        Ok(answer.await?.into_inner())
    }

    /// Registers with this connection id.
    pub(crate) async fn connect(&self, id: &str) -> Streaming<ConnectionKeepAlive> {
        self.try_connect(id).await.unwrap()
    }

    pub(crate) async fn try_connect(
        &self,
        id: &str,
    ) -> Result<Streaming<ConnectionKeepAlive>, Status> {
        let connection_id = id.to_owned();
        let request = ConnectRequest {
            connection_id,
            ..ConnectRequest::default()
        };
        self.stream(paths::CONNECT, request).await
    }

    pub(crate) async fn answer(&self, keep_alive: ConnectionKeepAlive) -> Result<(), Status> {
        self.unary(paths::CONNECTION_KEEP_ALIVE, keep_alive).await
    }

    pub(crate) async fn check(&self) -> Result<CompatibilityResponse, Status> {
        let request = CompatibilityRequest {
            descriptor_set: SESSION_DESCRIPTOR_SET.to_vec(),
            ..CompatibilityRequest::default()
        };
        self.unary(paths::CHECK_COMPATIBILITY, request).await
    }

    async fn grpc(&self, path: &'static str) -> Result<(Grpc<Self>, PathAndQuery), Status> {
        let mut grpc = Grpc::with_origin(self.clone(), self.origin.clone());
        let ready = grpc.ready().await;
        ready.map_err(|error| Status::unavailable(error.to_string()))?;
        Ok((grpc, PathAndQuery::from_static(path)))
    }

    pub(crate) async fn http(
        &self,
        method: Method,
        path: &str,
        content_type: &str,
    ) -> hyper::Result<(StatusCode, HeaderMap, String)> {
        let request = Request::builder()
            .method(method)
            .uri(format!(
                "{}{}",
                self.origin.to_string().trim_end_matches('/'),
                path
            ))
            .header("content-type", content_type)
            .body(Body::empty())
            .unwrap();
        let mut http = self.http.clone();
        http.ready().await?;
        whole(http.send_request(request).await?).await
    }

    pub(crate) async fn get(&self, path: &str) -> (StatusCode, String) {
        let answer = self.http(Method::GET, path, "text/plain").await.unwrap();
        (answer.0, answer.2)
    }
}

impl tower_service::Service<Request<Body>> for Client {
    type Response = Response<hyper::body::Incoming>;
    type Error = hyper::Error;
    type Future = Pin<Box<dyn Future<Output = hyper::Result<Self::Response>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<hyper::Result<()>> {
        self.http.poll_ready(cx)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        Box::pin(self.http.send_request(request))
    }
}

/// A TLS connection that offers these protocols.
pub(crate) async fn tls(
    server: &Server,
    name: &str,
    protocols: &[&[u8]],
) -> io::Result<TlsStream<TcpStream>> {
    let mut roots = RootCertStore::empty();
    let pem = server.certificate_pem().as_bytes();
    roots
        .add(CertificateDer::from_pem_slice(pem).unwrap())
        .unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
    let stream = TcpStream::connect(server.endpoint()).await?;
    let name = ServerName::try_from(name.to_owned()).unwrap();
    TlsConnector::from(Arc::new(config))
        .connect(name, stream)
        .await
}

/// A request of an HTTP/1.1 client.
pub(crate) async fn http1(
    server: &Server,
    method: Method,
    path: &str,
) -> (StatusCode, HeaderMap, String) {
    let stream = tls(server, "localhost", &[b"http/1.1"]).await.unwrap();
    let (mut http, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("host", "localhost")
        .body(Full::<Bytes>::default())
        .unwrap();
    whole(http.send_request(request).await.unwrap())
        .await
        .unwrap()
}

async fn whole(
    response: Response<hyper::body::Incoming>,
) -> hyper::Result<(StatusCode, HeaderMap, String)> {
    let (head, body) = response.into_parts();
    let body = body.collect().await?.to_bytes();
    Ok((
        head.status,
        head.headers,
        String::from_utf8_lossy(&body).into_owned(),
    ))
}

/// Fails a test that would wait for ever.
pub(crate) async fn soon<T>(future: impl Future<Output = T>) -> T {
    timeout(Duration::from_secs(20), future)
        .await
        .expect("nothing happened for 20 s")
}
