//! Servers that speak another contract, or cannot tell.

use super::world::{World, impatient};
use chronicle_connection_driver::{
    Client, Runtime,
    core::{
        AttemptError, CandidateError, Endpoint, Event, FatalError, Findings, Host, Incompatible,
        State,
    },
};
use chronicle_reference_server::{
    Faults,
    model::{Age, Verdict},
    paths,
};
use std::net::Ipv4Addr;

pub(crate) async fn an_incompatible_server_in_a_mixed_cluster_is_passed_over<R: Runtime>() {
    let mut world = World::<R>::start(3).await;
    for index in [0, 1] {
        world.set(index, incompatible);
    }
    let client = world.builder().start().unwrap();
    let mut events = client.events();
    let session = world.connected(&mut events).await;
    assert_eq!(world.server_of(&session), 2);
    // In a rolling upgrade it is the others' turn next.
    world.set(1, |faults| faults.model.verdict = Verdict::Compatible);
    world.kill(2).await;
    let session = world.connected(&mut events).await;
    assert_eq!((world.server_of(&session), session.generation), (1, 2));
}

pub(crate) async fn a_cluster_that_refuses_ends_the_connect_with_all_that_was_found<R: Runtime>() {
    let world = World::<R>::start(2).await;
    world.set_all(incompatible);
    let error = world.refused(world.builder()).await;
    let expected = Incompatible {
        client_version: env!("CARGO_PKG_VERSION").to_owned(),
        client_protocol_version: "15.7.1".to_owned(),
        server_version: "18.5.0".to_owned(),
        server_protocol_version: "18.5.0".to_owned(),
        findings: Findings::Reported(FINDINGS.map(str::to_owned).into()),
    };
    assert_eq!(error, by_all(&world, &expected));
    let text = error.to_string();
    for part in FINDINGS.iter().chain(&["15.7.1", "18.5.0", "127.0.0.1:"]) {
        assert!(text.contains(part), "{text}");
    }
    world.all_sockets_closed().await;
}

pub(crate) async fn a_connection_whose_servers_all_refuse_later_stops_for_good<R: Runtime>() {
    let mut world = World::<R>::start(2).await;
    let client = world.connect().await;
    let mut events = client.events();
    let session = world.connected(&mut events).await;
    world.set_all(incompatible);
    let server = world.server_of(&session);
    world.kill(server).await;
    // One refuses and one is down: that may change.
    let backs_off = |event: &Event| matches!(event, Event::BackingOff { .. }).then_some(());
    world.event(&mut events, "wait", backs_off).await;
    world.restart(server).await;
    let failed = |event: &Event| matches!(event, Event::Failed(_)).then(|| event.clone());
    let failed = world.event(&mut events, "end", failed).await;
    assert!(matches!(failed, Event::Failed(FatalError::Incompatible(_))));
    assert_eq!(client.state(), State::Stopped);
    world.soon("the last event", events.next()).await;
    world.soon("close", client.close()).await;
}

/// Until this client compares by itself: never a pass.
pub(crate) async fn an_older_server_cannot_be_verified_and_the_way_through_is_named<R: Runtime>() {
    let world = World::<R>::start(1).await;
    for age in [Age::WithoutCheck, Age::WithoutCheckAndDescriptors] {
        world.set(0, |faults| faults.model.age = age);
        let error = world.refused(world.builder()).await;
        let FatalError::Incompatible(AttemptError { candidates, .. }) = &error else {
            panic!("{error}");
        };
        let Some(CandidateError::Incompatible(Incompatible { findings, .. })) = &candidates[0].1
        else {
            panic!("{error}");
        };
        assert!(matches!(findings, Findings::CannotVerify(_)), "{error}");
        let text = error.to_string();
        assert!(text.contains("cannot verify"), "{text}");
        assert!(text.contains("skipCompatibilityCheck=true"), "{text}");
        assert_eq!(world.requests(paths::CONNECT), 0);
    }
    let string = world.string_with("&skipCompatibilityCheck=true");
    let connecting = impatient(Client::<R>::builder(string)).connect();
    let client = world.soon("a session", connecting).await.unwrap();
    assert!(client.session().is_some());
}

fn incompatible(faults: &mut Faults) {
    faults.model.verdict = Verdict::Incompatible(FINDINGS.map(str::to_owned).into());
}

/// The error of a cluster in which every server says the same.
fn by_all<R: Runtime>(world: &World<R>, expected: &Incompatible) -> FatalError {
    let cause = CandidateError::Incompatible(expected.clone());
    let servers = world.servers().iter();
    let candidates = servers
        .map(|server| {
            let host = Host::from(Ipv4Addr::LOCALHOST);
            (Endpoint::new(host, server.port()), Some(cause.clone()))
        })
        .collect();
    FatalError::Incompatible(AttemptError {
        lookup: None,
        candidates,
    })
}

const FINDINGS: [&str; 2] = [
    "FieldRemoved: .acme.Order.total",
    "MethodRemoved: .acme.Orders/Place",
];
