//! After a drop: the same path as before.

use crate::help::*;
use chronicle_connection::{
    Backoff, Code, Command, Event, FailureKind, Id, Jitter, Request, State, TlsFailure,
};
use chronicle_reference_server::model::{ModelConfig, Verdict};
use chronicle_simulation::{
    Fault, Hand, Reachable, Setup, http, id_of, incompatible, ok, replay, status,
};
use std::time::Duration;

#[test]
fn a_reconnect_selects_reserves_and_checks_like_the_first_connect() {
    let mut hand = hand("chronicle://s1,s2");
    hand.connect();
    let transports = offer(&mut hand, &[("s1", Some(0)), ("s2", Some(1))]);
    let live = pass(&mut hand, transports[0]);
    live_on(&mut hand, live, 7);
    hand.take_all();
    hand.events();
    hand.reply(live.transport, closed());
    let transports = offer(&mut hand, &[("s1", Some(5)), ("s2", Some(1))]);
    assert_eq!(the_chosen(&mut hand), "s2", "no server is home");
    pass(&mut hand, transports[1]);
}

#[test]
fn an_error_in_any_phase_of_an_attempt_is_followed_by_the_next_attempt() {
    let (mut hand, live) = live_hand();
    live_on(&mut hand, live, 7);
    hand.take_all();
    hand.events();
    hand.reply(live.transport, closed());
    let fail: [fn(&mut Hand, Id); 6] = [
        |hand, transport| hand.reply(transport, failed(FailureKind::Dns)),
        |hand, transport| hand.reply(transport, failed(FailureKind::Unreachable)),
        |hand, transport| {
            hand.reply(
                transport,
                failed(FailureKind::Tls(TlsFailure::UnknownIssuer)),
            );
        },
        |hand, transport| {
            hand.open(transport);
            let check = hand.take(Request::CheckCompatibility, transport);
            hand.reply(check, status(Code::Unavailable));
        },
        |hand, transport| {
            hand.open(transport);
            let stream = prove(hand, transport);
            hand.reply(stream, status(Code::Unavailable));
        },
        |hand, transport| {
            hand.open(transport);
            let stream = prove(hand, transport);
            hand.reply(stream, status(Code::Unauthenticated));
        },
    ];
    for step in fail {
        hand.wait_until(has_dialled);
        let transport = hand.take_open("s1");
        step(&mut hand, transport);
        hand.take_all();
    }
    assert_eq!(waits(&mut hand), in_secs(&[1, 2, 4, 8, 16, 30]));
    hand.wait_until(has_dialled);
    go_live(&mut hand, "s1");
}

#[test]
fn the_watchdog_works_after_a_first_connect_that_failed() {
    let mut hand = hand("chronicle://s1");
    hand.connect();
    refuse_all(&mut hand);
    hand.wait_until(has_dialled);
    go_live(&mut hand, "s1");
    hand.wait(secs(5) - MOMENT);
    assert!(hand.session().is_some());
    hand.wait(MOMENT);
    assert!(hand.session().is_none());
}

#[test]
fn a_reconnect_stops_only_when_every_candidate_is_incompatible() {
    let mut hand = hand("chronicle://s1,s2");
    hand.connect();
    let transports = offer(&mut hand, &[("s1", Some(0)), ("s2", Some(1))]);
    let live = pass(&mut hand, transports[0]);
    live_on(&mut hand, live, 7);
    hand.take_all();
    hand.reply(live.transport, closed());

    // A rolling upgrade: the one is new, the other restarts.
    let (first, second) = (hand.take_open("s1"), hand.take_open("s2"));
    hand.reply(second, refused());
    hand.open(first);
    refuse_contract(&mut hand, first);
    while let Some((transport, _)) = hand.find_open() {
        hand.reply(transport, refused());
    }
    assert_eq!(hand.state(), State::BackingOff);

    // Now both are new. (The one that refused goes last, so they may be dialled one by one.)
    hand.take_all();
    hand.wait_until(has_dialled);
    while let Some((transport, _)) = hand.find_open() {
        hand.open(transport);
        refuse_contract(&mut hand, transport);
    }
    assert_eq!(hand.state(), State::Stopped);
}

fn refuse_contract(hand: &mut Hand, transport: Id) {
    if let Some(output) = hand.find_request(Request::Count, transport) {
        hand.reply(id_of(&output).unwrap(), http(200, "0"));
    }
    let check = hand.take(Request::CheckCompatibility, transport);
    hand.reply(check, incompatible(false, &["new"]));
    hand.reply(check, ok());
}

