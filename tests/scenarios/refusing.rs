//! Servers that speak another contract, or cannot tell.

use super::{
    stack::{Stack, StackBuilder, StackClient, StackEvents},
    world::{World, impatient},
};
use chronicle_connection_driver::core::{
    AttemptError, CandidateError, Contract, Endpoint, Event, FatalError, Findings, Host,
    Incompatible, Schema, State,
};
use chronicle_reference_server::{
    Answer, Faults,
    model::{Age, Authentication, FirstKeepAlive, ModelConfig, Verdict},
    paths,
};
use std::{
    net::Ipv4Addr,
    time::{Duration, Instant},
};

pub(crate) async fn an_incompatible_server_in_a_mixed_cluster_is_passed_over<R: Stack>() {
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

pub(crate) async fn a_cluster_that_refuses_ends_the_connect_with_all_that_was_found<R: Stack>() {
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

pub(crate) async fn a_connection_whose_servers_all_refuse_later_stops_for_good<R: Stack>() {
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

pub(crate) async fn a_server_that_cannot_be_verified_is_refused_and_the_way_through_is_named<
    R: Stack,
>() {
    let world = World::<R>::start(1).await;
    world.set(0, |faults| {
        faults.model.age = Age::WithoutCheckAndDescriptors;
    });
    let error = world.refused(world.builder()).await;
    assert!(
        matches!(findings(&error), Findings::CannotVerify(_)),
        "{error}"
    );
    let text = error.to_string();
    assert!(text.contains("cannot verify"), "{text}");
    assert!(text.contains("skipCompatibilityCheck=true"), "{text}");
    assert_eq!(world.requests(paths::CONNECT), 0);

    let string = world.string_with("&skipCompatibilityCheck=true");
    let connecting = impatient(R::client(string)).connect();
    let client = world.soon("a session", connecting).await.unwrap();
    assert!(client.session().is_some());
}

/// A field that only the client has: gained where the client is known to be newer, removed otherwise.
pub(crate) async fn an_older_server_is_compared_here_by_its_text_and_its_version<R: Stack>() {
    let world = World::<R>::start(1).await;
    for (version, key, is_compatible) in [
        (Some("16.0.0"), "", true),
        (Some("16.0.0"), "k3y", true),
        (Some("17.0.0"), "k3y", false),
        (Some("18.0.0"), "", false),
        (None, "", false),
    ] {
        world.set(0, |faults| {
            let model = &mut faults.model;
            model.age = Age::WithoutCheck;
            model.version = version.unwrap_or_default().to_owned();
            model.tells_version = version.is_some();
            model.authentication = (!key.is_empty()).then(|| Authentication {
                api_key: key.to_owned(),
                ..Authentication::default()
            });
            model.schema = format!("{}\r\n{}", ModelConfig::default().schema, orders(""));
        });
        let options = match key {
            "" => String::new(),
            key => format!("&apiKey={key}"),
        };
        let string = world.string_with(&options);
        let client = || {
            let schema = Schema::from_source_text(&orders("string Note = 2;")).unwrap();
            let bytes = schema.descriptor_set().clone();
            let contract = Contract::from_descriptor_set(bytes, "17.0.0").unwrap();
            impatient(R::client(string.clone())).contract(contract)
        };
        if is_compatible {
            let client = world.soon("a session", client().connect()).await.unwrap();
            world.soon("close", client.close()).await;
            continue;
        }
        let error = world.refused(client()).await;
        let Findings::Compared(found) = findings(&error) else {
            panic!("{version:?}: {error}");
        };
        let paths: Vec<_> = found.iter().map(|finding| &*finding.path).collect();
        assert_eq!(paths, ["acme.Order.Note"], "{version:?}");
    }
}

/// As servers of 15.x are: no check, no counts, no reservations, and a first keep-alive that comes
/// after the first interval.
pub(crate) async fn an_older_server_without_endpoints_sends_its_first_keep_alive_late<R: Stack>() {
    let world = World::<R>::start(2).await;
    world.set_all(|faults| {
        let model = &mut faults.model;
        model.age = Age::WithoutCheck;
        model.version = "15.7.0".to_owned();
        model.first_keep_alive = FirstKeepAlive::AfterInterval;
        model.keep_alive_interval = Duration::from_secs(1);
        let page = Answer::Http(200, "<html>a page for every path</html>".into());
        faults.on(paths::COUNT).answer = Some(page.clone());
        faults.on(paths::RESERVE).answer = Some(page);
    });
    let begun = Instant::now();
    let client = world.connect().await;
    assert!(begun.elapsed() >= Duration::from_secs(1));
    let session = client.session().unwrap();
    let index = world.server_of(&session);
    let answers = || world.stats(index).requests(paths::CONNECTION_KEEP_ALIVE);
    world.until("second answer", || answers() >= 2).await;
    assert!(world.knows(index, &session));
}

/// An application's contract in the package `acme`.
fn orders(gained: &str) -> String {
    format!(
        "syntax = \"proto3\";\r\npackage acme;\r\nmessage Order {{ string Id = 1; {gained} }}\r\n\
         service Orders {{ rpc Place (Order) returns (Order); }}"
    )
}

/// What the one server of a cluster was refused for.
pub(super) fn findings(error: &FatalError) -> &Findings {
    let FatalError::Incompatible(AttemptError { candidates, .. }) = error else {
        panic!("{error}");
    };
    match &candidates[0].1 {
        Some(CandidateError::Incompatible(Incompatible { findings, .. })) => findings,
        _ => panic!("{error}"),
    }
}

fn incompatible(faults: &mut Faults) {
    faults.model.verdict = Verdict::Incompatible(FINDINGS.map(str::to_owned).into());
}

/// The error of a cluster in which every server says the same.
fn by_all<R: Stack>(world: &World<R>, expected: &Incompatible) -> FatalError {
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
