//! What the machine promises to whoever drives it: time, ticks and commands.

use crate::help::*;
use bytes::Bytes;
use chronicle_connection::{
    Code, Command, Connection, Event, Id, Reply, Request, State, Stats, WaitReason,
};
use chronicle_simulation::{Hand, Setup, http, id_of, keep_alive, ok, status};
use rand_chacha::ChaCha8Rng;
use rand_core::SeedableRng as _;
use std::time::Duration;

#[test]
fn building_a_connection_does_nothing_else() {
    let mut hand = hand("chronicle://s1");
    assert_eq!(hand.state(), State::Idle);
    assert_eq!(hand.timeout(), None);
    hand.wait(secs(3600));
    hand.input(Command::Tick);
    assert!(hand.outbox().is_empty() && hand.events().is_empty());
    assert_eq!(*hand.machine().stats(), Stats::default());
}

#[test]
fn the_generator_and_the_instants_are_the_only_sources_of_chance_and_time() {
    let play = |base, seed| {
        let mut hand = Hand::seeded(base, Setup::new("chronicle://s1,s2"), seed);
        hand.connect();
        hand.wait_until(has_dialled);
        offer_when_asked(&mut hand);
        hand.wait(secs(60));
        hand.trace().clone()
    };
    let (now, later) = (start(), start() + secs(86_400));
    assert_eq!(play(now, 1), play(now, 1));
    assert_eq!(play(now, 1), play(later, 1));
    assert_ne!(play(now, 1), play(now, 2));
}

fn offer_when_asked(hand: &mut Hand) {
    while let Some((transport, _)) = hand.find_open() {
        hand.open(transport);
    }
    hand.wait_until(|hand| hand.asks(Request::Count));
}

#[test]
fn an_overdue_deadline_fires_once_and_what_it_starts_counts_from_now() {
    let mut hand = hand("chronicle://s1");
    hand.connect();
    let transport = hand.take_open("s1");
    hand.reply(transport, refused());
    assert_eq!(hand.timeout(), Some(secs(1)));
    hand.events();

    hand.oversleep(secs(600));
    hand.input(Command::Tick);
    let transport = hand.take_open("s1");
    assert!(!has_dialled(&hand), "one attempt, not ten minutes of them");
    assert_eq!(hand.timeout(), Some(secs(5)), "the dial counts from now");

    hand.oversleep(secs(600));
    hand.input(Command::Tick);
    assert!(hand.is_closed(transport));
    assert_eq!(back_offs(&mut hand).len(), 1);
    assert_eq!(hand.timeout(), Some(secs(2)), "the wait counts from now");
}

