//! What a server does when nothing is wrong with it, on real sockets.

use crate::{
    INTERVAL,
    client::{Client, http1, soon, tls},
    quick, start, with_eviction_after,
};
use chronicle_connection_proto::clients::DescriptorSetResponse;
use chronicle_reference_server::{
    Answer, Cluster, Server, ServerOptions,
    echo::{Payload, StreamRequest},
    model::{Age, Verdict},
    paths,
};
use futures_util::{StreamExt as _, stream};
use http::{Method, StatusCode};
use std::{future::pending, sync::Arc, time::Duration};
use tokio::{runtime::Runtime, time::timeout};
use tonic::{Code, Request};

#[tokio::test]
async fn counts_and_reservations_are_the_same_over_http2_and_http1() {
    let server = start().await;
    let client = Client::new(&server).await;
    assert_eq!(
        client.get(paths::COUNT).await,
        (StatusCode::OK, "0".to_owned())
    );

    let reserved = client.http(Method::POST, paths::RESERVE, "").await.unwrap();
    assert_eq!((reserved.0, reserved.2), (StatusCode::OK, String::new()));
    assert_eq!(client.get(paths::COUNT).await.1, "1");

    let reserved = http1(&server, Method::POST, paths::RESERVE).await;
    assert_eq!((reserved.0, reserved.2), (StatusCode::OK, String::new()));
    let (status, headers, count) = http1(&server, Method::GET, paths::COUNT).await;
    assert_eq!((status, count), (StatusCode::OK, "2".to_owned()));
    assert_eq!(headers["content-type"], "application/json");
    assert_eq!(server.stats().requests(paths::COUNT), 3);
}

#[tokio::test]
async fn an_unknown_path_is_not_found_and_for_grpc_unimplemented() {
    let server = start().await;
    let client = Client::new(&server).await;
    assert_eq!(client.get("/nowhere").await.0, StatusCode::NOT_FOUND);
    let (status, headers, _) = client
        .http(Method::POST, "/no.Service/Method", "application/grpc+proto")
        .await
        .unwrap();
    assert_eq!(
        (status, &headers["grpc-status"]),
        (StatusCode::OK, &"12".parse().unwrap())
    );
}

#[tokio::test]
async fn a_client_is_registered_and_hears_keep_alives_until_it_ends_the_stream() {
    let server = quick().await;
    let client = Client::new(&server).await;
    let mut stream = client.connect("a").await;
    for _ in 0..3 {
        let keep_alive = soon(stream.message()).await.unwrap().unwrap();
        assert_eq!(keep_alive.connection_id, "a");
    }
    let stats = server.stats();
    assert_eq!(
        (stats.clients, stats.streams, stats.count),
        (vec!["a".to_owned()], 1, 1)
    );
    drop(stream);
    soon(server.wait_for(|stats| stats.streams == 0 && stats.clients.is_empty())).await;
}

#[tokio::test]
async fn a_client_whose_process_dies_is_gone() {
    let server = Arc::new(start().await);
    // hyper's streams live on the executor: only with it do they die at once.
    let process = Runtime::new().unwrap();
    let its_server = server.clone();
    process.spawn(async move {
        let _stream = Client::new(&its_server).await.connect("a").await;
        pending::<()>().await;
    });
    soon(server.wait_for(|stats| stats.clients == ["a"])).await;
    process.shutdown_background();
    let stats = soon(server.wait_for(|stats| stats.clients.is_empty() && stats.open == 0)).await;
    assert_eq!((stats.accepted, stats.handshakes), (1, 1));
}

#[tokio::test]
async fn a_client_that_answers_stays_and_one_that_does_not_is_evicted_silently() {
    let server = with_eviction_after(Duration::from_secs(2)).await;
    let client = Client::new(&server).await;
    let mut silent = client.connect("silent").await;
    let mut answering = client.connect("answering").await;
    soon(async {
        while server.stats().clients != ["answering"] {
            let keep_alive = answering.message().await.unwrap().unwrap();
            client.answer(keep_alive).await.unwrap();
        }
    })
    .await;
    assert_eq!(server.stats().streams, 2);
    let evicted = soon(silent.message()).await.unwrap().unwrap();
    client.answer(evicted).await.unwrap();
    assert_eq!(server.stats().clients, ["answering"]);
}

#[tokio::test]
async fn the_check_and_the_descriptor_set_are_what_the_model_says() {
    let server = start().await;
    let client = Client::new(&server).await;
    assert!(client.check().await.unwrap().is_compatible);

    let findings = vec!["gone".to_owned()];
    server
        .faults()
        .set(|faults| faults.model.verdict = Verdict::Incompatible(findings.clone()));
    let verdict = client.check().await.unwrap();
    assert_eq!(
        (verdict.is_compatible, verdict.incompatibilities),
        (false, findings)
    );

    server
        .faults()
        .set(|faults| faults.model.age = Age::WithoutCheck);
    assert_eq!(
        client.check().await.unwrap_err().code(),
        Code::Unimplemented
    );
    let text: DescriptorSetResponse = client.unary(paths::GET_DESCRIPTOR_SET, ()).await.unwrap();
    assert!(text.schema_definition.contains("message ConnectRequest"));
}

