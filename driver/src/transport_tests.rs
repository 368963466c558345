use crate::{
    Runtime,
    testing::{Order, Server, open, soon},
    tls::Tls,
    tokio_runtime::Tokio,
    transport::Transport,
};
use chronicle_connection::{Endpoint, Failure, FailureKind, Host, TlsFailure};
use h2::Reason;
use http::Request;
use rcgen::{CertificateParams, date_time_ymd};
use std::{
    future::Future,
    io,
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::Instant,
};
use tokio::io::AsyncWriteExt;
use tonic::body::Body;

#[tokio::test]
async fn dropping_a_transport_closes_its_socket_and_fails_live_streams_at_once() {
    let server = Server::new().await;
    let (transport, mut peer) = server.connected().await;
    let lane = transport.lane().clone();
    let live = tokio::spawn(lane.send(Request::post("/live").body(Body::empty()).unwrap(), ()));
    let held = soon(peer.requests.recv()).await.unwrap();
    drop(transport);
    let failure = soon(live).await.unwrap().unwrap_err();
    assert_eq!(
        failure,
        Failure::new(FailureKind::Closed, "closed by this client")
    );
    soon(peer.gone).await.unwrap();
    drop(held);
}

#[tokio::test]
async fn a_goaway_with_live_streams_is_told_without_a_new_request() {
    let server = Server::new().await;
    let (transport, mut peer) = server.connected().await;
    let request = Request::post("/live").body(Body::empty()).unwrap();
    let live = tokio::spawn(transport.lane().clone().send(request, ()));
    let held = soon(peer.requests.recv()).await.unwrap();
    peer.orders.send(Order::GoAwayGracefully).ok().unwrap();
    let mut health = transport.health().clone();
    let seen = soon(health.wait_for(|health| health.going_away.is_some()))
        .await
        .unwrap();
    assert_eq!((seen.going_away, &seen.ended), (Some(0), &None));
    assert!(!live.is_finished());
    drop(held);
}

#[tokio::test]
async fn the_code_of_a_goaway_is_told_before_the_end() {
    let server = Server::new().await;
    let (transport, peer) = server.connected().await;
    peer.orders
        .send(Order::GoAway(Reason::ENHANCE_YOUR_CALM))
        .ok()
        .unwrap();
    let mut health = transport.health().clone();
    let seen = soon(health.wait_for(|health| health.ended.is_some()))
        .await
        .unwrap();
    assert_eq!(seen.going_away, Some(11));
}

#[tokio::test]
async fn the_first_of_several_goaways_counts() {
    let server = Server::new().await;
    let (transport, mut peer) = server.connected().await;
    let request = Request::post("/live").body(Body::empty()).unwrap();
    let _live = tokio::spawn(transport.lane().clone().send(request, ()));
    let _held = soon(peer.requests.recv()).await.unwrap();
    let orders = [
        Order::GoAwayGracefully,
        Order::GoAway(Reason::ENHANCE_YOUR_CALM),
    ];
    let mut health = transport.health().clone();
    for (order, is_over) in orders.into_iter().zip([false, true]) {
        peer.orders.send(order).ok().unwrap();
        let told = soon(health.wait_for(|health| {
            health.going_away.is_some() && (health.ended.is_some() || !is_over)
        }));
        assert_eq!(told.await.unwrap().going_away, Some(0));
    }
}

#[tokio::test]
async fn the_death_of_the_connection_is_told() {
    let server = Server::new().await;
    let (transport, peer) = server.connected().await;
    peer.orders.send(Order::Drop).ok().unwrap();
    let mut health = transport.health().clone();
    let seen = soon(health.wait_for(|health| health.ended.is_some()))
        .await
        .unwrap();
    let ended = seen.ended.clone().unwrap();
    assert!(
        matches!(ended.kind, FailureKind::Closed | FailureKind::Reset),
        "{ended}"
    );
}