#[test]
fn a_server_that_was_upgraded_under_a_session_ends_the_client_with_a_terminal_error() {
    let world = replay(start(), 1, |world| {
        let server = world.add_server();
        let client = world.add_client(Setup::new("chronicle://s1"));
        world.connect(client);
        world.run_for(secs(10));
        world.reconfigure(server, |model| {
            model.verdict = Verdict::Incompatible(vec!["FieldRemoved".to_owned()]);
        });
        world.restart(server);
        world.run_for(secs(60));
        assert_eq!(world.server(server).arrived(Request::CheckCompatibility), 2);
    });
    let client = world.clients().next().unwrap();
    assert_eq!(client.state(), State::Stopped);
    let last = client.events().last().unwrap().1.clone();
    assert!(matches!(last, Event::Failed(_)), "{last:?}");
}

#[test]
fn a_reconnect_finds_another_server_when_its_own_is_killed() {
    let world = replay(start(), 5, |world| {
        let servers = world.add_servers(3);
        let client = world.add_client(Setup::new("chronicle://s1,s2,s3"));
        world.connect(client);
        world.run_for(secs(10));
        let session = world.client(client).session().unwrap();
        let own = servers
            .iter()
            .find(|&&server| *world.server(server).endpoint() == session.server);
        world.crash(*own.unwrap());
        world.run_for(secs(1));
        let next = world.client(client).session().unwrap();
        assert_ne!(next.server, session.server);
        assert_eq!(next.generation, 2);
    });
    assert_eq!(world.clients().count(), 1);
}

#[test]
fn a_server_that_is_down_for_a_minute_is_taken_again() {
    replay(start(), 5, |world| {
        let server = world.add_server();
        let client = world.add_client(Setup::new("chronicle://s1"));
        world.connect(client);
        world.run_for(secs(10));
        world.crash(server);
        world.run_for(secs(60));
        let dials = world.server(server).dials().len();
        assert!((6..=9).contains(&dials), "{dials}");
        world.start(server);
        world.run_for(secs(31));
        assert!(world.client(client).session().is_some());
    });
}

#[test]
fn a_server_that_hangs_is_left_alone_for_as_long_as_the_ladder_says() {
    replay(start(), 5, |world| {
        let server = world.add_server();
        world.set_reachable(server, Reachable::Hangs);
        let client = world.add_client(Setup::new("chronicle://s1").patient());
        world.connect(client);
        world.run_for(secs(600));
        // Each attempt takes five seconds on top of its wait.
        let dials = world.server(server).dials().len();
        assert!((18..=32).contains(&dials), "{dials}");
        world.set_reachable(server, Reachable::Up);
        world.run_for(secs(36));
        assert!(world.client(client).session().is_some());
    });
}

#[test]
fn a_fleet_that_lost_its_server_comes_back_spread_out() {
    let world = replay(start(), 9, |world| {
        let server = world.add_server();
        for _ in 0..200 {
            let client = world.add_client(Setup::new("chronicle://s1"));
            world.connect(client);
        }
        world.run_for(secs(10));
        world.crash(server);
        world.run_for(secs(20));
        world.start(server);
        world.run_for(secs(40));
        assert!(world.clients().all(|client| client.session().is_some()));
    });
    let server = world.server(world.server_ids().next().unwrap());
    let mut rounds: Vec<Vec<Duration>> = vec![Vec::new(); 5];
    for client in world.client_ids() {
        let dials = server.dials().iter();
        let mine = dials.filter(|(at, who)| *who == client && *at > secs(10));
        for (round, (at, _)) in rounds.iter_mut().zip(mine) {
            round.push(*at);
        }
    }
    for (nth, round) in rounds
        .iter_mut()
        .enumerate()
        .filter(|(_, round)| round.len() > 150)
    {
        round.sort();
        let spread = round[round.len() * 95 / 100] - round[round.len() * 5 / 100];
        assert!(spread >= millis(200), "round {nth} came within {spread:?}");
        // Nor do many come at once within the round.
        let crowd = round.windows(20).map(|window| window[19] - window[0]).min();
        assert!(
            crowd >= Some(millis(5)),
            "twenty of round {nth} within {crowd:?}"
        );
    }
}

#[test]
fn a_ladder_without_jitter_is_exact_in_the_world_too() {
    let world = replay(start(), 1, |world| {
        let server = world.add_server_with(ModelConfig::default());
        world.fail(
            server,
            Request::CheckCompatibility,
            Fault::Status(chronicle_connection::Status::grpc(Code::Unavailable, "")),
        );
        let mut setup = Setup::new("chronicle://s1").patient();
        setup.backoff = Backoff {
            jitter: Jitter::None,
            ..Backoff::default()
        };
        let client = world.add_client(setup);
        world.command(client, Command::Connect);
        world.run_for(secs(40));
        assert_eq!(world.server(server).arrived(Request::CheckCompatibility), 6);
        assert_eq!(world.server(server).arrived(Request::Connect), 0);
    });
    assert_eq!(world.clients().next().unwrap().state(), State::BackingOff);
}
