use crate::{
    calls::{Answer, grpc, http, request},
    testing::{Incoming, Order, Peer, Server, soon},
    transport::Transport,
};
use bytes::Bytes;
use chronicle_connection::{Code, Failure, FailureKind, Origin, Reply, Status};
use futures_util::{Stream, StreamExt};
use h2::{Reason, SendStream};
use http::{HeaderMap, HeaderValue, Request, Response};

#[tokio::test]
async fn a_unary_call_brings_its_message_and_its_status() {
    let (transport, mut peer) = connected().await;
    let mut replies = call(&transport, Answer::One);
    let serve = async {
        let (request, respond) = next(&mut peer).await;
        let mut body = request.into_body();
        assert_eq!(body.data().await.unwrap().unwrap(), framed(b"ask"));
        let mut stream = answer(respond);
        stream.send_data(framed(b"message"), false).unwrap();
        stream.send_trailers(trailers("0", "")).unwrap();
    };
    let (first, ()) = soon(async { tokio::join!(replies.next(), serve) }).await;
    assert_message(first, b"message");
    assert_finished(soon(replies.next()).await, &Status::grpc(Code::Ok, ""));
    assert!(soon(replies.next()).await.is_none());
}

#[tokio::test]
async fn a_stream_brings_messages_however_they_are_cut() {
    let (transport, mut peer) = connected().await;
    let mut replies = call(&transport, Answer::Many);
    let serve = async {
        let (_, respond) = next(&mut peer).await;
        let mut stream = answer(respond);
        let wire = [framed(b"one"), framed(b""), framed(b"three")].concat();
        for byte in wire {
            stream
                .send_data(Bytes::copy_from_slice(&[byte]), false)
                .unwrap();
        }
        stream.send_trailers(trailers("14", "back%20soon")).unwrap();
    };
    let (first, ()) = soon(async { tokio::join!(replies.next(), serve) }).await;
    assert_message(first, b"one");
    assert_message(soon(replies.next()).await, b"");
    assert_message(soon(replies.next()).await, b"three");
    let status = Status::grpc(Code::Unavailable, "back soon");
    assert_finished(soon(replies.next()).await, &status);
}

#[tokio::test]
async fn a_status_without_any_message_is_read_from_the_headers() {
    let response = Response::builder()
        .header("content-type", "application/grpc")
        .header("grpc-status", "12")
        .header("grpc-message", "no such method");
    let reply = first_reply(response).await;
    let status = Status::grpc(Code::Unimplemented, "no such method");
    assert!(status.is_unimplemented());
    assert_finished(Some(reply), &status);
}

#[tokio::test]
async fn what_is_no_grpc_answer_is_told_by_its_http_status() {
    for (http, content_type, code) in [
        (404, "text/html", Code::Unimplemented),
        (404, "application/grpc", Code::Unimplemented),
        (401, "application/json", Code::Unauthenticated),
        (503, "text/plain", Code::Unavailable),
        (200, "text/html", Code::Unknown),
    ] {
        let response = Response::builder()
            .status(http)
            .header("content-type", content_type)
            .header("grpc-status", "0");
        let Reply::Finished(status) = first_reply(response).await else {
            panic!("did not finish");
        };
        assert_eq!((status.code, status.origin), (code, Origin::Http(http)));
        assert!(!status.is_unimplemented());
    }
}

#[tokio::test]
async fn broken_answers_are_failures_of_their_kind() {
    type Serve = fn(&mut SendStream<Bytes>);
    let cases: [(&str, FailureKind, Serve); 6] = [
        (
            "an end without grpc-status",
            FailureKind::Protocol,
            |stream| {
                stream.send_data(Bytes::new(), true).unwrap();
            },
        ),
        (
            "trailers without grpc-status",
            FailureKind::Protocol,
            |stream| {
                stream.send_trailers(HeaderMap::new()).unwrap();
            },
        ),
        ("an end within a message", FailureKind::Protocol, |stream| {
            stream
                .send_data(framed(b"message").slice(..7), false)
                .unwrap();
            stream.send_trailers(trailers("0", "")).unwrap();
        }),
        ("a compressed message", FailureKind::Protocol, |stream| {
            stream
                .send_data(Bytes::from_static(b"\x01\0\0\0\x01x"), false)
                .unwrap();
        }),
        (
            "a message beyond the limit",
            FailureKind::TooLarge,
            |stream| {
                stream
                    .send_data(Bytes::from_static(b"\0\0\0\0\x65"), false)
                    .unwrap();
            },
        ),
        ("a reset", FailureKind::Reset, |stream| {
            stream.send_reset(Reason::INTERNAL_ERROR);
        }),
    ];
    let (transport, mut peer) = connected().await;
    for (name, kind, serve) in cases {
        let mut replies = call(&transport, Answer::Many);
        let answered = async {
            let mut stream = answer(next(&mut peer).await.1);
            serve(&mut stream);
            stream
        };
        let (reply, _held) = soon(async { tokio::join!(replies.next(), answered) }).await;
        let Some(Reply::Failed(failure)) = reply else {
            panic!("{name}: {reply:?}");
        };
        assert_eq!(failure.kind, kind, "{name}: {failure}");
        assert!(soon(replies.next()).await.is_none());
    }
}

