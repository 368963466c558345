//! What is a count, how long it is awaited, and when it is stale.

use crate::help::*;
use chronicle_connection::{Event, Request};
use chronicle_simulation::{Hand, Setup, http};

#[test]
fn the_lowest_count_wins() {
    let cases: [(&[(&str, Option<u64>)], &str); 5] = [
        (&[("s1", Some(5)), ("s2", Some(2))], "s2"),
        (&[("s1", Some(1)), ("s2", Some(20))], "s1"),
        (&[("s1", Some(10)), ("s2", Some(0)), ("s3", Some(5))], "s2"),
        (&[("s1", None), ("s2", Some(3))], "s2"),
        (&[("s1", Some(u64::MAX)), ("s2", None)], "s1"),
    ];
    for (counts, expected) in cases {
        let mut hand = hand(if counts.len() == 2 {
            "chronicle://s1,s2"
        } else {
            THREE
        });
        hand.connect();
        offer(&mut hand, counts);
        assert_eq!(the_chosen(&mut hand), expected, "{counts:?}");
    }
}

#[test]
fn the_choice_tells_the_count() {
    let mut hand = hand("chronicle://s1,s2");
    hand.connect();
    offer(&mut hand, &[("s1", Some(5)), ("s2", Some(2))]);
    let mut events = hand.events().into_iter();
    let count = events.find_map(|event| match event {
        Event::Selected { count, .. } => Some(count),
        _ => None,
    });
    assert_eq!(count, Some(Some(2)));
}

#[test]
fn the_choice_falls_as_soon_as_every_candidate_has_answered_or_failed() {
    let mut hand = hand(THREE);
    hand.connect();
    let (first, second, third) = (
        hand.take_open("s1"),
        hand.take_open("s2"),
        hand.take_open("s3"),
    );
    hand.open(first);
    hand.open(second);
    let ask = hand.take(Request::Count, first);
    hand.reply(ask, http(200, "3"));
    let ask = hand.take(Request::Count, second);
    hand.reply(ask, http(503, ""));
    assert!(chosen(&mut hand).is_empty(), "one is still dialling");
    hand.wait(millis(100));
    hand.reply(third, refused());
    assert_eq!(the_chosen(&mut hand), "s1");
}

#[test]
fn who_has_not_answered_two_seconds_after_the_wait_counts_as_maximally_loaded() {
    // The count of s1 hangs, s3 is still dialling.
    let mut hand = Hand::new(start(), Setup::new(THREE));
    hand.connect();
    hand.wait_until(has_dialled);
    let (first, second) = (hand.take_open("s1"), hand.take_open("s2"));
    hand.open(first);
    hand.open(second);
    hand.wait_until(|hand| hand.asks(Request::Count));
    let ask = hand.take(Request::Count, first);
    hand.wait(secs(2) - MOMENT);
    let count = hand.take(Request::Count, second);
    hand.reply(count, http(200, "1000000"));
    assert!(chosen(&mut hand).is_empty());
    hand.wait(MOMENT);
    assert_eq!(the_chosen(&mut hand), "s2");
    assert!(
        hand.is_cancelled(ask),
        "nobody waits for that count any more"
    );
}

#[test]
fn a_count_is_a_number_of_digits_in_a_successful_answer_and_nothing_else() {
    let longest = format!("{}7", " ".repeat(63));
    let too_long = format!("{}7", " ".repeat(64));
    let counts: [(u16, &str); 9] = [
        (200, "7"),
        (200, " 7\r\n"),
        (200, "\t7"),
        (201, "7"),
        (206, "7"),
        (299, "7"),
        (200, "007"),
        (200, "18446744073709551615"),
        (200, &longest),
    ];
    for (code, body) in counts {
        assert_eq!(chosen_beside_a_failure(code, body), "s1", "{code} {body:?}");
    }
    let others: [(u16, &str); 21] = [
        (200, ""),
        (200, " "),
        (200, "-1"),
        (200, "+7"),
        (200, "7.0"),
        (200, "7 7"),
        (200, "0x7"),
        (200, "7e3"),
        (200, "\"7\""),
        (200, "٧"),
        (200, "not-a-number"),
        (200, "<html>7</html>"),
        (200, "18446744073709551616"),
        (200, &too_long),
        (204, ""),
        (301, "0"),
        (307, "0"),
        (400, "0"),
        (404, "0"),
        (500, "0"),
        (503, "0"),
    ];
    for (code, body) in others {
        let chosen = chosen_beside_a_count(code, body);
        assert_eq!(chosen, "s2", "{code} {body:?}");
    }
}

/// s1 gives the answer, s2 has the highest possible count.
fn chosen_beside_a_count(code: u16, body: &str) -> String {
    choose_between(code, body, (200, "18446744073709551615"))
}

/// s1 gives the answer, s2 an error.
fn chosen_beside_a_failure(code: u16, body: &str) -> String {
    choose_between(code, body, (500, ""))
}

