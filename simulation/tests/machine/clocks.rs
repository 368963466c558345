//! The two clocks of a session, and sleep.

use crate::help::*;
use chronicle_connection::{Command, DropCause, Event, Request};
use chronicle_simulation::{Hand, Setup};

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
    live_on(&mut hand, live, 5_000);
    hand.wait(secs(5) - MOMENT);
    assert!(hand.session().is_some());
    hand.wait(MOMENT);
    assert!(hand.session().is_none());
}

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

#[test]
fn a_wait_between_attempts_that_was_slept_through_is_over() {
    let mut hand = hand("chronicle://s1");
    hand.connect();
    for _ in 0..6 {
        refuse_all(&mut hand);
    }
    hand.input(Command::Slept(secs(29)));
    assert_eq!(hand.timeout(), Some(secs(1)));
    hand.input(Command::Slept(secs(1)));
    assert!(has_dialled(&hand));
}
