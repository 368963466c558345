//! A session with a server at the other end.

use crate::help::*;
use chronicle_connection::{Code, DropCause, Event, FailureKind, Request, State, Status};
use chronicle_reference_server::model::{Age, FirstKeepAlive, ModelConfig};
use chronicle_simulation::{Fault, Latency, Network, Setup, World, replay};
use std::time::Duration;

fn one_to_one(setup: Setup) -> impl Fn(&mut World) {
    move |world: &mut World| {
        world.add_server();
        let client = world.add_client(setup.clone());
        world.connect(client);
        assert!(world.run_until(secs(1), |world| world.client(client).session().is_some()));
    }
}

fn drops(world: &World) -> Vec<(Duration, DropCause)> {
    let events = world.clients().flat_map(|client| client.events().to_vec());
    events
        .filter_map(|(at, event)| match event {
            Event::Disconnected { cause, .. } => Some((at, cause)),
            _ => None,
        })
        .collect()
}

#[test]
fn with_a_healthy_server_a_session_lasts() {
    let setups = [
        ModelConfig::default(),
        ModelConfig {
            first_keep_alive: FirstKeepAlive::AfterInterval,
            ..ModelConfig::default()
        },
    ];
    for model in setups {
        let world = replay(start(), 1, |world| {
            world.set_network(Network {
                latency: Latency::Between(millis(1), millis(400)),
                ..Network::default()
            });
            let server = world.add_server_with(model.clone());
            let client = world.add_client(Setup::new("chronicle://s1"));
            world.connect(client);
            world.run_for(secs(3600));
            assert_eq!(world.server(server).registered(), 1);
        });
        assert!(drops(&world).is_empty(), "{:?}", drops(&world));
    }
}

#[test]
fn with_keep_alives_stopped_and_tcp_open_the_drop_comes_five_seconds_after_the_last() {
    let world = replay(start(), 1, |world| {
        one_to_one(Setup::new("chronicle://s1"))(world);
        world.run_for(secs(10));
        world.reconfigure(server_of(world), |model| model.silent = true);
        world.run_for(secs(7));
    });
    let [(at, DropCause::Silence { silent })] = drops(&world)[..] else {
        panic!("{:?}", drops(&world));
    };
    assert_eq!(silent, secs(5));
    assert!(at >= secs(14) && at <= millis(15_300), "{at:?}");
}

/// The only server of a world.
fn server_of(world: &World) -> chronicle_simulation::ServerId {
    world.server_ids().next().unwrap()
}

fn client_of(world: &World) -> chronicle_simulation::ClientId {
    world.client_ids().next().unwrap()
}

#[test]
fn a_black_hole_is_noticed_within_the_threshold() {
    let world = replay(start(), 1, |world| {
        one_to_one(Setup::new("chronicle://s1"))(world);
        world.run_for(millis(10_300));
        world.black_hole(client_of(world));
        world.run_for(secs(6));
    });
    let drops = drops(&world);
    assert_eq!(drops.len(), 1);
    assert!(drops[0].0 <= millis(10_400) + secs(5), "{drops:?}");
}

#[test]
fn a_server_that_takes_no_answers_evicts_nobody_who_has_not_noticed_before() {
    // It hangs, fails or answers too late; all the while its keep-alives go on.
    let faults = [
        Fault::Hangs,
        Fault::Status(Status::grpc(Code::Internal, "")),
        Fault::Fails(FailureKind::Reset),
        Fault::Slow(secs(6)),
    ];
    for fault in faults {
        let world = replay(start(), 1, |world| {
            one_to_one(Setup::new("chronicle://s1"))(world);
            world.run_for(secs(5));
            world.fail(server_of(world), Request::KeepAlive, fault.clone());
            world.run_for(secs(6));
        });
        let drops = drops(&world);
        assert_eq!(drops.len(), 1, "{fault:?}");
        assert!(drops[0].0 <= secs(11), "{drops:?}");
        let cause = &drops[0].1;
        assert!(
            matches!(cause, DropCause::Unacknowledged { .. }),
            "{cause:?}"
        );
    }
}

#[test]
fn an_answer_that_arrives_after_the_eviction_is_acknowledged_and_helps_nothing() {
    // Answers are three seconds late in both directions: the server sees a client every second, but
    // never in time to be believed; whoever is connected is registered, which a checker watches.
    let world = replay(start(), 3, |world| {
        one_to_one(Setup::new("chronicle://s1").patient())(world);
        world.run_for(secs(5));
        world.set_network(Network {
            latency: Latency::Fixed(secs(3)),
            ..Network::default()
        });
        world.run_for(secs(30));
    });
    assert!(!drops(&world).is_empty());
}

