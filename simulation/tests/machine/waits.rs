//! The wait at the start of a selection, and the dials within it.

use crate::help::*;
use chronicle_connection::{Backoff, Code, Jitter, Request, State, Strategy, WaitReason};
use chronicle_simulation::{Hand, Setup, http, request_of, status};
use std::{num::NonZeroUsize, time::Duration};

/// When a machine dials and when it asks for counts, all transports being open at once.
fn dial_and_ask(hand: &mut Hand) -> (Duration, Duration) {
    hand.wait_until(has_dialled);
    let dialled = hand.elapsed();
    while let Some((transport, _)) = hand.find_open() {
        hand.open(transport);
    }
    hand.wait_until(|hand| hand.asks(Request::Count));
    (dialled, hand.elapsed())
}

/// Where the deciles of 0..=250 ms are, each must be hit about as often.
fn assert_uniform(waits: &[Duration]) {
    let mut tenths = [0; 10];
    for wait in waits {
        assert!(*wait <= millis(250), "{wait:?}");
        let tenth = (wait.as_micros() * 10 / 250_001) as usize;
        tenths[tenth] += 1;
    }
    let expected = waits.len() / 10;
    let is_even = |&count: &usize| count > expected * 7 / 10 && count < expected * 13 / 10;
    assert!(tenths.iter().all(is_even), "{tenths:?}");
}

#[test]
fn each_client_draws_its_own_wait_from_the_whole_range() {
    let waits: Vec<Duration> = (0..1000)
        .map(|seed| {
            let mut hand = Hand::seeded(start(), Setup::new(THREE), seed);
            hand.connect();
            dial_and_ask(&mut hand).1
        })
        .collect();
    assert_uniform(&waits);
}

#[test]
fn servers_that_rank_behind_are_not_probed_before_the_wait_either() {
    // S2: the jitter stands before every probe, not only the first. Here it is the first of its
    // attempt, since the one server that has not failed was chosen without a probe.
    let waits: Vec<Duration> = (0..1000)
        .map(|seed| {
            let mut hand = Hand::seeded(start(), Setup::new(THREE).patient(), seed);
            hand.connect();
            hand.wait_until(has_dialled);
            for server in ["s1", "s2"] {
                let transport = hand.take_open(server);
                hand.open(transport);
            }
            let third = hand.take_open("s3");
            hand.reply(third, refused());
            hand.wait_until(|hand| hand.asks(Request::Count));
            for ask in asked(&hand, Request::Count) {
                hand.reply(ask, http(200, "1"));
            }
            for _ in 0..2 {
                let check = asked(&hand, Request::CheckCompatibility);
                hand.reply(check[check.len() - 1], status(Code::Unavailable));
            }
            assert_eq!(hand.state(), State::BackingOff);
            hand.take_all();
            hand.wait_until(has_dialled);
            assert_eq!(dials(&mut hand.clone()), ["s3"], "alone in the best rank");
            let third = hand.take_open("s3");
            hand.reply(third, refused());
            let began = hand.elapsed();
            dial_and_ask(&mut hand).1 - began
        })
        .collect();
    assert_uniform(&waits);
}

#[test]
fn servers_that_are_drawn_after_all_others_failed_are_not_probed_before_the_end_of_the_wait() {
    let strategy = Strategy::LeastConnections {
        max_probes: NonZeroUsize::new(2),
    };
    let waits: Vec<Duration> = (0..1000)
        .map(|seed| {
            let setup = Setup::new("chronicle://s1,s2,s3,s4").strategy(strategy.clone());
            let mut hand = Hand::seeded(start(), setup, seed);
            hand.connect();
            hand.wait_until(has_dialled);
            while let Some((transport, _)) = hand.find_open() {
                hand.reply(transport, refused());
                if has_dialled(&hand) {
                    break;
                }
            }
            // The others are dialled at once, to be asked when the wait is over that stands already.
            dial_and_ask(&mut hand).1
        })
        .collect();
    assert_uniform(&waits);
}

