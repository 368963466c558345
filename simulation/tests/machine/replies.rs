//! What the machine promises about replies: late, unknown, of the wrong kind, or too long.

use crate::{help::*, older_servers::asked_for_the_version};
use bytes::Bytes;
use chronicle_connection::{
    CallError, CandidateError, Code, Command, Contract, Event, FailureKind, Id, Input, Output,
    Reply, Request,
};
use chronicle_simulation::{Hand, Setup, http, id_of, keep_alive, ok, request_of, status};
use rand_chacha::ChaCha8Rng;
use rand_core::{Rng as _, SeedableRng as _};

/// Every kind of reply.
fn all_replies() -> Vec<Reply> {
    vec![
        Reply::Opened {
            peer: ([10, 0, 0, 9], 35000).into(),
        },
        Reply::GoingAway { code: 0 },
        closed(),
        http(200, "0"),
        Reply::Message(Bytes::new()),
        Reply::Message(Bytes::from_static(b"\xff\xff")),
        ok(),
        status(Code::Unavailable),
        failed(FailureKind::Reset),
    ]
}

/// An id that the machines of a test have not minted yet.
fn far_id() -> Id {
    let mut hand = hand("chronicle://s1");
    hand.connect();
    loop {
        hand.wait_until(has_dialled);
        let transport = hand.take_open("s1");
        if transport.to_string() == "#200" {
            return transport;
        }
        hand.reply(transport, refused());
    }
}

#[test]
fn a_reply_with_an_unknown_id_is_counted_and_ignored_in_any_phase() {
    let unknown = far_id();
    for (phase, hand) in phases() {
        for reply in all_replies() {
            let mut hand = hand.clone();
            hand.events();
            let before = *hand.machine().stats();
            let (state, due, count) = (
                hand.state(),
                hand.machine().poll_timeout(),
                hand.outbox().len(),
            );
            hand.reply(unknown, reply);
            assert_eq!(
                hand.machine().stats().ignored_replies,
                before.ignored_replies + 1
            );
            assert_eq!(hand.state(), state, "{phase}");
            assert_eq!(hand.machine().poll_timeout(), due, "{phase}");
            assert_eq!(hand.outbox().len(), count, "{phase}");
            assert!(hand.events().is_empty(), "{phase}");
        }
    }
}

#[test]
fn a_transport_that_opens_before_it_was_asked_for_is_not_closed() {
    let mut hand = hand("chronicle://s1");
    let mut ahead = hand.clone();
    ahead.connect();
    let next = ahead.take_open("s1");
    hand.open(next);
    assert!(hand.outbox().is_empty());
    assert_eq!(hand.machine().stats().ignored_replies, 1);
}

#[test]
fn a_reply_with_a_finished_id_is_counted_and_ignored() {
    let (mut hand, live) = live_hand();
    let finished = {
        hand.wait(secs(1));
        beat(&mut hand, live);
        let answer = hand.take(Request::KeepAlive, live.transport);
        acknowledge_id(&mut hand, answer);
        answer
    };
    for (nth, reply) in all_replies().into_iter().enumerate() {
        hand.reply(finished, reply);
        hand.is_closed(finished);
        assert_eq!(hand.machine().stats().ignored_replies, nth as u64 + 1);
    }
    assert!(hand.session().is_some() && hand.outbox().is_empty());
}

#[test]
fn a_reply_that_crosses_with_a_cancel_is_ignored() {
    let mut hand = hand("chronicle://s1");
    hand.connect();
    let transport = hand.take_open("s1");
    hand.open(transport);
    let reserve = hand.take(Request::Reserve, transport);
    hand.wait(secs(2));
    assert!(hand.is_cancelled(reserve));
    hand.events();
    hand.reply(reserve, http(200, ""));
    assert_eq!(hand.machine().stats().ignored_replies, 1);
    assert!(hand.events().is_empty());
}

#[test]
fn a_transport_that_opens_too_late_is_closed() {
    let mut hand = hand("chronicle://s1");
    hand.connect();
    let transport = hand.take_open("s1");
    hand.wait(secs(5));
    assert!(hand.is_closed(transport));
    hand.open(transport);
    assert!(hand.is_closed(transport));
    assert!(hand.outbox().is_empty());
}

