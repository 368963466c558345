//! A session: keep-alives, answers, the two clocks, and what ends it.

use crate::help::*;
use chronicle_connection::{
    Call, Code, Command, DropCause, Event, Failure, FailureKind, Id, Origin, Output, Reply,
    Request, State, Status,
};
use chronicle_connection_proto::clients::ConnectionKeepAlive;
use chronicle_reference_server::model::{Age, FirstKeepAlive, ModelConfig};
use chronicle_simulation::{
    Fault, Hand, Latency, Network, Setup, World, keep_alive, ok, replay, request_of, status,
};
use prost::Message as _;
use std::time::Duration;

/// The cause of the one drop since the last look at the events, and how long the session lasted.
fn the_drop(hand: &mut Hand) -> (DropCause, Duration) {
    let events = hand.events().into_iter();
    let drops: Vec<_> = events
        .filter_map(|event| match event {
            Event::Disconnected { cause, lasted, .. } => Some((cause, lasted)),
            _ => None,
        })
        .collect();
    match drops.as_slice() {
        [drop] => drop.clone(),
        other => panic!("{other:?}\n{}", hand.trace().as_str()),
    }
}

fn answers(hand: &Hand) -> usize {
    asked(hand, Request::KeepAlive).len()
}

// Answers.

#[test]
fn every_keep_alive_is_answered_with_the_own_id_on_the_same_transport() {
    let (mut hand, live) = live_hand();
    for _ in 0..20 {
        hand.wait(secs(1));
        beat(&mut hand, live);
        let output = hand.find_request(Request::KeepAlive, live.transport);
        let call = answer_of(output);
        let answer = ConnectionKeepAlive::decode(call.message.clone()).unwrap();
        assert_eq!(answer.connection_id, hand.connection_id());
        acknowledge_id(&mut hand, call.id);
    }
    let stats = hand.machine().stats();
    assert_eq!(
        (stats.keep_alives, stats.answers, stats.acknowledged),
        (21, 21, 21)
    );
}

fn answer_of(output: Option<Output>) -> Call {
    match output {
        Some(Output::Unary(call)) => call,
        other => panic!("{other:?}"),
    }
}

#[test]
fn keep_alives_that_cannot_be_answered_at_once_collapse_into_one_pending_answer() {
    let (mut hand, live) = live_hand();
    beat(&mut hand, live);
    let first = hand.take(Request::KeepAlive, live.transport);
    for _ in 0..10 {
        hand.wait(millis(100));
        beat(&mut hand, live);
    }
    assert_eq!(answers(&hand), 0);
    acknowledge_id(&mut hand, first);
    assert_eq!(answers(&hand), 1, "one for all ten");
    acknowledge(&mut hand, live);
    assert_eq!(answers(&hand), 0);
}

#[test]
fn a_further_answer_goes_out_when_the_newest_is_one_and_a_half_seconds_old() {
    let (mut hand, live) = live_hand();
    beat(&mut hand, live);
    hand.take(Request::KeepAlive, live.transport);
    hand.wait(millis(500));
    beat(&mut hand, live);
    hand.wait(secs(1) - MOMENT);
    assert_eq!(answers(&hand), 0);
    hand.wait(MOMENT);
    assert_eq!(answers(&hand), 1);
}

#[test]
fn without_a_keep_alive_to_answer_no_answer_goes_out() {
    let (mut hand, live) = live_hand();
    beat(&mut hand, live);
    hand.take(Request::KeepAlive, live.transport);
    hand.wait(secs(4));
    assert_eq!(answers(&hand), 0);
}

#[test]
fn a_keep_alive_after_the_pace_is_answered_at_once_although_the_newest_hangs() {
    let (mut hand, live) = live_hand();
    beat(&mut hand, live);
    hand.take(Request::KeepAlive, live.transport);
    hand.wait(millis(1500));
    beat(&mut hand, live);
    assert_eq!(answers(&hand), 1);
}

#[test]
fn at_most_three_answers_are_in_flight() {
    let (mut hand, live) = live_hand();
    let mut in_flight = Vec::new();
    for _ in 0..48 {
        hand.wait(millis(100));
        beat(&mut hand, live);
        in_flight.extend(asked(&hand, Request::KeepAlive));
        hand.take_all();
        assert!(in_flight.len() <= 3);
    }
    assert_eq!(in_flight.len(), 3);
    // The newest is acknowledged, and the pending one follows.
    acknowledge_id(&mut hand, in_flight[2]);
    assert_eq!(answers(&hand), 1);
}

