//! From nothing to the first session.

use super::{
    stack::{Stack, StackBuilder, StackClient},
    world::{Last, World, impatient, measured, no_second_count},
};
use chronicle_connection_driver::core::{
    CallError, CandidateError, Code, Event, FailureKind, FatalError, Origin, Request, State,
    Status, Strategy,
};
use chronicle_reference_server::{Answer, paths};
use futures_util::future::join_all;
use std::time::{Duration, Instant};

pub(crate) async fn every_strategy_connects_and_all_views_of_it_agree<R: Stack>() {
    let strategies = [
        Strategy::default(),
        Strategy::RoundRobin,
        Strategy::Random,
        Strategy::Custom(Box::new(Last)),
    ];
    for strategy in strategies {
        let name = format!("{strategy:?}");
        let mut world = World::<R>::start(3).await;
        let client = world.builder().strategy(strategy.clone()).start().unwrap();
        let mut events = client.events();
        let mut servers = vec![];
        let mut ids = vec![];
        for generation in 1..=2 {
            let session = world.connected(&mut events).await;
            assert_eq!(session.generation, generation, "{name}");
            assert_eq!(client.session().as_ref(), Some(&session), "{name}");
            assert_eq!(client.state(), State::Connected(session.clone()), "{name}");
            assert_eq!(client.connected().await.as_ref(), Ok(&session), "{name}");
            let server = world.server_of(&session);
            assert_eq!(session.peer.port(), session.server.port, "{name}");
            assert!(world.knows(server, &session), "{name}");
            servers.push(server);
            ids.push(session.connection_id);
            world.kill(server).await;
        }
        assert_ne!(ids[0], ids[1], "{name}");
        match strategy {
            Strategy::LeastConnections { .. } | Strategy::Random => {
                assert_ne!(servers[0], servers[1], "{name}");
            }
            Strategy::RoundRobin => assert_eq!(servers[1], (servers[0] + 1) % 3, "{name}"),
            Strategy::Custom(_) => assert_eq!(servers, [2, 1], "{name}"),
        }
    }
}

pub(crate) async fn a_strategy_can_be_named_in_the_string<R: Stack>() {
    let world = World::<R>::start(3).await;
    for name in ["least-connections", "round-robin", "random"] {
        let string = world.string_with(&format!("&loadBalancer={name}"));
        let before = world.requests(paths::COUNT);
        let connecting = R::connect(string);
        let client = world.soon("a session", connecting).await.unwrap();
        let asked = world.requests(paths::COUNT) > before;
        assert_eq!(asked, name == "least-connections", "{name}");
        client.close().await;
    }
}

/// All servers are probed, each on a connection of its own, and that of the winner is the session's.
pub(crate) async fn one_connect_costs_three_tcp_connections_and_two_are_closed<R: Stack>() {
    let world = World::<R>::start(3).await;
    let client = R::client(world.string()).timing(no_second_count());
    let client = world.soon("a session", client.connect()).await.unwrap();
    let session = client.session().unwrap();
    world
        .until("two closed", || world.open_sockets() == 1)
        .await;
    let accepted = world.sum(|stats| stats.accepted);
    println!(
        "measured: TCP connections of one connect: {accepted} accepted, {} closed",
        accepted - world.open_sockets()
    );
    assert_eq!(accepted, 3);
    assert_eq!(world.stats(world.server_of(&session)).open, 1);
    assert_eq!(world.requests(paths::COUNT), 3);
    assert_eq!(world.requests(paths::RESERVE), 1);
    assert_eq!(world.requests(paths::CHECK_COMPATIBILITY), 1);
    assert_eq!(world.requests(paths::CONNECT), 1);
}

pub(crate) async fn clients_spread_over_servers_that_have_as_many<R: Stack>() {
    let world = World::<R>::start(3).await;
    let mut clients = vec![];
    for _ in 0..9 {
        clients.push(world.connect().await);
    }
    let counts: Vec<_> = (0..3).map(|index| world.stats(index).count).collect();
    assert_eq!(counts, [3, 3, 3]);
}

/// Nobody stays on a failing server, so its count is the lowest of all.
pub(crate) async fn a_server_that_fails_every_check_captures_nobody<R: Stack>() {
    let world = World::<R>::start(3).await;
    let unavailable = Answer::Grpc(Code::Unavailable, "starting".to_owned());
    world.set(0, |faults| {
        faults.on(paths::CHECK_COMPATIBILITY).answer = Some(unavailable);
        faults.on(paths::COUNT).answer = Some(Answer::Http(200, "0".into()));
    });
    for index in [1, 2] {
        world.set(index, |faults| {
            faults.on(paths::COUNT).answer = Some(Answer::Http(200, "7".into()));
        });
    }
    let begun = Instant::now();
    let connecting = (0..10).map(|_| R::connect(world.string()));
    let clients = world.soon("ten sessions", join_all(connecting)).await;
    let ten_seconds = Duration::from_secs(10);
    measured(
        "ten clients past a server that fails every check",
        begun.elapsed(),
        Duration::ZERO..=ten_seconds,
    );
    assert_eq!(world.stats(0).requests(paths::CHECK_COMPATIBILITY), 10);
    assert_eq!(world.stats(0).requests(paths::CONNECT), 0);
    for client in clients {
        let session = client.unwrap().session().unwrap();
        assert_ne!(world.server_of(&session), 0);
    }
}

