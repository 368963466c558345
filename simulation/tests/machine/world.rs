//! What a world can do to its hosts, seen by a client.

use crate::help::*;
use chronicle_connection::{
    Code, Command, DnsTransport, Event, FailureKind, SrvRecord, State, Status,
};
use chronicle_reference_server::model::ModelConfig;
use chronicle_simulation::{
    ClientId, Disorder, DnsAnswer, DnsFaults, Forgery, Host, NameServerId, Reachable, ServerId,
    Setup, Told, World, endpoint,
};

const SRV_STRING: &str = "chronicle+srv://cluster.test";

fn records(servers: &[&str]) -> Vec<SrvRecord> {
    let record = |server: &&str| SrvRecord {
        server: endpoint(server),
        priority: 0,
        weight: 0,
    };
    servers.iter().map(record).collect()
}

/// Two servers, the first of which DNS tells, and a client that finds it so.
fn looking_up(faults: DnsFaults) -> (World, ClientId, NameServerId) {
    let mut world = World::new(start(), 1);
    world.add_servers(2);
    let name_server = world.add_name_server();
    world.set_records("cluster.test", records(&["s1"]));
    world.set_dns_faults(name_server, faults);
    let client = world.add_client(Setup::new(SRV_STRING).exact().patient());
    world.connect(client);
    (world, client, name_server)
}

fn tries(world: &World, client: ClientId) -> Vec<(DnsTransport, bool)> {
    let events = world.client(client).events().iter();
    let tries = events.filter_map(|(_, event)| match event {
        Event::LookupTryFailed { transport, .. } => Some((*transport, false)),
        Event::Resolved { transport, .. } => Some((*transport, true)),
        _ => None,
    });
    tries.collect()
}

#[test]
fn records_that_change_are_found_on_the_next_connect() {
    let (mut world, client, _) = looking_up(DnsFaults::default());
    world.run_for(secs(10));
    let servers: Vec<ServerId> = world.server_ids().collect();
    assert_eq!(world.client(client).server(), Some(servers[0]));
    world.set_records("cluster.test", records(&["s2"]));
    world.crash(servers[0]);
    world.run_for(secs(2));
    assert_eq!(world.client(client).server(), Some(servers[1]));
}

#[test]
fn truncated_answers_are_had_over_tcp_and_edns_is_left_out_where_it_is_not_known() {
    let (mut world, client, _) = looking_up(DnsFaults {
        truncates: true,
        no_edns: true,
        ..DnsFaults::default()
    });
    world.run_for(secs(1));
    assert!(world.client(client).is_connected());
    let (udp, tcp) = (DnsTransport::Udp, DnsTransport::Tcp);
    assert_eq!(
        tries(&world, client),
        [(udp, false), (udp, false), (tcp, true)]
    );
}

#[test]
fn no_forgery_is_believed() {
    for forgery in [
        Forgery::OtherId,
        Forgery::OtherName,
        Forgery::OtherType,
        Forgery::Question,
    ] {
        let (mut world, client, _) = looking_up(DnsFaults {
            forgery: Some(forgery),
            ..DnsFaults::default()
        });
        world.run_for(secs(1));
        assert!(world.client(client).is_connected(), "{forgery:?}");
    }
}

#[test]
fn whoever_dials_what_only_a_forgery_names_breaks_a_rule() {
    let mut world = World::new(start(), 1);
    let client = world.add_client(Setup::new("chronicle://forged.test").exact());
    let violation = world.try_command(client, Command::Connect).unwrap_err();
    assert!(violation.rule.contains("forged"), "{violation}");
}

#[test]
fn a_name_server_that_is_no_help_is_passed_over_and_without_another_nobody_connects() {
    for answer in [
        DnsAnswer::Nothing,
        DnsAnswer::NoSuchName,
        DnsAnswer::NoRecords,
        DnsAnswer::ServerFailure,
        DnsAnswer::Refused,
        DnsAnswer::Garbage,
        DnsAnswer::Fails(FailureKind::Unreachable),
    ] {
        let faults = DnsFaults {
            answer: Some(answer),
            ..DnsFaults::default()
        };
        let (mut world, client, name_server) = looking_up(faults);
        world.run_for(secs(6));
        assert!(!world.client(client).is_connected(), "{answer:?}");
        world.set_dns_faults(name_server, DnsFaults::default());
        world.run_for(secs(9));
        assert!(world.client(client).is_connected(), "{answer:?}");

        let knows = matches!(answer, DnsAnswer::NoSuchName | DnsAnswer::NoRecords);
        let (mut world, client, _) = looking_up(faults);
        world.add_name_server();
        // Known from the second attempt on.
        world.run_for(secs(10));
        assert_eq!(world.client(client).is_connected(), !knows, "{answer:?}");
    }
}

