//! What ends a first connect at once: credentials, and its time.

use crate::help::*;
use chronicle_connection::{
    CandidateError, Code, CredentialsError, FailureKind, FatalError, Request, State,
};
use chronicle_simulation::{Hand, Setup, http, keep_alive, status};
use std::time::Duration;

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
    assert_eq!(metadata.headers.get("api-key").unwrap(), "k3y");
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
    assert!(
        hand.machine()
            .connection()
            .call_metadata()
            .headers
            .is_empty()
    );
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
        Some(FatalError::Credentials { error: CredentialsError::Refused { request, status, .. }, .. })
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
fn a_first_connect_that_is_cut_off_tells_how_far_it_came() {
    let mut setup = Setup::new("chronicle://s1").exact();
    setup.connect_timeout = Some(secs(3));
    let mut dialling = Hand::new(start(), setup);
    dialling.connect();
    let transport = dialling.take_open("s1");
    let mut proving = dialling.clone();
    proving.open(transport);
    let mut dialling_again = dialling.clone();
    dialling_again.reply(transport, refused());
    dialling_again.wait_until(has_dialled);
    for (mut hand, expected) in [
        (dialling, "s1:35000: timed out: not open yet"),
        // Why an earlier attempt failed says more.
        (dialling_again, "s1:35000: connection refused"),
        (
            proving,
            "s1:35000: transport ended during the handshake: timed out: cut off",
        ),
    ] {
        hand.wait(secs(3) - hand.elapsed());
        let text = fatal(&mut hand).unwrap().to_string();
        assert!(text.ends_with(expected), "{text}");
    }
}

#[test]
fn a_first_connect_that_is_cut_off_blames_nobody_who_was_not_chosen() {
    let mut setup = Setup::new("chronicle://s1,s2").exact();
    setup.connect_timeout = Some(secs(3));
    let mut hand = Hand::new(start(), setup);
    hand.connect();
    offer(&mut hand, &[("s1", Some(1)), ("s2", Some(2))]);
    hand.wait(secs(3));
    let Some(FatalError::ConnectTimeout { last, .. }) = fatal(&mut hand) else {
        panic!("{}", hand.trace().as_str())
    };
    let chosen = cause(&last, "s1");
    assert!(matches!(chosen, Some(CandidateError::Closed(_))), "{last}");
    assert_eq!(cause(&last, "s2"), None);
}

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
