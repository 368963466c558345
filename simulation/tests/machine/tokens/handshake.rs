//! Credentials on the way to a session.

use super::*;
#[test]
fn reserve_check_and_token_request_go_out_in_this_order_without_credentials() {
    let (hand, _) = proving(CLIENT);
    let requests: Vec<_> = hand.outbox().iter().filter_map(request_of).collect();
    assert_eq!(
        requests,
        [
            Request::Reserve,
            Request::CheckCompatibility,
            Request::Token
        ]
    );
    for output in hand.outbox() {
        assert!(headers(output).get("authorization").is_none());
    }
}

#[test]
fn connect_waits_for_all_three_answers_whatever_their_order() {
    for order in [[0, 1, 2], [2, 1, 0], [1, 0, 2], [2, 0, 1]] {
        let (mut hand, transport) = proving(CLIENT);
        let reserve = hand.take(Request::Reserve, transport);
        let check = hand.take(Request::CheckCompatibility, transport);
        let token = hand.take(Request::Token, transport);
        for step in order {
            assert!(!hand.asks(Request::Connect), "{order:?}");
            match step {
                0 => hand.reply(reserve, http(200, "")),
                1 => pass_check(&mut hand, check),
                _ => hand.reply(token, good("t")),
            }
        }
        let connect = call(&mut hand, Request::Connect);
        assert_eq!(authorization(&connect).as_deref(), Some("Bearer t"));
    }
}

#[test]
fn every_call_of_the_session_carries_the_token() {
    let (mut hand, live) = live_client();
    hand.wait(secs(1));
    beat(&mut hand, live);
    let answer = call(&mut hand, Request::KeepAlive);
    assert_eq!(authorization(&answer).as_deref(), Some("Bearer t1"));
    assert!(answer.metadata["authorization"].is_sensitive());
    assert!(!format!("{answer:?}").contains("t1"));
    let metadata = hand.machine().call_metadata();
    assert_eq!(metadata.headers["authorization"], "Bearer t1");
    assert_eq!(metadata.generation, 1);
}

#[test]
fn an_api_key_goes_with_every_call_and_needs_no_token() {
    let (mut hand, transport) = proving("chronicle://s1?apiKey=the-key");
    assert!(!hand.asks(Request::Token));
    let stream = prove_with(&mut hand, transport, |connect| {
        assert_eq!(connect.metadata["api-key"], "the-key");
        assert!(connect.metadata["api-key"].is_sensitive());
    });
    let live = Live { transport, stream };
    beat(&mut hand, live);
    let answer = call(&mut hand, Request::KeepAlive);
    assert_eq!(answer.metadata["api-key"], "the-key");
    assert_eq!(hand.machine().call_metadata().generation, 0);
}

#[test]
fn without_credentials_nothing_is_sent() {
    for string in ["chronicle://s1", "chronicle://s1?auth=none"] {
        let (mut hand, transport) = proving(string);
        assert!(!hand.asks(Request::Token));
        prove_with(&mut hand, transport, |connect| {
            assert!(connect.metadata.is_empty());
        });
        assert!(hand.machine().call_metadata().headers.is_empty());
    }
}

#[test]
fn a_valid_token_survives_reconnects_and_servers() {
    let mut hand = hand("chronicle://app:canary@s1,s2?loadBalancer=round-robin");
    hand.connect();
    let (transport, first) = opened(&mut hand);
    let live = pass_with_token(&mut hand, transport, "t1");
    live_on(&mut hand, live, 7);
    hand.reply(transport, closed());
    let (transport, second) = opened(&mut hand);
    assert_ne!(first, second);
    assert!(!hand.asks(Request::Token));
    prove_with(&mut hand, transport, |connect| {
        assert_eq!(authorization(connect).as_deref(), Some("Bearer t1"));
    });
}

#[test]
fn an_expired_token_is_replaced_in_the_handshake() {
    let (mut hand, live) = live_client();
    hand.reply(live.transport, closed());
    hand.input(Command::Slept(secs(3600)));
    hand.wait_until(has_dialled);
    let transport = hand.take_open("s1");
    hand.open(transport);
    pass_with_token(&mut hand, transport, "t2");
    assert_eq!(hand.machine().call_metadata().generation, 2);
}

