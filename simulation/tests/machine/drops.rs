//! What ends a session at once.

use crate::help::*;
use chronicle_connection::{Code, DropCause, Failure, FailureKind, Id, Reply};
use chronicle_simulation::{keep_alive, ok, request_of, status};
use std::time::Duration;

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
