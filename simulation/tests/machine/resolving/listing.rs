//! What becomes of the list: over attempts, reconnects, silence and a close.

use super::*;

#[test]
fn a_platform_without_name_servers_is_an_error_that_says_what_to_do() {
    for reply in [
        Reply::NameServers(Vec::new()),
        failed(FailureKind::Dns),
        Reply::Finished(chronicle_connection::Status::grpc(
            chronicle_connection::Code::Ok,
            "",
        )),
    ] {
        let mut hand = hand(SRV_STRING);
        hand.connect();
        let name_servers = hand.take_name_servers();
        hand.reply(name_servers, reply);
        let error = the_failure(&mut hand);
        let kind = error.lookup.as_ref().map(|error| &error.kind);
        assert!(matches!(kind, Some(LookupErrorKind::NoNameServers { .. })));
        assert!(error.to_string().contains("srvNameServer"), "{error}");
    }
}

#[test]
fn every_attempt_asks_the_platform_and_dns_afresh() {
    let mut hand = asking(1);
    let mut ids = BTreeSet::new();
    // TTLs are a minute long, and of no interest.
    for (attempt, server) in ["s1", "s2", "s3"].into_iter().enumerate() {
        if attempt > 0 {
            hand.wait_until(|hand| hand.state() == State::Resolving);
            let name_servers = hand.take_name_servers();
            let other = name_server(attempt as u8 + 1);
            hand.reply(name_servers, Reply::NameServers(vec![other]));
        }
        let query = hand.take_dns();
        assert_eq!(query.server, name_server(attempt as u8 + 1));
        ids.insert(query.id);
        hand.reply(query.id, servers(&query, &[server]));
        let transport = hand.take_open(server);
        hand.reply(transport, refused());
    }
    assert_eq!(ids.len(), 3);
    assert_eq!(
        candidates(&mut hand),
        [names(&["s1"]), names(&["s2"]), names(&["s3"])]
    );
}

#[test]
fn a_reconnect_picks_up_what_was_added_and_removed() {
    let (mut hand, transport) = live_on_srv(&["s1"]);
    hand.reply(transport, closed());
    let query = next_query(&mut hand);
    hand.reply(query.id, servers(&query, &["s2", "s3"]));
    assert_eq!(candidates(&mut hand), [names(&["s2", "s3"])]);
}

#[test]
fn while_nobody_answers_each_lookup_of_a_first_connect_is_a_failed_attempt() {
    let mut hand = hand(&format!("{SRV_STRING}?srvNameServer=10.0.0.1"));
    hand.connect();
    for _ in 0..5 {
        let query = hand.take_dns();
        hand.reply(query.id, failed(FailureKind::Unreachable));
        let query = hand.take_dns();
        hand.reply(query.id, failed(FailureKind::Unreachable));
        assert_eq!(hand.state(), State::BackingOff);
        hand.wait_until(|hand| hand.state() == State::Resolving);
    }
    assert_eq!(waits(&mut hand), in_secs(&[1, 2, 4, 8, 16]));
    let query = hand.take_dns();
    hand.reply(query.id, servers(&query, &["s1"]));
    go_live(&mut hand, "s1");
    assert!(hand.session().is_some());
}

#[test]
fn a_reconnect_whose_lookup_nobody_answers_uses_the_last_good_list_and_says_so() {
    let (mut hand, transport) = live_on_srv(&["s1", "s2"]);
    hand.reply(transport, closed());
    for attempt in 1..=2 {
        let query = next_query(&mut hand);
        hand.wait(secs(4));
        assert!(hand.find_dns().is_some(), "the second round");
        assert!(hand.is_cancelled(query.id));
        let events = hand.events();
        let used = events.iter().find_map(|event| match event {
            Event::LastGoodListUsed { error } => Some(&**error),
            _ => None,
        });
        let error = used.unwrap_or_else(|| panic!("{events:?}"));
        assert!(!error.is_authoritative());
        assert!(matches!(error.kind, LookupErrorKind::NoAnswer { .. }));
        let used = events.iter().find_map(|event| match event {
            Event::Connecting { candidates, .. } => Some(candidates.clone()),
            _ => None,
        });
        assert_eq!(used, Some(names(&["s1", "s2"])), "attempt {attempt}");

        hand.wait_until(has_dialled);
        for server in ["s1", "s2"] {
            let transport = hand.take_open(server);
            hand.reply(transport, refused());
        }
        let error = the_failure(&mut hand);
        assert!(error.lookup.is_some() && error.candidates.len() == 2);
        let text = error.to_string();
        let says_both = text.contains("could not be looked up") && text.contains("s2:35000: ");
        assert!(says_both, "{text}");
    }
}

#[test]
fn a_first_connect_falls_back_to_what_an_earlier_attempt_was_told() {
    let mut hand = hand(&format!("{SRV_STRING}?srvNameServer=10.0.0.1"));
    hand.connect();
    let query = hand.take_dns();
    hand.reply(query.id, servers(&query, &["s1"]));
    let transport = hand.take_open("s1");
    hand.reply(transport, refused());
    hand.wait_until(|hand| hand.state() == State::Resolving);
    for _ in 0..2 {
        let query = hand.take_dns();
        hand.reply(query.id, code(&query, ResponseCode::Refused));
    }
    hand.take_open("s1");
}