#[test]
fn one_hung_answer_drops_no_healthy_session() {
    let (mut hand, live) = live_hand();
    hand.wait(secs(1));
    beat(&mut hand, live);
    hand.take(Request::KeepAlive, live.transport);
    for _ in 0..30 {
        hand.wait(secs(1));
        beat(&mut hand, live);
        hand.wait(millis(500));
        while answers(&hand) > 0 {
            acknowledge(&mut hand, live);
        }
    }
    assert!(hand.session().is_some());
}

#[test]
fn an_answer_can_be_acknowledged_for_five_seconds_and_then_its_place_is_free() {
    let (mut hand, live) = live_hand();
    hand.wait(millis(100));
    beat(&mut hand, live);
    let hung = hand.take(Request::KeepAlive, live.transport);
    let sent = hand.elapsed();
    for _ in 0..4 {
        hand.wait(secs(1));
        beat(&mut hand, live);
        hand.wait(millis(600));
        while answers(&hand) > 0 {
            acknowledge(&mut hand, live);
        }
    }
    let age = hand.elapsed() - sent;
    hand.wait(secs(5).saturating_sub(age));
    assert!(hand.session().is_some());
    hand.reply(hung, ok());
    assert_eq!(
        hand.machine().stats().ignored_replies,
        1,
        "five seconds old"
    );
}

#[test]
fn an_older_answer_that_is_acknowledged_counts_while_newer_ones_hang() {
    let (mut hand, live) = live_hand();
    hand.wait(secs(1));
    beat(&mut hand, live);
    let first = hand.take(Request::KeepAlive, live.transport);
    hand.wait(secs(2));
    beat(&mut hand, live);
    hand.take(Request::KeepAlive, live.transport);
    hand.wait(millis(1900));
    beat(&mut hand, live);
    acknowledge_id(&mut hand, first);
    hand.wait(millis(1100) - MOMENT);
    assert!(
        hand.session().is_some(),
        "the first was sent not five seconds ago"
    );
    hand.wait(MOMENT);
    assert!(hand.session().is_none());
}

// The two clocks.

#[test]
fn silence_of_the_threshold_drops_the_session() {
    let (mut hand, live) = live_hand();
    live_on(&mut hand, live, 10);
    hand.events();
    hand.wait(secs(5) - MOMENT);
    assert!(hand.session().is_some());
    hand.wait(MOMENT);
    let (cause, lasted) = the_drop(&mut hand);
    assert_eq!(cause, DropCause::Silence { silent: secs(5) });
    assert_eq!(lasted, secs(15));
    assert!(hand.is_closed(live.transport));
}

#[test]
fn silence_is_watched_from_the_first_keep_alive_on() {
    let (mut hand, _) = live_hand();
    hand.wait(secs(5));
    let (cause, _) = the_drop(&mut hand);
    assert_eq!(cause, DropCause::Silence { silent: secs(5) });
}

#[test]
fn the_clock_of_answers_starts_at_the_sending_of_connect() {
    let mut hand = hand("chronicle://s1");
    hand.connect();
    let transport = hand.take_open("s1");
    hand.open(transport);
    let stream = prove(&mut hand, transport);
    hand.wait(secs(3));
    let live = Live { transport, stream };
    beat(&mut hand, live);
    hand.wait(secs(1));
    beat(&mut hand, live);
    hand.events();
    hand.wait(secs(1) - MOMENT);
    assert!(hand.session().is_some());
    hand.wait(MOMENT);
    let (cause, lasted) = the_drop(&mut hand);
    let unacknowledged = secs(5);
    assert_eq!(cause, DropCause::Unacknowledged { unacknowledged });
    assert_eq!(lasted, secs(2));
}