#[test]
fn a_refused_client_ends_the_first_connect_at_once_with_one_request() {
    for (answer, error) in refusals() {
        let (mut hand, transport) = proving(CLIENT);
        let token = hand.take(Request::Token, transport);
        hand.reply(token, answer);
        let Some(FatalError::Credentials {
            server,
            error: told,
        }) = fatal(&mut hand)
        else {
            panic!("{}", hand.trace().as_str());
        };
        assert_eq!(name(&server), "s1");
        assert_eq!(told, CredentialsError::Token(error));
        assert!(hand.is_closed(transport));
        hand.wait(secs(3600));
        assert!(!has_dialled(&hand));
    }
}

#[test]
fn a_refused_client_is_retried_with_backoff_when_it_was_connected_before() {
    let (mut hand, live) = live_client();
    live_on(&mut hand, live, 7);
    hand.input(Command::RefreshToken { rejected: 1 });
    let token = hand.take(Request::Token, live.transport);
    hand.reply(token, http(401, ""));
    hand.reply(live.transport, closed());
    hand.events();
    for wait in [1, 2, 4] {
        hand.wait_until(has_dialled);
        let transport = hand.take_open("s1");
        hand.open(transport);
        let token = hand.take(Request::Token, transport);
        hand.reply(token, http(401, ""));
        let refused = TokenError::Refused {
            status: 401,
            error: None,
        };
        let (error, waited) = back_offs(&mut hand).remove(0);
        assert_eq!(waited, secs(wait));
        assert_eq!(
            cause(&error.unwrap(), "s1"),
            Some(CandidateError::Credentials(CredentialsError::Token(
                refused
            )))
        );
    }
    hand.wait_until(has_dialled);
    let transport = hand.take_open("s1");
    hand.open(transport);
    pass_with_token(&mut hand, transport, "t2");
}

#[test]
fn an_endpoint_that_fails_fails_the_attempt_and_the_next_asks_again() {
    for answer in [
        http(503, ""),
        http(429, ""),
        http(400, ""),
        http(302, ""),
        http(200, "<html></html>"),
        http(200, "{}"),
        failed(chronicle_connection::FailureKind::Reset),
        failed(chronicle_connection::FailureKind::TooLarge),
    ] {
        let (mut hand, transport) = proving(CLIENT);
        let token = hand.take(Request::Token, transport);
        hand.reply(token, answer);
        let error = the_failure(&mut hand);
        assert!(
            matches!(cause(&error, "s1"), Some(CandidateError::Token(_))),
            "{error}"
        );
        // Less than 5 s later: an attempt always asks once.
        hand.wait(secs(1));
        let transport = hand.take_open("s1");
        hand.open(transport);
        pass_with_token(&mut hand, transport, "t");
    }
}

#[test]
fn a_token_endpoint_that_hangs_costs_ten_seconds() {
    let (mut hand, transport) = proving(CLIENT);
    let token = hand.take(Request::Token, transport);
    let reserve = hand.take(Request::Reserve, transport);
    hand.reply(reserve, http(200, ""));
    let check = hand.take(Request::CheckCompatibility, transport);
    pass_check(&mut hand, check);
    assert_eq!(hand.machine().wait_reason(), Some(WaitReason::Token));
    assert_eq!(hand.timeout(), Some(secs(10)));
    let mut late = hand.clone();
    hand.wait(secs(10) - MOMENT);
    hand.reply(token, good("t"));
    assert!(hand.asks(Request::Connect));
    late.wait(secs(10));
    assert!(late.is_cancelled(token));
    assert_eq!(late.state(), State::BackingOff);
}

#[test]
fn a_check_that_asks_for_credentials_is_made_once_more_with_the_token() {
    for token_first in [true, false] {
        let (mut hand, transport) = proving(CLIENT);
        let check = hand.take(Request::CheckCompatibility, transport);
        let token = hand.take(Request::Token, transport);
        if token_first {
            hand.reply(token, good("t"));
            hand.reply(check, unauthenticated());
        } else {
            hand.reply(check, unauthenticated());
            assert!(!hand.asks(Request::CheckCompatibility));
            hand.reply(token, good("t"));
        }
        let again = call(&mut hand, Request::CheckCompatibility);
        assert_eq!(authorization(&again).as_deref(), Some("Bearer t"));
        pass_check(&mut hand, again.id);
        let reserve = hand.take(Request::Reserve, transport);
        hand.reply(reserve, http(200, ""));
        assert!(hand.asks(Request::Connect));
    }
}

