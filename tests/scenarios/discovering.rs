//! How servers are found through DNS: what a name server tells now counts, and what it told last
//! counts where it tells nothing.

use super::{
    name_server::{NameServer, Software, truncating},
    stack::{Stack, StackBuilder, StackClient},
    world::{World, impatient, impatient_timing},
};
use chronicle_connection_driver::core::{
    ConnectionString, DnsTransport, Endpoint, Event, LookupErrorKind, NameServerError, SrvWarning,
    Timing,
};
use chronicle_reference_server::DnsAnswer;
use std::time::{Duration, Instant};

pub(crate) async fn a_cluster_is_found_by_its_name<R: Stack>() {
    let world = World::<R>::start(3).await;
    let client = world.soon("session", found(&world).connect()).await;
    let client = client.unwrap();
    let mut events = client.events();
    let candidates = next_candidates(&world, &mut events).await;
    assert_eq!(candidates, listed(&world, &[0, 1, 2]));
    let session = world.connected(&mut events).await;
    assert!(world.knows(world.server_of(&session), &session));
    assert_eq!(session.server.host.to_string(), "localhost");
    assert_eq!(world.dns().stats().udp, 1, "one question a connect");
}

pub(crate) async fn what_is_added_and_removed_counts_from_the_next_reconnect_on<R: Stack>() {
    let mut world = World::<R>::start(3).await;
    world.list_in_dns(&[0]);
    let client = found(&world).start().unwrap();
    let mut events = client.events();
    let session = world.connected(&mut events).await;
    assert_eq!(world.server_of(&session), 0);

    world.list_in_dns(&[1, 2]);
    world.kill(0).await;
    world.disconnected(&mut events).await;
    let candidates = next_candidates(&world, &mut events).await;
    assert_eq!(candidates, listed(&world, &[1, 2]));
    let session = world.connected(&mut events).await;
    assert_ne!(world.server_of(&session), 0);
    assert_eq!(world.dns().stats().udp, 2, "one question a connect");
}

pub(crate) async fn a_lookup_that_fails_on_a_reconnect_uses_the_last_good_list<R: Stack>() {
    let mut world = World::<R>::start(2).await;
    let timing = Timing {
        lookup_try: Duration::from_millis(100),
        ..impatient_timing()
    };
    let client = found(&world).timing(timing).start().unwrap();
    let mut events = client.events();
    let first = world.connected(&mut events).await;

    world
        .dns()
        .set_faults(|faults| faults.answer = Some(DnsAnswer::Nothing));
    world.kill(world.server_of(&first)).await;
    world.disconnected(&mut events).await;
    let error = world
        .event(
            &mut events,
            "use of the last good list",
            |event| match event {
                Event::LastGoodListUsed { error } => Some(error.clone()),
                _ => None,
            },
        )
        .await;
    assert!(
        matches!(
            &error.kind,
            LookupErrorKind::NoAnswer { name_servers }
                if matches!(name_servers[0].1, NameServerError::TimedOut { .. })
        ),
        "{error}"
    );
    let candidates = next_candidates(&world, &mut events).await;
    assert_eq!(candidates, listed(&world, &[0, 1]));
    let second = world.connected(&mut events).await;
    assert_ne!(second.server, first.server);
}

pub(crate) async fn what_is_wrong_with_a_name_server_is_told_apart<R: Stack>() {
    let world = World::<R>::start(1).await;
    let dns = world.dns();
    let timing = Timing {
        lookup_try: Duration::from_millis(200),
        ..impatient_timing()
    };
    let lookup = async |answer: DnsAnswer| {
        dns.set_faults(|faults| faults.answer = Some(answer));
        let builder = found(&world).timing(timing.clone());
        let (servers, events) = looked_up(&world, builder).await;
        assert!(servers.is_empty(), "{servers:?}");
        let error = events.iter().find_map(|event| match event {
            Event::BackingOff { error, .. } => error.as_ref()?.lookup.clone(),
            _ => None,
        });
        error.unwrap_or_else(|| panic!("{events:?}")).kind
    };
    for (answer, is_it) in [
        (
            DnsAnswer::Code(2),
            is_server_failure as fn(&NameServerError) -> bool,
        ),
        (DnsAnswer::Code(5), is_refused),
        (DnsAnswer::Nothing, is_timed_out),
        (DnsAnswer::WrongId, is_timed_out),
        (DnsAnswer::OtherQuestion, is_timed_out),
        (DnsAnswer::Garbage, is_timed_out),
    ] {
        match lookup(answer).await {
            LookupErrorKind::NoAnswer { name_servers } => {
                assert!(is_it(&name_servers[0].1), "{answer:?}: {name_servers:?}");
            }
            other => panic!("{answer:?}: {other:?}"),
        }
    }
    let kind = lookup(DnsAnswer::Code(3)).await;
    assert!(
        matches!(kind, LookupErrorKind::NoSuchName { .. }),
        "{kind:?}"
    );
    let kind = lookup(DnsAnswer::Code(0)).await;
    assert!(
        matches!(kind, LookupErrorKind::NoRecords { .. }),
        "{kind:?}"
    );
}

pub(crate) async fn a_name_server_with_weaknesses_is_served_its_way<R: Stack>() {
    let world = World::<R>::start(3).await;
    world.dns().set_faults(|faults| {
        faults.no_edns = true;
        faults.truncate = true;
        faults.split_tcp = true;
        faults.delay = Duration::from_millis(10);
    });
    let (servers, events) = looked_up(&world, found(&world)).await;
    assert_eq!(servers, listed(&world, &[0, 1, 2]));
    assert_eq!(
        tries(&events),
        [
            (DnsTransport::Udp, Some(NameServerError::NoEdns)),
            (DnsTransport::Udp, Some(NameServerError::Truncated)),
            (DnsTransport::Tcp, None),
        ]
    );
}

