//! From the chosen transport to the first keep-alive.

use crate::help::*;
use chronicle_connection::{
    Call, CallError, CandidateError, Code, Contract, Event, FailureKind, FatalError, Findings, Id,
    Incompatible, Origin, Output, Reply, Request, State, Status,
};
use chronicle_connection_proto::clients::{CompatibilityRequest, ConnectRequest};
use chronicle_simulation::{
    Hand, Setup, compatible, http, id_of, incompatible, keep_alive, ok, request_of, status,
};
use prost::Message as _;
use std::time::Duration;

/// The call of a request in the outbox, which is taken.
fn call(hand: &mut Hand, request: Request) -> Call {
    let output = hand.find(|output| request_of(output) == Some(request));
    match output {
        Some(Output::Unary(call) | Output::ServerStream(call)) => call,
        other => panic!("{other:?}\n{}", hand.trace().as_str()),
    }
}

/// One server, its transport open, nothing answered.
fn proving(string: &str) -> (Hand, Id) {
    let mut hand = hand(string);
    hand.connect();
    let transport = hand.take_open("s1");
    hand.open(transport);
    (hand, transport)
}

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
fn a_passing_check_is_told_with_the_version_of_the_server() {
    let (mut hand, transport) = proving("chronicle://s1");
    prove(&mut hand, transport);
    let mut events = hand.events().into_iter();
    let version = events.find_map(|event| match event {
        Event::Compatible { server_version, .. } => Some(server_version),
        _ => None,
    });
    assert_eq!(version.as_deref(), Some("18.5.0"));
}