#[test]
fn a_check_that_refuses_a_key_or_wants_one_is_an_error_of_credentials() {
    for (string, tries, had) in [
        ("chronicle://s1", 1, false),
        ("chronicle://s1?apiKey=the-key", 2, true),
    ] {
        let (mut hand, _) = proving(string);
        for _ in 0..tries {
            let check = call(&mut hand, Request::CheckCompatibility);
            hand.reply(check.id, unauthenticated());
        }
        assert_refused(&mut hand, Request::CheckCompatibility, had);
    }
}

#[test]
fn a_check_that_refuses_a_cached_token_gets_one_new_token_and_no_more() {
    let (mut hand, live) = live_client();
    hand.reply(live.transport, closed());
    hand.wait(secs(1));
    let transport = hand.take_open("s1");
    hand.open(transport);
    assert!(!hand.asks(Request::Token));
    for credentials in [None, Some("Bearer t1"), Some("Bearer t2")] {
        if credentials == Some("Bearer t2") {
            let token = hand.take(Request::Token, transport);
            hand.reply(token, good("t2"));
        }
        let check = call(&mut hand, Request::CheckCompatibility);
        assert_eq!(authorization(&check).as_deref(), credentials);
        hand.reply(check.id, unauthenticated());
    }
    assert_eq!(hand.state(), State::BackingOff);
    assert!(!hand.asks(Request::Token));
    assert_eq!(hand.machine().call_metadata().generation, 0);
}

#[test]
fn an_older_server_without_check_may_want_credentials_for_its_descriptors() {
    let (mut hand, transport) = proving(CLIENT);
    let check = hand.take(Request::CheckCompatibility, transport);
    let token = hand.take(Request::Token, transport);
    hand.reply(token, good("t"));
    hand.reply(check, status(Code::Unimplemented));
    let descriptors = call(&mut hand, Request::GetDescriptorSet);
    assert_eq!(authorization(&descriptors), None);
    hand.reply(descriptors.id, unauthenticated());
    let again = call(&mut hand, Request::GetDescriptorSet);
    assert_eq!(authorization(&again).as_deref(), Some("Bearer t"));
}

#[test]
fn the_version_of_an_older_server_is_asked_for_with_the_token_and_waits_for_it() {
    for token_first in [true, false] {
        let (mut hand, token) = older_server();
        let descriptors = call(&mut hand, Request::GetDescriptorSet);
        let read = |hand: &mut Hand| {
            hand.reply(descriptors.id, Reply::Message(text()));
            hand.reply(descriptors.id, ok());
        };
        if token_first {
            hand.reply(token, good("t"));
            read(&mut hand);
        } else {
            read(&mut hand);
            assert!(!hand.asks(Request::GetVersionInfo));
            hand.reply(token, good("t"));
        }
        let version = call(&mut hand, Request::GetVersionInfo);
        assert_eq!(authorization(&version).as_deref(), Some("Bearer t"));
        // Refused, it gets one new token, and then goes on without the version.
        hand.reply(version.id, unauthenticated());
        let token = hand.take(Request::Token, version.on);
        hand.reply(token, good("u"));
        let version = call(&mut hand, Request::GetVersionInfo);
        assert_eq!(authorization(&version).as_deref(), Some("Bearer u"));
        hand.reply(version.id, unauthenticated());
        let reserve = hand.take(Request::Reserve, version.on);
        hand.reply(reserve, http(200, ""));
        assert!(hand.asks(Request::Connect));
    }
}

