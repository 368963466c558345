//! Least connections: the wait, the dials, the counts, the choice, and who fails.

use crate::help::*;
use chronicle_connection::{
    Backoff, CallError, CandidateError, Code, Event, FailureKind, Jitter, Output, Reply, Request,
    State, Strategy, TlsFailure, WaitReason,
};
use chronicle_simulation::{Hand, Setup, http, request_of, status};
use std::{collections::BTreeMap, num::NonZeroUsize, time::Duration};

const THREE: &str = "chronicle://s1,s2,s3";

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
fn the_dials_come_at_a_uniform_moment_within_the_wait() {
    let mut shares = [0; 5];
    for seed in 0..1000 {
        let mut hand = Hand::seeded(start(), Setup::new(THREE), seed);
        hand.connect();
        let (dialled, asked) = dial_and_ask(&mut hand);
        assert!(dialled <= asked);
        let share = dialled.as_secs_f64() / asked.as_secs_f64();
        shares[((share * 5.0) as usize).min(4)] += 1;
    }
    assert!(
        shares.iter().all(|&count| (140..=260).contains(&count)),
        "{shares:?}"
    );
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

/// How often each server is chosen, over seeds.
fn choices(times: u64, choose: impl Fn(&mut Hand)) -> BTreeMap<String, usize> {
    let mut choices = BTreeMap::new();
    for seed in 0..times {
        let mut hand = Hand::seeded(start(), Setup::new(THREE).exact(), seed);
        hand.connect();
        choose(&mut hand);
        *choices.entry(the_chosen(&mut hand)).or_insert(0) += 1;
    }
    choices
}

#[test]
fn ties_go_to_each_equally_often_whatever_the_order_of_the_list() {
    let choices = choices(3000, |hand| {
        offer(hand, &[("s1", Some(4)), ("s2", Some(4)), ("s3", Some(4))]);
    });
    assert!(
        choices.values().all(|&times| (900..=1100).contains(&times)),
        "{choices:?}"
    );
}

#[test]
fn without_any_count_each_reachable_server_is_chosen_equally_often() {
    let all = choices(3000, |hand| {
        offer(hand, &[("s1", None), ("s2", None), ("s3", None)]);
    });
    assert!(
        all.values().all(|&times| (900..=1100).contains(&times)),
        "{all:?}"
    );

    let reachable = choices(2000, |hand| {
        let (first, second, third) = (
            hand.take_open("s1"),
            hand.take_open("s2"),
            hand.take_open("s3"),
        );
        hand.reply(second, refused());
        for transport in [first, third] {
            hand.open(transport);
            let ask = hand.take(Request::Count, transport);
            hand.reply(ask, http(404, ""));
        }
    });
    assert_eq!(reachable.get("s2"), None);
    assert!(
        reachable
            .values()
            .all(|&times| (900..=1100).contains(&times)),
        "{reachable:?}"
    );
}

#[test]
fn if_all_are_still_dialling_when_the_time_is_over_one_of_them_is_chosen_and_waited_for() {
    let choices = choices(2000, |hand| {
        let refusing = hand.take_open("s2");
        hand.reply(refusing, refused());
        hand.wait(secs(2) - MOMENT);
        assert!(hand.events().iter().all(|event| selected(event).is_none()));
        hand.wait(MOMENT);
    });
    assert_eq!(choices.get("s2"), None);
    assert!(
        choices.values().all(|&times| (900..=1100).contains(&times)),
        "{choices:?}"
    );

    let mut hand = hand("chronicle://s1,s2");
    hand.connect();
    let transports = [hand.take_open("s1"), hand.take_open("s2")];
    hand.wait(secs(2));
    let winner = usize::from(the_chosen(&mut hand) == "s2");
    hand.wait(secs(3) - MOMENT);
    hand.open(transports[winner]);
    pass(&mut hand, transports[winner]);
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
fn one_candidate_is_dialled_at_once_and_never_asked() {
    for strategy in [Strategy::default(), Strategy::RoundRobin, Strategy::Random] {
        let setup = Setup::new("chronicle://s1").strategy(strategy);
        let mut hand = Hand::new(start(), setup);
        hand.connect();
        let transport = hand.take_open("s1");
        hand.open(transport);
        assert!(!hand.asks(Request::Count));
        pass(&mut hand, transport);
        assert_eq!(hand.elapsed(), Duration::ZERO);
    }
}

#[test]
fn a_server_that_is_named_twice_is_one_candidate() {
    let mut hand = hand("chronicle://s1,S1:35000,s1.");
    hand.connect();
    assert_eq!(dials(&mut hand), ["s1"]);
}

#[test]
fn only_so_many_as_told_are_asked_drawn_afresh_each_time() {
    let strategy = Strategy::LeastConnections {
        max_probes: NonZeroUsize::new(2),
    };
    let mut pairs = BTreeMap::new();
    for seed in 0..600 {
        let setup = Setup::new(THREE).strategy(strategy.clone()).exact();
        let mut hand = Hand::seeded(start(), setup, seed);
        hand.connect();
        let mut dialled = dials(&mut hand);
        dialled.sort();
        assert_eq!(dialled.len(), 2);
        *pairs.entry(dialled).or_insert(0) += 1;
    }
    assert_eq!(pairs.len(), 3);
    assert!(
        pairs.values().all(|&times| (150..=250).contains(&times)),
        "{pairs:?}"
    );
}

#[test]
fn more_probes_than_servers_are_all_servers() {
    let strategy = Strategy::LeastConnections {
        max_probes: NonZeroUsize::new(9),
    };
    let mut hand = Hand::new(start(), Setup::new(THREE).strategy(strategy).exact());
    hand.connect();
    assert_eq!(dials(&mut hand).len(), 3);
}

#[test]
fn when_all_that_were_drawn_fail_the_others_are_drawn() {
    let strategy = Strategy::LeastConnections {
        max_probes: NonZeroUsize::new(2),
    };
    let setup = Setup::new("chronicle://s1,s2,s3,s4").strategy(strategy);
    let mut hand = Hand::new(start(), setup.exact().patient());
    hand.connect();
    let mut failed = Vec::new();
    while hand.state() != State::BackingOff {
        let (transport, server) = match hand.find_open() {
            Some(dial) => dial,
            None => panic!("{}", hand.trace().as_str()),
        };
        hand.reply(transport, refused());
        failed.push(server);
    }
    failed.sort();
    assert_eq!(failed, ["s1", "s2", "s3", "s4"]);
    let error = the_failure(&mut hand);
    assert!(
        error.candidates.iter().all(|(_, cause)| cause.is_some()),
        "{error}"
    );
    assert_eq!(hand.elapsed(), Duration::ZERO, "without a new wait");
}

#[test]
fn if_all_fail_the_attempt_fails_with_the_cause_of_each() {
    let mut hand = hand(THREE);
    hand.connect();
    let causes = [
        FailureKind::Refused,
        FailureKind::Dns,
        FailureKind::Tls(TlsFailure::Expired),
    ];
    for (server, kind) in ["s1", "s2", "s3"].into_iter().zip(causes) {
        let transport = hand.take_open(server);
        hand.reply(transport, failed(kind));
    }
    let error = the_failure(&mut hand);
    let servers: Vec<String> = error.candidates.iter().map(|(one, _)| name(one)).collect();
    assert_eq!(servers, ["s1", "s2", "s3"]);
    for (server, kind) in ["s1", "s2", "s3"].into_iter().zip(causes) {
        match cause(&error, server) {
            Some(CandidateError::Unreachable(failure)) => assert_eq!(failure.kind, kind),
            other => panic!("{other:?}"),
        }
    }
    let text = error.to_string();
    for part in ["s1:35000", "connection refused", "s2:35000", "expired"] {
        assert!(text.contains(part), "{text}");
    }
}

#[test]
fn one_reservation_is_made_on_the_winner_and_none_on_the_losers() {
    let mut hand = hand(THREE);
    hand.connect();
    let transports = offer(
        &mut hand,
        &[("s1", Some(2)), ("s2", Some(1)), ("s3", Some(3))],
    );
    assert_eq!(asked(&hand, Request::Reserve).len(), 1);
    pass(&mut hand, transports[1]);
    assert!(!hand.asks(Request::Reserve));
}

#[test]
fn losing_transports_are_closed_when_the_check_has_passed_and_not_before() {
    let mut hand = hand(THREE);
    hand.connect();
    let transports = offer(
        &mut hand,
        &[("s1", Some(2)), ("s2", Some(1)), ("s3", Some(3))],
    );
    let check = hand.take(Request::CheckCompatibility, transports[1]);
    let losers = [transports[0], transports[2]];
    assert!(losers.iter().all(|&loser| !hand.is_closed(loser)));
    pass_check(&mut hand, check);
    assert!(losers.iter().all(|&loser| hand.is_closed(loser)));
    assert!(!hand.is_closed(transports[1]));
}

#[test]
fn a_loser_that_is_still_dialling_is_closed_when_the_check_has_passed() {
    let mut hand = hand("chronicle://s1,s2");
    hand.connect();
    let (first, second) = (hand.take_open("s1"), hand.take_open("s2"));
    hand.open(first);
    let ask = hand.take(Request::Count, first);
    hand.reply(ask, http(200, "0"));
    hand.wait(secs(2));
    // The count is two seconds old, and is asked for once more.
    let ask = hand.take(Request::Count, first);
    hand.reply(ask, http(200, "0"));
    let check = hand.take(Request::CheckCompatibility, first);
    pass_check(&mut hand, check);
    assert!(hand.is_closed(second));
}

#[test]
fn after_a_failure_the_next_best_is_tried_without_a_new_wait_and_a_new_count() {
    let setup = Setup::new(THREE).patient();
    let mut hand = Hand::new(start(), setup);
    hand.connect();
    hand.wait_until(has_dialled);
    let transports = ["s1", "s2", "s3"].map(|server| hand.take_open(server));
    for transport in transports {
        hand.open(transport);
    }
    hand.wait_until(|hand| hand.asks(Request::Count));
    for (transport, count) in transports.into_iter().zip(["2", "1", "3"]) {
        let ask = hand.take(Request::Count, transport);
        hand.reply(ask, http(200, count));
    }
    let decided = hand.elapsed();
    let mut order = vec![the_chosen(&mut hand)];
    for transport in [transports[1], transports[0], transports[2]] {
        hand.take(Request::Reserve, transport);
        let check = hand.take(Request::CheckCompatibility, transport);
        hand.reply(check, status(Code::Unavailable));
        assert!(hand.is_closed(transport), "it is out for this attempt");
        order.extend(chosen(&mut hand));
    }
    assert_eq!(order, ["s2", "s1", "s3"]);
    assert_eq!(hand.elapsed(), decided);
    assert_eq!(hand.state(), State::BackingOff);
}

#[test]
fn the_next_best_are_those_with_a_count_then_those_reached() {
    let mut hand = hand(THREE);
    hand.connect();
    let transports = offer(&mut hand, &[("s1", None), ("s2", Some(9)), ("s3", Some(1))]);
    let mut order = vec![the_chosen(&mut hand)];
    for transport in [transports[2], transports[1]] {
        let check = hand.take(Request::CheckCompatibility, transport);
        hand.reply(check, status(Code::Internal));
        order.extend(chosen(&mut hand));
    }
    assert_eq!(order, ["s3", "s2", "s1"]);
}

#[test]
fn those_that_were_not_asked_come_last_and_are_asked() {
    let strategy = Strategy::LeastConnections {
        max_probes: NonZeroUsize::new(1),
    };
    let setup = Setup::new("chronicle://s1,s2").strategy(strategy).exact();
    let mut hand = Hand::new(start(), setup.patient());
    hand.connect();
    let (transport, first) = hand.find_open().unwrap();
    assert!(!has_dialled(&hand), "one of two is asked");
    hand.open(transport);
    if let Some(output) = hand.find_request(Request::Count, transport) {
        let ask = chronicle_simulation::id_of(&output).unwrap();
        hand.reply(ask, http(200, "0"));
    }
    assert_eq!(the_chosen(&mut hand), first);
    let check = hand.take(Request::CheckCompatibility, transport);
    hand.reply(check, status(Code::Unavailable));
    let (transport, second) = hand.find_open().unwrap();
    assert_ne!(first, second);
    hand.open(transport);
    if let Some(output) = hand.find_request(Request::Count, transport) {
        let ask = chronicle_simulation::id_of(&output).unwrap();
        hand.reply(ask, http(200, "7"));
    }
    pass(&mut hand, transport);
}

#[test]
fn a_transport_that_closed_meanwhile_is_dialled_again_when_its_server_is_chosen() {
    let mut hand = hand("chronicle://s1,s2");
    hand.connect();
    let transports = offer(&mut hand, &[("s1", Some(1)), ("s2", Some(2))]);
    hand.reply(transports[1], closed());
    let check = hand.take(Request::CheckCompatibility, transports[0]);
    hand.reply(check, status(Code::Unavailable));
    go_live(&mut hand, "s2");
    let session = hand.session().unwrap();
    assert_eq!(name(&session.server), "s2");
}

#[test]
fn a_transport_that_is_going_away_is_not_used_when_its_server_is_chosen() {
    let mut hand = hand("chronicle://s1,s2");
    hand.connect();
    let transports = offer(&mut hand, &[("s1", Some(1)), ("s2", Some(2))]);
    hand.reply(transports[1], Reply::GoingAway { code: 0 });
    let check = hand.take(Request::CheckCompatibility, transports[0]);
    hand.reply(check, status(Code::Unavailable));
    go_live(&mut hand, "s2");
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

/// Every way in which a chosen server can fail before the session is up.
fn fail_the_chosen(hand: &mut Hand, transport: chronicle_connection::Id, how: usize) {
    match how {
        0 => hand.reply(transport, closed()),
        1 => hand.reply(transport, Reply::GoingAway { code: 0 }),
        2 => {
            let check = hand.take(Request::CheckCompatibility, transport);
            hand.reply(check, status(Code::Unavailable));
        }
        3 => hand.wait(secs(10)),
        4 => {
            let stream = prove(hand, transport);
            hand.reply(stream, status(Code::Internal));
        }
        5 => {
            let stream = prove(hand, transport);
            hand.reply(stream, Reply::GoingAway { code: 0 });
        }
        _ => {
            prove(hand, transport);
            hand.wait(secs(4));
        }
    }
}

#[test]
fn whoever_fails_after_being_chosen_is_out_for_the_attempt() {
    for how in 0..7 {
        let mut hand = hand("chronicle://s1,s2");
        hand.connect();
        let transports = offer(&mut hand, &[("s1", Some(0)), ("s2", Some(1000))]);
        assert_eq!(the_chosen(&mut hand), "s1", "{how}");
        fail_the_chosen(&mut hand, transports[0], how);
        assert_eq!(the_chosen(&mut hand), "s2", "{how}");
        let is_still_open = !hand.is_closed(transports[1]);
        if is_still_open && hand.find_request(Request::Reserve, transports[1]).is_some() {
            continue;
        }
        assert!(has_dialled(&hand), "{how}");
    }
}

#[test]
fn until_the_next_session_whoever_failed_ranks_behind_all_that_have_not() {
    let mut hand = hand(THREE);
    hand.connect();
    let transports = ["s1", "s2", "s3"].map(|server| hand.take_open(server));
    hand.open(transports[0]);
    hand.reply(transports[1], refused());
    hand.reply(transports[2], refused());
    let ask = hand.take(Request::Count, transports[0]);
    hand.reply(ask, http(200, "0"));
    let check = hand.take(Request::CheckCompatibility, transports[0]);
    hand.reply(check, status(Code::Unavailable));
    // Whether those that refused are dialled once more or not, the attempt fails.
    while let Some((transport, _)) = hand.find_open() {
        hand.reply(transport, refused());
    }
    assert_eq!(hand.state(), State::BackingOff);
    hand.take_all();
    hand.events();

    // Now the others are up, and full. They have failed nobody who chose them.
    hand.wait_until(has_dialled);
    offer_all(&mut hand, &[("s1", 0), ("s2", 50), ("s3", 50)]);
    assert_ne!(the_chosen(&mut hand), "s1");
}

#[test]
fn a_session_clears_the_ranks() {
    let mut hand = hand("chronicle://s1,s2");
    hand.connect();
    let transports = offer(&mut hand, &[("s1", Some(0)), ("s2", Some(9))]);
    let check = hand.take(Request::CheckCompatibility, transports[0]);
    hand.reply(check, status(Code::Unavailable));
    assert_eq!(chosen(&mut hand), ["s1", "s2"]);
    let live = pass(&mut hand, transports[1]);
    live_on(&mut hand, live, 7);
    hand.take_all();

    hand.reply(live.transport, closed());
    hand.events();
    hand.wait_until(has_dialled);
    offer(&mut hand, &[("s1", Some(0)), ("s2", Some(9))]);
    assert_eq!(the_chosen(&mut hand), "s1");
}

/// Like `offer`, for those of the servers that are dialled at all.
fn offer_all(hand: &mut Hand, counts: &[(&str, u64)]) {
    let mut open = Vec::new();
    while let Some((transport, server)) = hand.find_open() {
        hand.open(transport);
        open.push((transport, server));
    }
    for (transport, server) in open {
        let count = counts.iter().find(|(name, _)| *name == server).unwrap().1;
        let ask = hand.take(Request::Count, transport);
        hand.reply(ask, http(200, count.to_string()));
    }
}

#[test]
fn the_count_and_the_reservation_carry_no_credentials_and_follow_no_redirect() {
    let mut hand = hand("chronicle://s1,s2?apiKey=k3y");
    hand.connect();
    for server in ["s1", "s2"] {
        let transport = hand.take_open(server);
        hand.open(transport);
    }
    let mut plain = 0;
    for ask in asked(&hand, Request::Count) {
        let output = hand.find(|output| chronicle_simulation::id_of(output) == Some(ask));
        plain += usize::from(output.is_some_and(|output| is_plain(&output)));
        hand.reply(ask, http(307, ""));
    }
    let reserve = hand.find(|output| request_of(output) == Some(Request::Reserve));
    plain += usize::from(reserve.is_some_and(|output| is_plain(&output)));
    assert_eq!(plain, 3);
    assert!(dials(&mut hand).is_empty(), "nobody follows a redirect");
}

fn is_plain(output: &Output) -> bool {
    match output {
        Output::Http { request, .. } => {
            let headers = request.headers();
            ["authorization", "api-key", "cookie"]
                .iter()
                .all(|name| headers.get(*name).is_none())
                && !request.uri().to_string().contains("k3y")
        }
        _ => false,
    }
}

#[test]
fn a_reservation_that_fails_or_hangs_is_reported_and_stops_nothing() {
    let answers: [(Reply, CallError); 4] = [
        (http(500, ""), CallError::Http(500)),
        (http(404, ""), CallError::Http(404)),
        (http(307, ""), CallError::Http(307)),
        (
            failed(FailureKind::Reset),
            CallError::Failure(chronicle_connection::Failure::new(FailureKind::Reset, "")),
        ),
    ];
    for (answer, expected) in answers {
        let mut hand = hand("chronicle://s1");
        hand.connect();
        let transport = hand.take_open("s1");
        hand.open(transport);
        let reserve = hand.take(Request::Reserve, transport);
        hand.reply(reserve, answer);
        let check = hand.take(Request::CheckCompatibility, transport);
        pass_check(&mut hand, check);
        let stream = hand.take(Request::Connect, transport);
        beat(&mut hand, Live { transport, stream });
        assert_eq!(reserve_failures(&mut hand), [expected]);
        assert!(hand.session().is_some());
    }
}

#[test]
fn a_reservation_that_hangs_is_given_up_after_two_seconds() {
    let mut hand = hand("chronicle://s1");
    hand.connect();
    let transport = hand.take_open("s1");
    hand.open(transport);
    let reserve = hand.take(Request::Reserve, transport);
    let check = hand.take(Request::CheckCompatibility, transport);
    pass_check(&mut hand, check);
    hand.wait(secs(2) - MOMENT);
    assert!(!hand.asks(Request::Connect));
    hand.wait(MOMENT);
    assert!(hand.is_cancelled(reserve));
    assert_eq!(reserve_failures(&mut hand).len(), 1);
    let stream = hand.take(Request::Connect, transport);
    beat(&mut hand, Live { transport, stream });
    assert!(hand.session().is_some());
}

fn reserve_failures(hand: &mut Hand) -> Vec<CallError> {
    let events = hand.events().into_iter();
    events
        .filter_map(|event| match event {
            Event::ReserveFailed { cause, .. } => Some(cause),
            _ => None,
        })
        .collect()
}