#[test]
fn the_clock_of_answers_counts_from_the_sending_of_the_newest_acknowledged_one() {
    let (mut hand, live) = live_hand();
    live_on(&mut hand, live, 3);
    // From here on the server goes on sending, and acknowledges one more answer, late.
    hand.wait(secs(1));
    beat(&mut hand, live);
    let late = hand.take(Request::KeepAlive, live.transport);
    let sent = hand.elapsed();
    for _ in 0..3 {
        hand.wait(secs(1));
        beat(&mut hand, live);
    }
    acknowledge_id(&mut hand, late);
    hand.events();
    while hand.session().is_some() {
        hand.wait(MOMENT * 1000);
        if hand.session().is_some() {
            beat(&mut hand, live);
        }
    }
    let (cause, _) = the_drop(&mut hand);
    let unacknowledged = secs(5);
    assert_eq!(cause, DropCause::Unacknowledged { unacknowledged });
    assert_eq!(hand.elapsed(), sent + secs(5));
}

#[test]
fn an_answer_that_fails_drops_nothing_by_itself() {
    let failures = [
        status(Code::Unavailable),
        status(Code::Internal),
        status(Code::DeadlineExceeded),
        status(Code::Cancelled),
        status(Code::PermissionDenied),
        failed(FailureKind::Reset),
        failed(FailureKind::TimedOut),
        Reply::Finished(Status {
            code: Code::Unimplemented,
            message: String::new(),
            origin: Origin::Http(404),
        }),
    ];
    for failure in failures {
        let (mut hand, live) = live_hand();
        for _ in 0..3 {
            hand.wait(secs(1));
            beat(&mut hand, live);
            let answer = hand.take(Request::KeepAlive, live.transport);
            hand.reply(answer, failure.clone());
            assert!(hand.session().is_some());
        }
        let mut healed = hand.clone();
        live_on(&mut healed, live, 10);
        assert!(healed.session().is_some());

        // If none succeeds, the clock decides.
        hand.wait(secs(2) - MOMENT);
        beat(&mut hand, live);
        hand.events();
        hand.wait(MOMENT);
        let (cause, _) = the_drop(&mut hand);
        let unacknowledged = secs(5);
        assert_eq!(cause, DropCause::Unacknowledged { unacknowledged });
    }
}

#[test]
fn a_failed_answer_makes_way_for_the_pending_one() {
    let (mut hand, live) = live_hand();
    beat(&mut hand, live);
    let answer = hand.take(Request::KeepAlive, live.transport);
    beat(&mut hand, live);
    hand.reply(answer, status(Code::Unavailable));
    hand.wait(millis(1500));
    assert_eq!(answers(&hand), 1);
}

#[test]
fn a_server_that_does_not_know_answers_stops_the_second_clock_for_the_session() {
    let (mut hand, live) = live_hand();
    hand.wait(secs(1));
    beat(&mut hand, live);
    let answer = hand.take(Request::KeepAlive, live.transport);
    hand.reply(answer, status(Code::Unimplemented));
    for _ in 0..60 {
        hand.wait(secs(1));
        beat(&mut hand, live);
        hand.take_all();
    }
    assert!(hand.session().is_some());

    // The first clock goes on, and the next session has both again.
    hand.events();
    hand.wait(secs(5));
    let (cause, _) = the_drop(&mut hand);
    assert_eq!(cause, DropCause::Silence { silent: secs(5) });
    hand.wait_until(has_dialled);
    let live = go_live(&mut hand, "s1");
    for _ in 0..4 {
        hand.wait(secs(1));
        beat(&mut hand, live);
    }
    hand.events();
    hand.wait(secs(1));
    let (cause, _) = the_drop(&mut hand);
    assert!(
        matches!(cause, DropCause::Unacknowledged { .. }),
        "{cause:?}"
    );
}

#[test]
fn an_answer_refused_twice_for_its_credentials_drops_the_session() {
    for string in ["chronicle://s1", "chronicle://s1?apiKey=k3y"] {
        let mut hand = hand(string);
        hand.connect();
        let live = go_live(&mut hand, "s1");
        hand.events();
        let mut refusals = 0;
        while hand.session().is_some() {
            hand.wait(secs(1));
            beat(&mut hand, live);
            let answer = hand.take(Request::KeepAlive, live.transport);
            hand.reply(answer, status(Code::Unauthenticated));
            refusals += 1;
        }
        assert!(refusals <= 2);
        let (cause, _) = the_drop(&mut hand);
        assert!(matches!(cause, DropCause::Credentials(_)), "{cause:?}");
        // Not the first connect: no reason to give up.
        assert_ne!(hand.state(), State::Stopped);
    }
}