#[tokio::test]
async fn an_application_can_call_unary_and_stream_both_ways() {
    let server = start().await;
    let client = Client::new(&server).await;
    let mut request = Request::new(Payload {
        data: b"hello".to_vec(),
        ..Payload::default()
    });
    request
        .metadata_mut()
        .insert("api-key", "secret".parse().unwrap());
    let echoed = client.echo().unary(request).await.unwrap().into_inner();
    assert_eq!(
        (echoed.data.as_slice(), echoed.port),
        (b"hello".as_slice(), server.port().into())
    );
    assert!(echoed.metadata.contains(&"api-key: secret".to_owned()));

    let request = StreamRequest {
        count: 3,
        size: 1000,
        hold: false,
    };
    let stream = client.echo().stream(request).await.unwrap().into_inner();
    let sizes: Vec<_> = stream
        .map(|payload| payload.unwrap().data.len())
        .collect()
        .await;
    assert_eq!(sizes, [1000, 1000, 1000]);

    let request = StreamRequest {
        count: 1,
        size: 0,
        hold: true,
    };
    let mut held = client.echo().stream(request).await.unwrap().into_inner();
    assert!(held.message().await.unwrap().is_some());
    assert!(timeout(INTERVAL, held.message()).await.is_err());

    let payloads = ["a", "b"].map(|data| Payload {
        data: data.into(),
        ..Payload::default()
    });
    let sent = stream::iter(payloads.clone());
    let stream = client.echo().duplex(sent).await.unwrap().into_inner();
    let back: Vec<_> = stream.map(|payload| payload.unwrap()).collect().await;
    assert_eq!(back, payloads);
}

#[tokio::test]
async fn the_certificate_is_for_all_names_of_loopback_and_fresh_at_each_start() {
    let mut server = start().await;
    let first = server.certificate_pem().to_owned();
    for name in ["localhost", "chronicle", "127.0.0.1", "::1"] {
        tls(&server, name, &[b"h2"]).await.unwrap();
    }
    let error = tls(&server, "elsewhere", &[b"h2"]).await.unwrap_err();
    assert!(error.to_string().contains("not valid for name"), "{error}");
    server.restart().await.unwrap();
    assert_ne!(server.certificate_pem(), first);
    tls(&server, "localhost", &[b"h2"]).await.unwrap();
}

#[tokio::test]
async fn a_certificate_can_be_expired_or_for_another_name() {
    let server = Server::start(ServerOptions {
        expired: true,
        names: vec!["elsewhere".to_owned()],
        ..ServerOptions::default()
    })
    .await
    .unwrap();
    let error = tls(&server, "elsewhere", &[b"h2"]).await.unwrap_err();
    assert!(error.to_string().contains("expired"), "{error}");
}

#[tokio::test]
async fn a_connection_has_a_hundred_streams() {
    let server = start().await;
    let hang = Some(Answer::Hang);
    server
        .faults()
        .set(|faults| faults.on(paths::COUNT).answer = hang);
    let client = Client::new(&server).await;
    let requests: Vec<_> = (0..101)
        .map(|_| {
            let client = client.clone();
            tokio::spawn(async move { client.get(paths::COUNT).await })
        })
        .collect();
    soon(server.wait_for(|stats| stats.requests(paths::COUNT) >= 100)).await;
    Client::new(&server).await.get("/time-for-one-more").await;
    assert_eq!(server.stats().requests(paths::COUNT), 100);
    server
        .faults()
        .set(|faults| faults.on(paths::COUNT).answer = None);
    for request in requests {
        assert_eq!(soon(request).await.unwrap().1, "0");
    }
}

#[tokio::test]
async fn a_dropped_server_leaves_nothing_open() {
    let server = start().await;
    let endpoint = server.endpoint();
    let (client, connection) = Client::open(&server).await;
    let mut stream = client.connect("a").await;
    drop(server);
    soon(async { while let Ok(Some(_)) = stream.message().await {} }).await;
    let _ = soon(connection).await;
    soon(async { while tokio::net::TcpStream::connect(&endpoint).await.is_ok() {} }).await;
}

#[tokio::test]
async fn a_port_that_is_taken_is_an_error() {
    let server = start().await;
    let options = ServerOptions {
        port: server.port(),
        ..ServerOptions::default()
    };
    let error = Server::start(options).await.unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::AddrInUse);
}

#[tokio::test]
async fn a_cluster_is_named_by_one_string() {
    let cluster = Cluster::start(2).await.unwrap();
    let [a, b] = cluster.servers() else {
        panic!("two servers");
    };
    let expected = format!(
        "chronicle://127.0.0.1:{},127.0.0.1:{}/?skipTlsValidation=true",
        a.port(),
        b.port()
    );
    assert_eq!(cluster.connection_string(), expected);
}
