//! A connection that proves who it is: with tokens, with a key, and without.

use crate::help::*;
use chronicle_connection::{
    Call, CandidateError, Code, Command, CredentialsError, DropCause, Event, FatalError, Id,
    Origin, Output, Reply, Request, State, Status, TokenError, WaitReason,
};
use chronicle_connection_proto::clients::DescriptorSetResponse;
use chronicle_reference_server::model::{Authentication, ModelConfig};
use chronicle_simulation::{
    Fault, Hand, Setup, World, compatible, http, id_of, ok, replay, request_of, status,
};
use http::HeaderMap;
use prost::Message as _;

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
fn a_token_is_refreshed_ahead_of_expiry_on_the_transport_of_the_session() {
    let (mut hand, live) = live_client();
    // 120 s of life: a quarter ahead.
    live_on(&mut hand, live, 89);
    assert!(!hand.asks(Request::Token));
    hand.wait(secs(1));
    let token = hand.take(Request::Token, live.transport);
    beat(&mut hand, live);
    acknowledge(&mut hand, live);
    assert_eq!(hand.machine().call_metadata().generation, 1);
    hand.events();
    hand.reply(token, good("t2"));
    assert_eq!(token_events(&mut hand), [(2, None)]);
    assert_eq!(
        hand.machine().call_metadata().headers["authorization"],
        "Bearer t2"
    );
    live_on(&mut hand, live, 89);
    assert!(!hand.asks(Request::Token));
}

#[test]
fn through_an_outage_the_token_serves_until_it_expires_and_is_asked_for_every_five_seconds() {
    let (mut hand, live) = live_client();
    live_on(&mut hand, live, 89);
    let mut requests = 0;
    for second in 90..120 {
        hand.wait(secs(1));
        beat(&mut hand, live);
        acknowledge(&mut hand, live);
        if let Some(token) = hand.find_request(Request::Token, live.transport) {
            requests += 1;
            hand.reply(id_of(&token).unwrap(), http(503, ""));
        }
        let generation = hand.machine().call_metadata().generation;
        assert_eq!(generation, 1, "second {second}");
    }
    assert_eq!(requests, 6);
    assert!(hand.session().is_some());
    let errors: Vec<_> = token_events(&mut hand);
    assert_eq!(errors.len(), 6);
    assert!(
        errors
            .iter()
            .all(|event| *event == (1, Some(TokenError::Http(503))))
    );
    hand.wait(secs(1));
    let metadata = hand.machine().call_metadata();
    assert!(metadata.headers.is_empty(), "expired");
}

#[test]
fn a_suspended_machine_ages_its_token() {
    let (mut hand, live) = live_client();
    hand.wait(secs(1));
    beat(&mut hand, live);
    hand.input(Command::Slept(secs(3)));
    assert_eq!(hand.machine().call_metadata().generation, 1);
    hand.reply(live.transport, closed());
    hand.input(Command::Slept(secs(120)));
    assert_eq!(hand.machine().call_metadata().generation, 0);
}

#[test]
fn a_forced_refresh_fetches_once_however_many_ask() {
    let (mut hand, live) = live_client();
    for _ in 0..16 {
        hand.input(Command::RefreshToken { rejected: 1 });
    }
    assert_eq!(asked(&hand, Request::Token).len(), 1);
    assert!(hand.machine().call_metadata().headers.is_empty());
    let token = hand.take(Request::Token, live.transport);
    hand.reply(token, good("t2"));
    assert_eq!(token_events(&mut hand), [(2, None)]);
    // Those who come late with the old one are told at once.
    hand.input(Command::RefreshToken { rejected: 1 });
    assert!(!hand.asks(Request::Token));
    assert_eq!(token_events(&mut hand), [(2, None)]);
}

#[test]
fn a_forced_refresh_is_throttled_after_a_failure_and_an_event_says_so() {
    let (mut hand, live) = live_client();
    hand.input(Command::RefreshToken { rejected: 1 });
    let token = hand.take(Request::Token, live.transport);
    hand.reply(token, http(503, ""));
    assert_eq!(token_events(&mut hand), [(1, Some(TokenError::Http(503)))]);
    hand.input(Command::RefreshToken { rejected: 1 });
    assert!(!hand.asks(Request::Token));
    assert_eq!(token_events(&mut hand), [(1, Some(TokenError::Throttled))]);
    live_on(&mut hand, live, 4);
    assert!(!hand.asks(Request::Token));
    hand.wait(secs(1));
    let token = hand.take(Request::Token, live.transport);
    hand.reply(token, good("t2"));
    assert_eq!(token_events(&mut hand), [(2, None)]);
}