#[test]
fn the_threshold_can_be_configured() {
    let setup = Setup::new("chronicle://s1").exact();
    let setup = setup.timing(|timing| timing.keep_alive = secs(2));
    let mut hand = Hand::new(start(), setup);
    hand.connect();
    go_live(&mut hand, "s1");
    hand.wait(secs(2) - MOMENT);
    assert!(hand.session().is_some());
    hand.wait(MOMENT);
    assert!(hand.session().is_none());
}

#[test]
fn after_a_long_time_the_clocks_are_as_exact_as_at_first() {
    let (mut hand, live) = live_hand();
    live_on(&mut hand, live, 20_000);
    hand.wait(secs(5) - MOMENT);
    assert!(hand.session().is_some());
    hand.wait(MOMENT);
    assert!(hand.session().is_none());
}

// Sleep.

#[test]
fn a_late_timer_drops_once() {
    let (mut hand, live) = live_hand();
    live_on(&mut hand, live, 3);
    hand.events();
    hand.oversleep(secs(600));
    hand.input(Command::Tick);
    let (cause, _) = the_drop(&mut hand);
    assert!(matches!(
        cause,
        DropCause::Silence { .. } | DropCause::Unacknowledged { .. }
    ));
    hand.input(Command::Tick);
    hand.wait(secs(1));
    assert!(
        hand.events()
            .iter()
            .all(|event| !matches!(event, Event::Disconnected { .. }))
    );
}

#[test]
fn a_keep_alive_after_a_pause_that_was_too_long_saves_nothing() {
    let (mut hand, live) = live_hand();
    live_on(&mut hand, live, 3);
    hand.events();
    hand.oversleep(secs(7));
    beat(&mut hand, live);
    the_drop(&mut hand);
    assert!(hand.session().is_none());
}

#[test]
fn sleep_ages_both_clocks() {
    let (mut hand, live) = live_hand();
    live_on(&mut hand, live, 3);
    hand.events();
    hand.wait(secs(1));
    hand.input(Command::Slept(secs(3)));
    assert!(hand.session().is_some());
    assert_eq!(hand.timeout(), Some(secs(1)));
    hand.wait(secs(1) - MOMENT);
    assert!(hand.session().is_some());
    hand.wait(MOMENT);
    the_drop(&mut hand);
}

#[test]
fn a_sleep_beyond_the_threshold_drops_at_once() {
    let (mut hand, live) = live_hand();
    live_on(&mut hand, live, 3);
    hand.events();
    hand.input(Command::Slept(secs(3600)));
    the_drop(&mut hand);
    assert!(hand.is_closed(live.transport));
}

#[test]
fn sleep_between_connect_and_the_first_keep_alive_fails_the_attempt_if_its_clock_is_over() {
    for (slept, survives) in [(secs(3), true), (secs(4), false), (secs(3600), false)] {
        let mut hand = hand("chronicle://s1");
        hand.connect();
        let transport = hand.take_open("s1");
        hand.open(transport);
        let stream = prove(&mut hand, transport);
        hand.input(Command::Slept(slept));
        beat(&mut hand, Live { transport, stream });
        assert_eq!(hand.session().is_some(), survives, "{slept:?}");
    }
}

#[test]
fn what_was_sent_before_a_sleep_is_as_old_as_the_sleep_makes_it() {
    let (mut hand, live) = live_hand();
    hand.wait(secs(1));
    beat(&mut hand, live);
    let answer = hand.take(Request::KeepAlive, live.transport);
    hand.input(Command::Slept(secs(2)));
    beat(&mut hand, live);
    acknowledge_id(&mut hand, answer);
    // What is acknowledged is an answer of two seconds ago; the next one hangs.
    assert_eq!(answers(&hand), 1);
    hand.events();
    hand.wait(secs(3) - MOMENT);
    assert!(hand.session().is_some());
    hand.wait(MOMENT);
    let (cause, _) = the_drop(&mut hand);
    assert!(
        matches!(cause, DropCause::Unacknowledged { .. }),
        "{cause:?}"
    );
}

// What ends a session at once.

