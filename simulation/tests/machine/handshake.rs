//! From the chosen transport to the first keep-alive.

use crate::help::*;
use chronicle_connection::{
    CallError, CandidateError, Code, Event, Failure, FailureKind, Reply, Request, State, Status,
};
use chronicle_connection_proto::clients::ConnectRequest;
use chronicle_simulation::{Hand, Setup, compatible, http, keep_alive, ok, request_of, status};
use prost::Message as _;

#[test]
fn the_reservation_and_the_check_go_out_in_this_order_without_waiting() {
    let (hand, _) = proving("chronicle://s1");
    let requests: Vec<_> = hand.outbox().iter().filter_map(request_of).collect();
    assert_eq!(requests, [Request::Reserve, Request::CheckCompatibility]);
}

#[test]
fn connect_waits_for_both_answers_whatever_their_order() {
    let (mut hand, transport) = proving("chronicle://s1");
    let reserve = hand.take(Request::Reserve, transport);
    let check = hand.take(Request::CheckCompatibility, transport);
    let mut other = hand.clone();

    hand.reply(reserve, http(200, ""));
    hand.reply(check, compatible());
    assert!(!hand.asks(Request::Connect));
    hand.reply(check, ok());
    assert!(hand.asks(Request::Connect));

    pass_check(&mut other, check);
    assert!(!other.asks(Request::Connect));
    other.reply(reserve, http(200, ""));
    assert!(other.asks(Request::Connect));
}

#[test]
fn the_whole_handshake_takes_place_on_one_transport() {
    let mut hand = hand("chronicle://s1,s2");
    hand.connect();
    let transports = offer(&mut hand, &[("s1", Some(1)), ("s2", Some(2))]);
    // `pass` finds the reservation, the check, `Connect` and the answer on this transport only.
    pass(&mut hand, transports[0]);
    assert!(!has_dialled(&hand));
}

#[test]
fn the_first_keep_alive_makes_the_session_and_is_answered_at_once() {
    let (mut hand, transport) = proving("chronicle://s1");
    let stream = prove(&mut hand, transport);
    hand.events();
    assert!(matches!(hand.state(), State::Handshaking { .. }));
    hand.wait(secs(1));
    beat(&mut hand, Live { transport, stream });
    let session = hand.session().unwrap();
    assert_eq!(session.connection_id.to_string(), hand.connection_id());
    assert_eq!(name(&session.server), "s1");
    assert_eq!(session.generation, 1);
    assert_eq!(hand.events(), [Event::Connected(session)]);
    hand.take(Request::KeepAlive, transport);
}

#[test]
fn connect_carries_all_seven_fields() {
    let mut setup = Setup::new("chronicle://s1").exact();
    setup.client.version = "1.2.3".to_owned();
    setup.client.process_id = 4711;
    setup.client.process_path = "/usr/bin/app".to_owned();
    setup.client.machine_name = "host7".to_owned();
    setup.client.is_running_with_debugger = true;
    let mut hand = Hand::new(start(), setup);
    hand.connect();
    let transport = hand.take_open("s1");
    hand.open(transport);
    let reserve = hand.take(Request::Reserve, transport);
    let check = hand.take(Request::CheckCompatibility, transport);
    hand.reply(reserve, http(200, ""));
    pass_check(&mut hand, check);
    let call = call(&mut hand, Request::Connect);
    let request = ConnectRequest::decode(call.message).unwrap();
    assert_eq!(
        request,
        ConnectRequest {
            connection_id: hand.connection_id(),
            client_version: "1.2.3".to_owned(),
            is_running_with_debugger: true,
            process_id: 4711,
            process_path: "/usr/bin/app".to_owned(),
            machine_name: "host7".to_owned(),
            client_type: "Rust".to_owned(),
        }
    );
}

#[test]
fn every_session_has_a_fresh_connection_id() {
    let (mut hand, live) = live_hand();
    let first = hand.session().unwrap();
    live_on(&mut hand, live, 7);
    hand.reply(live.transport, closed());
    go_live(&mut hand, "s1");
    let second = hand.session().unwrap();
    assert_ne!(first.connection_id, second.connection_id);
    assert_eq!(second.generation, 2);
}