#[test]
fn a_platform_without_name_servers_fails_the_lookup() {
    let (mut world, client, _) = looking_up(DnsFaults::default());
    world.set_dns_configured(false);
    world.run_for(secs(10));
    assert!(world.client(client).is_connected(), "it had asked before");

    let mut world = World::new(start(), 1);
    world.set_dns_configured(false);
    let client = world.add_client(Setup::new(SRV_STRING).exact().patient());
    world.connect(client);
    world.run_for(millis(500));
    assert_eq!(world.client(client).state(), State::BackingOff);
}

#[test]
fn a_partition_keeps_clients_from_name_servers() {
    for reaches in [true, false] {
        let (mut world, client, name_server) = looking_up(DnsFaults::default());
        world.close(client);
        let client = world.add_client(Setup::new(SRV_STRING).exact().patient());
        let (here, there) = (Host::Client(client), Host::NameServer(name_server));
        let partition = match reaches {
            true => world.partition([there], [here]),
            false => world.partition([here], [there]),
        };
        world.connect(client);
        world.run_for(secs(3));
        assert_eq!(world.client(client).state(), State::Resolving, "{reaches}");
        assert_eq!(tries(&world, client), [(DnsTransport::Udp, false)]);
        world.heal_partition(partition);
        world.run_for(secs(3));
        assert!(world.client(client).is_connected(), "{reaches}");
    }
}

/// A client with a session that is stable.
fn stable(seed: u64) -> (World, ClientId) {
    let mut world = World::new(start(), seed);
    world.add_servers(2);
    let client = world.add_client(Setup::new("chronicle://s1,s2").exact().patient());
    world.connect(client);
    world.run_for(secs(10));
    assert!(world.client(client).is_connected());
    (world, client)
}

#[test]
fn a_transport_can_be_lost_to_both_sides_or_to_one() {
    // Without a word, five seconds after the last that came.
    for (told, at_most) in [
        (Told::Both, millis(10)),
        (Told::Client, millis(10)),
        (Told::Server, secs(6)),
    ] {
        let (mut world, client) = stable(1);
        let server = world.client(client).server().unwrap();
        world.lose_transport(client, told);
        let is_known = world.server(server).registered() > 0;
        assert_eq!(is_known, told == Told::Client, "{told:?}");
        let dropped = world.run_until(at_most, |world| {
            world.session_changes().iter().any(|change| !change.is_up)
        });
        assert!(dropped, "{told:?}");
        world.run_for(secs(1));
        assert!(world.client(client).is_connected(), "{told:?}");
        assert_eq!(world.live_transports(client), 1, "{told:?}");
    }
}

#[test]
fn replies_in_disorder_break_no_rule_and_late_ones_are_ignored() {
    for seed in 0..20 {
        let mut world = World::new(start(), seed);
        world.add_servers(3);
        world.set_disorder(Disorder {
            reordered: 40,
            duplicated: 40,
            late: 10,
            by: secs(12),
        });
        let client = world.add_client(Setup::new(THREE).patient());
        world.connect(client);
        world.run_for(secs(60));
        let ignored = world.client(client).stats().ignored_replies;
        assert!(ignored > 0, "seed {seed}: duplicates arrive and do nothing");
        world.set_disorder(Disorder::default());
        world.run_for(secs(60));
        assert!(world.client(client).is_connected(), "seed {seed}");
    }
}

#[test]
fn dials_and_lookups_are_in_disorder_as_well() {
    let mut world = World::new(start(), 1);
    let server = world.add_server();
    world.set_reachable(server, Reachable::Refuses);
    world.add_name_server();
    world.set_records("cluster.test", records(&["s1"]));
    world.set_disorder(Disorder {
        duplicated: 100,
        ..Disorder::default()
    });
    let dials = world.add_client(Setup::new("chronicle://s1").exact().patient());
    let looks_up = world.add_client(Setup::new(SRV_STRING).exact().patient());
    world.connect(dials);
    world.connect(looks_up);
    world.run_for(secs(60));
    let dialled = world.client(dials).stats();
    let looked_up = world.client(looks_up).stats();
    // A dial each, and for who looks up the name servers and their answer; of the last ones, copies
    // may be on their way.
    let ignored = |attempts: u64, each: u64| (attempts - 1) * each..=attempts * each;
    assert!(ignored(dialled.attempts, 1).contains(&dialled.ignored_replies));
    assert!(ignored(looked_up.attempts, 3).contains(&looked_up.ignored_replies));

    world.set_reachable(server, Reachable::Up);
    world.set_disorder(Disorder {
        late: 100,
        by: secs(60),
        ..Disorder::default()
    });
    let (before, _) = (world.session_changes().len(), world.connect(looks_up));
    world.run_for(secs(1));
    assert_eq!(world.client(looks_up).state(), State::Resolving);
    assert_eq!(world.session_changes().len(), before);
}