fn ends() -> Vec<(&'static str, fn(&Live) -> Id, Reply, DropCause)> {
    let stream: fn(&Live) -> Id = |live| live.stream;
    let transport: fn(&Live) -> Id = |live| live.transport;
    let said = |code| match status(code) {
        Reply::Finished(status) => DropCause::StreamEnded(status),
        _ => unreachable!(),
    };
    let failure = Failure::new(FailureKind::Reset, "");
    let foreign = "00000000-0000-4000-8000-000000000000";
    vec![
        ("OK", stream, ok(), said(Code::Ok)),
        (
            "CANCELLED",
            stream,
            status(Code::Cancelled),
            said(Code::Cancelled),
        ),
        (
            "UNAVAILABLE",
            stream,
            status(Code::Unavailable),
            said(Code::Unavailable),
        ),
        (
            "a broken stream",
            stream,
            Reply::Failed(failure.clone()),
            DropCause::StreamFailed(failure.clone()),
        ),
        (
            "a dead transport",
            transport,
            Reply::Closed(failure.clone()),
            DropCause::TransportClosed(failure),
        ),
        (
            "GOAWAY",
            transport,
            Reply::GoingAway { code: 0 },
            DropCause::GoingAway { code: 0 },
        ),
        (
            "GOAWAY with an error",
            transport,
            Reply::GoingAway { code: 11 },
            DropCause::GoingAway { code: 11 },
        ),
        (
            "a foreign keep-alive",
            stream,
            keep_alive(foreign),
            DropCause::ForeignKeepAlive {
                connection_id: foreign.to_owned(),
            },
        ),
    ]
}

#[test]
fn whatever_ends_the_session_drops_it_at_once_with_its_cause() {
    for (what, target, reply, expected) in ends() {
        let (mut hand, live) = live_hand();
        live_on(&mut hand, live, 10);
        hand.wait(millis(200));
        hand.events();
        hand.reply(target(&live), reply);
        let (cause, lasted) = the_drop(&mut hand);
        assert_eq!(cause, expected, "{what}");
        assert_eq!(lasted, millis(10_200), "{what}");
        assert_eq!(dials(&mut hand), ["s1"], "{what}: it reconnects at once");
    }
}

#[test]
fn an_unreadable_keep_alive_drops_the_session() {
    let (mut hand, live) = live_hand();
    hand.events();
    hand.reply(live.stream, Reply::Message(vec![0xff, 0xff].into()));
    let (cause, _) = the_drop(&mut hand);
    assert!(
        matches!(cause, DropCause::MalformedKeepAlive(_)),
        "{cause:?}"
    );
}

#[test]
fn one_loss_that_is_seen_twice_is_one_drop_and_one_attempt() {
    for (what, target, reply, _) in ends() {
        let (mut hand, live) = live_hand();
        live_on(&mut hand, live, 10);
        hand.events();
        // The stream ends just before the watchdog, or at the very instant, or everything at once.
        for early in [MOMENT, Duration::ZERO] {
            let mut hand = hand.clone();
            hand.oversleep(secs(5) - early);
            hand.reply(target(&live), reply.clone());
            hand.reply(live.stream, status(Code::Unavailable));
            hand.reply(live.transport, closed());
            hand.wait(MOMENT);
            the_drop(&mut hand);
            assert_eq!(dials(&mut hand), ["s1"], "{what}");
        }
    }
}

#[test]
fn nothing_is_sent_on_a_transport_that_is_lost() {
    let (mut hand, live) = live_hand();
    beat(&mut hand, live);
    beat(&mut hand, live);
    hand.take_all();
    hand.reply(live.transport, closed());
    let sent = hand.outbox().iter().filter_map(request_of).count();
    assert_eq!(sent, 0);
}

// With a server at the other end.

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
    for age in [Age::WithoutCheck, Age::WithoutCheckAndDescriptors] {
        let world = replay(start(), 1, |world| {
            let server = world.add_server_with(ModelConfig {
                age,
                ..ModelConfig::default()
            });
            let client = world.add_client(Setup::new("chronicle://s1"));
            world.connect(client);
            world.run_for(secs(60));
            assert_eq!(world.server(server).arrived(Request::Connect), 0);
        });
        assert_eq!(world.client(client_of(&world)).state(), State::Stopped);
    }
}
