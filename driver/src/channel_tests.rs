use crate::{
    Channel, Runtime,
    pool::Live,
    retry::Refresh,
    testing::{Peer, Server, soon},
    tokio_runtime::Tokio,
};
use bytes::Bytes;
use chronicle_connection::{CallMetadata, Command, Contract};
use futures_util::{StreamExt, stream};
use h2::{Reason, RecvStream, SendStream};
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response, uri::Authority};
use http_body::Frame;
use http_body_util::{BodyExt, Full, StreamBody};
use std::future::poll_fn;
use tokio::sync::{mpsc, oneshot, watch};
use tonic::{Code, Status, body::Body};
use tower_service::Service;

#[tokio::test]
async fn a_broken_answer_is_unavailable_however_it_breaks() {
    type End = fn(&mut SendStream<Bytes>);
    let cases: [(&str, End); 3] = [
        ("an end without grpc-status", |answer| {
            answer
                .send_data(Bytes::from_static(b"\0\0\0\0\0"), true)
                .unwrap();
        }),
        ("trailers without grpc-status", |answer| {
            answer.send_trailers(HeaderMap::new()).unwrap();
        }),
        ("a reset", |answer| {
            answer.send_reset(Reason::INTERNAL_ERROR)
        }),
    ];
    let mut world = World::new().await;
    for (name, end) in cases {
        let (response, _request, mut answer) = world.call(Body::empty()).await;
        end(&mut answer);
        let status = soon(response.into_body().collect()).await.err().unwrap();
        assert_eq!(status.code(), Code::Unavailable, "{name}: {status}");
    }
}

#[tokio::test]
async fn scheme_and_authority_are_those_of_the_server() {
    let mut world = World::new().await;
    let (_, request, _) = world.call(Body::empty()).await;
    assert_eq!(request.uri().scheme_str(), Some("https"));
    assert_eq!(request.uri().authority(), Some(&world.authority));
    assert_eq!(request.uri().path(), "/package.Service/Method");
}

#[tokio::test]
async fn who_drops_an_answer_ends_the_request_as_well() {
    let mut world = World::new().await;
    let endless = stream::pending::<Result<Frame<Bytes>, Status>>().boxed();
    let (response, request, answer) = world.call(Body::new(StreamBody::new(endless))).await;
    drop(response);
    let mut body = request.into_body();
    let error = soon(body.data()).await.unwrap().unwrap_err();
    assert_eq!(error.reason(), Some(Reason::CANCEL));
    drop(answer);
}

