//! A chosen server that fails: the next best, and the rank until the next session.

use crate::help::*;
use chronicle_connection::{
    CandidateError, Code, FailureKind, Reply, Request, State, Strategy, TlsFailure,
};
use chronicle_simulation::{Hand, Setup, http, status};
use std::{num::NonZeroUsize, time::Duration};

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
fn a_server_whose_session_was_short_ranks_behind_until_the_next_session() {
    let mut hand = hand("chronicle://s1,s2");
    hand.connect();
    hand.wait_until(has_dialled);
    let transports = offer(&mut hand, &[("s1", Some(0)), ("s2", Some(9))]);
    assert_eq!(the_chosen(&mut hand), "s1");
    let live = pass(&mut hand, transports[0]);
    live_on(&mut hand, live, 2);
    hand.reply(live.transport, closed());
    // It has the fewest clients of all now, for nobody stays.
    hand.wait_until(has_dialled);
    assert_eq!(dials(&mut hand), ["s2"]);
}

#[test]
fn two_servers_of_short_sessions_do_not_pass_a_client_to_and_fro() {
    // Nobody stays with s1 and s2, so they have the fewest clients of all, and s3 works.
    let mut hand = hand(THREE);
    hand.connect();
    for server in ["s1", "s2"] {
        hand.wait_until(has_dialled);
        let offered = dials(&mut hand.clone());
        let counts = [("s1", Some(0)), ("s2", Some(1)), ("s3", Some(9))];
        let counts = counts
            .into_iter()
            .filter(|(one, _)| offered.contains(&(*one).to_owned()));
        let transports = offer(&mut hand, &counts.collect::<Vec<_>>());
        assert_eq!(the_chosen(&mut hand), server);
        let live = pass(&mut hand, transports[0]);
        live_on(&mut hand, live, 2);
        hand.reply(live.transport, closed());
    }
    hand.wait_until(has_dialled);
    assert_eq!(dials(&mut hand.clone()), ["s3"]);
    let live = go_live(&mut hand, "s3");
    live_on(&mut hand, live, 7);
    hand.reply(live.transport, closed());
    hand.wait_until(has_dialled);
    let all = ["s1", "s2", "s3"];
    assert_eq!(
        dials(&mut hand),
        all,
        "a stable session gives everybody another chance"
    );
}

#[test]
fn when_every_server_had_a_short_session_only_the_newest_ranks_behind() {
    let mut hand = hand("chronicle://s1,s2");
    hand.connect();
    for server in ["s1", "s2", "s1", "s2"] {
        hand.wait_until(has_dialled);
        // At first both are asked; then only one is left, whoever has the fewest clients.
        let transport = match dials(&mut hand.clone()).len() {
            2 => offer(&mut hand, &[("s1", Some(0)), ("s2", Some(1))])[0],
            _ => {
                let transport = hand.take_open(server);
                hand.open(transport);
                transport
            }
        };
        assert_eq!(the_chosen(&mut hand), server);
        let live = pass(&mut hand, transport);
        live_on(&mut hand, live, 2);
        hand.reply(live.transport, closed());
    }
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
fn a_transport_that_goes_away_while_counts_are_asked_is_not_used() {
    let mut hand = hand("chronicle://s1,s2");
    hand.connect();
    let (first, second) = (hand.take_open("s1"), hand.take_open("s2"));
    hand.open(first);
    hand.open(second);
    let ask = hand.take(Request::Count, first);
    hand.reply(ask, http(200, "0"));
    hand.reply(first, Reply::GoingAway { code: 0 });
    let ask = hand.take(Request::Count, second);
    hand.reply(ask, http(200, "5"));
    // Either s1 is dialled again, or s2 is taken; a checker sees that nothing uses the old one.
    let transport = hand.find_open().map_or(second, |(transport, _)| {
        hand.open(transport);
        transport
    });
    pass(&mut hand, transport);
}

#[test]
fn a_server_whose_dial_runs_out_while_another_is_tried_is_not_tried_again() {
    let mut hand = hand("chronicle://s1,s2");
    hand.connect();
    let (first, second) = (hand.take_open("s1"), hand.take_open("s2"));
    hand.open(second);
    let ask = hand.take(Request::Count, second);
    hand.wait(secs(2) - MOMENT);
    hand.reply(ask, http(200, "5"));
    hand.wait(MOMENT);
    assert_eq!(the_chosen(&mut hand), "s2");
    // Its check hangs, and meanwhile the time of the other dial is over.
    hand.wait(secs(3));
    assert!(hand.is_closed(first));
    hand.wait(secs(7));
    assert!(!has_dialled(&hand));
    let error = the_failure(&mut hand);
    let is_unreachable = matches!(cause(&error, "s1"), Some(CandidateError::Unreachable(_)));
    assert!(is_unreachable, "{error}");
}