#[test]
fn a_forced_refresh_without_a_session_ends_in_an_event_too() {
    for (phase, mut hand) in token_phases() {
        let ends = hand.state() != State::Stopped;
        hand.events();
        hand.input(Command::RefreshToken { rejected: 1 });
        let expected: &[_] = if ends {
            &[(1, Some(TokenError::NoSession))]
        } else {
            &[]
        };
        assert_eq!(token_events(&mut hand), expected, "{phase}");
        assert_eq!(hand.machine().call_metadata().generation, 0, "{phase}");
    }
}

#[test]
fn a_refresh_whose_session_ends_ends_in_an_event() {
    for end in [closed(), Reply::GoingAway { code: 0 }] {
        let (mut hand, live) = live_client();
        hand.input(Command::RefreshToken { rejected: 1 });
        hand.reply(live.transport, end);
        assert_eq!(token_events(&mut hand), [(1, Some(TokenError::NoSession))]);
        // And the next session asks on its own transport.
        hand.take_all();
        hand.wait(secs(1));
        let transport = hand.take_open("s1");
        hand.open(transport);
        pass_with_token(&mut hand, transport, "t2");
    }
}

#[test]
fn a_forced_refresh_without_tokens_changes_nothing() {
    for string in ["chronicle://s1", "chronicle://s1?apiKey=the-key"] {
        let mut hand = hand(string);
        hand.connect();
        let metadata = hand.machine().call_metadata();
        go_live(&mut hand, "s1");
        hand.events();
        hand.input(Command::RefreshToken { rejected: 0 });
        assert!(hand.outbox().is_empty() && hand.events().is_empty());
        assert_eq!(hand.machine().call_metadata(), metadata);
    }
}

#[test]
fn a_refused_answer_gets_one_new_token_and_one_more_try_whose_sending_counts() {
    let (mut hand, live) = refused_answer();
    assert!(!hand.asks(Request::KeepAlive), "not without the new token");
    hand.wait(secs(2));
    let token = hand.take(Request::Token, live.transport);
    hand.reply(token, good("t2"));
    let again = call(&mut hand, Request::KeepAlive);
    assert_eq!(authorization(&again).as_deref(), Some("Bearer t2"));
    acknowledge_id(&mut hand, again.id);
    // Acknowledged is the sending 2 s after the keep-alive: it holds for 5 s from then.
    for _ in 0..4 {
        hand.wait(secs(1));
        beat(&mut hand, live);
    }
    assert!(hand.session().is_some());
    hand.wait(secs(1) - MOMENT);
    assert!(hand.session().is_some());
    hand.wait(MOMENT);
    let (cause, _) = the_drop(&mut hand);
    assert!(matches!(cause, DropCause::Unacknowledged { .. }), "{cause}");
}

#[test]
fn a_second_refusal_of_an_answer_drops_the_session() {
    let (mut hand, live) = refused_answer();
    let token = hand.take(Request::Token, live.transport);
    hand.reply(token, good("t2"));
    let again = hand.take(Request::KeepAlive, live.transport);
    hand.reply(again, unauthenticated());
    let (cause, _) = the_drop(&mut hand);
    assert!(matches!(cause, DropCause::Credentials(_)), "{cause}");
    assert!(hand.is_closed(live.transport));
}

#[test]
fn a_refused_answer_without_tokens_drops_the_session() {
    let mut hand = hand("chronicle://s1?apiKey=the-key");
    hand.connect();
    let live = go_live(&mut hand, "s1");
    hand.wait(secs(1));
    beat(&mut hand, live);
    let answer = hand.take(Request::KeepAlive, live.transport);
    hand.reply(answer, unauthenticated());
    let (cause, _) = the_drop(&mut hand);
    assert!(matches!(cause, DropCause::Credentials(_)), "{cause}");
}

#[test]
fn a_refused_answer_whose_new_token_cannot_be_had_drops_the_session() {
    let (mut hand, live) = refused_answer();
    let token = hand.take(Request::Token, live.transport);
    hand.reply(token, http(503, ""));
    let (cause, _) = the_drop(&mut hand);
    assert!(matches!(cause, DropCause::Credentials(_)), "{cause}");
}