#[test]
fn a_name_server_that_says_there_is_nothing_is_believed() {
    for code_of_nothing in [ResponseCode::NXDomain, ResponseCode::NoError] {
        let (mut hand, transport) = live_on_srv(&["s1"]);
        hand.reply(transport, closed());
        let query = next_query(&mut hand);
        hand.reply(query.id, code(&query, code_of_nothing));
        let error = the_failure(&mut hand);
        assert!(error.lookup.unwrap().is_authoritative());
        assert!(error.candidates.is_empty());

        // From here on there is no good list, but each attempt asks again.
        let query = next_query(&mut hand);
        hand.reply(query.id, code(&query, ResponseCode::Refused));
        let query = hand.take_dns();
        hand.reply(query.id, code(&query, ResponseCode::Refused));
        assert_eq!(hand.state(), State::BackingOff);
        let query = next_query(&mut hand);
        hand.reply(query.id, servers(&query, &["s1"]));
        go_live(&mut hand, "s1");
    }
}

#[test]
fn the_end_of_a_first_connect_tells_what_the_name_servers_did() {
    let setup = Setup::new(SRV_STRING).exact();
    let mut hand = Hand::new(start(), setup);
    hand.connect();
    let name_servers = hand.take_name_servers();
    hand.reply(name_servers, Reply::NameServers(vec![name_server(1)]));
    // Every further attempt is cut before the platform has told whom to ask.
    hand.wait_until(|hand| hand.state() == State::Stopped);
    assert_eq!(hand.elapsed(), secs(30));
    let Some(FatalError::ConnectTimeout { last, .. }) = fatal(&mut hand) else {
        panic!("no end in time");
    };
    let text = last.to_string();
    assert!(last.candidates.is_empty(), "{text}");
    assert!(text.contains("could not be looked up"), "{text}");
}

#[test]
fn a_first_connect_that_ends_within_a_lookup_cancels_it() {
    let setup = Setup::new(&format!("{SRV_STRING}?srvNameServer=10.0.0.1"));
    let mut setup = setup.exact();
    setup.connect_timeout = Some(secs(3));
    let mut hand = Hand::new(start(), setup);
    hand.connect();
    hand.wait_until(|hand| hand.state() == State::Stopped);
    assert_eq!(hand.elapsed(), secs(3));
    let [first, second] = [(); 2].map(|()| hand.take_dns().id);
    assert!(hand.is_cancelled(first) && hand.is_cancelled(second));
    let Some(FatalError::ConnectTimeout { last, .. }) = fatal(&mut hand) else {
        panic!("no end in time");
    };
    let timed_out = NameServerError::TimedOut { after: secs(2) };
    assert_eq!(no_answer(last), [(name_server(1), timed_out)]);
}

#[test]
fn the_refusal_of_all_known_servers_is_not_final_while_dns_is_down() {
    let (mut hand, transport) = live_on_srv(&["s1"]);
    hand.reply(transport, closed());
    for _ in 0..2 {
        let query = next_query(&mut hand);
        hand.reply(query.id, code(&query, ResponseCode::ServFail));
    }
    hand.wait_until(has_dialled);
    let transport = hand.take_open("s1");
    hand.open(transport);
    let check = hand.take(Request::CheckCompatibility, transport);
    hand.reply(check, incompatible(false, &["a finding"]));
    hand.reply(check, ok());
    assert_eq!(hand.state(), State::BackingOff);
    // With an answer of DNS, the same refusal is.
    let query = next_query(&mut hand);
    hand.reply(query.id, servers(&query, &["s1"]));
    let transport = hand.take_open("s1");
    hand.open(transport);
    let check = hand.take(Request::CheckCompatibility, transport);
    hand.reply(check, incompatible(false, &["a finding"]));
    hand.reply(check, ok());
    assert_eq!(hand.state(), State::Stopped);
}

#[test]
fn close_ends_a_lookup_at_once() {
    let mut hand = asking(3);
    let query = hand.take_dns();
    hand.input(Command::Close);
    assert!(hand.is_cancelled(query.id));
    assert_eq!(hand.state(), State::Stopped);
    hand.reply(query.id, servers(&query, &["s1"]));
    assert!(!has_dialled(&hand));
}

#[test]
fn a_close_withdraws_a_question_that_nobody_was_asked_yet() {
    use chronicle_connection::{Connection, Contract, Output};
    use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng as _};

    let config = Setup::new(SRV_STRING).config();
    let rng = ChaCha8Rng::seed_from_u64(1);
    let mut machine = Connection::new(config, Contract::default(), rng, start());
    machine.handle(start(), Command::Connect);
    machine.handle(start(), Command::Close);
    let outputs: Vec<_> = std::iter::from_fn(|| machine.poll_output()).collect();
    let only_events = outputs
        .iter()
        .all(|output| matches!(output, Output::Event(_)));
    assert!(only_events, "{outputs:?}");
}

#[test]
fn a_reply_of_the_wrong_kind_fails_that_question_only() {
    let mut hand = asking(2);
    let query = hand.take_dns();
    hand.reply(query.id, Reply::NameServers(vec![name_server(9)]));
    assert!(hand.is_cancelled(query.id));
    let query = hand.take_dns();
    assert_eq!(query.server, name_server(2));
}

#[test]
fn a_session_that_drops_while_dns_is_down_reconnects_all_the_same() {
    let (mut hand, transport) = live_on_srv(&["s1"]);
    hand.reply(transport, closed());
    let dropped = hand.events().into_iter().find_map(|event| match event {
        Event::Disconnected { cause, .. } => Some(cause),
        _ => None,
    });
    assert!(matches!(dropped, Some(DropCause::TransportClosed(_))));
    for _ in 0..2 {
        let query = next_query(&mut hand);
        hand.reply(query.id, code(&query, ResponseCode::ServFail));
    }
    hand.wait_until(has_dialled);
    go_live(&mut hand, "s1");
    assert_eq!(hand.session().unwrap().generation, 2);
}
