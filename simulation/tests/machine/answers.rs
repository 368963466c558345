//! The answers to keep-alives: pace, number, acknowledgement, failure.

use crate::help::*;
use chronicle_connection::{
    Call, Code, DropCause, FailureKind, Origin, Output, Reply, Request, State, Status,
};
use chronicle_connection_proto::clients::ConnectionKeepAlive;
use chronicle_simulation::{ok, status};
use prost::Message as _;

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
    assert!(hand.is_cancelled(hung));
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
