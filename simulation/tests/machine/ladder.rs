//! The waits between attempts, and which sessions shorten them.

use crate::help::*;
use chronicle_connection::{Event, Reply, State};
use chronicle_simulation::{Hand, Setup};
use std::time::Duration;

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
    assert_eq!(waits[34], MOMENT * 2_u32.pow(17) * 2_u32.pow(17));
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
