//! After a drop: the ladder, its jitter, stable sessions, and the same path as before.

use crate::help::*;
use chronicle_connection::{
    Backoff, Code, Command, Event, FailureKind, Id, Jitter, Reply, Request, State, TlsFailure,
};
use chronicle_reference_server::model::{ModelConfig, Verdict};
use chronicle_simulation::{
    Fault, Hand, Reachable, Setup, World, http, id_of, incompatible, ok, replay, status,
};
use std::time::Duration;

/// Refuses every dial of one attempt, when it comes.
fn refuse_all(hand: &mut Hand) {
    hand.wait_until(has_dialled);
    while let Some((transport, _)) = hand.find_open() {
        hand.reply(transport, refused());
    }
}

/// The waits that were announced since the last look.
fn waits(hand: &mut Hand) -> Vec<Duration> {
    back_offs(hand).into_iter().map(|(_, wait)| wait).collect()
}

fn in_secs(waits: &[u64]) -> Vec<Duration> {
    waits.iter().map(|&wait| secs(wait)).collect()
}

// The ladder.

#[test]
fn failed_attempts_wait_one_two_four_eight_sixteen_and_then_thirty_seconds() {
    let mut hand = hand("chronicle://s1,s2");
    hand.connect();
    let mut attempts = vec![];
    for _ in 0..8 {
        hand.wait_until(has_dialled);
        attempts.push(hand.elapsed());
        refuse_all(&mut hand);
    }
    assert_eq!(attempts, in_secs(&[0, 1, 3, 7, 15, 31, 61, 91]));
    assert_eq!(waits(&mut hand), in_secs(&[1, 2, 4, 8, 16, 30, 30, 30]));
}

#[test]
fn the_waits_never_overflow_and_never_leave_the_ceiling() {
    let mut hand = hand("chronicle://s1");
    hand.connect();
    for _ in 0..1100 {
        refuse_all(&mut hand);
    }
    let waits = waits(&mut hand);
    assert_eq!(waits.len(), 1100);
    assert!(waits[5..].iter().all(|&wait| wait == secs(30)));
}

#[test]
fn a_ladder_with_extreme_steps_neither_panics_nor_overflows() {
    let mut setup = Setup::new("chronicle://s1").exact().patient();
    setup.backoff.base = MOMENT;
    setup.backoff.ceiling = secs(300 * 86_400);
    let mut hand = Hand::new(start(), setup);
    hand.connect();
    for _ in 0..80 {
        refuse_all(&mut hand);
        hand.take_all();
        hand.wait_until(has_dialled);
    }
    let waits = waits(&mut hand);
    assert!(waits.is_sorted());
    assert_eq!(waits.last(), Some(&secs(300 * 86_400)));
}

#[test]
fn each_wait_is_drawn_from_its_upper_half_at_the_ceiling_too() {
    let mut firsts = Vec::new();
    let mut tops = Vec::new();
    for seed in 0..300 {
        let setup = Setup::new("chronicle://s1").patient();
        let mut hand = Hand::seeded(start(), setup, seed);
        hand.connect();
        for _ in 0..10 {
            refuse_all(&mut hand);
        }
        let waits = waits(&mut hand);
        let ladder = [1, 2, 4, 8, 16, 30, 30, 30, 30, 30];
        for (wait, top) in waits.iter().zip(ladder) {
            assert!(
                *wait >= secs(top) / 2 && *wait <= secs(top),
                "{wait:?} of {top} s"
            );
        }
        firsts.push(waits[0]);
        tops.push(waits[9]);
    }
    for (draws, top) in [(firsts, secs(1)), (tops, secs(30))] {
        let quarters = [0.55, 0.65, 0.75, 0.85, 0.95].map(|share| top.mul_f64(share));
        for pair in quarters.windows(2) {
            let within = draws
                .iter()
                .filter(|&&wait| wait >= pair[0] && wait < pair[1]);
            assert!((35..=90).contains(&within.count()), "spread over {top:?}");
        }
    }
}

#[test]
fn the_wait_that_is_announced_is_the_wait_that_is_kept() {
    let setup = Setup::new("chronicle://s1").patient();
    let mut hand = Hand::new(
        start(),
        setup.timing(|timing| timing.selection_wait = Duration::ZERO),
    );
    hand.connect();
    for _ in 0..5 {
        refuse_all(&mut hand);
        let [wait] = waits(&mut hand)[..] else {
            panic!("{}", hand.trace().as_str());
        };
        assert_eq!(hand.timeout(), Some(wait));
        hand.wait(wait - MOMENT);
        assert!(!has_dialled(&hand));
        hand.wait(MOMENT);
        assert!(has_dialled(&hand));
    }
}

#[test]
fn connect_while_backing_off_tries_at_once() {
    let mut hand = hand("chronicle://s1");
    hand.connect();
    for _ in 0..6 {
        refuse_all(&mut hand);
    }
    assert_eq!(hand.state(), State::BackingOff);
    hand.connect();
    assert!(has_dialled(&hand));
    // The ladder goes on from where it was.
    waits(&mut hand);
    refuse_all(&mut hand);
    assert_eq!(waits(&mut hand), in_secs(&[30]));
}