#[tokio::test]
async fn the_limit_of_streams_is_read_off_the_wire() {
    let server = Server::new().await;
    let mut http2 = h2::server::Builder::new();
    http2.max_concurrent_streams(7);
    let (transport, peer) =
        soon(async { tokio::join!(server.open("127.0.0.1"), server.accept_with(&http2)) }).await;
    let mut health = transport.as_ref().unwrap().health().clone();
    let seen = soon(health.wait_for(|health| health.settled))
        .await
        .unwrap();
    assert_eq!(seen.max_streams, Some(7));
    drop(peer);
}

#[tokio::test]
async fn the_certificate_is_checked_against_the_name_or_the_address() {
    let names = |names: &[&str]| {
        CertificateParams::new(
            names
                .iter()
                .map(|&name| name.to_owned())
                .collect::<Vec<_>>(),
        )
    };
    let by_name = Server::with(names(&["localhost"]).unwrap(), &[b"h2"]).await;
    let by_address = Server::with(names(&["127.0.0.1"]).unwrap(), &[b"h2"]).await;
    for (server, right, wrong) in [
        (by_name, "localhost", "127.0.0.1"),
        (by_address, "127.0.0.1", "localhost"),
    ] {
        let (opened, _) = soon(async { tokio::join!(server.open(right), server.accept()) }).await;
        assert_eq!(opened.unwrap().peer(), server.address());
        let kind = refused(&server, &server.trust(), wrong).await.kind;
        assert_eq!(kind, FailureKind::Tls(TlsFailure::WrongName));
    }
}

#[tokio::test]
async fn a_name_is_told_to_the_server_and_an_address_is_not() {
    let server = Server::new().await;
    for (host, told) in [("localhost", Some("localhost")), ("127.0.0.1", None)] {
        let accept = async { server.acceptor.accept(server.tcp().await).await.unwrap() };
        let (_transport, stream) = soon(async { tokio::join!(server.open(host), accept) }).await;
        assert_eq!(stream.get_ref().1.server_name(), told, "{host}");
    }
}

#[tokio::test]
async fn bad_certificates_are_told_apart() {
    let mut expired = CertificateParams::new(["localhost".to_owned()]).unwrap();
    expired.not_before = date_time_ymd(2019, 1, 1);
    expired.not_after = date_time_ymd(2020, 1, 1);
    let mut future = CertificateParams::new(["localhost".to_owned()]).unwrap();
    future.not_before = date_time_ymd(2500, 1, 1);
    future.not_after = date_time_ymd(2501, 1, 1);
    for (certificate, reason) in [
        (expired, TlsFailure::Expired),
        (future, TlsFailure::NotYetValid),
    ] {
        let server = Server::with(certificate, &[b"h2"]).await;
        let failure = refused(&server, &server.trust(), "localhost").await;
        assert_eq!(failure.kind, FailureKind::Tls(reason), "{failure}");
    }
    let server = Server::new().await;
    for roots in [unrelated().await, Server::new().await.trust()] {
        let failure = refused(&server, &roots, "localhost").await;
        let reason = FailureKind::Tls(TlsFailure::UnknownIssuer);
        assert_eq!(failure.kind, reason, "{failure}");
    }
}

#[tokio::test]
async fn without_validation_any_certificate_will_do() {
    let server = Server::new().await;
    let tls = Tls::new(true, b"", None).unwrap();
    let to = server.endpoint("localhost");
    let (opened, _) = soon(async { tokio::join!(open(&tls, &to), server.accept()) }).await;
    opened.unwrap();
}

#[tokio::test]
async fn a_server_without_h2_is_told_as_such() {
    let certificate = || CertificateParams::new(["localhost".to_owned()]).unwrap();
    for alpn in [&[b"http/1.1".as_slice()] as &[_], &[]] {
        let server = Server::with(certificate(), alpn).await;
        let failure = refused(&server, &server.trust(), "localhost").await;
        assert_eq!(
            failure.kind,
            FailureKind::Tls(TlsFailure::NoHttp2),
            "{failure}"
        );
    }
}

