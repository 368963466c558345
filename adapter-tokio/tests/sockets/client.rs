use crate::support::{builder, connected, echo, server, soon, until};
use chronicle_connection_tokio::{
    Channel, Client, ConfigError, ConnectError, Event, NoRuntime, Notice, State, Strategy,
};
use chronicle_reference_server::{Cluster, echo::Payload, paths};

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
