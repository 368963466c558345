//! Looking the servers up: whom the machine asks, when, for how long, and what it makes of silence.
//! What answers mean is in `tests/data/dns.json`.

mod asking;
mod listing;

use crate::help::*;
use chronicle_connection::{
    AttemptError, Command, DnsTransport, DropCause, Endpoint, Event, FailureKind, FatalError, Id,
    LookupError, LookupErrorKind, NameServerError, Reply, Request, State, Strategy, WaitReason,
};
use chronicle_simulation::{DnsQuery, Hand, Setup, endpoint, incompatible, ok};
use hickory_proto::{
    op::{Message, MessageType, ResponseCode},
    rr::{Name, RData, Record, rdata::SRV},
};
use std::{collections::BTreeSet, time::Duration};

const SRV_STRING: &str = "chronicle+srv://cluster.test";

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
    servers.iter().map(|server| endpoint(server)).collect()
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