#[test]
fn the_check_carries_the_embedded_contract_and_its_version() {
    let (mut hand, _) = proving("chronicle://s1");
    let call = call(&mut hand, Request::CheckCompatibility);
    let request = CompatibilityRequest::decode(call.message).unwrap();
    assert_eq!(request.client_type, "Rust");
    assert_eq!(request.protocol_version, "15.7.1");
    assert_eq!(
        request.descriptor_set,
        *Contract::default().descriptor_set()
    );
    assert!(!request.descriptor_set.is_empty());
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
fn an_api_key_goes_with_connect_and_the_answers_and_nothing_else() {
    let mut hand = hand("chronicle://s1?apiKey=k3y");
    hand.connect();
    let transport = hand.take_open("s1");
    hand.open(transport);
    let check = call(&mut hand, Request::CheckCompatibility);
    assert!(check.metadata.get("api-key").is_none());
    let reserve = hand.take(Request::Reserve, transport);
    hand.reply(reserve, http(200, ""));
    pass_check(&mut hand, check.id);
    let connect = call(&mut hand, Request::Connect);
    hand.reply(connect.id, keep_alive(&hand.connection_id()));
    let answer = call(&mut hand, Request::KeepAlive);
    for call in [connect, answer] {
        let key = call.metadata.get("api-key").unwrap();
        assert_eq!(key, "k3y");
        assert!(key.is_sensitive(), "nobody prints it by accident");
    }
    let metadata = hand.machine().connection().call_metadata();
    assert_eq!(metadata.get("api-key").unwrap(), "k3y");
    assert!(!hand.trace().as_str().contains("k3y"));
}

#[test]
fn without_credentials_nothing_is_sent_and_calls_need_nothing() {
    let (mut hand, transport) = proving("chronicle://s1");
    let check = call(&mut hand, Request::CheckCompatibility);
    let reserve = hand.take(Request::Reserve, transport);
    hand.reply(reserve, http(200, ""));
    pass_check(&mut hand, check.id);
    let connect = call(&mut hand, Request::Connect);
    for call in [check, connect] {
        assert!(call.metadata.get("api-key").is_none());
        assert!(call.metadata.get("authorization").is_none());
    }
    assert!(hand.machine().connection().call_metadata().is_empty());
}

#[test]
fn skipping_the_check_skips_the_check_and_nothing_else() {
    let mut setup = Setup::new("chronicle://s1").exact();
    setup.skip_compatibility_check = true;
    let in_string = Setup::new("chronicle://s1?skipCompatibilityCheck=true").exact();
    for setup in [setup, in_string] {
        let mut hand = Hand::new(start(), setup);
        hand.connect();
        let transport = hand.take_open("s1");
        hand.open(transport);
        assert!(!hand.asks(Request::CheckCompatibility));
        let reserve = hand.take(Request::Reserve, transport);
        assert!(!hand.asks(Request::Connect));
        hand.reply(reserve, http(200, ""));
        let stream = hand.take(Request::Connect, transport);
        beat(&mut hand, Live { transport, stream });
        assert!(hand.session().is_some());
    }
}

// The deadlines.

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
fn the_check_has_ten_seconds_with_its_fallback() {
    let (mut hand, transport) = proving("chronicle://s1");
    let check = hand.take(Request::CheckCompatibility, transport);
    hand.wait(secs(10) - MOMENT);
    assert!(matches!(hand.state(), State::Handshaking { .. }));
    hand.wait(MOMENT);
    let error = the_failure(&mut hand);
    let is_the_check = matches!(
        cause(&error, "s1"),
        Some(CandidateError::Call {
            request: Request::CheckCompatibility,
            error: CallError::Failure(failure),
        }) if failure.kind == FailureKind::TimedOut
    );
    assert!(is_the_check, "{error}");
    hand.reply(check, compatible());
    hand.reply(check, ok());
    assert!(!hand.asks(Request::Connect), "too late");
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

// The check.

#[test]
fn every_failure_of_the_check_fails_the_attempt_and_is_retried() {
    let ends = [
        Status::grpc(Code::Unavailable, ""),
        Status::grpc(Code::DeadlineExceeded, ""),
        Status::grpc(Code::Internal, ""),
        Status::grpc(Code::ResourceExhausted, ""),
        Status::grpc(Code::Unknown, ""),
        Status::grpc(Code::Cancelled, ""),
        Status::grpc(Code::PermissionDenied, ""),
        Status {
            code: Code::Unimplemented,
            message: String::new(),
            origin: Origin::Http(404),
        },
        Status {
            code: Code::Unavailable,
            message: String::new(),
            origin: Origin::Http(503),
        },
    ];
    for end in ends {
        let (mut hand, transport) = proving("chronicle://s1");
        let check = hand.take(Request::CheckCompatibility, transport);
        hand.reply(check, Reply::Finished(end.clone()));
        assert!(!hand.asks(Request::GetDescriptorSet), "{end}");
        assert!(!hand.asks(Request::Connect), "{end}");
        let error = the_failure(&mut hand);
        assert_eq!(
            cause(&error, "s1"),
            Some(CandidateError::Call {
                request: Request::CheckCompatibility,
                error: CallError::Status(end),
            })
        );
        hand.wait(secs(1));
        go_live(&mut hand, "s1");
    }
}

#[test]
fn a_check_that_ends_well_without_an_answer_or_with_rubbish_is_no_pass() {
    let answers = [
        vec![ok()],
        vec![Reply::Message(vec![0xff, 0xff].into()), ok()],
        vec![Reply::Message(vec![].into()), ok()],
        vec![compatible(), status(Code::Internal)],
        vec![failed(FailureKind::Reset)],
    ];
    for answer in answers {
        let (mut hand, transport) = proving("chronicle://s1");
        let reserve = hand.take(Request::Reserve, transport);
        hand.reply(reserve, http(200, ""));
        let check = hand.take(Request::CheckCompatibility, transport);
        for reply in answer {
            hand.reply(check, reply);
        }
        assert!(!hand.asks(Request::Connect), "{}", hand.trace().as_str());
    }
}

/// The fatal error, if the machine has given up.
fn fatal(hand: &mut Hand) -> Option<FatalError> {
    let mut events = hand.events().into_iter();
    let error = events.find_map(|event| match event {
        Event::Failed(error) => Some(error),
        _ => None,
    });
    assert_eq!(error.is_some(), hand.state() == State::Stopped);
    error
}

fn refusal_of(error: &FatalError, server: &str) -> Incompatible {
    match error {
        FatalError::Incompatible(attempt) => match cause(attempt, server) {
            Some(CandidateError::Incompatible(incompatible)) => incompatible,
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    }
}

#[test]
fn any_reported_incompatibility_refuses_whatever_the_flag_says() {
    let forty: Vec<String> = (0..40).map(|nth| format!("finding {nth}")).collect();
    let forty: Vec<&str> = forty.iter().map(String::as_str).collect();
    let verdicts: [(bool, &[&str]); 4] = [
        (true, &["one", "two"]),
        (false, &[]),
        (false, &forty),
        (
            false,
            &["The descriptor set of the client could not be read."],
        ),
    ];
    for (flag, findings) in verdicts {
        let mut setup = Setup::new("chronicle://s1").exact();
        setup.client.version = "0.9.9".to_owned();
        let mut hand = Hand::new(start(), setup);
        hand.connect();
        let transport = hand.take_open("s1");
        hand.open(transport);
        let check = hand.take(Request::CheckCompatibility, transport);
        hand.reply(check, incompatible(flag, findings));
        hand.reply(check, ok());
        assert!(hand.is_closed(transport));
        let error = fatal(&mut hand).unwrap();
        let refusal = refusal_of(&error, "s1");
        let told: Vec<String> = findings.iter().map(|&text| text.to_owned()).collect();
        assert_eq!(refusal.findings, Findings::Reported(told));
        // The error says it all: every finding and both versions of both sides.
        let text = error.to_string();
        let versions = ["0.9.9", "15.7.1", "18.5.0", "18.5.1"];
        for part in versions.iter().chain(findings) {
            assert!(text.contains(part), "{part} in {text}");
        }
    }
}

#[test]
fn an_incompatible_server_is_set_aside_and_the_next_best_is_tried() {
    let mut hand = hand("chronicle://s1,s2");
    hand.connect();
    let transports = offer(&mut hand, &[("s1", Some(1)), ("s2", Some(2))]);
    let check = hand.take(Request::CheckCompatibility, transports[0]);
    hand.reply(check, incompatible(false, &["old"]));
    hand.reply(check, ok());
    pass(&mut hand, transports[1]);
    assert_eq!(chosen(&mut hand), ["s1", "s2"]);
}

#[test]
fn only_when_every_candidate_has_refused_in_one_attempt_the_machine_stops() {
    let mut hand = hand("chronicle://s1,s2");
    hand.connect();
    let transports = offer(&mut hand, &[("s1", Some(1)), ("s2", Some(2))]);
    for transport in transports {
        assert_eq!(fatal(&mut hand), None);
        let check = hand.take(Request::CheckCompatibility, transport);
        hand.reply(check, incompatible(false, &["old"]));
        hand.reply(check, ok());
    }
    let error = fatal(&mut hand).unwrap();
    for server in ["s1", "s2"] {
        let findings = refusal_of(&error, server).findings;
        assert_eq!(findings, Findings::Reported(vec!["old".to_owned()]));
    }
    hand.connect();
    hand.wait(secs(3600));
    assert!(!has_dialled(&hand), "stopped is final");
}

#[test]
fn if_some_refuse_and_the_rest_cannot_be_reached_the_attempt_backs_off_and_says_why() {
    let mut hand = hand("chronicle://s1,s2");
    hand.connect();
    let (first, second) = (hand.take_open("s1"), hand.take_open("s2"));
    hand.reply(second, refused());
    hand.open(first);
    if let Some(output) = hand.find_request(Request::Count, first) {
        hand.reply(id_of(&output).unwrap(), http(200, "0"));
    }
    let check = hand.take(Request::CheckCompatibility, first);
    hand.reply(check, incompatible(false, &["old"]));
    hand.reply(check, ok());
    while let Some((transport, _)) = hand.find_open() {
        hand.reply(transport, refused());
    }
    assert_eq!(hand.state(), State::BackingOff);
    let error = the_failure(&mut hand);
    assert!(matches!(
        cause(&error, "s1"),
        Some(CandidateError::Incompatible(_))
    ));
    assert!(matches!(
        cause(&error, "s2"),
        Some(CandidateError::Unreachable(_))
    ));
}

/// Answers the fallback with a descriptor set or UNIMPLEMENTED, if the machine asks for it.
fn answer_fallback(hand: &mut Hand, transport: Id, with_text: bool) {
    let Some(output) = hand.find_request(Request::GetDescriptorSet, transport) else {
        return;
    };
    let id = id_of(&output).unwrap();
    if !with_text {
        return hand.reply(id, status(Code::Unimplemented));
    }
    let response = chronicle_connection_proto::clients::DescriptorSetResponse {
        schema_definition: "syntax = \"proto3\";\n".to_owned(),
    };
    hand.reply(id, Reply::Message(response.encode_to_vec().into()));
    hand.reply(id, ok());
}

#[test]
fn an_unimplemented_check_is_never_a_pass() {
    for with_text in [true, false] {
        let (mut hand, transport) = proving("chronicle://s1");
        let reserve = hand.take(Request::Reserve, transport);
        hand.reply(reserve, http(200, ""));
        let check = hand.take(Request::CheckCompatibility, transport);
        hand.reply(check, status(Code::Unimplemented));
        answer_fallback(&mut hand, transport, with_text);
        assert!(!hand.asks(Request::Connect));
        let error = fatal(&mut hand).unwrap();
        let refusal = refusal_of(&error, "s1");
        assert!(
            matches!(refusal.findings, Findings::CannotVerify(_)),
            "{refusal:?}"
        );
        let text = error.to_string();
        assert!(text.contains("cannot verify"), "{text}");
        assert!(text.contains("skipCompatibilityCheck"), "{text}");
    }
}

#[test]
fn a_check_refused_for_want_of_credentials_is_made_once_more_with_them() {
    let (mut hand, transport) = proving("chronicle://s1?apiKey=k3y");
    let reserve = hand.take(Request::Reserve, transport);
    hand.reply(reserve, http(200, ""));
    let check = hand.take(Request::CheckCompatibility, transport);
    hand.reply(check, status(Code::Unauthenticated));
    let again = call(&mut hand, Request::CheckCompatibility);
    assert_eq!(again.metadata.get("api-key").unwrap(), "k3y");
    assert_eq!(again.on, transport);
    let mut refused_twice = hand.clone();
    pass_check(&mut hand, again.id);
    let stream = hand.take(Request::Connect, transport);
    beat(&mut hand, Live { transport, stream });
    assert!(hand.session().is_some());

    refused_twice.reply(again.id, status(Code::Unauthenticated));
    assert!(is_credentials_error(
        &mut refused_twice,
        Request::CheckCompatibility
    ));
}

fn is_credentials_error(hand: &mut Hand, refused: Request) -> bool {
    let error = fatal(hand);
    matches!(
        error,
        Some(FatalError::Credentials { request, status, .. })
            if request == refused && status.code == Code::Unauthenticated
    )
}

#[test]
fn without_credentials_a_check_that_asks_for_them_is_a_credentials_error() {
    let (mut hand, transport) = proving("chronicle://s1");
    let check = hand.take(Request::CheckCompatibility, transport);
    hand.reply(check, status(Code::Unauthenticated));
    assert!(!hand.asks(Request::CheckCompatibility));
    assert!(is_credentials_error(&mut hand, Request::CheckCompatibility));
}

// `Connect`.

#[test]
fn connect_refused_for_its_credentials_ends_a_first_connect_at_once() {
    for string in ["chronicle://s1", "chronicle://s1?apiKey=k3y"] {
        let (mut hand, transport) = proving(string);
        let stream = prove(&mut hand, transport);
        hand.reply(stream, status(Code::Unauthenticated));
        assert!(hand.is_closed(transport));
        assert!(
            is_credentials_error(&mut hand, Request::Connect),
            "{string}"
        );
        assert_eq!(hand.elapsed(), Duration::ZERO);
        hand.wait(secs(600));
        assert!(!has_dialled(&hand));
        assert!(!hand.trace().as_str().contains("k3y"));
    }
}

#[test]
fn the_error_of_refused_credentials_names_server_and_request_and_no_secret() {
    let (mut hand, transport) = proving("chronicle://s1?apiKey=k3y");
    let stream = prove(&mut hand, transport);
    hand.reply(stream, status(Code::Unauthenticated));
    let text = fatal(&mut hand).unwrap().to_string();
    assert!(
        text.contains("s1:35000") && text.contains("Connect"),
        "{text}"
    );
    assert!(!text.contains("k3y"), "{text}");
}

#[test]
fn on_a_reconnect_refused_credentials_are_a_failed_attempt() {
    let (mut hand, live) = live_hand();
    live_on(&mut hand, live, 7);
    hand.reply(live.transport, closed());
    let transport = hand.take_open("s1");
    hand.open(transport);
    let stream = prove(&mut hand, transport);
    hand.reply(stream, status(Code::Unauthenticated));
    assert_eq!(fatal(&mut hand), None);
    assert_eq!(hand.state(), State::BackingOff);
    hand.wait(secs(1));
    go_live(&mut hand, "s1");
}

#[test]
fn connect_that_ends_before_the_first_keep_alive_fails_the_attempt() {
    let ends = [
        ok(),
        status(Code::Cancelled),
        status(Code::Unavailable),
        status(Code::Unimplemented),
        failed(FailureKind::Reset),
    ];
    for end in ends {
        let (mut hand, transport) = proving("chronicle://s1");
        let stream = prove(&mut hand, transport);
        hand.reply(stream, end);
        assert!(hand.is_closed(transport));
        let error = the_failure(&mut hand);
        let is_connect = matches!(
            cause(&error, "s1"),
            Some(CandidateError::Call {
                request: Request::Connect,
                ..
            })
        );
        assert!(is_connect, "{error}");
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

// The first connect as a whole.

#[test]
fn a_first_connect_gives_up_after_thirty_seconds_and_tells_the_last_causes() {
    let mut hand = Hand::new(start(), Setup::new("chronicle://s1,s2").exact());
    hand.connect();
    while hand.state() != State::Stopped {
        hand.wait_until(|hand| has_dialled(hand) || hand.state() == State::Stopped);
        while let Some((transport, server)) = hand.find_open() {
            let kind = match server.as_str() {
                "s1" => FailureKind::Refused,
                _ => FailureKind::Unreachable,
            };
            hand.reply(transport, failed(kind));
        }
        hand.take_all();
    }
    assert_eq!(hand.elapsed(), secs(30));
    match fatal(&mut hand).unwrap() {
        FatalError::ConnectTimeout { timeout, last } => {
            assert_eq!(timeout, secs(30));
            for (server, kind) in [
                ("s1", FailureKind::Refused),
                ("s2", FailureKind::Unreachable),
            ] {
                match cause(&last, server) {
                    Some(CandidateError::Unreachable(failure)) => assert_eq!(failure.kind, kind),
                    other => panic!("{other:?}"),
                }
            }
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_connect_timeout_cuts_an_attempt_in_flight() {
    let mut setup = Setup::new("chronicle://s1").exact();
    setup.connect_timeout = Some(secs(3));
    let mut hand = Hand::new(start(), setup);
    hand.connect();
    let transport = hand.take_open("s1");
    hand.open(transport);
    hand.wait(secs(3) - MOMENT);
    assert!(matches!(hand.state(), State::Handshaking { .. }));
    hand.wait(MOMENT);
    assert_eq!(hand.state(), State::Stopped);
    assert!(hand.is_closed(transport));
    assert!(matches!(
        fatal(&mut hand),
        Some(FatalError::ConnectTimeout { .. })
    ));
}

#[test]
fn the_connect_timeout_is_over_with_the_first_session() {
    let mut hand = Hand::new(start(), Setup::new("chronicle://s1").exact());
    hand.connect();
    let live = go_live(&mut hand, "s1");
    live_on(&mut hand, live, 60);
    hand.reply(live.transport, closed());
    let mut attempts = 0;
    while hand.elapsed() < secs(3600) {
        hand.wait_until(has_dialled);
        let transport = hand.take_open("s1");
        hand.reply(transport, refused());
        attempts += 1;
    }
    assert!(attempts > 100);
    assert_eq!(hand.state(), State::BackingOff);
}

#[test]
fn without_a_connect_timeout_a_first_connect_tries_for_ever() {
    let mut hand = hand("chronicle://s1");
    hand.connect();
    while hand.elapsed() < secs(86_400) {
        hand.wait_until(has_dialled);
        let transport = hand.take_open("s1");
        hand.reply(transport, refused());
    }
    hand.wait_until(has_dialled);
    go_live(&mut hand, "s1");
}
