use crate::support::{builder, connected, echo, next, server, soon, until};
use chronicle_connection_tokio::{
    Backoff, CandidateError, Channel, Client, ConfigError, ConnectError, DropCause, Event,
    FailureKind, FatalError, Jitter, NoRuntime, Notice, State, Strategy, TlsFailure,
};
use chronicle_reference_server::{Cluster, Server, ServerOptions, echo::Payload, paths};
use std::{net::TcpListener, time::Duration};

#[tokio::test]
async fn connecting_is_told_step_by_step_and_leaves_one_transport() {
    let cluster = Cluster::start(3).await.unwrap();
    let client = soon(Client::connect(cluster.connection_string()))
        .await
        .unwrap();
    let session = client.session().unwrap();
    assert_eq!(client.state(), State::Connected(session.clone()));
    assert_eq!(soon(client.connected()).await, Ok(session.clone()));
    assert_eq!(session.server.to_string(), session.peer.to_string());

    let mut events = client.events();
    let mut told = Vec::new();
    loop {
        match soon(events.next()).await {
            Some(Notice::Event(Event::Connected(connected))) => {
                assert_eq!(connected, session);
                break;
            }
            Some(Notice::Event(event)) => told.push(event),
            other => panic!("{other:?} after {told:?}"),
        }
    }
    assert!(
        matches!(
            told.as_slice(),
            [
                Event::Connecting { attempt: 1, .. },
                Event::Selected { count: Some(0), .. },
                Event::Compatible { .. },
            ]
        ),
        "{told:?}"
    );

    let open = || {
        cluster
            .servers()
            .iter()
            .map(|server| server.stats().open)
            .sum::<u64>()
    };
    until(|| open() == 1).await;
    let accepted: u64 = cluster
        .servers()
        .iter()
        .map(|server| server.stats().accepted)
        .sum();
    assert_eq!(accepted, 3);
    let serving = cluster
        .servers()
        .iter()
        .find(|server| server.stats().open == 1)
        .unwrap();
    assert_eq!(serving.endpoint(), session.server.to_string());
    assert_eq!(serving.stats().clients, [session.connection_id.to_string()]);
}

#[tokio::test]
async fn a_killed_server_is_noticed_at_once_and_another_takes_over() {
    let mut cluster = Cluster::start(2).await.unwrap();
    let client = soon(builder(&cluster.connection_string()).connect())
        .await
        .unwrap();
    let mut events = client.events();
    let first = client.session().unwrap();
    let mut servers = cluster.servers_mut().iter_mut();
    let serving = servers.find(|server| server.endpoint() == first.server.to_string());
    serving.unwrap().kill().await;
    let (session, cause) = next(&mut events, |event| match event {
        Event::Disconnected { session, cause, .. } => Some((session.clone(), cause.clone())),
        _ => None,
    })
    .await;
    assert_eq!(session, first);
    let DropCause::TransportClosed(failure) = cause else {
        panic!("{cause}");
    };
    assert!(
        matches!(failure.kind, FailureKind::Reset | FailureKind::Closed),
        "{failure}"
    );
    let second = next(&mut events, |event| match event {
        Event::Connected(session) => Some(session.clone()),
        _ => None,
    })
    .await;
    assert_ne!(second.server, first.server);
    assert_eq!(second.generation, 2);
}

#[tokio::test]
async fn a_goaway_ends_the_session_with_its_code_and_without_a_new_request() {
    let (cluster, client) = connected().await;
    let mut events = client.events();
    server(&cluster).faults().go_away();
    let cause = next(&mut events, |event| match event {
        Event::Disconnected { cause, .. } => Some(cause.clone()),
        _ => None,
    })
    .await;
    assert_eq!(cause, DropCause::GoingAway { code: 0 });
    soon(client.connected()).await.unwrap();
}