#[test]
fn a_refused_answer_with_an_older_token_is_sent_again_with_the_newest() {
    let (mut hand, live) = live_client();
    hand.wait(secs(1));
    beat(&mut hand, live);
    let answer = hand.take(Request::KeepAlive, live.transport);
    hand.input(Command::RefreshToken { rejected: 1 });
    let token = hand.take(Request::Token, live.transport);
    hand.reply(token, good("t2"));
    hand.reply(answer, unauthenticated());
    assert!(!hand.asks(Request::Token));
    let again = call(&mut hand, Request::KeepAlive);
    assert_eq!(authorization(&again).as_deref(), Some("Bearer t2"));
    acknowledge_id(&mut hand, again.id);
    assert!(hand.session().is_some());
}

#[test]
fn several_refused_answers_share_one_refresh() {
    let (mut hand, live) = live_client();
    hand.wait(secs(1));
    beat(&mut hand, live);
    hand.wait(millis(1500));
    beat(&mut hand, live);
    let answers = asked(&hand, Request::KeepAlive);
    assert_eq!(answers.len(), 2);
    for answer in answers {
        hand.reply(answer, unauthenticated());
    }
    assert_eq!(asked(&hand, Request::Token).len(), 1);
    let token = hand.take(Request::Token, live.transport);
    hand.reply(token, good("t2"));
    acknowledge(&mut hand, live);
    assert!(hand.session().is_some());
}

#[test]
fn close_cancels_a_token_request_with_all_the_rest() {
    let (mut hand, live) = live_client();
    hand.input(Command::RefreshToken { rejected: 1 });
    hand.events();
    hand.take_all();
    hand.input(Command::Close);
    assert!(hand.is_closed(live.transport));
    assert_eq!(hand.events(), [Event::Closed]);
    assert!(hand.outbox().is_empty());
    assert_eq!(hand.timeout(), None);
}

#[test]
fn a_fleet_lives_with_short_tokens_through_resets_and_outages() {
    for seed in 0..3 {
        replay(start(), seed, |world| {
            let mut model = authenticated("a");
            if let Some(known) = &mut model.authentication {
                known.token_life = secs(20);
                known.trusts_others = true;
            }
            let servers = [
                world.add_server_with(model.clone()),
                world.add_server_with(model),
            ];
            let setup = Setup::new("chronicle://chronicle-dev-client:chronicle-dev-secret@s1,s2");
            let clients: Vec<_> = (0..4).map(|_| world.add_client(setup.clone())).collect();
            clients.iter().for_each(|&client| world.connect(client));
            let all = |world: &World| world.clients().all(|client| client.session().is_some());
            assert!(world.run_until(secs(10), all), "seed {seed}");
            // Ten lives of a token, with an outage shorter than what is left of one.
            world.run_for(secs(100));
            world.fail(servers[0], Request::Token, Fault::Http(503, String::new()));
            world.fail(servers[1], Request::Token, Fault::Hangs);
            world.run_for(secs(4));
            servers.iter().for_each(|&server| world.heal(server));
            world.run_for(secs(96));
            for client in world.clients() {
                assert_eq!(client.stats().sessions, 1, "seed {seed}");
            }
            servers
                .iter()
                .for_each(|&server| world.reset_tokens(server));
            world.run_for(secs(30));
            assert!(all(world), "seed {seed}");
            for client in world.clients() {
                assert_eq!(
                    client.stats().sessions,
                    1,
                    "seed {seed}: renewed, not dropped"
                );
            }
        });
    }
}

const CLIENT: &str = "chronicle://app:canary@s1";

/// A session with the token `t1`, which lives 120 s.
fn live_client() -> (Hand, Live) {
    let (mut hand, transport) = proving(CLIENT);
    let live = pass_with_token(&mut hand, transport, "t1");
    hand.events();
    (hand, live)
}

/// A session a second old whose second answer was refused.
fn refused_answer() -> (Hand, Live) {
    let (mut hand, live) = live_client();
    hand.wait(secs(1));
    beat(&mut hand, live);
    let answer = hand.take(Request::KeepAlive, live.transport);
    hand.reply(answer, unauthenticated());
    assert!(hand.session().is_some());
    assert_eq!(hand.machine().call_metadata().generation, 0);
    (hand, live)
}

/// A server without `CheckCompatibility`, and the token request that it got.
fn older_server() -> (Hand, Id) {
    let (mut hand, transport) = proving(CLIENT);
    let check = hand.take(Request::CheckCompatibility, transport);
    let token = hand.take(Request::Token, transport);
    hand.reply(check, status(Code::Unimplemented));
    (hand, token)
}