#[tokio::test]
async fn a_second_message_to_a_unary_call_is_a_failure() {
    let (transport, mut peer) = connected().await;
    let mut replies = call(&transport, Answer::One);
    let serve = async {
        let mut stream = answer(next(&mut peer).await.1);
        let two = [framed(b"one"), framed(b"two")].concat();
        stream.send_data(two.into(), false).unwrap();
        stream
    };
    let (first, _held) = soon(async { tokio::join!(replies.next(), serve) }).await;
    assert_message(first, b"one");
    let second = soon(replies.next()).await;
    assert!(
        matches!(
            &second,
            Some(Reply::Failed(Failure {
                kind: FailureKind::Protocol,
                ..
            }))
        ),
        "{second:?}"
    );
}

#[tokio::test]
async fn a_call_on_a_connection_that_dies_tells_how_it_died() {
    let (transport, mut peer) = connected().await;
    let mut replies = call(&transport, Answer::Many);
    let serve = async {
        let held = next(&mut peer).await;
        peer.orders.send(Order::Drop).ok().unwrap();
        held
    };
    let (reply, _) = soon(async { tokio::join!(replies.next(), serve) }).await;
    let Some(Reply::Failed(failure)) = reply else {
        panic!("{reply:?}");
    };
    let ended = transport.health().borrow().ended.clone();
    assert_eq!(Some(failure), ended);
}

#[tokio::test]
async fn http_reads_up_to_its_limit_and_no_further() {
    for (length, fits) in [(64, true), (65, false)] {
        let (transport, mut peer) = connected().await;
        let request = Request::get("/connections/count")
            .body(Bytes::new())
            .unwrap();
        let serve = async {
            let (request, mut respond) = next(&mut peer).await;
            assert_eq!(request.uri().scheme_str(), Some("https"));
            assert_eq!(request.uri().path(), "/connections/count");
            let response = Response::builder().status(202).body(()).unwrap();
            let mut stream = respond.send_response(response, false).unwrap();
            stream.send_data(vec![b'7'; length].into(), true).unwrap();
        };
        let read = http(transport.lane().clone(), request, 64);
        let (read, ()) = soon(async { tokio::join!(read, serve) }).await;
        match read {
            Ok(response) => {
                assert_eq!(
                    (response.status().as_u16(), response.body().len()),
                    (202, length)
                );
                assert!(fits);
            }
            Err(failure) => {
                assert_eq!(failure.kind, FailureKind::TooLarge);
                assert!(!fits);
            }
        }
    }
}

async fn connected() -> (Transport, Peer) {
    Server::new().await.connected().await
}

fn call(transport: &Transport, answer: Answer) -> impl Stream<Item = Reply> + Unpin + use<> {
    let request = request("/package.Service/Method", HeaderMap::new(), b"ask");
    grpc(transport.lane().clone(), request, 100, answer).boxed()
}

async fn next(peer: &mut Peer) -> Incoming {
    peer.requests.recv().await.expect("the client is gone")
}

async fn first_reply(response: http::response::Builder) -> Reply {
    let (transport, mut peer) = connected().await;
    let mut replies = call(&transport, Answer::One);
    let serve = async {
        let (_, mut respond) = next(&mut peer).await;
        respond
            .send_response(response.body(()).unwrap(), true)
            .unwrap();
    };
    let (reply, ()) = soon(async { tokio::join!(replies.next(), serve) }).await;
    reply.expect("no reply")
}

fn answer(mut respond: h2::server::SendResponse<Bytes>) -> SendStream<Bytes> {
    let response = Response::builder().header("content-type", "application/grpc+proto");
    respond
        .send_response(response.body(()).unwrap(), false)
        .unwrap()
}

fn framed(message: &[u8]) -> Bytes {
    let length = u32::try_from(message.len()).unwrap().to_be_bytes();
    [&[0], length.as_slice(), message].concat().into()
}

fn trailers(status: &'static str, message: &'static str) -> HeaderMap {
    let mut trailers = HeaderMap::new();
    trailers.insert("grpc-status", HeaderValue::from_static(status));
    trailers.insert("grpc-message", HeaderValue::from_static(message));
    trailers
}

fn assert_message(reply: Option<Reply>, expected: &[u8]) {
    assert!(
        matches!(&reply, Some(Reply::Message(message)) if message == expected),
        "{reply:?}"
    );
}

fn assert_finished(reply: Option<Reply>, expected: &Status) {
    assert!(
        matches!(&reply, Some(Reply::Finished(status)) if status == expected),
        "{reply:?}"
    );
}
