//! Calls of an application, through the channel of a client.

use super::world::{World, echo, impatient, impatient_timing, measured};
use chronicle_connection_driver::{
    Channel, Client, Runtime,
    core::{DropCause, Event, Timing},
};
use chronicle_reference_server::{
    Answer,
    echo::{Payload, StreamRequest, echo_client::EchoClient},
    paths,
};
use futures_util::{
    FutureExt as _,
    future::{Either, join_all, select},
    stream,
};
use std::{
    pin::pin,
    time::{Duration, Instant},
};
use tonic::{Code, Request, Status, Streaming, metadata::MetadataValue};

pub(crate) async fn whoever_sees_a_session_can_call_at_once<R: Runtime>() {
    let world = World::<R>::start(1).await;
    for _ in 0..30 {
        let client = world.connect().await;
        let answer = echo(client.channel()).unary(Payload::default()).await;
        answer.unwrap();
    }
}

/// A full minute where `CHRONICLE_LONG_TESTS` is set, ten seconds otherwise.
pub(crate) async fn unread_streams_and_many_calls_leave_the_session_alone<R: Runtime>() {
    let seconds = match std::env::var_os("CHRONICLE_LONG_TESTS") {
        Some(_) => 60,
        None => 10,
    };
    let world = World::<R>::start(1).await;
    let client = world.connect().await;
    let session = client.session().unwrap();
    // Each sends until its window is full, and 100 windows are full.
    let mut streams = held_streams(&client, 100, 0).await;
    let answers = world.requests(paths::CONNECTION_KEEP_ALIVE);
    let begun = Instant::now();
    let pause = Duration::from_secs(seconds) / CALLS_EACH;
    let caller = async || {
        let mut echo = echo(client.channel());
        for call in 0..CALLS_EACH {
            let data = vec![7; 1024];
            let answer = echo
                .unary(Payload {
                    data,
                    ..Payload::default()
                })
                .await
                .unwrap();
            assert_eq!(answer.into_inner().data.len(), 1024);
            let next = begun + pause * (call + 1);
            world.runtime.sleep_until(next).await;
        }
    };
    join_all((0..CALLERS).map(|_| caller())).await;
    let took = begun.elapsed();
    let answers = world.requests(paths::CONNECTION_KEEP_ALIVE) - answers;
    println!(
        "measured: {} unread streams and {} calls in {:.1} s: {answers} keep-alives answered, \
         {} sockets",
        streams.len(),
        world.requests(paths::ECHO_UNARY),
        took.as_secs_f64(),
        world.open_sockets(),
    );
    assert_eq!(client.session(), Some(session.clone()));
    assert!(world.knows(0, &session), "evicted");
    assert_eq!(world.requests(paths::CONNECT), 1);
    assert_eq!(
        world.requests(paths::ECHO_UNARY),
        u64::from(CALLERS * CALLS_EACH)
    );
    assert!(answers > seconds, "{answers} keep-alives answered");
    // The session's, one full of streams, and one for the calls.
    assert_eq!(world.open_sockets(), 3);
    // The last first: those before it hold as much of the window as they can.
    for stream in streams.iter_mut().rev() {
        let message = world.soon("message", stream.message()).await;
        assert_eq!(message.unwrap().unwrap().data.len(), 16 * 1024);
    }
}

/// A server allows 100 streams on a connection.
pub(crate) async fn transports_are_opened_as_streams_need_them<R: Runtime>() {
    let world = World::<R>::start(1).await;
    let client = world.connect().await;
    let mut streams = vec![];
    for (held, sockets) in [(1, 2), (100, 2), (101, 3), (250, 4)] {
        let more = held_streams(&client, held - streams.len(), 1).await;
        streams.extend(more);
        assert_eq!(world.open_sockets(), sockets, "with {held} streams");
    }
    drop(streams);
    let again = held_streams(&client, 250, 1).await;
    assert_eq!(world.open_sockets(), 4, "room that came free is used");
    drop(again);
}

