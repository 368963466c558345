use crate::support::{builder, connected, echo, server, soon, until};
use bytes::Bytes;
use chronicle_connection_tokio::Code as CoreCode;
use chronicle_reference_server::{
    Answer, Cluster,
    echo::{Payload, StreamRequest},
    paths,
};
use std::time::{Duration, Instant};
use tokio_stream::wrappers::UnboundedReceiverStream;
use tonic::{Code, Request, metadata::MetadataValue};

const HOLD: StreamRequest = StreamRequest {
    count: 1,
    size: 1,
    hold: true,
};

#[tokio::test]
async fn calls_carry_the_credentials_and_what_the_caller_set() {
    let cluster = Cluster::start(1).await.unwrap();
    let string = format!("{}&apiKey=the-key", cluster.connection_string());
    let client = soon(builder(&string).connect()).await.unwrap();
    let mut request = Request::new(Payload {
        data: b"hello".to_vec(),
        ..Payload::default()
    });
    request
        .metadata_mut()
        .insert("api-key", MetadataValue::from_static("stale"));
    request
        .metadata_mut()
        .insert("tenant", MetadataValue::from_static("blue"));
    let answer = soon(echo(client.channel()).unary(request))
        .await
        .unwrap()
        .into_inner();
    assert_eq!(answer.data, b"hello");
    let with = |name: &str| {
        let all = answer.metadata.iter().filter(|line| line.starts_with(name));
        all.map(String::as_str).collect::<Vec<_>>()
    };
    assert_eq!(with("api-key"), ["api-key: the-key"]);
    assert_eq!(with("tenant"), ["tenant: blue"]);
    assert_eq!(with("authorization"), [""; 0]);
}

#[tokio::test]
async fn a_waiting_call_ends_with_the_client() {
    let mut cluster = Cluster::start(1).await.unwrap();
    let string = cluster.connection_string();
    cluster.servers_mut()[0].kill().await;
    let client = builder(&string).start().unwrap();
    let mut stub = echo(client.channel().wait_for_ready());
    let call = tokio::spawn(async move { stub.unary(Payload::default()).await });
    soon(client.close()).await;
    assert_eq!(
        soon(call).await.unwrap().unwrap_err().code(),
        Code::Unavailable
    );
}

#[tokio::test]
async fn what_a_grpc_server_did_not_say_is_told_by_its_http_status() {
    let (cluster, client) = connected().await;
    for (http, code) in [
        (404, Code::Unimplemented),
        (401, Code::Unauthenticated),
        (503, Code::Unavailable),
        (200, Code::Unknown),
    ] {
        server(&cluster).faults().set(|faults| {
            let answer = Answer::Http(http, Bytes::from_static(b"<html>"));
            faults.on(paths::ECHO_UNARY).answer = Some(answer);
        });
        let status = soon(echo(client.channel()).unary(Payload::default()))
            .await
            .unwrap_err();
        assert_eq!(status.code(), code);
        assert!(
            status.message().contains(&format!("HTTP {http}")),
            "{status}"
        );
    }
}

#[tokio::test]
async fn the_words_of_a_grpc_server_pass_unchanged() {
    let (cluster, client) = connected().await;
    server(&cluster).faults().set(|faults| {
        let answer = Answer::Grpc(CoreCode::NotFound, "no such thing".to_owned());
        faults.on(paths::ECHO_STREAM).answer = Some(answer);
    });
    let status = soon(echo(client.channel()).stream(HOLD)).await.unwrap_err();
    assert_eq!(
        (status.code(), status.message()),
        (Code::NotFound, "no such thing")
    );
}

#[tokio::test]
async fn closing_ends_live_streams_with_unavailable_at_once() {
    let (cluster, client) = connected().await;
    let mut streams = Vec::new();
    for _ in 0..10 {
        let mut stream = soon(echo(client.channel()).stream(HOLD))
            .await
            .unwrap()
            .into_inner();
        soon(stream.message()).await.unwrap().unwrap();
        streams.push(stream);
    }
    soon(client.close()).await;
    for mut stream in streams {
        assert_eq!(
            soon(stream.message()).await.unwrap_err().code(),
            Code::Unavailable
        );
    }
    soon(server(&cluster).wait_for(|stats| stats.open == 0)).await;
}

#[tokio::test]
async fn streams_of_a_session_end_with_it_although_their_server_lives() {
    let (cluster, client) = connected().await;
    let mut stream = soon(echo(client.channel()).stream(HOLD))
        .await
        .unwrap()
        .into_inner();
    soon(stream.message()).await.unwrap().unwrap();
    server(&cluster).faults().end_streams(CoreCode::Ok, "");
    assert_eq!(
        soon(stream.message()).await.unwrap_err().code(),
        Code::Unavailable
    );
    soon(client.connected()).await.unwrap();
    soon(echo(client.channel().wait_for_ready()).unary(Payload::default()))
        .await
        .unwrap();
}

#[tokio::test]
async fn an_answer_that_ends_early_frees_its_stream_though_the_request_goes_on() {
    let (cluster, client) = connected().await;
    server(&cluster).faults().set(|faults| {
        let answer = Answer::Grpc(CoreCode::PermissionDenied, "not you".to_owned());
        faults.on(paths::ECHO_DUPLEX).answer = Some(answer);
    });
    let mut held = Vec::new();
    for _ in 0..150 {
        let (sender, payloads) = tokio::sync::mpsc::unbounded_channel();
        held.push(sender);
        let call = UnboundedReceiverStream::new(payloads);
        let status = soon(echo(client.channel()).duplex(call)).await.unwrap_err();
        assert_eq!(status.code(), Code::PermissionDenied);
    }
    until(|| {
        held.iter()
            .all(tokio::sync::mpsc::UnboundedSender::is_closed)
    })
    .await;
    assert_eq!(server(&cluster).stats().accepted, 2);
}

#[tokio::test]
async fn calls_on_a_server_that_hangs_fail_when_its_transport_does_not_open() {
    let (cluster, client) = connected().await;
    server(&cluster)
        .faults()
        .set(|faults| faults.hang_tls = true);
    let started = Instant::now();
    let mut stub = echo(client.channel());
    let status = soon(stub.unary(Payload::default())).await.unwrap_err();
    assert_eq!(status.code(), Code::Unavailable);
    assert!(status.message().contains("timed out"), "{status}");
    assert!(started.elapsed() >= Duration::from_secs(4));
    assert!(client.session().is_some());
}