#[test]
fn attempts_are_counted_from_the_start_and_from_each_session() {
    let attempts = |hand: &mut Hand| -> Vec<u32> {
        let events = hand.events().into_iter();
        events
            .filter_map(|event| match event {
                Event::Connecting { attempt, .. } => Some(attempt),
                _ => None,
            })
            .collect()
    };
    let mut hand = hand("chronicle://s1");
    hand.connect();
    refuse_all(&mut hand);
    refuse_all(&mut hand);
    hand.wait_until(has_dialled);
    let live = go_live(&mut hand, "s1");
    assert_eq!(attempts(&mut hand), [1, 2, 3]);
    live_on(&mut hand, live, 7);
    hand.reply(live.transport, closed());
    refuse_all(&mut hand);
    hand.wait_until(has_dialled);
    assert_eq!(attempts(&mut hand), [1, 2]);
    assert_eq!(hand.machine().stats().attempts, 5);
}

// Sessions and the ladder.

/// A session that lasts so many seconds and then ends as told.
fn session(hand: &mut Hand, seconds: u64, end: Reply) -> Live {
    hand.wait_until(has_dialled);
    let live = go_live(hand, "s1");
    live_on(hand, live, seconds);
    hand.take_all();
    hand.events();
    hand.reply(live.transport, end);
    live
}

#[test]
fn after_a_stable_session_the_ladder_starts_afresh_with_no_wait_at_all() {
    let mut hand = hand("chronicle://s1");
    hand.connect();
    for _ in 0..5 {
        refuse_all(&mut hand);
    }
    session(&mut hand, 6, closed());
    assert!(has_dialled(&hand), "the first attempt waits for nothing");
    waits(&mut hand);
    for _ in 0..4 {
        refuse_all(&mut hand);
    }
    assert_eq!(waits(&mut hand), in_secs(&[1, 2, 4, 8]));
}

#[test]
fn a_session_is_stable_when_its_keep_alives_span_more_than_five_seconds() {
    for (span, is_stable) in [
        (secs(5), false),
        (secs(5) + MOMENT, true),
        (secs(4), false),
        (secs(100), true),
    ] {
        let mut hand = hand("chronicle://s1");
        hand.connect();
        refuse_all(&mut hand);
        hand.wait_until(has_dialled);
        let live = go_live(&mut hand, "s1");
        let began = hand.elapsed();
        while hand.elapsed() - began < span {
            let rest = span - (hand.elapsed() - began);
            hand.wait(rest.min(secs(1)));
            beat(&mut hand, live);
            acknowledge(&mut hand, live);
        }
        // Time without keep-alives proves nothing.
        hand.wait(secs(3));
        hand.take_all();
        hand.reply(live.transport, closed());
        assert_eq!(has_dialled(&hand), is_stable, "{span:?}");
    }
}

#[test]
fn an_unstable_session_continues_the_ladder_its_first_attempt_included() {
    let mut hand = hand("chronicle://s1");
    hand.connect();
    refuse_all(&mut hand);
    refuse_all(&mut hand);
    assert_eq!(waits(&mut hand), in_secs(&[1, 2]));
    session(&mut hand, 2, closed());
    assert_eq!(hand.state(), State::BackingOff);
    assert_eq!(waits(&mut hand), in_secs(&[4]));
    refuse_all(&mut hand);
    assert_eq!(waits(&mut hand), in_secs(&[8]));
    session(&mut hand, 1, closed());
    assert_eq!(waits(&mut hand), in_secs(&[16]));
}

#[test]
fn a_flapping_server_is_not_hammered() {
    let mut hand = hand("chronicle://s1");
    hand.connect();
    let began = hand.elapsed();
    let mut all = Vec::new();
    for _ in 0..70 {
        // Told to calm down each time, as soon as the session is up.
        session(&mut hand, 0, Reply::GoingAway { code: 11 });
        all.extend(waits(&mut hand));
    }
    assert_eq!(all[..7], in_secs(&[1, 2, 4, 8, 16, 30, 30])[..]);
    assert!(all[5..].iter().all(|&wait| wait == secs(30)));
    assert!(hand.elapsed() - began >= secs(60 * 30));
}

#[test]
fn going_away_in_good_order_after_a_stable_session_is_no_failure() {
    let mut hand = hand("chronicle://s1");
    hand.connect();
    for _ in 0..5 {
        session(&mut hand, 6, Reply::GoingAway { code: 0 });
        assert!(has_dialled(&hand), "at once");
        assert!(waits(&mut hand).is_empty());
    }
    // And the ladder has not moved.
    refuse_all(&mut hand);
    assert_eq!(waits(&mut hand), in_secs(&[1]));
}

#[test]
fn going_away_in_good_order_from_an_unstable_session_is_one() {
    let mut hand = hand("chronicle://s1");
    hand.connect();
    for wait in [1, 2, 4] {
        session(&mut hand, 1, Reply::GoingAway { code: 0 });
        assert_eq!(waits(&mut hand), in_secs(&[wait]));
    }
}

#[test]
fn what_counts_as_stable_can_be_configured() {
    let setup = Setup::new("chronicle://s1").exact();
    let mut hand = Hand::new(
        start(),
        setup.timing(|timing| timing.stable_after = secs(60)),
    );
    hand.connect();
    session(&mut hand, 59, closed());
    assert_eq!(hand.state(), State::BackingOff);
    session(&mut hand, 61, closed());
    assert!(has_dialled(&hand));
}

// The same path.

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