pub(crate) async fn a_thousand_calls_in_flight_end_at_once_with_their_server<R: Runtime>() {
    let mut world = World::<R>::start(1).await;
    let client = world.connect().await;
    world.set(0, |faults| {
        faults.on(paths::ECHO_UNARY).answer = Some(Answer::Hang)
    });
    let mut streams = held_streams(&client, 20, 1).await;
    let calls = (0..1000).map(|_| {
        let mut echo = echo(client.channel());
        async move { echo.unary(Payload::default()).await }
    });
    let mut calls = pin!(join_all(calls));
    let all = || world.requests(paths::ECHO_UNARY) == 1000;
    match select(calls.as_mut(), pin!(world.until("a thousand calls", all))).await {
        Either::Left(_) => panic!("calls ended before their server"),
        Either::Right(_) => {}
    }
    let killed = Instant::now();
    world.kill(0).await;
    let ends = world.soon("end of all calls", calls).await;
    let promise = Duration::ZERO..=Duration::from_millis(100);
    measured("kill to the end of 1,000 calls", killed.elapsed(), promise);
    for end in ends {
        assert_eq!(end.unwrap_err().code(), Code::Unavailable);
    }
    for stream in &mut streams {
        world.ends_unavailable(stream).await;
    }
    // Nothing is ever sent twice.
    let mut events = client.events();
    world.connected(&mut events).await;
    world.restart(0).await;
    world.connected(&mut events).await;
    assert_eq!(world.requests(paths::ECHO_UNARY), 1000);
}

/// Of those that wait for a stream, the server never hears.
pub(crate) async fn a_thousand_calls_of_which_most_wait_end_with_their_server_too<R: Runtime>() {
    let mut world = World::<R>::start(2).await;
    world.set_all(|faults| faults.on(paths::ECHO_UNARY).delay = Duration::from_millis(20));
    let client = world.connect().await;
    let mut events = client.events();
    let first = world.connected(&mut events).await;
    let calls = (0..1000).map(|_| {
        let mut echo = echo(client.channel());
        async move { echo.unary(Payload::default()).await }
    });
    let mut calls = pin!(join_all(calls));
    let some = || world.requests(paths::ECHO_UNARY) >= 50;
    match select(calls.as_mut(), pin!(world.until("some calls", some))).await {
        Either::Left(_) => panic!("calls ended before their server"),
        Either::Right(_) => {}
    }
    let index = world.server_of(&first);
    world.kill(index).await;
    let ends = world.soon("end of all calls", calls).await;
    let answered = ends.iter().filter(|end| end.is_ok()).count() as u64;
    for end in ends {
        let code = end.map_or_else(|status| status.code(), |_| Code::Ok);
        assert!(matches!(code, Code::Ok | Code::Unavailable), "{code}");
    }
    let reached = world.requests(paths::ECHO_UNARY);
    println!("measured: of 1,000 calls {reached} reached a server, {answered} were answered");
    assert!((answered..=1000).contains(&reached));
    assert!(answered < 1000);
    world.connected(&mut events).await;
    assert_eq!(
        world.requests(paths::ECHO_UNARY),
        reached,
        "nothing is sent later"
    );
}

pub(crate) async fn a_channel_is_a_handle_and_a_call_is_none<R: Runtime>() {
    let world = World::<R>::start(1).await;
    let client = world.connect().await;
    let mut events = client.events();
    world.connected(&mut events).await;
    let (clone, channel) = (client.clone(), client.channel());
    drop(client);
    drop(clone);
    let mut echo = echo(channel);
    echo.unary(Payload::default()).await.unwrap();

    let request = StreamRequest {
        count: 1,
        size: 1,
        hold: true,
    };
    let mut held = echo.stream(request).await.unwrap().into_inner();
    held.message().await.unwrap();
    // A call under way is no handle.
    drop(echo);
    let end = world.soon("end of the call", held.message()).await;
    assert_eq!(end.unwrap_err().code(), Code::Unavailable);
    world.all_sockets_closed().await;
    let closed = world
        .event(&mut events, "last event", |event| Some(event.clone()))
        .await;
    assert_eq!(closed, Event::Closed);
    assert_eq!(world.soon("end of events", events.next()).await, None);
}

pub(crate) async fn calls_on_a_closed_client_are_unavailable<R: Runtime>() {
    let world = World::<R>::start(1).await;
    let client = world.connect().await;
    client.close().await;
    let refused = echo(client.channel()).unary(Payload::default()).await;
    assert_eq!(refused.unwrap_err().code(), Code::Unavailable);
}