#[test]
fn a_reply_of_the_wrong_kind_to_a_dial_fails_that_server_only() {
    let mut hand = hand("chronicle://s1,s2");
    hand.connect();
    let (first, second) = (hand.take_open("s1"), hand.take_open("s2"));
    hand.reply(first, http(200, "0"));
    hand.open(second);
    let ask = hand.take(Request::Count, second);
    hand.reply(ask, http(200, "7"));
    assert_eq!(the_chosen(&mut hand), "s2");
}

#[test]
fn a_reply_of_the_wrong_kind_to_a_count_leaves_the_server_without_a_count() {
    for wrong in [Reply::Message(Bytes::from_static(b"0")), ok(), closed()] {
        let mut hand = hand("chronicle://s1,s2");
        hand.connect();
        let (first, second) = (hand.take_open("s1"), hand.take_open("s2"));
        hand.open(first);
        hand.open(second);
        let ask = hand.take(Request::Count, first);
        hand.reply(ask, wrong);
        let ask = hand.take(Request::Count, second);
        hand.reply(ask, http(200, "7"));
        assert_eq!(the_chosen(&mut hand), "s2");
        // The first is still there as the next best.
        let check = hand.take(Request::CheckCompatibility, second);
        hand.reply(check, status(Code::Unavailable));
        assert_eq!(the_chosen(&mut hand), "s1");
    }
}

#[test]
fn a_reply_of_the_wrong_kind_to_the_reservation_fails_the_reservation_only() {
    let mut hand = hand("chronicle://s1");
    hand.connect();
    let transport = hand.take_open("s1");
    hand.open(transport);
    let reserve = hand.take(Request::Reserve, transport);
    hand.reply(reserve, Reply::Message(Bytes::new()));
    let check = hand.take(Request::CheckCompatibility, transport);
    pass_check(&mut hand, check);
    let stream = hand.take(Request::Connect, transport);
    beat(&mut hand, Live { transport, stream });
    assert!(hand.session().is_some());
    let mut events = hand.events().into_iter();
    assert!(events.any(|event| matches!(event, Event::ReserveFailed { .. })));
}

#[test]
fn a_reply_of_the_wrong_kind_to_the_check_fails_the_attempt() {
    let mut hand = hand("chronicle://s1");
    hand.connect();
    let transport = hand.take_open("s1");
    hand.open(transport);
    let check = hand.take(Request::CheckCompatibility, transport);
    hand.reply(check, http(200, ""));
    let error = the_failure(&mut hand);
    let is_the_check = matches!(
        cause(&error, "s1"),
        Some(CandidateError::Call {
            request: Request::CheckCompatibility,
            error: CallError::Malformed(_) | CallError::Failure(_),
        })
    );
    assert!(is_the_check, "{error}");
}

#[test]
fn a_reply_of_the_wrong_kind_to_connect_fails_the_attempt() {
    let mut hand = hand("chronicle://s1");
    hand.connect();
    let transport = hand.take_open("s1");
    hand.open(transport);
    let stream = prove(&mut hand, transport);
    hand.reply(stream, http(200, ""));
    assert!(hand.session().is_none());
    let error = the_failure(&mut hand);
    let is_the_stream = matches!(
        cause(&error, "s1"),
        Some(CandidateError::Call {
            request: Request::Connect,
            ..
        })
    );
    assert!(is_the_stream, "{error}");
}

#[test]
fn a_reply_of_the_wrong_kind_to_an_answer_drops_nothing() {
    let (mut hand, live) = live_hand();
    hand.wait(secs(1));
    beat(&mut hand, live);
    let answer = hand.take(Request::KeepAlive, live.transport);
    hand.reply(answer, http(200, ""));
    assert!(hand.session().is_some());
    live_on(&mut hand, live, 10);
    assert!(hand.session().is_some());
}

#[test]
fn every_request_that_brings_bytes_back_has_a_limit() {
    // That each has one, a checker sees; here, that an answer beyond it is a failure like another.
    let mut hand = hand("chronicle://s1,s2");
    hand.connect();
    let (first, second) = (hand.take_open("s1"), hand.take_open("s2"));
    hand.open(first);
    hand.open(second);
    let ask = hand.take(Request::Count, first);
    hand.reply(ask, failed(FailureKind::TooLarge));
    let ask = hand.take(Request::Count, second);
    hand.reply(ask, http(200, "1000"));
    assert_eq!(the_chosen(&mut hand), "s2");
    let check = hand.take(Request::CheckCompatibility, second);
    hand.reply(check, failed(FailureKind::TooLarge));
    assert_eq!(the_chosen(&mut hand), "s1");
}

