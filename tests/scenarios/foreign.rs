//! Connections to servers that none of our code is in: gRPC C-core behind nginx, and alone.

use super::{
    house::{House, Plan},
    stack::{Stack, StackBuilder, StackClient},
    world::{World, impatient, impatient_timing, measured},
};
use chronicle_connection_driver::core::{
    CallError, CandidateError, Code, DropCause, Event, FailureKind, Origin, Request, Status, Timing,
};
use chronicle_reference_server::paths;
use std::time::{Duration, Instant};

/// Two minutes of nginx's own timeouts where `CHRONICLE_LONG_TESTS` is set; they are a minute.
pub(crate) async fn a_session_outlives_every_timeout_of_a_proxy<R: Stack>() {
    let Some(world) = world::<R>().await else {
        return;
    };
    let (plan, time) = match std::env::var_os("CHRONICLE_LONG_TESTS") {
        Some(_) => (Plan::default(), Duration::from_secs(120)),
        None => {
            let plan = Plan {
                server: "keepalive_timeout 2s; client_header_timeout 2s; client_body_timeout 2s; \
                         send_timeout 2s;",
                grpc: "grpc_connect_timeout 2s; grpc_send_timeout 2s; grpc_read_timeout 2s;",
                ..Plan::default()
            };
            (plan, Duration::from_secs(8))
        }
    };
    let mut house = House::build(plan);
    let client = connected::<R>(&world, &[&house]).await;
    let session = client.session().unwrap();
    let id = session.connection_id.to_string();
    world.pass(time).await;
    assert_eq!(client.session(), Some(session));
    let stats = house.stats();
    assert_eq!(stats.clients(), [id]);
    assert!(stats.requests(paths::CONNECTION_KEEP_ALIVE) >= time.as_secs() - 1);
    assert_eq!(stats.requests(paths::CONNECT), 1);
    let requests = house.requests();
    let plain = |line: &&String| !line.starts_with("HTTP/2.0") || !line.ends_with(" 200");
    assert_eq!(requests.iter().find(plain), None);
}

/// By default after 1,000 requests; the streams that are alive could go on for ever.
pub(crate) async fn a_proxy_that_retires_connections_is_left_and_found_again<R: Stack>() {
    let Some(world) = world::<R>().await else {
        return;
    };
    for (server, requests) in [("keepalive_requests 50;", 50), ("", 1000)] {
        let mut house = House::build(Plan {
            server,
            settings: r#"{"interval": 0.002}"#,
            ..Plan::default()
        });
        let client = connected::<R>(&world, &[&house]).await;
        let mut events = client.events();
        let first = world.connected(&mut events).await;
        let (ended, cause) = world.disconnected(&mut events).await;
        assert_eq!(
            (ended, cause),
            (first.clone(), DropCause::GoingAway { code: 0 })
        );
        let next = world
            .event(&mut events, "next event", |event| Some(event.clone()))
            .await;
        assert!(
            matches!(next, Event::Connecting { attempt: 1, .. }),
            "{next}"
        );
        let second = world.connected(&mut events).await;
        let answered = house.stats().requests(paths::CONNECTION_KEEP_ALIVE);
        // With the reserve, the check and the stream, at the least.
        assert!(
            (requests - 5..=requests + 20).contains(&answered),
            "{answered}"
        );
        let old = first.connection_id.to_string();
        world
            .until("end of the old registration", || {
                !house.stats().clients().contains(&&*old)
            })
            .await;
        assert_eq!(second.generation, 2);
    }
}

pub(crate) async fn a_proxy_that_reloads_is_found_again_at_once<R: Stack>() {
    let Some(world) = world::<R>().await else {
        return;
    };
    let mut house = House::build(Plan {
        settings: r#"{"interval": 0.1}"#,
        ..Plan::default()
    });
    let client = connected::<R>(&world, &[&house]).await;
    let mut events = client.events();
    for generation in 1..=3 {
        let session = world.connected(&mut events).await;
        assert_eq!(session.generation, generation);
        house.reload_proxy();
        let (ended, cause) = world.disconnected(&mut events).await;
        assert_eq!((ended, cause), (session, DropCause::GoingAway { code: 0 }));
    }
    let last = world.connected(&mut events).await.connection_id.to_string();
    let alone = || house.stats().clients() == [last.as_str()];
    world.until("last registration alone", alone).await;
}