pub(crate) async fn calls_on_a_silent_session_end_with_it<R: Runtime>() {
    let world = World::<R>::start(1).await;
    let timing = Timing {
        keep_alive: Duration::from_millis(1500),
        ..impatient_timing()
    };
    let client = world.builder().timing(timing).connect().await.unwrap();
    let mut events = client.events();
    let mut streams = held_streams(&client, 3, 1).await;
    world.set(0, |faults| faults.model.silent = true);
    let (_, cause) = world.disconnected(&mut events).await;
    assert!(
        matches!(
            cause,
            DropCause::Silence { .. } | DropCause::Unacknowledged { .. }
        ),
        "{cause}"
    );
    for stream in &mut streams {
        world.ends_unavailable(stream).await;
    }
}

pub(crate) async fn without_a_session_calls_fail_at_once_or_wait_if_asked<R: Runtime>() {
    let mut world = World::<R>::start(1).await;
    world.kill(0).await;
    let client = world.builder().start().unwrap();
    let call = || Request::new(Payload::default());
    let error = echo(client.channel()).unary(call()).now_or_never();
    assert_eq!(error.unwrap().unwrap_err().code(), Code::Unavailable);

    let mut waiting = echo(client.channel().wait_for_ready());
    let time = Duration::from_millis(300);
    let mut in_time = call();
    in_time.set_timeout(time);
    let begun = Instant::now();
    let error = world
        .soon("deadline", waiting.unary(in_time))
        .await
        .unwrap_err();
    assert_eq!(error.code(), Code::DeadlineExceeded, "{error}");
    measured(
        "a call that waits 300 ms for a session",
        begun.elapsed(),
        time..=time,
    );

    let mut answer = pin!(waiting.unary(call()));
    assert!(answer.as_mut().now_or_never().is_none());
    world.restart(0).await;
    world.soon("answer", answer).await.unwrap();
}

pub(crate) async fn a_deadline_is_kept_by_the_client_itself<R: Runtime>() {
    let world = World::<R>::start(1).await;
    let client = world.connect().await;
    let mut echo = echo(client.channel());
    let time = Duration::from_millis(300);
    world.set(0, |faults| {
        faults.on(paths::ECHO_UNARY).answer = Some(Answer::Hang)
    });
    let mut hanging = Request::new(Payload::default());
    hanging.set_timeout(time);
    let begun = Instant::now();
    let error = world
        .soon("deadline", echo.unary(hanging))
        .await
        .unwrap_err();
    assert_eq!(error.code(), Code::DeadlineExceeded, "{error}");
    measured(
        "a call with 300 ms that hangs",
        begun.elapsed(),
        time..=time,
    );

    let mut held = Request::new(hold(1));
    held.set_timeout(time);
    let begun = Instant::now();
    let mut stream = echo.stream(held).await.unwrap().into_inner();
    stream.message().await.unwrap().unwrap();
    let error = world.soon("deadline", stream.message()).await.unwrap_err();
    assert_eq!(error.code(), Code::DeadlineExceeded, "{error}");
    measured(
        "a stream with 300 ms that hangs",
        begun.elapsed(),
        time..=time,
    );
    assert!(client.session().is_some());
}

pub(crate) async fn metadata_of_the_caller_stays_and_the_api_key_is_added<R: Runtime>() {
    let world = World::<R>::start(1).await;
    for (option, keys) in [("", vec![]), ("&apiKey=s3cret", vec!["api-key: s3cret"])] {
        let connecting = impatient(Client::<R>::builder(world.string_with(option))).connect();
        let client = world.soon("a session", connecting).await.unwrap();
        let mut request = Request::new(Payload::default());
        let metadata = request.metadata_mut();
        metadata.append("x-tenant", MetadataValue::from_static("blue"));
        metadata.append("x-tenant", MetadataValue::from_static("green"));
        metadata.insert("authorization", MetadataValue::from_static("Custom abc"));
        metadata.insert_bin("x-trace-bin", MetadataValue::from_bytes(&[0, 255]));
        let answer = echo(client.channel()).unary(request).await.unwrap();
        let got = answer.into_inner().metadata;
        let of = |name: &str| -> Vec<_> {
            let prefix = format!("{name}: ");
            let entries = got.iter().map(String::as_str);
            entries.filter(|entry| entry.starts_with(&prefix)).collect()
        };
        assert_eq!(of("x-tenant"), ["x-tenant: blue", "x-tenant: green"]);
        assert_eq!(of("authorization"), ["authorization: Custom abc"]);
        assert_eq!(of("x-trace-bin"), ["x-trace-bin: (binary)"]);
        assert_eq!(of("api-key"), keys);
    }
}