#[test]
fn the_dials_come_at_a_uniform_moment_within_the_wait() {
    for had_a_session in [false, true] {
        let mut shares = [0; 5];
        for seed in 0..1000 {
            let mut hand = Hand::seeded(start(), Setup::new(THREE), seed);
            hand.connect();
            if had_a_session {
                lose_the_only_one(&mut hand);
            }
            let began = hand.elapsed();
            let (dialled, asked) = dial_and_ask(&mut hand);
            assert!(dialled <= asked);
            let share = (dialled - began).as_secs_f64() / (asked - began).as_secs_f64();
            shares[((share * 5.0) as usize).min(4)] += 1;
        }
        assert!(
            shares.iter().all(|&count| (140..=260).contains(&count)),
            "{shares:?}"
        );
    }
}

/// A stable session with the only server that can be reached, and its end.
fn lose_the_only_one(hand: &mut Hand) {
    hand.wait_until(has_dialled);
    let transport = hand.take_open("s1");
    hand.open(transport);
    for server in ["s2", "s3"] {
        let other = hand.take_open(server);
        hand.reply(other, refused());
    }
    hand.wait_until(|hand| hand.asks(Request::Reserve));
    live_and_lose(hand, transport);
}

#[test]
fn every_attempt_draws_a_wait_anew() {
    let mut setup = Setup::new(THREE).patient();
    setup.backoff = Backoff {
        jitter: Jitter::None,
        ..Backoff::default()
    };
    let mut hand = Hand::new(start(), setup);
    hand.connect();
    let mut waits = Vec::new();
    for _ in 0..300 {
        hand.wait_until(|hand| hand.state() == State::Selecting);
        let began = hand.elapsed();
        waits.push(dial_and_ask(&mut hand).1 - began);
        let asks = asked(&hand, Request::Count);
        for ask in asks {
            hand.reply(ask, http(500, ""));
        }
        // Each in turn is chosen, and refuses.
        while hand.state() != State::BackingOff {
            let output = hand.find(|output| request_of(output) == Some(Request::Connect));
            assert!(output.is_none());
            let check = asked(&hand, Request::CheckCompatibility);
            hand.reply(check[check.len() - 1], status(Code::Unavailable));
        }
        hand.take_all();
    }
    assert_uniform(&waits);
}

#[test]
fn all_candidates_are_dialled_in_the_same_instant() {
    let mut hand = Hand::new(start(), Setup::new(THREE));
    hand.connect();
    assert!(!has_dialled(&hand), "not before the moment that was drawn");
    hand.wait_until(has_dialled);
    assert_eq!(dials(&mut hand), ["s1", "s2", "s3"]);
}

#[test]
fn no_count_is_asked_before_the_wait_is_over_and_then_all_in_the_same_instant() {
    let mut hand = Hand::new(start(), Setup::new(THREE));
    hand.connect();
    hand.wait_until(has_dialled);
    for server in ["s1", "s2", "s3"] {
        let transport = hand.take_open(server);
        hand.open(transport);
    }
    assert!(!hand.asks(Request::Count));
    assert_eq!(
        hand.machine().wait_reason(),
        Some(WaitReason::SelectionWait)
    );
    hand.wait_until(|hand| hand.asks(Request::Count));
    assert_eq!(asked(&hand, Request::Count).len(), 3);
}

#[test]
fn a_transport_that_opens_after_the_wait_is_asked_at_once() {
    let mut hand = Hand::new(start(), Setup::new(THREE));
    hand.connect();
    hand.wait_until(has_dialled);
    let transports = ["s1", "s2", "s3"].map(|server| hand.take_open(server));
    hand.wait(millis(250));
    for transport in transports {
        assert!(hand.find_request(Request::Count, transport).is_none());
        hand.open(transport);
        assert!(hand.find_request(Request::Count, transport).is_some());
    }
}

#[test]
fn a_wait_that_ends_late_starts_the_two_seconds_when_it_ends() {
    let mut hand = Hand::new(start(), Setup::new(THREE).patient());
    hand.connect();
    hand.wait_until(has_dialled);
    // The process is stopped for longer than the wait and the time for counts together.
    hand.oversleep(secs(3));
    hand.input(chronicle_connection::Command::Tick);
    assert!(chosen(&mut hand).is_empty(), "nobody could answer yet");
    assert_eq!(hand.timeout(), Some(secs(2)));
}