/// HTTP/2 asks for no more of a body while the window is full.
#[tokio::test]
async fn who_drops_an_answer_ends_a_request_that_the_server_does_not_read() {
    let mut world = World::new().await;
    let (in_body, gone) = oneshot::channel::<()>();
    let endless = stream::repeat_with(move || {
        let _ = &in_body;
        Ok::<_, Status>(Frame::data(Bytes::from_static(&[0; 1024])))
    });
    let body = Body::new(StreamBody::new(endless));
    let (response, mut request, mut answer) = world.call(body).await;
    let unread = request.body_mut().flow_control();
    soon(async {
        while unread.used_capacity() < 65_535 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    drop(response);
    let reset = soon(poll_fn(|cx| answer.poll_reset(cx))).await;
    assert_eq!(reset.unwrap(), Reason::CANCEL);
    soon(gone).await.unwrap_err();
}

#[tokio::test]
async fn an_answer_that_is_complete_ends_the_request_as_well() {
    let mut world = World::new().await;
    let endless = stream::pending::<Result<Frame<Bytes>, Status>>().boxed();
    let (response, request, mut answer) = world.call(Body::new(StreamBody::new(endless))).await;
    let mut trailers = HeaderMap::new();
    trailers.insert("grpc-status", HeaderValue::from_static("0"));
    answer.send_trailers(trailers).unwrap();
    let mut rest = response.into_body();
    while let Some(frame) = soon(rest.frame()).await {
        frame.unwrap();
    }
    let reset = soon(poll_fn(|cx| answer.poll_reset(cx))).await;
    assert_eq!(reset.unwrap(), Reason::CANCEL);
    drop((rest, request));
}

#[tokio::test]
async fn a_request_goes_out_as_fast_as_the_server_reads() {
    let mut world = World::new().await;
    let sent = Bytes::from(vec![7; 1024 * 1024]);
    let (_response, request, _answer) = world.call(Body::new(Full::new(sent.clone()))).await;
    assert_eq!(request.headers()["content-length"], "1048576");
    let mut body = request.into_body();
    let mut read = Vec::new();
    while let Some(data) = soon(body.data()).await {
        let data = data.unwrap();
        body.flow_control().release_capacity(data.len()).unwrap();
        read.extend_from_slice(&data);
    }
    assert!(read == sent);
}

#[tokio::test]
async fn a_request_whose_body_fails_is_reset() {
    let mut world = World::new().await;
    let (body_sender, frames) = mpsc::unbounded_channel();
    let frames = tokio_stream::wrappers::UnboundedReceiverStream::new(frames);
    let body = Body::new(StreamBody::new(frames));
    let (response, request, _answer) = world.call(body).await;
    let frame = Frame::data(Bytes::from_static(b"one"));
    body_sender.send(Ok(frame)).unwrap();
    let mut body = request.into_body();
    assert_eq!(soon(body.data()).await.unwrap().unwrap(), "one");
    body_sender.send(Err(Status::internal("broken"))).unwrap();
    let error = soon(body.data()).await.unwrap().unwrap_err();
    assert_eq!(error.reason(), Some(Reason::INTERNAL_ERROR));
    let status = soon(response.into_body().collect()).await.err().unwrap();
    assert_eq!(status.code(), Code::Unavailable, "{status}");
}

#[tokio::test]
async fn a_call_that_waits_outlives_the_session_it_waited_on() {
    let (first, second) = (Server::new().await, Server::new().await);
    let (live_sender, live) = watch::channel(Some(first.live()));
    let runtime = Tokio::current().unwrap();
    let mut channel = Channel::new(runtime, live, mpsc::unbounded_channel().0).wait_for_ready();
    let call = tokio::spawn(channel.call(Request::new(Body::empty())));
    // The transport that the call waits for; TLS never comes about.
    let _opening = soon(first.tcp()).await;
    live_sender.send_replace(None).unwrap().pool.end();
    live_sender.send_replace(Some(second.live()));
    let mut peer = soon(second.accept()).await.unwrap();
    let (_, mut respond) = soon(peer.requests.recv()).await.unwrap();
    let response = Response::builder().header("content-type", "application/grpc");
    let _answer = respond
        .send_response(response.body(()).unwrap(), false)
        .unwrap();
    soon(call).await.unwrap().unwrap();
}

/// Where the client has tokens, no other ever goes out in their place.
#[tokio::test]
async fn an_authorization_of_the_caller_does_not_go_out_while_there_is_no_token() {
    let server = Server::new().await;
    let (_live_sender, live) = watch::channel(Some(server.live()));
    let (_news_sender, news) = watch::channel(());
    let refresh = Refresh::new(Contract::default(), news);
    let runtime = Tokio::current().unwrap();
    let mut channel =
        Channel::new(runtime, live, mpsc::unbounded_channel().0).refreshing(Some(refresh));
    let request = Request::post(UNARY).header("authorization", "Bearer own");
    let _call = tokio::spawn(channel.call(request.body(Body::empty()).unwrap()));
    let mut peer = soon(server.accept()).await.unwrap();
    let (request, _respond) = soon(peer.requests.recv()).await.unwrap();
    assert!(!request.headers().contains_key("authorization"));
}

#[tokio::test]
async fn headers_of_http_1_stay_behind() {
    let server = Server::new().await;
    let (_live_sender, live) = watch::channel(Some(server.live()));
    let runtime = Tokio::current().unwrap();
    let mut channel = Channel::new(runtime, live, mpsc::unbounded_channel().0);
    let request = Request::get(UNARY)
        .header("connection", "keep-alive")
        .header("keep-alive", "timeout=5")
        .header("proxy-connection", "keep-alive")
        .header("transfer-encoding", "chunked")
        .header("upgrade", "h2c")
        .header("own", "kept");
    let _call = tokio::spawn(channel.call(request.body(Body::empty()).unwrap()));
    let mut peer = soon(server.accept()).await.unwrap();
    let (request, _respond) = soon(peer.requests.recv()).await.unwrap();
    let names: Vec<_> = request.headers().keys().map(HeaderName::as_str).collect();
    assert_eq!(names, ["own"]);
}

#[tokio::test]
async fn a_call_that_waited_for_a_stream_carries_the_token_of_now() {
    let server = Server::new().await;
    let mut live = server.live();
    live.metadata = with_token(1);
    let (live_sender, live) = watch::channel(Some(live));
    let runtime = Tokio::current().unwrap();
    let mut channel = Channel::new(runtime, live, mpsc::unbounded_channel().0);
    let _call = tokio::spawn(channel.call(Request::new(Body::empty())));
    tokio::task::yield_now().await;
    // Nobody has accepted the transport yet that the call waits for.
    live_sender.send_modify(|live| live.as_mut().unwrap().metadata = with_token(2));
    let mut peer = soon(server.accept()).await.unwrap();
    let (request, _respond) = soon(peer.requests.recv()).await.unwrap();
    let expected = &with_token(2).headers["authorization"];
    assert_eq!(&request.headers()["authorization"], expected);
}

/// A server may begin an answer and only then see that it must refuse; and it may do so after a
/// message.
#[tokio::test]
async fn a_refusal_in_the_trailers_is_retried_only_before_any_message() {
    for (is_after_message, requests) in [(false, 2), (true, 1)] {
        let server = Server::new().await;
        let mut live = server.live();
        live.metadata = with_token(1);
        let (live_sender, live) = watch::channel(Some(live));
        let (commands, mut asked) = mpsc::unbounded_channel();
        let (news_sender, news) = watch::channel(());
        let refresh = Refresh::new(Contract::default(), news);
        let runtime = Tokio::current().unwrap();
        let mut channel = Channel::new(runtime, live, commands).refreshing(Some(refresh));
        // What the driver does.
        tokio::spawn(async move {
            let command = asked.recv().await;
            assert_eq!(command, Some(Command::RefreshToken { rejected: 1 }));
            live_sender.send_modify(|live| live.as_mut().unwrap().metadata = with_token(2));
            news_sender.send_replace(());
            asked.recv().await;
        });
        let message = Bytes::from_static(b"\0\0\0\0\x01!");
        let body = Body::new(Full::new(message.clone()));
        let request = Request::post(UNARY).body(body).unwrap();
        let call = tokio::spawn(channel.call(request));
        let mut peer = soon(server.accept()).await.unwrap();
        for generation in 1..=requests {
            let (request, mut respond) = soon(peer.requests.recv()).await.unwrap();
            let expected = &with_token(generation).headers["authorization"];
            assert_eq!(&request.headers()["authorization"], expected);
            assert_eq!(
                soon(request.into_body().data()).await.unwrap().unwrap(),
                message
            );
            let response = Response::builder().header("content-type", "application/grpc");
            let mut answer = respond
                .send_response(response.body(()).unwrap(), false)
                .unwrap();
            if is_after_message {
                answer.send_data(message.clone(), false).unwrap();
            }
            let mut trailers = HeaderMap::new();
            trailers.insert("grpc-status", HeaderValue::from_static("16"));
            answer.send_trailers(trailers).unwrap();
        }
        // The refusal, and what came before it, is handed on as the server sent it.
        let answer = soon(call).await.unwrap().unwrap();
        let answer = soon(answer.into_body().collect()).await.unwrap();
        assert_eq!(answer.trailers().unwrap()["grpc-status"], "16");
        assert_eq!(answer.to_bytes().is_empty(), !is_after_message);
        assert!(peer.requests.try_recv().is_err());
    }
}

fn with_token(generation: u64) -> CallMetadata {
    let mut headers = HeaderMap::new();
    let token = format!("Bearer {generation}").parse().unwrap();
    headers.insert("authorization", token);
    CallMetadata {
        headers,
        generation,
    }
}

/// A channel, and the other end of the one transport that it has.
struct World {
    server: Server,
    authority: Authority,
    channel: Channel<Tokio>,
    peer: Option<Peer>,
    _live: watch::Sender<Option<Live<Tokio>>>,
}

impl World {
    async fn new() -> Self {
        let server = Server::new().await;
        let authority = server.endpoint("localhost").to_string().parse().unwrap();
        let (live_sender, live) = watch::channel(Some(server.live()));
        Self {
            server,
            authority,
            channel: Channel::new(Tokio::current().unwrap(), live, mpsc::unbounded_channel().0),
            peer: None,
            _live: live_sender,
        }
    }

    /// Calls, and answers with headers.
    async fn call(
        &mut self,
        body: Body,
    ) -> (Response<Body>, Request<RecvStream>, SendStream<Bytes>) {
        let request = Request::post("/package.Service/Method").body(body).unwrap();
        let call = self.channel.call(request);
        let serve = async {
            if self.peer.is_none() {
                self.peer = self.server.accept().await;
            }
            let requests = &mut self.peer.as_mut().unwrap().requests;
            let (request, mut respond) = requests.recv().await.unwrap();
            let response = Response::builder().header("content-type", "application/grpc");
            let answer = respond
                .send_response(response.body(()).unwrap(), false)
                .unwrap();
            (request, answer)
        };
        let (response, (request, answer)) = soon(async { tokio::join!(call, serve) }).await;
        (response.unwrap(), request, answer)
    }
}

/// A unary method of every contract.
const UNARY: &str = "/Cratis.Chronicle.Contracts.Clients.ConnectionService/ConnectionKeepAlive";