#[test]
fn a_dial_has_five_seconds() {
    let mut hand = hand("chronicle://s1");
    hand.connect();
    let transport = hand.take_open("s1");
    hand.wait(secs(5) - MOMENT);
    assert!(!hand.is_closed(transport));
    hand.wait(MOMENT);
    assert!(hand.is_closed(transport));
    let error = the_failure(&mut hand);
    match cause(&error, "s1") {
        Some(CandidateError::Unreachable(failure)) => {
            assert_eq!(failure.kind, FailureKind::TimedOut);
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_first_keep_alive_has_four_seconds_from_connect() {
    let (mut hand, transport) = proving("chronicle://s1");
    // A slow check does not eat into the time.
    hand.wait(secs(1));
    let stream = prove(&mut hand, transport);
    let mut other = hand.clone();
    hand.wait(secs(4) - MOMENT);
    beat(&mut hand, Live { transport, stream });
    assert!(hand.session().is_some());

    other.wait(secs(4));
    assert!(other.session().is_none());
    let error = the_failure(&mut other);
    assert_eq!(
        cause(&error, "s1"),
        Some(CandidateError::NoKeepAlive { waited: secs(4) })
    );
    assert!(other.is_closed(transport), "never half open");
}

#[test]
fn a_server_that_took_the_session_and_is_silent_is_never_reported_as_connected() {
    let (mut hand, transport) = proving("chronicle://s1");
    prove(&mut hand, transport);
    hand.wait(secs(120));
    let events = hand.events();
    assert!(
        !events
            .iter()
            .any(|event| matches!(event, Event::Connected(_)))
    );
}

#[test]
fn all_deadlines_can_be_configured() {
    let setup = Setup::new("chronicle://s1").exact().patient();
    let setup = setup.timing(|timing| {
        timing.open = millis(100);
        timing.reserve = millis(200);
        timing.check = millis(300);
        timing.first_keep_alive = millis(400);
    });
    let mut hand = Hand::new(start(), setup);
    hand.connect();
    assert_eq!(hand.timeout(), Some(millis(100)));
    let transport = hand.take_open("s1");
    hand.open(transport);
    assert_eq!(hand.timeout(), Some(millis(200)));
    let reserve = hand.take(Request::Reserve, transport);
    hand.reply(reserve, http(200, ""));
    assert_eq!(hand.timeout(), Some(millis(300)));
    let check = hand.take(Request::CheckCompatibility, transport);
    pass_check(&mut hand, check);
    assert_eq!(hand.timeout(), Some(millis(400)));
}

#[test]
fn no_phase_hangs() {
    // Each phase in turn never completes; the attempt fails within the sum of all deadlines.
    let stages: [fn(&mut Hand); 4] = [
        |_| {},
        |hand| {
            let transport = hand.take_open("s1");
            hand.open(transport);
        },
        |hand| {
            let transport = hand.take_open("s1");
            hand.open(transport);
            let check = hand.take(Request::CheckCompatibility, transport);
            hand.reply(check, compatible());
        },
        |hand| {
            let transport = hand.take_open("s1");
            hand.open(transport);
            prove(hand, transport);
        },
    ];
    for stage in stages {
        let mut hand = hand("chronicle://s1");
        hand.connect();
        stage(&mut hand);
        hand.wait_until(|hand| hand.state() == State::BackingOff);
        assert!(hand.elapsed() <= secs(10));
        hand.take_all();
        hand.wait(secs(1));
        go_live(&mut hand, "s1");
    }
}

#[test]
fn connect_that_ends_before_the_first_keep_alive_fails_the_attempt() {
    let status_of = |code| CallError::Status(Status::grpc(code, "so says the server"));
    let ended = "the stream ended before its first keep-alive".to_owned();
    let reset = Failure::new(FailureKind::Reset, "");
    let ends = [
        (ok(), CallError::Malformed(ended)),
        (status(Code::Cancelled), status_of(Code::Cancelled)),
        (status(Code::Unavailable), status_of(Code::Unavailable)),
        (status(Code::Unimplemented), status_of(Code::Unimplemented)),
        (failed(FailureKind::Reset), CallError::Failure(reset)),
    ];
    for (end, expected) in ends {
        let (mut hand, transport) = proving("chronicle://s1");
        let stream = prove(&mut hand, transport);
        hand.reply(stream, end);
        assert!(hand.is_closed(transport));
        let error = the_failure(&mut hand);
        let told = CandidateError::Call {
            request: Request::Connect,
            error: expected,
        };
        assert_eq!(cause(&error, "s1"), Some(told));
        hand.wait(secs(1));
        go_live(&mut hand, "s1");
    }
}

#[test]
fn a_first_keep_alive_for_another_connection_or_unreadable_makes_no_session() {
    let rubbish = Reply::Message(vec![0xff, 0xff].into());
    let foreign = keep_alive("00000000-0000-4000-8000-000000000000");
    for first in [foreign, rubbish, keep_alive("")] {
        let (mut hand, transport) = proving("chronicle://s1");
        let stream = prove(&mut hand, transport);
        hand.reply(stream, first);
        assert!(hand.session().is_none());
        assert!(hand.is_closed(transport));
        assert_eq!(hand.state(), State::BackingOff);
    }
}

#[test]
fn a_transport_that_ends_during_the_handshake_fails_that_server_with_its_cause() {
    for stage in 0..3 {
        for end in [closed(), Reply::GoingAway { code: 11 }] {
            let (mut hand, transport) = proving("chronicle://s1");
            if stage > 0 {
                let reserve = hand.take(Request::Reserve, transport);
                hand.reply(reserve, http(200, ""));
            }
            if stage > 1 {
                let check = hand.take(Request::CheckCompatibility, transport);
                pass_check(&mut hand, check);
            }
            hand.reply(transport, end.clone());
            let error = the_failure(&mut hand);
            let expected = match end {
                Reply::GoingAway { code } => CandidateError::GoingAway { code },
                Reply::Closed(failure) => CandidateError::Closed(failure),
                _ => unreachable!(),
            };
            assert_eq!(cause(&error, "s1"), Some(expected));
        }
    }
}

#[test]
fn a_connect_tells_its_story_in_order() {
    let mut hand = hand("chronicle://s1,s2");
    hand.connect();
    let transports = offer(&mut hand, &[("s1", Some(3)), ("s2", Some(2))]);
    pass(&mut hand, transports[1]);
    let session = hand.session().unwrap();
    let server = session.server.clone();
    let story = hand.events();
    let [
        Event::Connecting {
            attempt: 1,
            candidates,
        },
        rest @ ..,
    ] = story.as_slice()
    else {
        panic!("{story:?}");
    };
    assert_eq!(
        candidates.iter().map(name).collect::<Vec<_>>(),
        ["s1", "s2"]
    );
    let expected = [
        Event::Selected {
            server: server.clone(),
            count: Some(2),
        },
        Event::Compatible {
            server,
            server_version: "18.5.0".to_owned(),
            missing_on_server: vec![],
        },
        Event::Connected(session),
    ];
    assert_eq!(rest, expected);
}
