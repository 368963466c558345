//! Whom the machine asks, when, and for how long.

use super::*;

#[test]
fn the_servers_of_the_answer_are_the_candidates() {
    let mut hand = asking(1);
    let query = hand.take_dns();
    assert_eq!(query.server, name_server(1));
    assert_eq!(query.transport, DnsTransport::Udp);
    hand.reply(query.id, servers(&query, &["s1", "s2"]));
    assert!(hand.is_cancelled(query.id), "nothing more is wanted of it");
    assert_eq!(candidates(&mut hand), [names(&["s1", "s2"])]);
    hand.wait_until(has_dialled);
    offer(&mut hand, &[("s1", Some(4)), ("s2", Some(3))]);
    assert_eq!(the_chosen(&mut hand), "s2");
}

#[test]
fn a_standby_of_a_worse_priority_is_a_candidate_like_any_other() {
    let mut hand = asking(1);
    let query = hand.take_dns();
    let records = [(10, 1, "s1"), (10, 1, "s2"), (20, 0, "standby")];
    hand.reply(query.id, records_of(&query, &records));
    offer(
        &mut hand,
        &[("s1", Some(40)), ("s2", Some(41)), ("standby", Some(0))],
    );
    assert_eq!(the_chosen(&mut hand), "standby");
}

#[test]
fn the_name_is_asked_for_absolutely_and_as_nothing_else() {
    let mut hand = Hand::new(
        start(),
        Setup::new("chronicle+srv://cluster.test.").patient(),
    );
    hand.connect();
    let name_servers = hand.take_name_servers();
    hand.reply(name_servers, Reply::NameServers(vec![name_server(1)]));
    let mut questions = BTreeSet::new();
    for _ in 0..20 {
        while let Some(query) = hand.find_dns() {
            let message = Message::from_vec(&query.message).unwrap();
            assert_eq!(message.metadata.message_type, MessageType::Query);
            assert!(message.metadata.recursion_desired);
            questions.extend(message.queries.iter().map(ToString::to_string));
        }
        hand.wait(secs(1));
    }
    let expected = "_chronicle._tcp.cluster.test. IN SRV".to_owned();
    assert_eq!(questions, [expected].into());
}

#[test]
fn ids_of_questions_are_drawn_afresh() {
    let ids = (0..64).map(|seed| {
        let string = format!("{SRV_STRING}?srvNameServer=10.0.0.1");
        let mut hand = Hand::seeded(start(), Setup::new(&string).exact().patient(), seed);
        hand.connect();
        let mut queries = Vec::new();
        for _ in 0..2 {
            let query = hand.take_dns();
            queries.push([query.message[0], query.message[1]]);
            hand.reply(query.id, code(&query, ResponseCode::ServFail));
        }
        queries
    });
    let ids: BTreeSet<_> = ids.flatten().collect();
    assert!(ids.len() > 120, "{} of 128 are different", ids.len());
}

#[test]
fn a_name_server_in_the_string_is_the_only_one_asked() {
    for (option, expected) in [
        ("10.0.0.53", "10.0.0.53:53"),
        ("ns.test:5353", "ns.test:5353"),
        ("2001:db8::53", "[2001:db8::53]:53"),
    ] {
        let mut hand = hand(&format!("{SRV_STRING}?srvNameServer={option}"));
        hand.connect();
        assert_eq!(hand.take_dns().server.to_string(), expected);
        assert!(hand.outbox().is_empty(), "the platform is not asked");
    }
}

#[test]
fn silent_name_servers_are_passed_over_two_seconds_each() {
    let mut hand = asking(3);
    for (number, at) in [(1, 0), (2, 2), (3, 4)] {
        assert_eq!(hand.elapsed(), secs(at));
        assert_eq!(hand.machine().wait_reason(), Some(WaitReason::Lookup));
        let query = hand.take_dns();
        assert_eq!(query.server, name_server(number));
        if number == 3 {
            hand.reply(query.id, servers(&query, &["s1"]));
            break;
        }
        hand.wait(secs(2));
        assert!(hand.is_cancelled(query.id));
    }
    assert_eq!(hand.elapsed(), secs(4));
    assert_eq!(candidates(&mut hand), [names(&["s1"])]);
}

#[test]
fn two_rounds_and_no_more() {
    let mut hand = asking(2);
    let mut asked = Vec::new();
    while let Some(query) = hand.find_dns() {
        asked.push(query.server.clone());
        hand.reply(query.id, code(&query, ResponseCode::ServFail));
    }
    let [first, second] = [1, 2].map(name_server);
    assert_eq!(
        asked,
        [first.clone(), second.clone(), first.clone(), second.clone()]
    );
    assert_eq!(hand.elapsed(), Duration::ZERO);
    let failure = NameServerError::ServerFailure;
    let expected = vec![(first, failure.clone()), (second, failure)];
    assert_eq!(no_answer(the_failure(&mut hand)), expected);
}