#[test]
fn a_slow_but_steady_network_drops_nothing() {
    let world = replay(start(), 3, |world| {
        world.set_network(Network {
            latency: Latency::Fixed(millis(900)),
            ..Network::default()
        });
        world.add_server();
        let client = world.add_client(Setup::new("chronicle://s1").patient());
        world.connect(client);
        world.run_for(secs(120));
        assert!(world.client(client).session().is_some());
    });
    assert!(drops(&world).is_empty(), "{:?}", drops(&world));
}

#[test]
fn a_paused_process_that_was_evicted_notices_when_it_goes_on_and_reconnects() {
    let world = replay(start(), 1, |world| {
        one_to_one(Setup::new("chronicle://s1"))(world);
        world.run_for(secs(10));
        world.pause(client_of(world), secs(7));
        world.run_for(secs(6));
        assert_eq!(world.server(server_of(world)).registered(), 0, "evicted");
        world.run_for(secs(2));
    });
    assert_eq!(drops(&world).len(), 1);
    let session = world.client(client_of(&world)).session().unwrap();
    assert_eq!(session.generation, 2);
    assert_eq!(world.server(server_of(&world)).registered(), 1);
}

#[test]
fn a_short_pause_drops_nothing() {
    let world = replay(start(), 1, |world| {
        one_to_one(Setup::new("chronicle://s1"))(world);
        world.run_for(secs(10));
        world.pause(client_of(world), secs(3));
        world.run_for(secs(20));
    });
    assert!(drops(&world).is_empty());
}

#[test]
fn a_machine_that_was_suspended_notices_although_its_clock_stood_still() {
    let world = replay(start(), 1, |world| {
        one_to_one(Setup::new("chronicle://s1"))(world);
        world.run_for(secs(10));
        world.suspend(client_of(world), secs(3600));
        world.run_for(secs(3602));
    });
    let drops = drops(&world);
    assert_eq!(drops.len(), 1);
    assert!(drops[0].0 <= secs(3612), "{drops:?}");
    let session = world.client(client_of(&world)).session().unwrap();
    assert_eq!(session.generation, 2);
}

#[test]
fn a_server_of_before_answers_keeps_its_sessions() {
    let world = replay(start(), 1, |world| {
        let server = world.add_server_with(ModelConfig {
            evict_after: secs(86_400),
            ..ModelConfig::default()
        });
        let unknown = Fault::Status(Status::grpc(Code::Unimplemented, ""));
        world.fail(server, Request::KeepAlive, unknown);
        let client = world.add_client(Setup::new("chronicle://s1"));
        world.connect(client);
        world.run_for(secs(600));
        assert!(world.client(client).session().is_some());
    });
    assert!(drops(&world).is_empty());
}

#[test]
fn a_server_that_is_killed_is_noticed_within_a_round_trip() {
    let world = replay(start(), 1, |world| {
        one_to_one(Setup::new("chronicle://s1"))(world);
        world.run_for(millis(9_100));
        world.crash(server_of(world));
        world.run_for(millis(2));
        assert!(world.client(client_of(world)).session().is_none());
    });
    assert_eq!(drops(&world).len(), 1);
}

#[test]
fn a_stream_closed_in_good_order_is_noticed_at_once_and_the_server_is_taken_again() {
    let world = replay(start(), 1, |world| {
        one_to_one(Setup::new("chronicle://s1"))(world);
        world.run_for(secs(10));
        world.finish_streams(server_of(world), &Status::grpc(Code::Ok, ""));
        world.run_for(secs(1));
    });
    let drops = drops(&world);
    assert_eq!(drops.len(), 1);
    let ended = DropCause::StreamEnded(Status::grpc(Code::Ok, ""));
    assert_eq!(drops[0].1, ended);
    assert!(world.client(client_of(&world)).session().is_some());
}

#[test]
fn a_server_that_lacks_both_ways_of_comparing_gets_no_session() {
    let world = replay(start(), 1, |world| {
        let server = world.add_server_with(ModelConfig {
            age: Age::WithoutCheckAndDescriptors,
            ..ModelConfig::default()
        });
        let client = world.add_client(Setup::new("chronicle://s1"));
        world.connect(client);
        world.run_for(secs(60));
        assert_eq!(world.server(server).arrived(Request::Connect), 0);
    });
    assert_eq!(world.client(client_of(&world)).state(), State::Stopped);
}
