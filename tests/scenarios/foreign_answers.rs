//! What nginx and gRPC C-core say, and that it is understood.

use super::{
    foreign::{client, connected, failed_candidate, http_status, identified, world},
    house::{House, Plan},
    refusing::findings,
    stack::{Stack, StackBuilder, StackClient},
    world::no_second_count,
};
use chronicle_connection_driver::core::{
    CallError, CandidateError, CredentialsError, Event, FailureKind, FatalError, Findings, Origin,
    Request, TlsFailure, TokenError,
};
use chronicle_reference_server::paths;

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
    let client = client::<R>(&houses.each_ref()).timing(no_second_count());
    let client = world.soon("a session", client.connect()).await.unwrap();
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