pub(crate) async fn one_dead_and_one_hanging_proxy_leave_the_third<R: Stack>() {
    let Some(world) = world::<R>().await else {
        return;
    };
    let mut houses = [(); 3].map(|()| House::build(Plan::default()));
    houses[0].kill_proxy();
    houses[1].freeze_proxy(true);
    let begun = Instant::now();
    let client = connected::<R>(&world, &houses.each_ref()).await;
    measured(
        "past a dead and a hanging nginx",
        begun.elapsed(),
        Duration::ZERO..=Duration::from_millis(2500),
    );
    assert_eq!(
        client.session().unwrap().server.to_string(),
        houses[2].endpoint()
    );
}

pub(crate) async fn a_dead_or_hanging_program_behind_a_proxy_is_told_by_status<R: Stack>() {
    let Some(world) = world::<R>().await else {
        return;
    };
    for (is_dead, status) in [(true, 502), (false, 504)] {
        let mut house = House::build(Plan {
            grpc: "grpc_read_timeout 1s;",
            settings: r#"{"interval": 0.1}"#,
            ..Plan::default()
        });
        let client = connected::<R>(&world, &[&house]).await;
        let mut events = client.events();
        world.connected(&mut events).await;
        match is_dead {
            true => house.kill_backend(),
            false => house.freeze_backend(true),
        }
        let (_, cause) = world.disconnected(&mut events).await;
        assert!(is_reset(&cause), "{cause}");
        let failed = failed_candidate(&world, &mut events).await;
        let CandidateError::Call { request, error } = &failed else {
            panic!("{failed}");
        };
        assert_eq!(*request, Request::CheckCompatibility);
        assert_eq!(http_status(error), Some(status), "{failed}");
        match is_dead {
            true => house.start_backend(),
            false => house.freeze_backend(false),
        }
        assert_eq!(world.connected(&mut events).await.generation, 2);
    }
}