#[test]
fn limits_leave_room_for_what_is_asked_and_little_more() {
    let limit_of = |hand: &mut Hand, request| {
        let asked = hand.find(|output| request_of(output) == Some(request));
        match asked {
            Some(Output::Http { limit, .. }) => limit,
            Some(Output::Unary(call) | Output::ServerStream(call)) => call.limit,
            other => panic!("{request:?}: {other:?}"),
        }
    };
    let mut counting = hand("chronicle://s1,s2");
    counting.connect();
    for server in ["s1", "s2"] {
        let transport = counting.take_open(server);
        counting.open(transport);
    }
    assert_eq!(limit_of(&mut counting, Request::Count), 64);

    let (mut hand, _) = proving("chronicle://app:canary@s1");
    assert_eq!(limit_of(&mut hand, Request::Token), 64 * 1024);
    assert_eq!(limit_of(&mut hand, Request::Reserve), 4 * 1024);
    let check = call(&mut hand, Request::CheckCompatibility);
    assert_eq!(check.limit, 1024 * 1024);
    hand.reply(check.id, status(Code::Unimplemented));
    let text = limit_of(&mut hand, Request::GetDescriptorSet);
    assert_eq!(text, 16 * 1024 * 1024);

    let mut hand = asked_for_the_version(&Contract::default());
    assert_eq!(limit_of(&mut hand, Request::GetVersionInfo), 4 * 1024);

    let (mut hand, transport) = proving("chronicle://s1");
    let reserve = hand.take(Request::Reserve, transport);
    let check = hand.take(Request::CheckCompatibility, transport);
    hand.reply(reserve, http(200, ""));
    pass_check(&mut hand, check);
    let connect = call(&mut hand, Request::Connect);
    assert_eq!(connect.limit, 4 * 1024);
    let id = hand.connection_id();
    hand.reply(connect.id, keep_alive(&id));
    assert_eq!(limit_of(&mut hand, Request::KeepAlive), 4 * 1024);
}

#[test]
fn whatever_arrives_whenever_it_does_the_checkers_hold() {
    for seed in 0..200 {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let string = ["chronicle://s1", "chronicle://s1,s2,s3"][(seed % 2) as usize];
        let mut hand = Hand::seeded(start(), Setup::new(string).patient(), seed);
        hand.connect();
        let mut ids = vec![];
        for _ in 0..150 {
            ids.extend(hand.take_all().iter().filter_map(id_of));
            disturb(&mut hand, &mut rng, &ids);
        }
    }
}

/// One random thing: time passes, a reply or a command arrives.
fn disturb(hand: &mut Hand, rng: &mut ChaCha8Rng, ids: &[Id]) {
    match rng.next_u64() % 16 {
        0 => hand.wait(millis(rng.next_u64() % 3000)),
        1 => hand.oversleep(millis(rng.next_u64() % 3000)),
        2 => hand.turn_back(millis(rng.next_u64() % 50).min(hand.elapsed())),
        3 => hand.input(Command::Connect),
        4 => hand.input(Command::Slept(millis(rng.next_u64() % 2000))),
        5 if rng.next_u64().is_multiple_of(50) => hand.input(Command::Close),
        5..=8 => {
            if let Some(due) = hand.timeout() {
                hand.oversleep(due);
            }
            hand.input(Command::Tick);
        }
        _ => {
            let recent = ids.len().saturating_sub(8);
            let from = if rng.next_u64().is_multiple_of(8) {
                0
            } else {
                recent
            };
            let Some(&id) = ids[from..].get(rng.next_u64() as usize % (ids.len() - from).max(1))
            else {
                return;
            };
            let mut replies = all_replies();
            replies.push(keep_alive(&hand.connection_id()));
            replies.push(chronicle_simulation::compatible());
            replies.push(http(200, (rng.next_u64() % 10).to_string()));
            let nth = rng.next_u64() as usize % replies.len();
            hand.input(Input::Reply {
                id,
                reply: replies.swap_remove(nth),
            });
        }
    }
}
