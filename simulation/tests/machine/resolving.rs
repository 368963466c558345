//! Looking the servers up: whom the machine asks, when, for how long, and what it makes of silence.
//! What answers mean is in `tests/data/dns.json`.

use crate::help::*;
use chronicle_connection::{
    AttemptError, Command, DnsTransport, DropCause, Endpoint, Event, FailureKind, FatalError, Host,
    Id, LookupError, LookupErrorKind, NameServerError, Reply, Request, State, Strategy, WaitReason,
};
use chronicle_simulation::{DnsQuery, Hand, Setup, incompatible, ok};
use hickory_proto::{
    op::{Message, MessageType, ResponseCode},
    rr::{Name, RData, Record, rdata::SRV},
};
use std::{collections::BTreeSet, time::Duration};

const SRV_STRING: &str = "chronicle+srv://cluster.test";

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

/// A machine that knows so many name servers of the platform, and asks the first.
fn asking(name_servers: u8) -> Hand {
    let mut hand = hand(SRV_STRING);
    hand.connect();
    let request = hand.take_name_servers();
    let known = (1..=name_servers).map(name_server).collect();
    hand.reply(request, Reply::NameServers(known));
    hand
}

/// A stable session with the first of these servers, and its transport.
fn live_on_srv(cluster: &[&str]) -> (Hand, Id) {
    let mut hand = asking(1);
    let query = hand.take_dns();
    hand.reply(query.id, servers(&query, cluster));
    assert!(hand.is_cancelled(query.id));
    let live = if let [only] = cluster {
        go_live(&mut hand, only)
    } else {
        let counts: Vec<_> = cluster
            .iter()
            .enumerate()
            .map(|(index, server)| (*server, Some(index as u64)))
            .collect();
        let transports = offer(&mut hand, &counts);
        pass(&mut hand, transports[0])
    };
    live_on(&mut hand, live, 7);
    hand.take_all();
    hand.events();
    (hand, live.transport)
}

/// The first question of the attempt that is under way or comes next.
fn next_query(hand: &mut Hand) -> DnsQuery {
    hand.wait_until(|hand| hand.state() == State::Resolving);
    if let Some(query) = hand.find_dns() {
        return query;
    }
    let request = hand.take_name_servers();
    hand.reply(request, Reply::NameServers(vec![name_server(1)]));
    hand.take_dns()
}

fn servers(query: &DnsQuery, targets: &[&str]) -> Reply {
    let records: Vec<_> = targets.iter().map(|target| (0, 0, *target)).collect();
    records_of(query, &records)
}

fn records_of(query: &DnsQuery, records: &[(u16, u16, &str)]) -> Reply {
    let mut answer = answer_to(query);
    for (priority, weight, target) in records {
        let target = Name::from_ascii(format!("{target}.")).unwrap();
        let port = chronicle_connection::DEFAULT_PORT;
        let srv = RData::SRV(SRV::new(*priority, *weight, port, target));
        let owner = answer.queries[0].name.clone();
        answer.add_answer(Record::from_rdata(owner, 60, srv));
    }
    message(&answer)
}

fn code(query: &DnsQuery, code: ResponseCode) -> Reply {
    let mut answer = answer_to(query);
    answer.metadata.response_code = code;
    message(&answer)
}

fn truncated(query: &DnsQuery) -> Reply {
    let mut answer = answer_to(query);
    answer.metadata.truncation = true;
    message(&answer)
}

fn answer_to(query: &DnsQuery) -> Message {
    let question = Message::from_vec(&query.message).unwrap();
    question.into_response()
}

fn message(message: &Message) -> Reply {
    Reply::Message(message.to_vec().unwrap().into())
}

fn names(servers: &[&str]) -> Vec<Endpoint> {
    let endpoint = |server: &&str| {
        let host = Host::Name((*server).to_owned());
        Endpoint::new(host, chronicle_connection::DEFAULT_PORT)
    };
    servers.iter().map(endpoint).collect()
}

/// The candidates of every attempt since the last time.
fn candidates(hand: &mut Hand) -> Vec<Vec<Endpoint>> {
    let events = hand.events().into_iter();
    let candidates = events.filter_map(|event| match event {
        Event::Connecting { candidates, .. } => Some(candidates),
        _ => None,
    });
    candidates.collect()
}

fn no_answer(error: AttemptError) -> Vec<(Endpoint, NameServerError)> {
    match error.lookup.map(|lookup| *lookup) {
        Some(LookupError {
            kind: LookupErrorKind::NoAnswer { name_servers },
            ..
        }) => name_servers,
        other => panic!("{other:?}"),
    }
}