#[tokio::test]
async fn closing_completes_when_all_sockets_are_closed() {
    let (cluster, client) = connected().await;
    let mut events = client.events();
    let held = echo(client.channel())
        .unary(Payload::default())
        .await
        .unwrap();
    assert_eq!(server(&cluster).stats().open, 2);
    soon(client.close()).await;
    assert_eq!(client.state(), State::Stopped);
    assert_eq!(client.session(), None);
    soon(server(&cluster).wait_for(|stats| stats.open == 0)).await;
    assert_eq!(soon(client.connected()).await, Err(ConnectError::Closed));
    while let Some(Notice::Event(event)) = soon(events.next()).await {
        assert!(!matches!(event, Event::Disconnected { .. }), "{event}");
    }
    assert_eq!(soon(client.events().next()).await, None);
    soon(client.close()).await;
    drop(held);
}

#[tokio::test]
async fn the_last_handle_closes_and_a_channel_is_one() {
    let (cluster, client) = connected().await;
    let channel = client.channel();
    let copy = client.clone();
    drop(client);
    drop(copy);
    echo(channel.clone())
        .unary(Payload::default())
        .await
        .unwrap();
    drop(channel);
    soon(server(&cluster).wait_for(|stats| stats.open == 0)).await;
}

#[tokio::test]
async fn the_certificate_is_validated_unless_told_otherwise() {
    let server = Server::start(ServerOptions::default()).await.unwrap();
    let string = format!("chronicle://localhost:{}", server.port());
    let trusting = builder(&string).extra_roots(server.certificate_pem());
    let client = soon(trusting.connect()).await.unwrap();
    assert_eq!(client.session().unwrap().peer.port(), server.port());

    let doubting = builder(&string).connect_timeout(Some(Duration::from_millis(300)));
    let error = soon(doubting.connect()).await.unwrap_err();
    assert_eq!(
        unreachable_kind(&error),
        FailureKind::Tls(TlsFailure::UnknownIssuer),
        "{error}"
    );

    let expired = ServerOptions {
        expired: true,
        ..ServerOptions::default()
    };
    let server = Server::start(expired).await.unwrap();
    let string = format!("chronicle://localhost:{}", server.port());
    let trusting = builder(&string)
        .extra_roots(server.certificate_pem())
        .connect_timeout(Some(Duration::from_millis(300)));
    let error = soon(trusting.connect()).await.unwrap_err();
    assert_eq!(
        unreachable_kind(&error),
        FailureKind::Tls(TlsFailure::Expired),
        "{error}"
    );
}

#[tokio::test]
async fn what_cannot_be_reached_is_listed_when_time_is_up() {
    let port = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let string = format!("chronicle://127.0.0.1:{port}");
    let hasty = builder(&string).skip_tls_validation(true);
    let error = soon(
        hasty
            .connect_timeout(Some(Duration::from_millis(200)))
            .connect(),
    )
    .await
    .unwrap_err();
    assert_eq!(unreachable_kind(&error), FailureKind::Refused);
    assert!(
        error.to_string().contains(&format!("127.0.0.1:{port}")),
        "{error}"
    );
}

#[tokio::test]
async fn started_clients_try_until_a_server_is_there() {
    let mut server = Server::start(ServerOptions::default()).await.unwrap();
    server.kill().await;
    let string = format!("chronicle://{}?skipTlsValidation=true", server.endpoint());
    let client = builder(&string).start().unwrap();
    assert_eq!(client.session(), None);
    let mut events = client.events();
    next(&mut events, |event| {
        matches!(event, Event::BackingOff { .. }).then_some(())
    })
    .await;
    server.restart().await.unwrap();
    let session = soon(client.connected()).await.unwrap();
    assert_eq!(client.session(), Some(session));
}

