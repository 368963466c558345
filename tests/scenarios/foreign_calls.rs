//! Calls of an application through nginx to gRPC C-core.

use super::{
    foreign::{connected, identified, world},
    house::{House, Plan},
    world::{World, echo},
};
use chronicle_connection_driver::{Retryable, Runtime};
use chronicle_reference_server::echo::{Payload, StreamRequest};
use futures_util::{
    StreamExt as _,
    future::{join, join_all},
    stream,
};
use tonic::{Code, Request, Status};

pub(crate) async fn calls_of_every_shape_pass_a_proxy<R: Runtime>() {
    let Some(world) = world::<R>().await else {
        return;
    };
    let house = House::build(Plan::default());
    let client = connected::<R>(&world, &[&house]).await;
    let session = client.session();
    let mut echo = echo(client.channel());
    // nginx takes 1 MiB of a request by default.
    for size in [0, 1, 16 * 1024, 1024 * 1024 - 100] {
        let answer = echo.unary(payload(0, size)).await.unwrap().into_inner();
        assert_eq!(answer.data.len(), size + 4);
    }
    let refused = echo.unary(payload(0, 2 * 1024 * 1024)).await.unwrap_err();
    assert!(refused.message().contains("HTTP 413"), "{refused}");

    let request = StreamRequest {
        count: 2000,
        size: 500,
        hold: false,
    };
    let answers = echo.stream(request).await.unwrap().into_inner();
    let answers: Vec<_> = answers
        .map(|answer| answer.unwrap().data.len())
        .collect()
        .await;
    assert_eq!(answers, [500; 2000]);

    let questions = stream::iter((0..200).map(|index| payload(index, 1000)));
    let answers = echo.duplex(questions).await.unwrap().into_inner();
    let answers: Vec<_> = answers.map(|answer| answer.unwrap()).collect().await;
    let questions: Vec<_> = (0..200).map(|index| payload(index, 1000)).collect();
    assert_eq!(answers, questions);
    assert_eq!(client.session(), session);
}

/// A connection of nginx takes so many streams at a time, and so many requests in all.
pub(crate) async fn calls_keep_to_the_limits_of_a_proxy<R: Runtime>() {
    let Some(world) = world::<R>().await else {
        return;
    };
    let mut house = House::build(Plan {
        server: "http2_max_concurrent_streams 8; keepalive_requests 40;",
        settings: r#"{"delay": 0.02, "interval": 3}"#,
        ..Plan::default()
    });
    let client = connected::<R>(&world, &[&house]).await;
    let session = client.session();
    let callers = (0..20).map(async |caller| {
        let mut echo = echo(client.channel());
        let mut ends = vec![];
        for call in 0..15 {
            ends.push(echo.unary(payload(caller * 15 + call, 100)).await);
        }
        ends
    });
    let ends = world.soon("end of all calls", join_all(callers)).await;
    let ends = told_apart(ends.into_iter().flatten().collect());
    println!("measured: 300 calls on connections of 40 requests, 8 at a time: {ends:?}");
    assert!(ends.ok > 250, "{ends:?}");
    assert_eq!(house.stats().twice(), 0);
    assert_eq!(client.session(), session);
}

/// A call ends with its answer or as unavailable, and never reaches the program twice.
pub(crate) async fn each_call_ends_once_however_the_stack_ends<R: Runtime>() {
    let Some(world) = world::<R>().await else {
        return;
    };
    for end in [
        End::ProxyRetires,
        End::ProxyReloads,
        End::ProxyDies,
        End::ProgramDies,
    ] {
        let mut house = House::build(Plan {
            server: match end {
                End::ProxyRetires => "keepalive_requests 100;",
                End::ProxyReloads | End::ProxyDies | End::ProgramDies => "",
            },
            settings: r#"{"delay": 0.1}"#,
            ..Plan::default()
        });
        let client = connected::<R>(&world, &[&house]).await;
        let calls = (0..1000).map(|index| {
            let mut echo = echo(client.channel());
            async move { echo.unary(payload(index, 100)).await }
        });
        let calls = world.soon("end of all calls", join_all(calls));
        let (ends, ()) = join(calls, bring_about(end, &world, &mut house)).await;
        let ends = told_apart(ends);
        println!("measured: 1,000 calls when {end:?}: {ends:?}");
        match end {
            End::ProxyRetires => assert!(ends.ok > 900, "{ends:?}"),
            End::ProxyReloads | End::ProxyDies | End::ProgramDies => {
                assert!(ends.unavailable > 0, "{ends:?}");
            }
        }
        if end == End::ProgramDies {
            house.start_backend();
        } else {
            assert_eq!(house.stats().twice(), 0);
        }
        if end == End::ProxyDies {
            house.start_proxy();
        }
        world.soon("a session", client.connected()).await.unwrap();
        let mut waiting = echo(client.channel().wait_for_ready());
        world
            .soon("answer", waiting.unary(payload(1000, 1)))
            .await
            .unwrap();
    }
}

pub(crate) async fn a_call_with_an_old_token_is_sent_once_more_through_a_proxy<R: Runtime>() {
    let Some(world) = world::<R>().await else {
        return;
    };
    let mut house = House::build(Plan {
        settings: r#"{"auth": true, "interval": 3}"#,
        ..Plan::default()
    });
    let connecting = identified::<R>(&house).connect();
    let client = world.soon("a session", connecting).await.unwrap();
    let mut echo = echo(client.channel());
    echo.unary(payload(0, 10)).await.unwrap();
    house.set(r#"{"token_size": 17}"#);
    let refused = echo.unary(payload(1, 10)).await.unwrap_err();
    assert_eq!(refused.code(), Code::Unauthenticated, "{refused}");
    let mut request = Request::new(payload(2, 10));
    request.extensions_mut().insert(Retryable);
    echo.unary(request).await.unwrap();
    let stats = house.stats();
    assert_eq!((stats.requests("token"), stats.twice()), (2, 0));
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    ProxyRetires,
    ProxyReloads,
    ProxyDies,
    ProgramDies,
}

/// Once some calls have reached the program.
async fn bring_about<R: Runtime>(end: End, world: &World<R>, house: &mut House) {
    let path = chronicle_reference_server::paths::ECHO_UNARY;
    world
        .until("calls", || house.stats().requests(path) > 100)
        .await;
    match end {
        End::ProxyRetires => {}
        End::ProxyReloads => house.reload_proxy(),
        End::ProxyDies => house.kill_proxy(),
        End::ProgramDies => house.kill_backend(),
    }
}

#[derive(Debug, Default)]
struct Ends {
    ok: u32,
    unavailable: u32,
}

fn told_apart<T>(ends: Vec<Result<T, Status>>) -> Ends {
    let mut told = Ends::default();
    for end in ends {
        match end {
            Ok(_) => told.ok += 1,
            Err(status) => {
                assert_eq!(status.code(), Code::Unavailable, "{status}");
                told.unavailable += 1;
            }
        }
    }
    told
}

/// A payload that is told from all others by its index.
fn payload(index: u32, size: usize) -> Payload {
    let mut data = index.to_be_bytes().to_vec();
    data.resize(size + 4, 7);
    Payload {
        data,
        ..Payload::default()
    }
}