pub(crate) async fn a_dead_and_a_hanging_server_leave_the_third<R: Stack>() {
    let mut world = World::<R>::start(3).await;
    world.kill(0).await;
    world.set(1, |faults| faults.hang_tls = true);
    let begun = Instant::now();
    let client = world.connect().await;
    measured(
        "past a dead and a hanging server",
        begun.elapsed(),
        Duration::ZERO..=Duration::from_millis(2500),
    );
    assert_eq!(world.server_of(&client.session().unwrap()), 2);
    world.set(1, |faults| faults.hang_tls = false);
    world
        .until("end of the dial that hung", || world.open_sockets() == 1)
        .await;
    assert_eq!(world.stats(1).handshakes, 0);
}

pub(crate) async fn without_counts_and_reservations_a_client_connects_all_the_same<R: Stack>() {
    let world = World::<R>::start(3).await;
    let not_found = Answer::Http(404, "<html>404</html>".into());
    world.set_all(|faults| {
        faults.on(paths::COUNT).answer = Some(not_found.clone());
        faults.on(paths::RESERVE).answer = Some(not_found.clone());
    });
    let client = world.connect().await;
    let session = client.session().unwrap();
    let refused = world
        .event(&mut client.events(), "reservation", |event| match event {
            Event::ReserveFailed { server, cause } => Some((server.clone(), cause.clone())),
            _ => None,
        })
        .await;
    assert_eq!(refused, (session.server, CallError::Http(404)));
}

pub(crate) async fn servers_that_cannot_be_reached_are_all_named_with_the_cause<R: Stack>() {
    let mut world = World::<R>::start(3).await;
    world.kill_all().await;
    let timeout = Duration::from_millis(500);
    let begun = Instant::now();
    let error = world
        .refused(world.builder().connect_timeout(Some(timeout)))
        .await;
    measured(
        "the end of a connect that has half a second",
        begun.elapsed(),
        timeout..=timeout,
    );
    let FatalError::ConnectTimeout { last, .. } = &error else {
        panic!("{error}");
    };
    assert_eq!(last.candidates.len(), 3);
    for (server, (named, cause)) in world.servers().iter().zip(&last.candidates) {
        assert_eq!(named.to_string(), server.endpoint());
        match cause {
            Some(CandidateError::Unreachable(failure)) => {
                assert_eq!(failure.kind, FailureKind::Refused);
            }
            other => panic!("{other:?}"),
        }
        assert!(error.to_string().contains(&server.endpoint()), "{error}");
    }
}

pub(crate) async fn a_client_that_was_started_tries_until_there_is_a_server<R: Stack>() {
    let mut world = World::<R>::start(2).await;
    world.kill_all().await;
    let client = world.builder().start().unwrap();
    let mut events = client.events();
    let attempts = |event: &Event| match event {
        Event::Connecting { attempt, .. } => (*attempt > 3).then_some(()),
        _ => None,
    };
    world.event(&mut events, "fourth attempt", attempts).await;
    assert_eq!(client.session(), None);
    world.restart(1).await;
    let session = world.soon("a session", client.connected()).await.unwrap();
    assert_eq!((world.server_of(&session), session.generation), (1, 1));
}

/// An answer of a server without the method has `grpc-status`; this is what a proxy says.
pub(crate) async fn an_html_page_in_place_of_the_check_is_a_failure_and_no_old_server<R: Stack>() {
    for code in [404, 502] {
        let world = World::<R>::start(2).await;
        world.set(0, |faults| {
            let page = Answer::Http(code, "<html>nginx</html>".into());
            faults.on(paths::CHECK_COMPATIBILITY).answer = Some(page);
        });
        let string = format!(
            "chronicle://{}/?skipTlsValidation=true",
            world.servers()[0].endpoint()
        );
        let alone = impatient(R::client(string.parse().unwrap()));
        let last = world.failed_attempt(alone).await;
        let Some(CandidateError::Call { request, error }) = &last.candidates[0].1 else {
            panic!("{last}");
        };
        assert_eq!(*request, Request::CheckCompatibility);
        let origin = match error {
            CallError::Status(Status { origin, .. }) => Some(*origin),
            _ => None,
        };
        assert_eq!(origin, Some(Origin::Http(code)), "{error}");
        assert_eq!(world.requests(paths::GET_DESCRIPTOR_SET), 0);

        let client = world.connect().await;
        assert_eq!(world.server_of(&client.session().unwrap()), 1);
    }
}
