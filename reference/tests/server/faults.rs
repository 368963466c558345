//! Each thing that can be made to go wrong with a server, and set right again, on real sockets.

use crate::{
    INTERVAL,
    client::{Client, soon, tls},
    quick, with_eviction_after,
};
use chronicle_connection::Code;
use chronicle_reference_server::{Alpn, Answer, Server, echo::Payload, paths};
use http::{Method, StatusCode};
use std::{io::ErrorKind, time::Instant};
use tokio::{io::AsyncReadExt as _, net::TcpStream, time::timeout};

#[tokio::test]
async fn keep_alives_stop_with_the_stream_left_open_and_go_on() {
    let server = quick().await;
    server.faults().set(|faults| faults.model.silent = true);
    let mut stream = Client::new(&server).await.connect("a").await;
    let nothing = timeout(10 * INTERVAL, stream.message()).await;
    assert!(nothing.is_err(), "{nothing:?}");
    server.faults().set(|faults| faults.model.silent = false);
    assert!(soon(stream.message()).await.unwrap().is_some());
}

#[tokio::test]
async fn all_streams_end_in_good_order() {
    let server = quick().await;
    let client = Client::new(&server).await;
    let mut streams = [client.connect("a").await, client.connect("b").await];
    server.faults().end_streams(Code::Ok, "");
    assert_eq!(server.stats().clients, [""; 0]);
    for stream in &mut streams {
        soon(async { while stream.message().await.unwrap().is_some() {} }).await;
    }
    assert_eq!(
        client.get(paths::COUNT).await.1,
        "0",
        "the connection lives on"
    );
}

#[tokio::test]
async fn all_streams_end_with_a_status() {
    let server = quick().await;
    let mut stream = Client::new(&server).await.connect("a").await;
    server
        .faults()
        .end_streams(Code::Unavailable, "down for a while");
    let status = soon(async {
        loop {
            if let Err(status) = stream.message().await {
                return status;
            }
        }
    });
    let status = status.await;
    assert_eq!(status.code(), tonic::Code::Unavailable);
    assert_eq!(status.message(), "down for a while");
}

#[tokio::test]
async fn new_streams_are_refused_with_a_status_until_they_are_not() {
    let server = quick().await;
    let client = Client::new(&server).await;
    set(
        &server,
        paths::CONNECT,
        Answer::Grpc(Code::ResourceExhausted, "full".to_owned()),
    );
    let status = client.try_connect("a").await.unwrap_err();
    assert_eq!(
        (status.code(), status.message()),
        (tonic::Code::ResourceExhausted, "full")
    );
    assert_eq!(server.stats().count, 0);
    clear(&server, paths::CONNECT);
    client.connect("a").await;
    assert_eq!(server.stats().requests(paths::CONNECT), 2);
}

#[tokio::test]
async fn the_server_goes_away_and_leaves_streams_to_run() {
    let server = quick().await;
    let (client, connection) = Client::open(&server).await;
    let mut stream = client.connect("a").await;
    server.faults().go_away();
    soon(async {
        let count = || client.http(Method::GET, paths::COUNT, "");
        while count().await.is_ok() {}
    })
    .await;
    for _ in 0..3 {
        assert!(soon(stream.message()).await.unwrap().is_some());
    }
    assert_eq!(server.stats().clients, ["a"]);
    Client::new(&server).await.get(paths::COUNT).await;
    drop(stream);
    soon(connection).await.unwrap().unwrap();
    soon(server.wait_for(|stats| stats.clients.is_empty())).await;
}

#[tokio::test]
async fn the_check_fails_with_a_grpc_status() {
    let server = quick().await;
    let client = Client::new(&server).await;
    let answer = Answer::Grpc(Code::Unavailable, "starting".to_owned());
    set(&server, paths::CHECK_COMPATIBILITY, answer);
    let status = client.check().await.unwrap_err();
    assert_eq!(
        (status.code(), status.message()),
        (tonic::Code::Unavailable, "starting")
    );
    clear(&server, paths::CHECK_COMPATIBILITY);
    assert!(client.check().await.unwrap().is_compatible);
}