pub(crate) async fn a_client_that_looks_servers_up_closes_promptly<R: Stack>() {
    let world = World::<R>::start(1).await;
    world
        .dns()
        .set_faults(|faults| faults.answer = Some(DnsAnswer::Nothing));
    let client = found(&world).start().unwrap();
    world
        .until("question", || world.dns().stats().udp >= 1)
        .await;
    let begun = Instant::now();
    world.soon("close", client.close()).await;
    let limit = Duration::from_secs(1);
    assert!(
        begun.elapsed() < limit,
        "the question was given up, not waited for"
    );
}

pub(crate) async fn what_dnsmasq_serves_is_found<R: Stack>() {
    what_real_name_servers_serve_is_found::<R>(Software::Dnsmasq).await;
}

pub(crate) async fn what_knot_serves_is_found<R: Stack>() {
    what_real_name_servers_serve_is_found::<R>(Software::Knot).await;
}

/// One, three and 120 records, over UDP as far as they fit and over TCP.
async fn what_real_name_servers_serve_is_found<R: Stack>(software: Software) {
    if !software.is_installed() {
        return;
    }
    for count in [1, 3, 120] {
        // Its servers are not used: what is listed here are 120 names.
        let world = World::<R>::start(1).await;
        let name_server = NameServer::start(software, count);
        world.until("name server", || name_server.is_ready()).await;
        let expected: Vec<_> = name_server.servers().into_iter().take(64).collect();

        let (servers, events) = looked_up(&world, asking::<R>(name_server.port)).await;
        assert_eq!(servers, expected, "{software:?}, {count}");
        let truncated = (DnsTransport::Udp, Some(NameServerError::Truncated));
        let by_udp = [(DnsTransport::Udp, None)];
        let by_tcp = [truncated.clone(), (DnsTransport::Tcp, None)];
        let fits = count < 100;
        let expected_tries = if fits { &by_udp[..] } else { &by_tcp };
        assert_eq!(tries(&events), expected_tries, "{software:?}, {count}");
        let left_out = SrvWarning::TooMany { left_out: 56 };
        let expected_warnings = if fits { vec![] } else { vec![left_out] };
        assert_eq!(
            warnings(&events),
            expected_warnings,
            "{software:?}, {count}"
        );

        // However few they are, over TCP they are the same.
        let port = truncating(name_server.port);
        let (servers, events) = looked_up(&world, asking::<R>(port)).await;
        assert_eq!(servers, expected, "{software:?}, {count}");
        assert_eq!(tries(&events), by_tcp, "{software:?}, {count}");

        // A name that it does not have.
        let string = format!(
            "chronicle+srv://other.test?srvNameServer=127.0.0.1:{}",
            name_server.port
        );
        let builder = R::client(string.parse().unwrap());
        let (servers, events) = looked_up(&world, builder).await;
        assert!(servers.is_empty(), "{servers:?}");
        let is_told = events.iter().any(|event| match event {
            Event::BackingOff {
                error: Some(error), ..
            } => error.lookup.is_some(),
            _ => false,
        });
        assert!(is_told, "{events:?}");
    }
}

/// A client to be that finds the servers of a world through its DNS, with short waits.
fn found<R: Stack>(world: &World<R>) -> R::Builder {
    impatient(R::client(world.srv_string()))
}

/// A client to be that asks the name server of a port for `cluster.test`.
fn asking<R: Stack>(port: u16) -> R::Builder {
    let string = format!("chronicle+srv://cluster.test?srvNameServer=127.0.0.1:{port}");
    let string: ConnectionString = string.parse().unwrap();
    R::client(string)
}

async fn looked_up<R: Stack>(world: &World<R>, builder: R::Builder) -> (Vec<String>, Vec<Event>) {
    let mut events = Vec::new();
    let lookup = builder.resolve(|event| events.push(event.clone()));
    let servers = world.soon("end of the lookup", lookup).await.unwrap();
    (names(&servers), events)
}

/// How name servers were asked, and what came of it if that was no list.
fn tries(events: &[Event]) -> Vec<(DnsTransport, Option<NameServerError>)> {
    let tries = events.iter().filter_map(|event| match event {
        Event::LookupTryFailed {
            transport, error, ..
        } => Some((*transport, Some(error.clone()))),
        Event::Resolved { transport, .. } => Some((*transport, None)),
        _ => None,
    });
    tries.collect()
}

fn warnings(events: &[Event]) -> Vec<SrvWarning> {
    let warnings = events.iter().filter_map(|event| match event {
        Event::Resolved { warnings, .. } => Some(warnings.clone()),
        _ => None,
    });
    warnings.flatten().collect()
}

fn names(servers: &[Endpoint]) -> Vec<String> {
    servers.iter().map(ToString::to_string).collect()
}

/// The servers of these indices, as DNS tells them.
fn listed<R: Stack>(world: &World<R>, servers: &[usize]) -> Vec<String> {
    let ports = servers.iter().map(|index| world.servers()[*index].port());
    ports.map(|port| format!("localhost:{port}")).collect()
}

async fn next_candidates<R: Stack>(world: &World<R>, events: &mut R::Events) -> Vec<String> {
    world
        .event(events, "attempt", |event| match event {
            Event::Connecting { candidates, .. } => Some(names(candidates)),
            _ => None,
        })
        .await
}

fn is_server_failure(error: &NameServerError) -> bool {
    *error == NameServerError::ServerFailure
}

fn is_refused(error: &NameServerError) -> bool {
    *error == NameServerError::Refused
}

fn is_timed_out(error: &NameServerError) -> bool {
    matches!(error, NameServerError::TimedOut { .. })
}
