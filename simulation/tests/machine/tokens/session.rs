//! Credentials while a session is up, and between sessions.

use super::*;

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
fn a_token_request_of_a_session_comes_in_time_and_has_ten_seconds_whatever_fires_meanwhile() {
    let (mut hand, live) = live_client();
    hold_an_answer_back(&mut hand, live);
    assert!(!hand.asks(Request::Token));
    live_on(&mut hand, live, 88);
    hand.wait(millis(500));
    let token = hand.take(Request::Token, live.transport);
    hand.events();
    hold_an_answer_back(&mut hand, live);
    live_on(&mut hand, live, 8);
    hand.wait(millis(500) - MOMENT);
    assert!(!hand.is_cancelled(token));
    hand.wait(MOMENT);
    assert!(hand.is_cancelled(token));
    let [(1, Some(TokenError::Failure(failure)))] = &token_events(&mut hand)[..] else {
        panic!("{}", hand.trace().as_str())
    };
    assert_eq!(failure.kind, FailureKind::TimedOut);
    assert!(hand.session().is_some());
}

/// For a second and a half: its deadline fires.
fn hold_an_answer_back(hand: &mut Hand, live: Live) {
    beat(hand, live);
    let slow = hand.take(Request::KeepAlive, live.transport);
    hand.wait(millis(500));
    beat(hand, live);
    hand.wait(secs(1));
    acknowledge(hand, live);
    acknowledge_id(hand, slow);
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
    assert_eq!(hand.machine().call_metadata().generation, 0, "never again");
}

#[test]
fn a_stream_that_ends_for_want_of_credentials_has_its_token_served_never_again() {
    for renewed in [false, true] {
        let (mut hand, live) = live_client();
        if renewed {
            hand.input(Command::RefreshToken { rejected: 1 });
            let token = hand.take(Request::Token, live.transport);
            hand.reply(token, good("t2"));
        }
        hand.reply(live.stream, unauthenticated());
        the_drop(&mut hand);
        // Of a newer token, that says nothing.
        let expected = if renewed { 2 } else { 0 };
        assert_eq!(hand.machine().call_metadata().generation, expected);
    }
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

#[test]
fn an_answer_is_held_back_to_no_time_at_which_its_token_is_over() {
    let (mut hand, live) = live_client();
    live_on(&mut hand, live, 89);
    for second in 90..=115 {
        live_on(&mut hand, live, 1);
        if second < 115
            && let Some(token) = hand.find_request(Request::Token, live.transport)
        {
            hand.reply(id_of(&token).unwrap(), http(503, ""));
        }
    }
    let token = hand.take(Request::Token, live.transport);
    live_on(&mut hand, live, 3);
    hand.wait(secs(1));
    beat(&mut hand, live);
    hand.take(Request::KeepAlive, live.transport);
    hand.wait(millis(900));
    beat(&mut hand, live);
    // The next answer may leave in 600 ms, and the token is over in 100. What comes first of the rest
    // is the end of the session, 5 s after the sending of the newest acknowledged answer.
    let waits = |hand: &Hand| (hand.timeout(), hand.machine().wait_reason());
    let reason = Some(WaitReason::Acknowledgement);
    assert_eq!(waits(&hand), (Some(millis(3100)), reason));
    hand.wait(millis(200));
    hand.input(Command::Tick);
    assert_eq!(waits(&hand), (Some(millis(2900)), reason));
    assert!(!hand.asks(Request::KeepAlive));
    hand.reply(token, good("t2"));
    assert!(
        !hand.asks(Request::KeepAlive),
        "the newest answer is 1.1 s old"
    );
    hand.wait(millis(400));
    assert!(hand.asks(Request::KeepAlive));
}