#[tokio::test]
async fn the_check_fails_as_something_that_is_not_grpc_would() {
    let server = quick().await;
    let client = Client::new(&server).await;
    for code in [404, 502] {
        let page = Answer::Http(code, "<html>sorry</html>".into());
        set(&server, paths::CHECK_COMPATIBILITY, page);
        let (status, headers, body) = client
            .http(Method::POST, paths::CHECK_COMPATIBILITY, "application/grpc")
            .await
            .unwrap();
        assert_eq!(
            (status.as_u16(), body.as_str()),
            (code, "<html>sorry</html>")
        );
        assert_eq!(headers["content-type"], "text/html");
        assert!(!headers.contains_key("grpc-status"));
    }
}

#[tokio::test]
async fn any_request_hangs_until_it_may_go_on() {
    let server = quick().await;
    let client = Client::new(&server).await;
    for path in [paths::COUNT, paths::RESERVE, paths::CHECK_COMPATIBILITY] {
        set(&server, path, Answer::Hang);
    }
    let (count, reserve, check) = tokio::join!(
        timeout(5 * INTERVAL, client.get(paths::COUNT)),
        timeout(5 * INTERVAL, client.http(Method::POST, paths::RESERVE, "")),
        timeout(5 * INTERVAL, client.check()),
    );
    assert!(count.is_err() && reserve.is_err() && check.is_err());
    assert_eq!(server.stats().count, 0);

    let waiting = tokio::spawn(async move { client.get(paths::COUNT).await });
    soon(server.wait_for(|stats| stats.requests(paths::COUNT) == 2)).await;
    clear(&server, paths::COUNT);
    assert_eq!(
        soon(waiting).await.unwrap(),
        (StatusCode::OK, "0".to_owned())
    );
}

#[tokio::test]
async fn an_answer_can_be_slow() {
    let server = quick().await;
    let client = Client::new(&server).await;
    server
        .faults()
        .set(|faults| faults.on(paths::ECHO_UNARY).delay = INTERVAL);
    let asked = Instant::now();
    client.echo().unary(Payload::default()).await.unwrap();
    assert!(asked.elapsed() >= INTERVAL);
}

#[tokio::test]
async fn the_count_can_be_any_bytes_with_any_status() {
    let server = quick().await;
    let client = Client::new(&server).await;
    for (code, body) in [(200, "<html>"), (200, " 7\n"), (302, ""), (599, "1")] {
        set(&server, paths::COUNT, Answer::Http(code, body.into()));
        let (status, text) = client.get(paths::COUNT).await;
        assert_eq!((status.as_u16(), text.as_str()), (code, body));
    }
}

#[tokio::test]
async fn tcp_is_accepted_and_tls_never_answered() {
    let server = quick().await;
    server.faults().set(|faults| faults.hang_tls = true);
    let mut handshake = Box::pin(Client::new(&server));
    let nothing = timeout(5 * INTERVAL, handshake.as_mut()).await;
    assert!(nothing.is_err());
    assert_eq!((server.stats().accepted, server.stats().handshakes), (1, 0));
    server.faults().set(|faults| faults.hang_tls = false);
    soon(handshake).await.get(paths::COUNT).await;
}

#[tokio::test]
async fn tls_does_not_agree_to_http2() {
    let server = quick().await;
    server.faults().set(|faults| faults.alpn = Alpn::Http1);
    assert!(tls(&server, "localhost", &[b"h2"]).await.is_err());
    server.faults().set(|faults| faults.alpn = Alpn::Unknown);
    let stream = tls(&server, "localhost", &[b"h2"]).await.unwrap();
    assert_eq!(stream.get_ref().1.alpn_protocol(), None);
}