pub(crate) async fn calls_go_to_the_server_of_the_session_that_is_up<R: Runtime>() {
    let mut world = World::<R>::start(2).await;
    let client = world.connect().await;
    let mut events = client.events();
    let mut echo = echo(client.channel());
    for _ in 0..2 {
        let session = world.connected(&mut events).await;
        let answer = echo.unary(Payload::default()).await.unwrap().into_inner();
        assert_eq!(answer.port, u32::from(session.server.port));
        world.kill(world.server_of(&session)).await;
        let index = world.server_of(&session);
        world.disconnected(&mut events).await;
        world.restart(index).await;
    }
}

/// Within the pool, on the wire, between messages: dropping a call frees its stream.
pub(crate) async fn calls_dropped_at_any_moment_free_what_they_held<R: Runtime>() {
    let world = World::<R>::start(1).await;
    let client = world.connect().await;
    world.set(0, |faults| {
        faults.on(paths::ECHO_UNARY).delay = Duration::from_millis(20);
    });
    for _ in 0..5 {
        let calls = (0..200).map(|call| {
            let mut echo = echo(client.channel());
            let world = &world;
            async move {
                // A server may take so many dropped calls for an attack, and go away.
                let calling = async {
                    let mut stream = echo.stream(hold(3)).await?.into_inner();
                    stream.message().await?;
                    echo.unary(Payload::default()).await
                };
                let time = Duration::from_micros(300 * (call * 7 % 200));
                world.within(time, calling).await;
            }
        });
        join_all(calls).await;
    }
    // 200 callers with two streams each needed four transports at most.
    let mut streams = vec![];
    let fill = async {
        while streams.len() < 400 {
            // The end of a transport that the server left may be news yet.
            if let Ok(stream) = echo(client.channel()).stream(hold(1)).await {
                streams.push(stream);
            }
        }
    };
    world.soon("streams", fill).await;
    let what = "session and four transports, all of their streams in use";
    world.until(what, || world.open_sockets() == 5).await;
    drop(streams);
    assert_eq!(world.requests(paths::CONNECT), 1);
}

pub(crate) async fn a_duplex_call_goes_both_ways_and_ends_with_either_side<R: Runtime>() {
    let mut world = World::<R>::start(1).await;
    let client = world.connect().await;
    let mut echo = echo(client.channel());
    let payloads = (0..10).map(|n| Payload {
        data: vec![n],
        ..Payload::default()
    });
    let mut answers = echo
        .duplex(stream::iter(payloads))
        .await
        .unwrap()
        .into_inner();
    for n in 0..10 {
        assert_eq!(answers.message().await.unwrap().unwrap().data, [n]);
    }
    assert_eq!(answers.message().await.unwrap(), None);

    let endless = stream::unfold((), async |()| Some((Payload::default(), ())));
    let mut answers = echo.duplex(Box::pin(endless)).await.unwrap().into_inner();
    answers.message().await.unwrap().unwrap();
    world.kill(0).await;
    world.ends_unavailable(&mut answers).await;
}

/// Streams that are open at the server. They send so many bytes and more; 0 for no end.
async fn held_streams<R: Runtime>(
    client: &Client<R>,
    streams: usize,
    count: u64,
) -> Vec<Streaming<Payload>> {
    let open = |_| {
        let mut echo: EchoClient<Channel<R>> = echo(client.channel());
        async move {
            let request = StreamRequest {
                count,
                size: 16 * 1024,
                hold: true,
            };
            let stream: Result<_, Status> = echo.stream(request).await;
            stream.unwrap().into_inner()
        }
    };
    join_all((0..streams).map(open)).await
}

fn hold(count: u64) -> StreamRequest {
    StreamRequest {
        count,
        size: 1,
        hold: true,
    }
}

const CALLERS: u32 = 20;
const CALLS_EACH: u32 = 100;