#[tokio::test]
async fn bad_input_is_an_error_before_any_io() {
    let error = Client::connect("chronicle://:1").await.unwrap_err();
    assert!(
        matches!(error, ConnectError::ConnectionString(_)),
        "{error}"
    );
    let error = builder("chronicle+srv://cluster.example?loadBalancer=random")
        .strategy(Strategy::RoundRobin)
        .start()
        .unwrap_err();
    assert!(
        matches!(error, ConnectError::Config(ConfigError::Contradiction(_))),
        "{error}"
    );
    let error = builder("chronicle://localhost")
        .extra_roots("no PEM")
        .start()
        .unwrap_err();
    assert!(matches!(error, ConnectError::Tls(_)), "{error}");
}

#[test]
fn without_a_runtime_there_is_a_clear_error() {
    let error = builder("chronicle://localhost").start().unwrap_err();
    assert_eq!(
        error,
        ConnectError::NoRuntime(NoRuntime { needed: "tokio" })
    );
    assert!(error.to_string().contains("tokio"));
}

#[test]
fn the_end_of_the_runtime_is_the_end_of_the_client() {
    let runtime = || tokio::runtime::Runtime::new().unwrap();
    let outer = runtime();
    let inner = runtime();
    let cluster = outer.block_on(Cluster::start(1)).unwrap();
    let client = inner
        .block_on(builder(&cluster.connection_string()).connect())
        .unwrap();
    assert!(client.session().is_some());
    drop(inner);
    assert_eq!(client.state(), State::Stopped);
    outer.block_on(async {
        soon(client.close()).await;
        soon(server(&cluster).wait_for(|stats| stats.open == 0)).await;
        let error = echo(client.channel())
            .unary(Payload::default())
            .await
            .unwrap_err();
        assert_eq!(error.code(), tonic::Code::Unavailable);
    });
}

#[tokio::test]
async fn a_slow_subscriber_is_told_what_it_missed_and_holds_up_nothing() {
    let mut server = Server::start(ServerOptions::default()).await.unwrap();
    server.kill().await;
    let string = format!("chronicle://{}?skipTlsValidation=true", server.endpoint());
    let quick = Backoff {
        base: Duration::from_millis(1),
        ceiling: Duration::from_millis(1),
        jitter: Jitter::None,
    };
    let client = builder(&string).backoff(quick).start().unwrap();
    let (mut slow, mut quick) = (client.events(), client.events());
    for _ in 0..300 {
        next(&mut quick, |_| Some(())).await;
    }
    let first = soon(slow.next()).await;
    assert!(
        matches!(first, Some(Notice::Lagged(lost)) if lost >= 44),
        "{first:?}"
    );
    server.restart().await.unwrap();
    soon(client.connected()).await.unwrap();
}

#[tokio::test]
async fn a_panicking_subscriber_stops_nothing() {
    let (cluster, client) = connected().await;
    let mut events = client.events();
    let subscriber = tokio::spawn(async move {
        let _ = events.next().await;
        panic!("the subscriber's own fault");
    });
    assert!(soon(subscriber).await.is_err());
    let answers = server(&cluster)
        .stats()
        .requests(paths::CONNECTION_KEEP_ALIVE);
    soon(
        server(&cluster)
            .wait_for(|stats| stats.requests(paths::CONNECTION_KEEP_ALIVE) > answers + 1),
    )
    .await;
    assert!(client.session().is_some());
}

#[test]
fn handles_and_their_futures_go_to_any_thread() {
    fn handle<T: Send + Sync + Clone + 'static>() {}
    fn send<T: Send>(_: T) {}
    handle::<Client>();
    handle::<Channel>();
    send(Client::connect("chronicle://localhost"));
    let of_a_client = |client: Client| {
        send(client.connected());
        send(client.close());
        send(async move { client.events().next().await });
    };
    let _ = of_a_client;
}

/// Why the only server of a connect could not be reached.
fn unreachable_kind(error: &ConnectError) -> FailureKind {
    let ConnectError::Failed(FatalError::ConnectTimeout { last, .. }) = error else {
        panic!("{error}");
    };
    match last.candidates.as_slice() {
        [(_, Some(CandidateError::Unreachable(failure)))] => failure.kind,
        _ => panic!("{error}"),
    }
}