/// The proxy ends a stream of silence before the client's own clock is over; an end in good order
/// comes through as one.
pub(crate) async fn the_end_of_a_stream_comes_through_a_proxy<R: Stack>() {
    let Some(world) = world::<R>().await else {
        return;
    };
    let mut house = House::build(Plan {
        grpc: "grpc_read_timeout 1s;",
        settings: r#"{"interval": 0.1}"#,
        ..Plan::default()
    });
    let client = connected::<R>(&world, &[&house]).await;
    let mut events = client.events();
    world.connected(&mut events).await;
    house.set(r#"{"silent": true}"#);
    let (_, cause) = world.disconnected(&mut events).await;
    assert!(is_reset(&cause), "{cause}");
    house.set(r#"{"silent": false}"#);
    assert_eq!(world.connected(&mut events).await.generation, 2);

    house.set(r#"{"end_streams": true}"#);
    let (_, cause) = world.disconnected(&mut events).await;
    let in_good_order = DropCause::StreamEnded(Status::grpc(Code::Ok, ""));
    assert_eq!(cause, in_good_order);
    assert_eq!(world.connected(&mut events).await.generation, 3);
}

pub(crate) async fn a_proxy_that_dies_or_hangs_is_left<R: Stack>() {
    let Some(world) = world::<R>().await else {
        return;
    };
    let plan = || Plan {
        settings: r#"{"interval": 0.1}"#,
        ..Plan::default()
    };
    let mut house = House::build(plan());
    let timing = Timing {
        keep_alive: Duration::from_millis(1500),
        open: Duration::from_millis(500),
        ..impatient_timing()
    };
    let connecting = client::<R>(&[&house]).timing(timing).connect();
    let client = world.soon("a session", connecting).await.unwrap();
    let mut events = client.events();
    world.connected(&mut events).await;
    house.kill_proxy();
    let (_, cause) = world.disconnected(&mut events).await;
    assert!(
        matches!(
            cause,
            DropCause::TransportClosed(_) | DropCause::StreamFailed(_)
        ),
        "{cause}"
    );
    house.start_proxy();
    assert_eq!(world.connected(&mut events).await.generation, 2);
    house.freeze_proxy(true);
    let (_, cause) = world.disconnected(&mut events).await;
    assert!(
        matches!(
            cause,
            DropCause::Silence { .. } | DropCause::Unacknowledged { .. }
        ),
        "{cause}"
    );
    house.freeze_proxy(false);
    assert_eq!(world.connected(&mut events).await.generation, 3);
}

pub(crate) async fn all_proxies_may_be_restarted_one_after_the_other<R: Stack>() {
    let Some(world) = world::<R>().await else {
        return;
    };
    let mut houses = [(); 3].map(|()| House::build(Plan::default()));
    let mut clients = vec![];
    for _ in 0..4 {
        clients.push(connected::<R>(&world, &houses.each_ref()).await);
    }
    for house in &mut houses {
        house.kill_proxy();
        house.kill_backend();
        let endpoint = house.endpoint();
        for client in &clients {
            let elsewhere = || {
                let session = client.session();
                session.is_some_and(|session| session.server.to_string() != endpoint)
            };
            world.until("session elsewhere", elsewhere).await;
        }
        house.start_backend();
        house.start_proxy();
    }
    for client in &clients {
        assert!(client.session().unwrap().generation > 1);
    }
}

/// It has no endpoints, and resets the streams of requests for them.
pub(crate) async fn grpc_core_alone_is_enough_for_a_session<R: Stack>() {
    let Some(world) = world::<R>().await else {
        return;
    };
    let mut house = House::build(Plan {
        settings: r#"{"interval": 0.1}"#,
        options: r#"{"grpc.max_connection_age_ms": 1500, "grpc.max_connection_age_grace_ms": 500}"#,
        ..Plan::default()
    });
    let string = format!(
        "chronicle://{}/?skipTlsValidation=true",
        house.core_endpoint()
    );
    let connecting = impatient(R::client(string.parse().unwrap())).connect();
    let client = world.soon("a session", connecting).await.unwrap();
    let mut events = client.events();
    for generation in 1..=2 {
        let session = world.connected(&mut events).await;
        assert_eq!(session.generation, generation);
        let (ended, cause) = world.disconnected(&mut events).await;
        assert_eq!(
            (ended, cause),
            (session, DropCause::GoingAway { code: 0 }),
            "of its age"
        );
    }
    let third = world.connected(&mut events).await;
    house.set(r#"{"stop": 5}"#);
    let (ended, cause) = world.disconnected(&mut events).await;
    assert_eq!(
        (ended, cause),
        (third, DropCause::GoingAway { code: 0 }),
        "of a stop"
    );
}

/// Whether the stream was reset on a transport that goes on.
fn is_reset(cause: &DropCause) -> bool {
    match cause {
        DropCause::StreamFailed(failure) => failure.kind == FailureKind::Reset,
        _ => false,
    }
}

/// Patience, and no servers of our own; `None` where there can be no houses.
pub(super) async fn world<R: Stack>() -> Option<World<R>> {
    if !House::is_possible() {
        return None;
    }
    Some(World::start(0).await)
}

/// A client of these houses to be, with short waits.
pub(super) fn client<R: Stack>(houses: &[&House]) -> R::Builder {
    let servers: Vec<_> = houses.iter().map(|house| house.endpoint()).collect();
    let string = format!("chronicle://{}/?skipTlsValidation=true", servers.join(","));
    impatient(R::client(string.parse().unwrap()))
}

/// The same with credentials.
pub(super) fn identified<R: Stack>(house: &House) -> R::Builder {
    let endpoint = house.endpoint();
    let string = format!("chronicle://app:secret@{endpoint}/?skipTlsValidation=true");
    impatient(R::client(string.parse().unwrap()))
}

pub(super) async fn connected<R: Stack>(world: &World<R>, houses: &[&House]) -> R::Client {
    let connecting = client::<R>(houses).connect();
    world.soon("a session", connecting).await.unwrap()
}

pub(super) async fn failed_candidate<R: Stack>(
    world: &World<R>,
    events: &mut R::Events,
) -> CandidateError {
    world
        .event(events, "failure of the server", |event| match event {
            Event::CandidateFailed { cause, .. } => Some(cause.clone()),
            _ => None,
        })
        .await
}

/// The HTTP status that a status of gRPC was made of.
pub(super) fn http_status(error: &CallError) -> Option<u16> {
    match error {
        CallError::Status(Status {
            origin: Origin::Http(status),
            ..
        }) => Some(*status),
        _ => None,
    }
}