#[test]
fn connect_that_is_refused_gets_one_new_token_on_the_same_transport() {
    let (mut hand, transport) = proving(CLIENT);
    let stream = prove_with_token(&mut hand, transport, "t1");
    hand.reply(stream, unauthenticated());
    assert_eq!(hand.machine().call_metadata().generation, 0, "never again");
    let token = hand.take(Request::Token, transport);
    hand.reply(token, good("t2"));
    let connect = call(&mut hand, Request::Connect);
    assert_eq!(connect.on, transport);
    assert_eq!(authorization(&connect).as_deref(), Some("Bearer t2"));
    let mut refused = hand.clone();
    let live = Live {
        transport,
        stream: connect.id,
    };
    beat(&mut hand, live);
    assert!(hand.session().is_some());

    refused.reply(connect.id, unauthenticated());
    assert!(!refused.asks(Request::Token), "once");
    assert_eq!(refused.machine().call_metadata().generation, 0);
    assert_refused(&mut refused, Request::Connect, true);
}

#[test]
fn connect_that_is_refused_without_tokens_is_an_error_at_once() {
    for (string, had) in [
        ("chronicle://s1", false),
        ("chronicle://s1?apiKey=the-key", true),
    ] {
        let (mut hand, transport) = proving(string);
        let stream = prove(&mut hand, transport);
        hand.reply(stream, unauthenticated());
        assert_refused(&mut hand, Request::Connect, had);
    }
}

#[test]
fn a_token_of_another_server_that_is_refused_there_is_renewed_once_and_no_ping_pong_follows() {
    // A06: two servers that know only tokens of their own, and one session after the other.
    let mut world = World::new(start(), 7);
    let servers =
        [authenticated("a"), authenticated("b")].map(|model| world.add_server_with(model));
    let client = world.add_client(
        Setup::new("chronicle://chronicle-dev-client:chronicle-dev-secret@s1,s2").patient(),
    );
    world.connect(client);
    for _ in 0..4 {
        assert!(world.run_until(secs(5), |world| world.client(client).session().is_some()));
        world.run_for(secs(7));
        let session = world.client(client).session().unwrap();
        let other = servers
            .into_iter()
            .find(|server| *world.server(*server).endpoint() == session.server)
            .unwrap();
        world.restart(other);
    }
    let tokens: usize = servers
        .map(|server| world.server(server).arrived(Request::Token))
        .iter()
        .sum();
    let connects: usize = servers
        .map(|server| world.server(server).arrived(Request::Connect))
        .iter()
        .sum();
    assert!(tokens <= 5, "{tokens} token requests for 5 sessions");
    assert!(connects <= 9, "{connects} connects for 5 sessions");
}

#[test]
fn connect_waits_for_a_new_token_where_the_one_at_hand_was_lost_meanwhile() {
    let (mut hand, live) = live_client();
    live_on(&mut hand, live, 7);
    hand.reply(live.transport, closed());
    let transport = hand.take_open("s1");
    hand.open(transport);
    assert!(!hand.asks(Request::Token), "the old token is valid");
    hand.input(Command::RefreshToken { rejected: 1 });
    let reserve = hand.take(Request::Reserve, transport);
    let check = hand.take(Request::CheckCompatibility, transport);
    hand.reply(reserve, http(200, ""));
    pass_check(&mut hand, check);
    assert!(!hand.asks(Request::Connect));
    let token = hand.take(Request::Token, transport);
    hand.reply(token, good("t2"));
    let connect = call(&mut hand, Request::Connect);
    assert_eq!(authorization(&connect).as_deref(), Some("Bearer t2"));
}

#[test]
fn a_check_whose_time_is_up_while_it_awaits_a_token_has_no_call_to_cancel() {
    let (mut hand, token) = older_server();
    hand.reply(token, good("t1"));
    let described = call(&mut hand, Request::GetDescriptorSet);
    hand.reply(described.id, Reply::Message(text()));
    hand.reply(described.id, ok());
    let version = call(&mut hand, Request::GetVersionInfo);
    hand.wait(secs(5));
    hand.reply(version.id, unauthenticated());
    let token = hand.take(Request::Token, version.on);
    // The 10 s of the check are over: the version stays unknown.
    hand.wait(secs(5));
    assert!(!hand.is_cancelled(version.id));
    assert!(!hand.asks(Request::Connect));
    hand.reply(token, good("t2"));
    assert!(hand.asks(Request::Connect));
}