#[tokio::test]
async fn a_server_without_tls_is_told_as_such() {
    let server = Server::new().await;
    let answer = async {
        let mut socket = server.tcp().await;
        socket
            .write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            .await
            .unwrap();
        socket
    };
    let (opened, _) = soon(async { tokio::join!(server.open("localhost"), answer) }).await;
    assert_eq!(
        opened.err().unwrap().kind,
        FailureKind::Tls(TlsFailure::NotTls)
    );
}

#[tokio::test]
async fn a_closed_port_is_refused_which_says_it_all() {
    let server = Server::new().await;
    let (tls, to) = (server.trust(), server.endpoint("127.0.0.1"));
    drop(server);
    let failure = soon(open(&tls, &to)).await.err().unwrap();
    assert_eq!(failure.kind, FailureKind::Refused);
    assert_eq!(failure.to_string(), "connection refused");
}

#[tokio::test]
async fn the_only_address_of_a_name_is_named() {
    let address = "192.0.2.1:1".parse().unwrap();
    let refuses = Script::Fail(io::ErrorKind::ConnectionRefused);
    let runtime = Scripted::new([(address, refuses)]);
    let tls = Tls::new(true, b"", None).unwrap();
    let failure = soon(runtime.open(&tls)).await.err().unwrap();
    assert_eq!(failure.to_string(), "connection refused: 192.0.2.1:1");
}

#[tokio::test]
async fn a_name_that_does_not_exist_is_a_dns_failure() {
    let to = Endpoint::new(Host::Name("no-such-host.invalid".to_owned()), 1);
    let failure = soon(open(&Tls::new(true, b"", None).unwrap(), &to))
        .await
        .err()
        .unwrap();
    assert_eq!(failure.kind, FailureKind::Dns);
}

#[tokio::test]
async fn an_address_that_never_answers_holds_up_the_next_for_250_ms_only() {
    let server = Server::new().await;
    let silent = "192.0.2.1:1".parse().unwrap();
    let runtime = Scripted::new([(silent, Script::Silent), (server.address(), Script::Dial)]);
    let tls = server.trust();
    let started = Instant::now();
    let (opened, _) = soon(async { tokio::join!(runtime.open(&tls), server.accept()) }).await;
    assert_eq!(opened.unwrap().peer(), server.address());
    assert_held_up(started);
    assert_eq!(runtime.dialled(), [silent, server.address()]);
}

#[tokio::test]
async fn an_address_that_refuses_hands_over_at_once_and_all_causes_are_named() {
    let [a, b] = ["192.0.2.1:1", "192.0.2.2:1"].map(|text| text.parse().unwrap());
    let runtime = Scripted::new([
        (a, Script::Fail(io::ErrorKind::ConnectionRefused)),
        (b, Script::Fail(io::ErrorKind::NetworkUnreachable)),
    ]);
    let tls = Tls::new(true, b"", None).unwrap();
    let failure = soon(runtime.open(&tls)).await.err().unwrap();
    assert_eq!(
        failure.to_string(),
        "connection refused: 192.0.2.1:1: connection refused; 192.0.2.2:1: network unreachable"
    );
}

#[tokio::test]
async fn an_address_whose_tls_fails_hands_over_to_the_next() {
    let (bad, good) = (Server::new().await, Server::new().await);
    let runtime = Scripted::new([
        (bad.address(), Script::Dial),
        (good.address(), Script::Dial),
    ]);
    let tls = good.trust();
    let serve = async { tokio::join!(bad.accept(), good.accept()) };
    let (opened, _) = soon(async { tokio::join!(runtime.open(&tls), serve) }).await;
    assert_eq!(opened.unwrap().peer(), good.address());
}