/// Several machines, so that no draw hides a wrong choice.
fn choose_between(code: u16, body: &str, other: (u16, &str)) -> String {
    let mut all: Vec<String> = (0..8)
        .map(|seed| {
            let setup = Setup::new("chronicle://s1,s2").exact();
            let mut hand = Hand::seeded(start(), setup, seed);
            hand.connect();
            let answers = [("s1", (code, body)), ("s2", other)];
            for (server, _) in answers {
                let transport = hand.take_open(server);
                hand.open(transport);
            }
            let asks = asked(&hand, Request::Count);
            for (ask, (_, (code, body))) in asks.into_iter().zip(answers) {
                hand.reply(ask, http(code, body.to_owned()));
            }
            the_chosen(&mut hand)
        })
        .collect();
    all.dedup();
    all.join(" or ")
}

#[test]
fn counts_that_have_become_stale_are_asked_for_once_more() {
    let mut hand = hand(THREE);
    hand.connect();
    let (first, second, third) = (
        hand.take_open("s1"),
        hand.take_open("s2"),
        hand.take_open("s3"),
    );
    for transport in [first, second, third] {
        hand.open(transport);
    }
    let ask = hand.take(Request::Count, first);
    hand.reply(ask, http(200, "0"));
    let ask = hand.take(Request::Count, second);
    hand.reply(ask, http(500, ""));
    hand.wait(millis(250) + MOMENT);
    let ask = hand.take(Request::Count, third);
    hand.reply(ask, http(200, "5"));

    assert!(chosen(&mut hand).is_empty(), "the count of s1 is stale");
    let again = asked(&hand, Request::Count);
    assert_eq!(
        again.len(),
        2,
        "only who answered is asked, and without a wait"
    );
    let ask = hand.take(Request::Count, first);
    hand.reply(ask, http(200, "9"));
    // However long this takes: there is no third time.
    hand.wait(secs(1));
    let ask = hand.take(Request::Count, third);
    hand.reply(ask, http(200, "6"));
    assert_eq!(the_chosen(&mut hand), "s3");
    assert!(!hand.asks(Request::Count));
}

#[test]
fn counts_within_the_time_decide_at_once() {
    let mut hand = hand("chronicle://s1,s2");
    hand.connect();
    let (first, second) = (hand.take_open("s1"), hand.take_open("s2"));
    hand.open(first);
    hand.open(second);
    let ask = hand.take(Request::Count, first);
    hand.reply(ask, http(200, "0"));
    hand.wait(millis(250));
    let ask = hand.take(Request::Count, second);
    hand.reply(ask, http(200, "5"));
    assert_eq!(the_chosen(&mut hand), "s1");
}

#[test]
fn if_the_second_counts_do_not_come_the_first_stand() {
    let mut hand = hand("chronicle://s1,s2");
    hand.connect();
    let (first, second) = (hand.take_open("s1"), hand.take_open("s2"));
    hand.open(first);
    hand.open(second);
    let ask = hand.take(Request::Count, first);
    hand.reply(ask, http(200, "3"));
    hand.wait(secs(1));
    let ask = hand.take(Request::Count, second);
    hand.reply(ask, http(200, "5"));
    assert_eq!(asked(&hand, Request::Count).len(), 2);
    hand.wait(secs(2) - MOMENT);
    assert!(chosen(&mut hand).is_empty());
    hand.wait(MOMENT);
    assert_eq!(the_chosen(&mut hand), "s1");
}

#[test]
fn stale_counts_are_asked_again_also_when_the_time_decides() {
    // s2 never answers; when its two seconds are over, the count of s1 is two seconds old.
    let mut hand = hand("chronicle://s1,s2,s3");
    hand.connect();
    let transports = ["s1", "s2", "s3"].map(|server| hand.take_open(server));
    for transport in transports {
        hand.open(transport);
    }
    for (transport, count) in [(transports[0], "1"), (transports[2], "2")] {
        let ask = hand.take(Request::Count, transport);
        hand.reply(ask, http(200, count));
    }
    hand.take(Request::Count, transports[1]);
    hand.wait(secs(2));
    assert!(chosen(&mut hand).is_empty());
    for (transport, count) in [(transports[0], "8"), (transports[2], "2")] {
        let ask = hand.take(Request::Count, transport);
        hand.reply(ask, http(200, count));
    }
    assert_eq!(the_chosen(&mut hand), "s3");
}

#[test]
fn a_transport_that_closes_while_counts_are_asked_gives_no_count() {
    let mut hand = hand("chronicle://s1,s2");
    hand.connect();
    let (first, second) = (hand.take_open("s1"), hand.take_open("s2"));
    hand.open(first);
    hand.open(second);
    hand.reply(first, closed());
    let ask = hand.take(Request::Count, second);
    hand.reply(ask, http(200, "8"));
    assert_eq!(the_chosen(&mut hand), "s2");
}

#[test]
fn a_dial_that_takes_too_long_is_a_failure_like_another() {
    let setup = Setup::new("chronicle://s1,s2").exact();
    let mut hand = Hand::new(start(), setup.timing(|timing| timing.count = secs(20)));
    hand.connect();
    let (first, second) = (hand.take_open("s1"), hand.take_open("s2"));
    hand.wait(secs(5) - MOMENT);
    hand.open(second);
    let ask = hand.take(Request::Count, second);
    hand.reply(ask, http(200, "7"));
    assert!(chosen(&mut hand).is_empty());
    hand.wait(MOMENT);
    assert!(hand.is_closed(first));
    assert_eq!(the_chosen(&mut hand), "s2");
}