#[tokio::test]
async fn answers_to_keep_alives_vanish_and_the_client_is_evicted() {
    let server = with_eviction_after(5 * INTERVAL).await;
    let client = Client::new(&server).await;
    let mut stream = client.connect("a").await;
    set(&server, paths::CONNECTION_KEEP_ALIVE, Answer::Hang);
    soon(async {
        while !server.stats().clients.is_empty() {
            let (client, keep_alive) = (client.clone(), stream.message().await);
            let keep_alive = keep_alive.unwrap().unwrap();
            tokio::spawn(async move { client.answer(keep_alive).await });
        }
    })
    .await;
    assert!(server.stats().requests(paths::CONNECTION_KEEP_ALIVE) > 0);
}

#[tokio::test]
async fn answers_to_keep_alives_fail_and_do_not_count() {
    let server = with_eviction_after(5 * INTERVAL).await;
    let client = Client::new(&server).await;
    let mut stream = client.connect("a").await;
    let answer = Answer::Grpc(Code::Internal, "no".to_owned());
    set(&server, paths::CONNECTION_KEEP_ALIVE, answer);
    soon(async {
        while !server.stats().clients.is_empty() {
            let keep_alive = stream.message().await.unwrap().unwrap();
            let status = client.answer(keep_alive).await.unwrap_err();
            assert_eq!(status.code(), tonic::Code::Internal);
        }
    })
    .await;
}

#[tokio::test]
async fn a_killed_server_resets_every_connection_and_refuses_until_it_is_restarted() {
    let mut server = quick().await;
    let mut idle = TcpStream::connect(server.endpoint()).await.unwrap();
    let mut secure = tls(&server, "localhost", &[b"h2"]).await.unwrap();
    let client = Client::new(&server).await;
    let mut stream = client.connect("a").await;
    set(&server, paths::COUNT, Answer::Hang);
    let hung = tokio::spawn(async move { client.http(Method::GET, paths::COUNT, "").await });
    soon(server.wait_for(|stats| stats.requests(paths::COUNT) == 1 && stats.open == 3)).await;

    server.kill().await;
    let reset = soon(idle.read(&mut [0])).await.unwrap_err();
    assert_eq!(reset.kind(), ErrorKind::ConnectionReset);
    let reset = soon(secure.read_to_end(&mut vec![])).await.unwrap_err();
    assert_eq!(reset.kind(), ErrorKind::ConnectionReset);
    soon(async { while stream.message().await.is_ok() {} }).await;
    assert!(soon(hung).await.unwrap().is_err());
    let refused = TcpStream::connect(server.endpoint()).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
    let stats = server.stats();
    assert_eq!((stats.open, stats.streams, stats.accepted), (0, 0, 3));

    clear(&server, paths::COUNT);
    server.restart().await.unwrap();
    let client = Client::new(&server).await;
    assert_eq!(client.get(paths::COUNT).await.1, "0");
    client.connect("a").await;
}

#[tokio::test]
async fn a_restart_forgets_clients_and_reservations_and_keeps_the_faults() {
    let mut server = quick().await;
    let client = Client::new(&server).await;
    let _stream = client.connect("a").await;
    client.http(Method::POST, paths::RESERVE, "").await.unwrap();
    set(&server, paths::RESERVE, Answer::Http(503, "".into()));
    server.restart().await.unwrap();
    assert_eq!(server.stats().count, 0);
    let client = Client::new(&server).await;
    let reserved = client.http(Method::POST, paths::RESERVE, "").await.unwrap();
    assert_eq!(reserved.0, StatusCode::SERVICE_UNAVAILABLE);
}

fn set(server: &Server, path: &str, answer: Answer) {
    server
        .faults()
        .set(|faults| faults.on(path).answer = Some(answer));
}

fn clear(server: &Server, path: &str) {
    server.faults().set(|faults| faults.on(path).answer = None);
}