/// What is awaited, a machine that awaits it, of which request, as which replies, and for how long.
type Awaited = (&'static str, Hand, Id, Vec<Reply>, Duration);

fn awaited_replies() -> Vec<Awaited> {
    let mut dialling = hand("chronicle://s1");
    dialling.connect();
    let transport = dialling.take_open("s1");
    let peer = ([10, 0, 0, 1], 35000).into();
    let opened = vec![Reply::Opened { peer }];

    let mut checking = dialling.clone();
    checking.open(transport);
    let check = checking.take(Request::CheckCompatibility, transport);
    let reserve = checking.take(Request::Reserve, transport);
    checking.reply(reserve, http(200, ""));
    let passed = vec![chronicle_simulation::compatible(), ok()];

    let mut connecting = checking.clone();
    pass_check(&mut connecting, check);
    let stream = connecting.take(Request::Connect, transport);
    let first = vec![keep_alive(&connecting.connection_id())];

    // Of the two clocks, only that of keep-alives runs.
    let (mut connected, live) = live_hand();
    beat(&mut connected, live);
    let answer = connected.take(Request::KeepAlive, live.transport);
    connected.reply(answer, status(Code::Unimplemented));
    let next = vec![keep_alive(&connected.connection_id())];

    let (mut unacknowledged, live) = live_hand();
    unacknowledged.wait(secs(1));
    beat(&mut unacknowledged, live);
    let answer = unacknowledged.take(Request::KeepAlive, live.transport);
    unacknowledged.wait(secs(1));
    beat(&mut unacknowledged, live);

    vec![
        ("the opening", dialling, transport, opened, secs(5)),
        ("the check", checking, check, passed, secs(10)),
        ("the first keep-alive", connecting, stream, first, secs(4)),
        ("a keep-alive", connected, live.stream, next, secs(5)),
        (
            "an acknowledgement",
            unacknowledged,
            answer,
            vec![Reply::Message(Bytes::new()), ok()],
            // The answer of the handshake was sent two seconds ago.
            secs(3),
        ),
    ]
}

/// The last of the replies, which ends the request, arrives after the given time.
fn arrive(hand: &mut Hand, id: Id, mut replies: Vec<Reply>, after: Duration) {
    let last = replies.pop();
    for reply in replies {
        hand.reply(id, reply);
    }
    hand.oversleep(after);
    if let Some(reply) = last {
        hand.reply(id, reply);
    }
}

fn has_failed(hand: &mut Hand) -> bool {
    let mut events = hand.events().into_iter();
    events.any(|event| {
        matches!(
            event,
            Event::CandidateFailed { .. } | Event::Disconnected { .. } | Event::BackingOff { .. }
        )
    })
}

#[test]
fn a_reply_that_arrives_exactly_at_its_deadline_wins() {
    for (what, mut hand, id, replies, time) in awaited_replies() {
        hand.events();
        arrive(&mut hand, id, replies, time);
        assert!(!has_failed(&mut hand), "{what}: {}", hand.trace().as_str());
    }
}

#[test]
fn a_reply_that_was_overtaken_while_the_process_slept_revives_nothing() {
    for late_by in [MOMENT, secs(2), secs(600)] {
        for (what, mut hand, id, replies, time) in awaited_replies() {
            hand.events();
            arrive(&mut hand, id, replies, time + late_by);
            assert!(has_failed(&mut hand), "{what}: {}", hand.trace().as_str());
            assert_eq!(hand.session(), None, "{what}");
        }
    }
}

#[test]
fn a_deadline_fires_exactly_when_it_is_due() {
    for (what, hand, _, _, time) in awaited_replies() {
        let mut early = hand.clone();
        early.events();
        early.wait(time - MOMENT);
        assert!(!has_failed(&mut early), "{what}");
        early.wait(MOMENT);
        assert!(has_failed(&mut early), "{what}");
    }
}

#[test]
fn extra_ticks_change_nothing_in_any_phase() {
    for (phase, mut hand) in phases() {
        let (state, due, outputs) = (
            hand.state(),
            hand.machine().poll_timeout(),
            hand.outbox().len(),
        );
        let stats = *hand.machine().stats();
        hand.events();
        let step = hand.timeout().unwrap_or(secs(3600)) / 10;
        for _ in 0..9 {
            hand.oversleep(step);
            hand.input(Command::Tick);
            hand.input(Command::Tick);
        }
        assert_eq!(hand.state(), state, "{phase}");
        assert_eq!(hand.machine().poll_timeout(), due, "{phase}");
        assert_eq!(hand.outbox().len(), outputs, "{phase}");
        assert_eq!(*hand.machine().stats(), stats, "{phase}");
        assert!(hand.events().is_empty(), "{phase}");
    }
}

#[test]
fn time_that_runs_backwards_stands_still() {
    for (phase, mut hand) in phases() {
        hand.wait(MOMENT);
        let (state, due) = (hand.state(), hand.machine().poll_timeout());
        hand.turn_back(MOMENT * 2);
        hand.input(Command::Tick);
        assert_eq!(hand.state(), state, "{phase}");
        assert_eq!(hand.machine().poll_timeout(), due, "{phase}");
    }
}

#[test]
fn a_keep_alive_from_before_the_last_instant_counts_as_of_the_last() {
    let (mut hand, live) = live_hand();
    live_on(&mut hand, live, 10);
    let last = hand.elapsed();
    hand.turn_back(secs(8));
    beat(&mut hand, live);
    acknowledge(&mut hand, live);
    hand.oversleep(secs(8));
    assert_eq!(hand.elapsed(), last);
    assert_eq!(hand.timeout(), Some(secs(5)));
    assert!(hand.session().is_some());
}

#[test]
fn with_outputs_queued_the_deadline_is_not_later_than_now() {
    let now = start();
    let setup = Setup::new("chronicle://s1,s2").exact();
    let rng = ChaCha8Rng::seed_from_u64(1);
    let mut connection = Connection::new(setup.config(), setup.contract.clone(), rng, now);
    connection.handle(now, Command::Connect);
    let mut outputs = 0;
    loop {
        let due = connection.poll_timeout();
        match connection.poll_output() {
            Some(_) => assert!(due.is_some_and(|due| due <= now)),
            None => {
                assert!(
                    due.is_some_and(|due| due > now),
                    "drained: never a hot loop"
                );
                break;
            }
        }
        outputs += 1;
    }
    assert_eq!(outputs, 3, "an event and two dials");
}

#[test]
fn ids_rise_and_are_never_used_again_over_sessions() {
    let mut hand = hand("chronicle://s1");
    let mut ids = Vec::new();
    hand.connect();
    for _ in 0..5 {
        hand.wait_until(has_dialled);
        ids.extend(hand.outbox().iter().filter_map(id_of));
        let live = go_live(&mut hand, "s1");
        ids.push(live.stream);
        live_on(&mut hand, live, 7);
        hand.reply(live.transport, closed());
    }
    assert!(ids.is_sorted_by(|one, next| one < next), "{ids:?}");
}

#[test]
fn every_command_is_valid_in_any_phase_any_number_of_times() {
    let commands = [
        Command::Connect,
        Command::Tick,
        Command::Slept(Duration::ZERO),
        Command::Slept(secs(3600)),
        Command::Slept(Duration::MAX),
        Command::Close,
    ];
    for (phase, hand) in phases() {
        for command in commands {
            let mut hand = hand.clone();
            for _ in 0..3 {
                hand.input(command);
            }
            let is_stopped = command == Command::Close || phase == "stopped";
            assert_eq!(hand.state() == State::Stopped, is_stopped, "{phase}");
        }
    }
}

#[test]
fn connect_changes_nothing_where_the_machine_connects_already_or_has_stopped() {
    for (phase, mut hand) in phases() {
        if ["idle", "backing off"].contains(&phase) {
            continue;
        }
        let (state, due, outputs) = (
            hand.state(),
            hand.machine().poll_timeout(),
            hand.outbox().len(),
        );
        hand.events();
        for _ in 0..5 {
            hand.connect();
        }
        assert_eq!(hand.state(), state, "{phase}");
        assert_eq!(hand.machine().poll_timeout(), due, "{phase}");
        assert_eq!(hand.outbox().len(), outputs, "{phase}");
        assert!(hand.events().is_empty(), "{phase}");
    }
}

#[test]
fn a_clone_goes_on_like_its_original() {
    for (phase, hand) in phases() {
        let (mut one, mut other) = (hand.clone(), hand);
        one.wait(secs(120));
        other.wait(secs(120));
        assert_eq!(one.trace(), other.trace(), "{phase}");
    }
}

#[test]
fn every_deadline_says_why_it_exists() {
    let expected = [
        ("idle", None),
        ("waiting to dial", Some(WaitReason::DialWait)),
        ("dialling", Some(WaitReason::SelectionWait)),
        ("counting", Some(WaitReason::Counts)),
        ("proving", Some(WaitReason::Reserve)),
        ("connecting", Some(WaitReason::FirstKeepAlive)),
        ("backing off", Some(WaitReason::Backoff)),
        ("stopped", None),
    ];
    let phases = phases();
    for (phase, reason) in expected {
        let found = phases.iter().find(|(name, _)| *name == phase);
        let reasons = found.map(|(_, hand)| hand.machine().wait_reason());
        assert_eq!(reasons, Some(reason), "{phase}");
    }

    let mut single = hand("chronicle://s1");
    single.connect();
    assert_eq!(single.machine().wait_reason(), Some(WaitReason::Open));
    let transport = single.take_open("s1");
    single.open(transport);
    let reserve = single.take(Request::Reserve, transport);
    single.reply(reserve, http(200, ""));
    assert_eq!(single.machine().wait_reason(), Some(WaitReason::Check));

    // The clock of keep-alives runs out first, unless answers went unacknowledged.
    let (mut hand, live) = live_hand();
    live_on(&mut hand, live, 3);
    hand.wait(millis(500));
    let watched = [WaitReason::KeepAlive, WaitReason::Acknowledgement];
    assert!(
        hand.machine()
            .wait_reason()
            .is_some_and(|why| watched.contains(&why))
    );
    hand.wait(millis(500));
    beat(&mut hand, live);
    assert_eq!(
        hand.machine().wait_reason(),
        Some(WaitReason::Acknowledgement)
    );
    hand.wait(millis(100));
    beat(&mut hand, live);
    assert_eq!(hand.machine().wait_reason(), Some(WaitReason::AnswerPace));

    let mut hurried = Hand::new(start(), Setup::new("chronicle://s1").exact());
    hurried.connect();
    hurried.wait(secs(28));
    assert_eq!(
        hurried.machine().wait_reason(),
        Some(WaitReason::ConnectTimeout)
    );
}