#[test]
fn a_lookup_is_over_after_ten_seconds_whoever_was_asked() {
    let mut hand = asking(6);
    hand.wait_until(|hand| hand.state() == State::BackingOff);
    assert_eq!(hand.elapsed(), secs(10));
    let asked = no_answer(the_failure(&mut hand));
    assert_eq!(asked.len(), 5, "2 s each: {asked:?}");
    let timed_out = NameServerError::TimedOut { after: secs(2) };
    assert!(asked.iter().all(|(_, error)| *error == timed_out));

    let mut hand = crate::help::hand(SRV_STRING);
    hand.connect();
    assert_eq!(hand.machine().wait_reason(), Some(WaitReason::NameServers));
    let name_servers = hand.take_name_servers();
    hand.wait_until(|hand| hand.state() == State::BackingOff);
    assert_eq!(hand.elapsed(), secs(10));
    assert!(hand.is_cancelled(name_servers));
}

#[test]
fn every_way_to_ask_has_two_seconds_of_its_own() {
    let mut hand = asking(1);
    let query = hand.take_dns();
    hand.wait(millis(1900));
    hand.reply(query.id, truncated(&query));
    let query = hand.take_dns();
    assert_eq!(query.server, name_server(1));
    assert_eq!(query.transport, DnsTransport::Tcp);
    hand.wait(millis(1900));
    hand.reply(query.id, servers(&query, &["s1"]));
    assert_eq!(candidates(&mut hand), [names(&["s1"])]);
}

#[test]
fn an_answer_that_is_truncated_over_tcp_too_is_a_failure_of_its_server() {
    let mut hand = asking(2);
    for transport in [DnsTransport::Udp, DnsTransport::Tcp] {
        let query = hand.take_dns();
        assert_eq!(query.server, name_server(1));
        assert_eq!(query.transport, transport);
        hand.reply(query.id, truncated(&query));
    }
    let query = hand.take_dns();
    assert_eq!(query.server, name_server(2));
    assert_eq!(query.transport, DnsTransport::Udp);
}

#[test]
fn an_answer_at_the_very_deadline_counts() {
    let mut hand = asking(1);
    let query = hand.take_dns();
    hand.oversleep(secs(2));
    hand.reply(query.id, servers(&query, &["s1"]));
    assert_eq!(candidates(&mut hand), [names(&["s1"])]);
}

#[test]
fn after_a_pause_longer_than_the_lookup_no_other_try_is_imagined() {
    let mut hand = asking(2);
    hand.take_dns();
    hand.oversleep(secs(60));
    hand.input(Command::Tick);
    let tried = no_answer(the_failure(&mut hand));
    let tried: Vec<_> = tried.into_iter().map(|(server, _)| server).collect();
    assert_eq!(tried, [name_server(1)]);
}

#[test]
fn round_robin_goes_on_behind_the_server_it_chose_wherever_that_stands_now() {
    for seed in 0..10 {
        let setup = Setup::new(SRV_STRING).strategy(Strategy::RoundRobin);
        let mut hand = Hand::seeded(start(), setup.exact().patient(), seed);
        hand.connect();
        let mut chosen = Vec::new();
        for list in [["s1", "s2"], ["s2", "s1"], ["s1", "s2"]] {
            let request = hand.take_name_servers();
            hand.reply(request, Reply::NameServers(vec![name_server(1)]));
            let query = hand.take_dns();
            hand.reply(query.id, servers(&query, &list));
            assert!(hand.is_cancelled(query.id));
            hand.wait_until(has_dialled);
            let (transport, server) = hand.find_open().unwrap();
            hand.open(transport);
            let live = pass(&mut hand, transport);
            live_on(&mut hand, live, 7);
            hand.reply(live.transport, closed());
            chosen.push(server);
        }
        assert_ne!(chosen[0], chosen[1], "{chosen:?}");
        assert_ne!(chosen[1], chosen[2], "{chosen:?}");
    }
}

#[test]
fn a_name_server_that_cannot_be_asked_is_passed_over_at_once() {
    let mut hand = asking(2);
    let query = hand.take_dns();
    hand.reply(query.id, failed(FailureKind::Refused));
    let query = hand.take_dns();
    assert_eq!(query.server, name_server(2));
    hand.reply(query.id, servers(&query, &["s1"]));
    assert_eq!(hand.elapsed(), Duration::ZERO);
    let events = hand.events();
    assert!(
        events.iter().any(|event| matches!(
            event,
            Event::LookupTryFailed { server, error: NameServerError::Failed(failure), .. }
                if *server == name_server(1) && failure.kind == FailureKind::Refused
        )),
        "{events:?}"
    );
}
