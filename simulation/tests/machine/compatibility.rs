//! The compatibility check: what passes, what refuses, and what is retried.

use crate::help::*;
use chronicle_connection::{
    CallError, CandidateError, Code, Contract, Event, FailureKind, FatalError, Findings,
    Incompatible, Origin, Reply, Request, State, Status,
};
use chronicle_connection_proto::clients::CompatibilityRequest;
use chronicle_simulation::{Hand, Setup, compatible, http, id_of, incompatible, ok, status};
use prost::Message as _;

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

#[test]
fn a_server_that_knows_neither_way_of_comparing_cannot_be_verified() {
    let (mut hand, transport) = proving("chronicle://s1");
    let reserve = hand.take(Request::Reserve, transport);
    hand.reply(reserve, http(200, ""));
    let check = hand.take(Request::CheckCompatibility, transport);
    hand.reply(check, status(Code::Unimplemented));
    let fallback = hand.take(Request::GetDescriptorSet, transport);
    hand.reply(fallback, status(Code::Unimplemented));
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