/// The contract of a server, as older ones print it.
fn text() -> bytes::Bytes {
    let answer = DescriptorSetResponse {
        schema_definition: ModelConfig::default().schema,
    };
    answer.encode_to_vec().into()
}

/// Machines that have had a token, and have no session.
fn token_phases() -> Vec<(&'static str, Hand)> {
    let (mut backing_off, live) = live_client();
    backing_off.reply(live.transport, closed());
    let mut dialling = backing_off.clone();
    dialling.wait(secs(1));
    let mut proving = dialling.clone();
    let transport = proving.take_open("s1");
    proving.open(transport);
    let mut stopped = backing_off.clone();
    stopped.input(Command::RefreshToken { rejected: 1 });
    stopped.input(Command::Close);
    vec![
        ("backing off", backing_off),
        ("dialling", dialling),
        ("proving", proving),
        ("stopped", stopped),
    ]
}

fn opened(hand: &mut Hand) -> (Id, String) {
    let (transport, server) = hand.find_open().unwrap();
    hand.open(transport);
    (transport, server)
}

fn prove_with_token(hand: &mut Hand, transport: Id, token: &str) -> Id {
    let request = hand.take(Request::Token, transport);
    hand.reply(request, good(token));
    prove(hand, transport)
}

fn pass_with_token(hand: &mut Hand, transport: Id, token: &str) -> Live {
    let request = hand.take(Request::Token, transport);
    hand.reply(request, good(token));
    pass(hand, transport)
}

fn prove_with(hand: &mut Hand, transport: Id, look: impl FnOnce(&Call)) -> Id {
    let reserve = hand.take(Request::Reserve, transport);
    let check = hand.take(Request::CheckCompatibility, transport);
    hand.reply(reserve, http(200, ""));
    hand.reply(check, compatible());
    hand.reply(check, ok());
    let connect = call(hand, Request::Connect);
    look(&connect);
    connect.id
}

fn assert_refused(hand: &mut Hand, request: Request, had_credentials: bool) {
    let error = match hand.state() {
        State::Stopped => match fatal(hand) {
            Some(FatalError::Credentials { error, .. }) => error,
            other => panic!("{other:?}"),
        },
        _ => panic!("{}", hand.trace().as_str()),
    };
    let Reply::Finished(status) = unauthenticated() else {
        unreachable!()
    };
    let expected = CredentialsError::Refused {
        request,
        status,
        had_credentials,
    };
    assert_eq!(error, expected);
}

fn token_events(hand: &mut Hand) -> Vec<(u64, Option<TokenError>)> {
    let events = hand.events().into_iter();
    events
        .filter_map(|event| match event {
            Event::Token {
                generation, error, ..
            } => Some((generation, error)),
            _ => None,
        })
        .collect()
}

fn refusals() -> Vec<(Reply, TokenError)> {
    let refused = |status, error| TokenError::Refused { status, error };
    vec![
        (
            http(400, r#"{"error":"invalid_client"}"#),
            refused(400, Some("invalid_client")),
        ),
        (http(401, ""), refused(401, None)),
        (http(403, "<html>"), refused(403, None)),
    ]
}

fn authenticated(issuer: &str) -> ModelConfig {
    ModelConfig {
        authentication: Some(Authentication {
            issuer: issuer.to_owned(),
            trusts_others: false,
            ..Authentication::default()
        }),
        ..ModelConfig::default()
    }
}

/// A token that lives 120 s.
fn good(token: &str) -> Reply {
    let body = format!(r#"{{"access_token":"{token}","token_type":"Bearer","expires_in":120}}"#);
    http(200, body)
}

/// How an adapter tells HTTP 401.
fn unauthenticated() -> Reply {
    Reply::Finished(Status {
        code: Code::Unauthenticated,
        message: String::new(),
        origin: Origin::Http(401),
    })
}

fn authorization(call: &Call) -> Option<String> {
    let value = call.metadata.get("authorization")?;
    Some(value.to_str().unwrap().to_owned())
}

fn headers(output: &Output) -> HeaderMap {
    match output {
        Output::Http { request, .. } => request.headers().clone(),
        Output::Unary(call) | Output::ServerStream(call) => call.metadata.clone(),
        _ => HeaderMap::new(),
    }
}