/// How long a server that forgets everybody at once, and goes on sending, is believed until a rule
/// is broken.
fn believes_for(mut world: World, client: ClientId) -> f64 {
    let server = world.client(client).server().unwrap();
    world.reconfigure(server, |model| {
        model.evict_after = millis(0);
        model.evict_check = millis(1);
    });
    assert!(world.run_until(secs(3), |world| world.server(server).registered() == 0));
    let forgotten = world.elapsed();
    let violation = world.try_run_for(secs(60)).unwrap_err();
    assert!(violation.rule.contains("believes to be connected"));
    (violation.at - forgotten).as_secs_f64()
}

#[test]
fn whoever_believes_a_server_that_has_forgotten_it_breaks_a_rule() {
    let (world, client) = stable(1);
    // The client takes a step at least once a second.
    let plain = believes_for(world, client);
    assert!((5.0..7.1).contains(&plain), "{plain}");

    let (mut world, client) = stable(1);
    world.set_disorder(Disorder {
        by: secs(30),
        ..Disorder::default()
    });
    assert_eq!(
        believes_for(world.clone(), client),
        plain,
        "nothing is late"
    );
    world.set_disorder(Disorder {
        late: 20,
        by: secs(3),
        ..Disorder::default()
    });
    world.run_for(secs(20));
    assert!(world.run_until(secs(60), |world| world.client(client).is_connected()));
    let during = believes_for(world.clone(), client);
    assert!((7.1..10.1).contains(&during), "{during}");
    world.set_disorder(Disorder::default());
    world.run_for(secs(20));
    let afterwards = believes_for(world, client);
    assert!((5.0..7.1).contains(&afterwards), "{afterwards}");
}

#[test]
fn who_hears_late_of_its_end_is_not_too_trusting() {
    // The last keep-alives have to be late by ever more, none by too much: 179 is such a seed.
    for seed in 170..190 {
        let mut world = World::new(start(), seed);
        let server = world.add_server_with(ModelConfig {
            keep_alive_interval: millis(500),
            ..ModelConfig::default()
        });
        let client = world.add_client(Setup::new("chronicle://s1").patient());
        world.connect(client);
        world.run_for(secs(3));
        world.set_disorder(Disorder {
            late: 60,
            by: secs(11),
            ..Disorder::default()
        });
        world.run_for(secs(2));
        world.finish_streams(server, &Status::grpc(Code::Unavailable, "the stream ends"));
        world.run_for(secs(30));
    }
}

#[test]
fn a_server_that_is_stopped_sends_nothing_and_is_not_stopped_again() {
    let (mut world, client) = stable(1);
    let server = world.client(client).server().unwrap();
    world.pause_server(server, secs(4));
    world.pause_server(server, millis(100));
    world.go_away(server, 0);
    world.finish_streams(server, &Status::grpc(Code::Unavailable, "the stream ends"));
    let heard = world.client(client).stats().keep_alives;
    world.run_for(millis(3_900));
    assert!(world.client(client).stats().keep_alives <= heard + 1);
    assert!(world.client(client).is_connected());
    world.run_for(secs(10));
    assert_eq!(world.client(client).server(), Some(server));
    assert_eq!(world.session_changes().len(), 1, "it goes on where it was");
}

#[test]
fn a_process_that_is_stopped_is_not_stopped_again() {
    let (mut world, client) = stable(1);
    world.suspend(client, secs(3));
    world.pause(client, secs(60));
    world.suspend(client, secs(60));
    world.run_for(secs(4));
    let drops = world
        .session_changes()
        .iter()
        .filter(|change| !change.is_up);
    assert_eq!(drops.count(), 0, "what arrived meanwhile was kept");
    world.run_for(secs(30));
    assert!(world.client(client).is_connected());
}
