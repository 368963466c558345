//! Connections to servers that none of our code is in: gRPC C-core behind nginx, and alone.

use super::{
    house::{House, Plan},
    stack::{Stack, StackBuilder, StackClient},
    world::{World, impatient, impatient_timing, measured},
};
use chronicle_connection_driver::core::{
    CallError, CandidateError, Code, CredentialsError, DropCause, Event, FailureKind, FatalError,
    Findings, Incompatible, Origin, Request, Status, Timing, TlsFailure, TokenError,
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

pub(crate) async fn counts_choose_among_proxies_and_strange_ones_do_not<R: Stack>() {
    let Some(world) = world::<R>().await else {
        return;
    };
    let html = r#"{"count": [200, "text/html", "<html>0</html>"]}"#;
    let missing = r#"{"count": [404, "text/html", "<html>404</html>"]}"#;
    let of = |settings| {
        House::build(Plan {
            settings,
            ..Plan::default()
        })
    };
    let five = r#"{"count": [200, "application/json", " 5\n"], "reserve": [404, "text/html", ""]}"#;
    let mut houses = [
        of(html),
        of(missing),
        of(five),
        of(r#"{"count": [200, "text/plain", "7"]}"#),
    ];
    let client = connected::<R>(&world, &houses.each_ref()).await;
    let session = client.session().unwrap();
    assert_eq!(session.server.to_string(), houses[2].endpoint());
    for house in &mut houses {
        assert_eq!(house.stats().requests("count"), 1);
    }
    let refused = world
        .event(&mut client.events(), "reservation", |event| match event {
            Event::ReserveFailed { cause, .. } => Some(cause.clone()),
            _ => None,
        })
        .await;
    assert_eq!(refused, CallError::Http(404));
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
    for index in 0..3 {
        houses[index].kill_proxy();
        houses[index].kill_backend();
        let endpoint = houses[index].endpoint();
        for client in &clients {
            let elsewhere = || {
                let session = client.session();
                session.is_some_and(|session| session.server.to_string() != endpoint)
            };
            world.until("session elsewhere", elsewhere).await;
        }
        houses[index].start_backend();
        houses[index].start_proxy();
    }
    for client in &clients {
        assert!(client.session().unwrap().generation > 1);
    }
}

/// C-core says so in trailers alone, which nginx passes on as headers.
pub(crate) async fn what_grpc_core_does_not_implement_is_done_without<R: Stack>() {
    let Some(world) = world::<R>().await else {
        return;
    };
    let mut house = House::build(Plan {
        settings: r#"{"check": "unimplemented"}"#,
        ..Plan::default()
    });
    let client = connected::<R>(&world, &[&house]).await;
    let version = world
        .event(&mut client.events(), "verdict", |event| match event {
            Event::Compatible { server_version, .. } => Some(server_version.clone()),
            _ => None,
        })
        .await;
    assert_eq!(version, "15.8.0");
    client.close().await;

    house.set(r#"{"descriptors": false}"#);
    let error = world.refused(self::client::<R>(&[&house])).await;
    assert!(
        matches!(findings(&error), Findings::CannotVerify(_)),
        "{error}"
    );

    house.set(r#"{"check": "incompatible"}"#);
    let error = world.refused(self::client::<R>(&[&house])).await;
    let reported = Findings::Reported(vec!["MessageRemoved: .acme.Order".to_owned()]);
    assert_eq!(findings(&error), &reported);
}

/// One proxy refuses by HTTP 401, the check included; behind the other, C-core does by trailers.
pub(crate) async fn credentials_pass_a_proxy_and_refusals_are_understood<R: Stack>() {
    let Some(world) = world::<R>().await else {
        return;
    };
    for (grpc, request, origin) in [
        (
            r#"if ($http_authorization = "") { return 401; }"#,
            Request::CheckCompatibility,
            Origin::Http(401),
        ),
        ("", Request::Connect, Origin::Grpc),
    ] {
        let mut house = House::build(Plan {
            grpc,
            settings: r#"{"auth": true}"#,
            ..Plan::default()
        });
        match world.refused(client::<R>(&[&house])).await {
            FatalError::Credentials {
                error:
                    CredentialsError::Refused {
                        request: refused,
                        status,
                        had_credentials: false,
                    },
                ..
            } => assert_eq!((refused, status.origin), (request, origin)),
            other => panic!("{other}"),
        }

        let connecting = identified::<R>(&house).connect();
        let client = world.soon("a session", connecting).await.unwrap();
        let session = client.session();
        assert_eq!(house.stats().requests("token"), 1);
        // From now on another token is the right one.
        house.set(r#"{"token_size": 17, "interval": 0.1}"#);
        let answers = |house: &mut House| house.stats().requests(paths::CONNECTION_KEEP_ALIVE);
        let before = answers(&mut house);
        world
            .until("answers", || answers(&mut house) > before + 3)
            .await;
        assert_eq!(house.stats().requests("token"), 2);
        assert_eq!(client.session(), session, "a refused answer is no end");
    }
}

pub(crate) async fn a_token_endpoint_that_refuses_is_told_from_one_that_is_busy<R: Stack>() {
    let Some(world) = world::<R>().await else {
        return;
    };
    let mut house = House::build(Plan {
        settings: r#"{"auth": true, "token_status": 401}"#,
        ..Plan::default()
    });
    let refused = TokenError::Refused {
        status: 401,
        error: Some("invalid_client"),
    };
    match world.refused(identified::<R>(&house)).await {
        FatalError::Credentials {
            error: CredentialsError::Token(error),
            ..
        } => assert_eq!(error, refused),
        other => panic!("{other}"),
    }
    assert_eq!(house.stats().requests("token"), 1);

    house.set(r#"{"token_status": 429}"#);
    let client = identified::<R>(&house).start().unwrap();
    let mut events = client.events();
    let busy = world.event(&mut events, "failed fetch", |event| match event {
        Event::Token { error, .. } => error.clone(),
        _ => None,
    });
    assert_eq!(busy.await, TokenError::Http(429));
    house.set(r#"{"token_status": 200}"#);
    world.connected(&mut events).await;
}

pub(crate) async fn long_headers_pass_or_fail_with_a_reason<R: Stack>() {
    let Some(world) = world::<R>().await else {
        return;
    };
    // By default nginx takes less than 4 KiB of headers from gRPC, and 8 KiB in one from a client.
    for (settings, grpc) in [
        (r#"{"metadata": 3000}"#, ""),
        (r#"{"metadata": 10000}"#, "grpc_buffer_size 64k;"),
        (r#"{"auth": true, "token_size": 7900}"#, ""),
    ] {
        let house = House::build(Plan {
            grpc,
            settings,
            ..Plan::default()
        });
        let connecting = identified::<R>(&house).connect();
        world.soon("a session", connecting).await.unwrap();
    }
    let failure = async |settings| {
        let house = House::build(Plan {
            settings,
            ..Plan::default()
        });
        let client = identified::<R>(&house).start().unwrap();
        failed_candidate(&world, &mut client.events()).await
    };
    let too_much = failure(r#"{"metadata": 10000}"#).await;
    let CandidateError::Call { error, .. } = &too_much else {
        panic!("{too_much}");
    };
    assert_eq!(http_status(error), Some(502), "{too_much}");
    let too_long = failure(r#"{"auth": true, "token_size": 20000}"#).await;
    // ENHANCE_YOUR_CALM.
    assert_eq!(too_long, CandidateError::GoingAway { code: 11 });
}

pub(crate) async fn a_proxy_without_http_2_is_told_as_such<R: Stack>() {
    let Some(world) = world::<R>().await else {
        return;
    };
    let mut house = House::build(Plan::default());
    house.without_http2();
    let error = world.failed_attempt(client::<R>(&[&house])).await;
    match &error.candidates[0].1 {
        Some(CandidateError::Unreachable(failure)) => {
            assert_eq!(
                failure.kind,
                FailureKind::Tls(TlsFailure::NoHttp2),
                "{error}"
            );
        }
        _ => panic!("{error}"),
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

async fn failed_candidate<R: Stack>(world: &World<R>, events: &mut R::Events) -> CandidateError {
    world
        .event(events, "failure of the server", |event| match event {
            Event::CandidateFailed { cause, .. } => Some(cause.clone()),
            _ => None,
        })
        .await
}

/// The HTTP status that a status of gRPC was made of.
fn http_status(error: &CallError) -> Option<u16> {
    match error {
        CallError::Status(Status {
            origin: Origin::Http(status),
            ..
        }) => Some(*status),
        _ => None,
    }
}

/// Whether the stream was reset on a transport that goes on.
fn is_reset(cause: &DropCause) -> bool {
    match cause {
        DropCause::StreamFailed(failure) => failure.kind == FailureKind::Reset,
        _ => false,
    }
}

/// What the one server of a cluster was refused for.
fn findings(error: &FatalError) -> &Findings {
    match error {
        FatalError::Incompatible(error) => match &error.candidates[0].1 {
            Some(CandidateError::Incompatible(Incompatible { findings, .. })) => findings,
            _ => panic!("{error}"),
        },
        _ => panic!("{error}"),
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