#[tokio::test]
async fn an_address_that_says_nothing_after_tcp_holds_up_the_next_for_250_ms_only() {
    let (mute, good) = (Server::new().await, Server::new().await);
    let runtime = Scripted::new([
        (mute.address(), Script::Dial),
        (good.address(), Script::Dial),
    ]);
    let tls = good.trust();
    let started = Instant::now();
    let (opened, _) = soon(async { tokio::join!(runtime.open(&tls), good.accept()) }).await;
    assert_eq!(opened.unwrap().peer(), good.address());
    assert_held_up(started);
}

/// For 250 ms, and no longer than a loaded machine takes for the rest.
fn assert_held_up(since: Instant) {
    let time = since.elapsed();
    assert!((250..2_000).contains(&time.as_millis()), "{time:?}");
}

/// The failure to open a transport to a server that accepts one connection.
async fn refused(server: &Server, tls: &Tls, host: &str) -> Failure {
    let to = server.endpoint(host);
    let (opened, _) = soon(async { tokio::join!(open(tls, &to), server.accept()) }).await;
    opened.err().expect("was opened")
}

/// Trusts a root that has nothing to do, by name either, with the servers of these tests.
async fn unrelated() -> Tls {
    let mut root = CertificateParams::new(["elsewhere".to_owned()]).unwrap();
    root.distinguished_name
        .push(rcgen::DnType::CommonName, "elsewhere");
    Server::with(root, &[b"h2"]).await.trust()
}

/// A runtime whose resolver and dials follow a script.
#[derive(Clone)]
struct Scripted {
    tokio: Tokio,
    script: Arc<[(SocketAddr, Script)]>,
    dialled: Arc<Mutex<Vec<SocketAddr>>>,
}

#[derive(Clone, Copy)]
enum Script {
    Dial,
    Silent,
    Fail(io::ErrorKind),
}

impl Scripted {
    fn new<const N: usize>(script: [(SocketAddr, Script); N]) -> Self {
        Self {
            tokio: Tokio::current().unwrap(),
            script: script.into(),
            dialled: Arc::default(),
        }
    }

    async fn open(&self, tls: &Tls) -> Result<Transport, Failure> {
        let to = Endpoint::new(Host::Name("localhost".to_owned()), 1);
        Transport::open(self, tls, &to, None).await
    }

    fn dialled(&self) -> Vec<SocketAddr> {
        self.dialled.lock().unwrap().clone()
    }
}

impl Runtime for Scripted {
    type Tcp = <Tokio as Runtime>::Tcp;
    type Udp = <Tokio as Runtime>::Udp;

    fn current() -> Result<Self, crate::NoRuntime> {
        Ok(Self::new([]))
    }

    async fn connect(&self, to: SocketAddr) -> io::Result<Self::Tcp> {
        self.dialled.lock().unwrap().push(to);
        let (_, script) = self
            .script
            .iter()
            .find(|(address, _)| *address == to)
            .unwrap();
        match *script {
            Script::Dial => self.tokio.connect(to).await,
            Script::Silent => std::future::pending().await,
            Script::Fail(kind) => Err(kind.into()),
        }
    }

    async fn udp(&self, _from: SocketAddr, _to: SocketAddr) -> io::Result<Self::Udp> {
        std::future::pending().await
    }

    async fn send(&self, _socket: &Self::Udp, _datagram: &[u8]) -> io::Result<()> {
        std::future::pending().await
    }

    async fn receive(&self, _socket: &Self::Udp, _buffer: &mut [u8]) -> io::Result<usize> {
        std::future::pending().await
    }

    async fn lookup(&self, _host: &str, _port: u16) -> io::Result<Vec<SocketAddr>> {
        Ok(self.script.iter().map(|(address, _)| *address).collect())
    }

    async fn sleep_until(&self, at: Instant) {
        self.tokio.sleep_until(at).await;
    }

    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.tokio.spawn(task);
    }
}
