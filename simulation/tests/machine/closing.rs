//! `Close`, in every phase.

use crate::help::*;
use chronicle_connection::{Command, Connection, Event, Id, Input, Output, Reply, Request, State};
use chronicle_simulation::{Setup, World, id_of, request_of};
use rand_chacha::ChaCha8Rng;
use rand_core::SeedableRng as _;
use std::collections::BTreeSet;

/// All outputs of a machine so far, as ids that are open or in flight.
fn in_flight(outputs: &[Output]) -> BTreeSet<Id> {
    let mut ids = BTreeSet::new();
    for output in outputs {
        match output {
            Output::Cancel(id) | Output::Close(id) => {
                ids.remove(id);
            }
            Output::NameServers { .. }
            | Output::Dns { .. }
            | Output::Open { .. }
            | Output::Http { .. }
            | Output::Unary(_)
            | Output::ServerStream(_)
            | Output::Event(_) => ids.extend(id_of(output)),
        }
    }
    ids
}

#[test]
fn close_ends_everything_at_once_in_every_phase() {
    for (phase, mut hand) in phases() {
        let was_stopped = hand.state() == State::Stopped;
        hand.events();
        hand.input(Command::Close);
        assert_eq!(hand.state(), State::Stopped, "{phase}");
        assert_eq!(hand.timeout(), None, "{phase}");
        let expected = if was_stopped {
            vec![]
        } else {
            vec![Event::Closed]
        };
        assert_eq!(
            hand.events(),
            expected,
            "{phase}: not a failed attempt, just closed"
        );
        hand.wait(secs(3600));
        assert!(hand.events().is_empty(), "{phase}");
    }
}

#[test]
fn close_drops_what_is_in_flight() {
    for (phase, mut hand) in phases() {
        let open = in_flight(hand.outbox());
        hand.input(Command::Close);
        let outbox = hand.outbox();
        let left = in_flight(outbox);
        // What is on a transport ends with it.
        let requests = outbox.iter().filter(|output| request_of(output).is_some());
        let carried: BTreeSet<Id> = requests.filter_map(id_of).collect();
        let left: Vec<_> = left.difference(&carried).collect();
        assert!(left.is_empty(), "{phase}: {left:?} of {open:?}");
    }
}

#[test]
fn after_a_close_nothing_is_dialled_and_connect_does_nothing() {
    for (phase, mut hand) in phases() {
        hand.input(Command::Close);
        hand.take_all();
        hand.events();
        for _ in 0..3 {
            hand.connect();
            hand.wait(secs(60));
        }
        assert!(hand.outbox().is_empty(), "{phase}");
        assert!(hand.events().is_empty(), "{phase}");
        assert_eq!(hand.state(), State::Stopped, "{phase}");
    }
}

#[test]
fn a_second_close_says_nothing() {
    for (phase, mut hand) in phases() {
        hand.input(Command::Close);
        hand.take_all();
        hand.events();
        hand.input(Command::Close);
        assert!(
            hand.outbox().is_empty() && hand.events().is_empty(),
            "{phase}"
        );
    }
}

#[test]
fn a_close_in_the_middle_of_a_long_wait_ends_it_at_once() {
    let mut hand = hand("chronicle://s1");
    hand.connect();
    for _ in 0..6 {
        hand.wait_until(has_dialled);
        let transport = hand.take_open("s1");
        hand.reply(transport, refused());
    }
    hand.wait(millis(1));
    hand.events();
    hand.input(Command::Close);
    assert_eq!(hand.events(), [Event::Closed]);
    assert_eq!(hand.timeout(), None);
}

#[test]
fn a_close_between_the_counts_and_the_choice_reserves_nothing() {
    let (_, mut hand) = phases()
        .into_iter()
        .find(|(phase, _)| *phase == "counting")
        .unwrap();
    let asks = asked(&hand, Request::Count);
    hand.input(Command::Close);
    for ask in asks {
        hand.reply(ask, chronicle_simulation::http(200, "0"));
    }
    assert!(!hand.asks(Request::Reserve));
}

#[test]
fn replies_after_a_close_change_nothing() {
    for (phase, mut hand) in phases() {
        let ids: Vec<Id> = hand.outbox().iter().filter_map(id_of).collect();
        hand.input(Command::Close);
        hand.take_all();
        hand.events();
        for id in ids {
            hand.open(id);
            hand.is_closed(id);
            hand.reply(id, closed());
        }
        assert!(
            hand.outbox().is_empty() && hand.events().is_empty(),
            "{phase}"
        );
    }
}

#[test]
fn after_giving_up_the_machine_stays_stopped() {
    let mut setup = Setup::new("chronicle://s1").exact();
    setup.connect_timeout = Some(secs(2));
    let mut hand = chronicle_simulation::Hand::new(start(), setup);
    hand.connect();
    hand.wait(secs(2));
    assert_eq!(hand.state(), State::Stopped);
    hand.take_all();
    hand.events();
    hand.connect();
    hand.input(Command::Slept(secs(60)));
    hand.wait(secs(3600));
    assert!(hand.outbox().is_empty() && hand.events().is_empty());
    assert_eq!(hand.state(), State::Stopped);
}

#[test]
fn a_server_counts_a_client_that_closed_no_more() {
    let mut world = World::new(start(), 1);
    let server = world.add_server();
    let client = world.add_client(Setup::new("chronicle://s1"));
    world.connect(client);
    world.run_for(secs(5));
    assert_eq!(world.server(server).registered(), 1);
    world.close(client);
    world.run_for(millis(10));
    assert_eq!(world.server(server).registered(), 0);
    let arrivals = world.server(server).arrivals().len();
    world.run_for(secs(60));
    assert_eq!(world.server(server).arrivals().len(), arrivals);
}

#[test]
fn a_close_at_any_moment_of_a_connect_leaves_nothing_behind() {
    for moment in 0..120 {
        let mut world = World::new(start(), 3);
        let servers = world.add_servers(3);
        let client = world.add_client(Setup::new("chronicle://s1,s2,s3"));
        for _ in 0..5 {
            world.connect(client);
        }
        world.run_for(millis(moment * 3));
        world.close(client);
        world.close(client);
        world.run_for(secs(40));
        assert_eq!(world.client(client).state(), State::Stopped);
        for server in servers {
            assert_eq!(world.server(server).registered(), 0);
            assert_eq!(
                world.open_transports(server),
                0,
                "closed after {moment} times 3 ms"
            );
        }
    }
}

#[test]
fn what_was_queued_before_the_close_is_not_asked_for_after_it() {
    let now = start();
    let setup = Setup::new("chronicle://s1").exact();
    let rng = ChaCha8Rng::seed_from_u64(1);
    let mut connection = Connection::new(setup.config(), setup.contract.clone(), rng, now);
    connection.handle(now, Command::Connect);
    let outputs: Vec<Output> = std::iter::from_fn(|| connection.poll_output()).collect();
    let transport = outputs.iter().find_map(id_of).unwrap();
    let reply = Reply::Opened {
        peer: ([10, 0, 0, 1], 35000).into(),
    };
    let id = transport;
    connection.handle(now, Input::Reply { id, reply });
    // The reservation and the check are queued, and nobody has taken them yet.
    connection.handle(now, Command::Close);
    let outputs: Vec<Output> = std::iter::from_fn(|| connection.poll_output()).collect();
    assert!(
        outputs.iter().all(|output| request_of(output).is_none()),
        "{outputs:?}"
    );
    assert!(matches!(
        outputs.as_slice(),
        [.., Output::Event(Event::Closed)]
    ));
    assert!(in_flight(&outputs).is_empty());
}
