//! The table of DNS answers, and the corpus of its fuzzer, against a machine in virtual time.

#![allow(
    clippy::disallowed_methods,
    reason = "these tests read files of this workspace, and start virtual time somewhere"
)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a failure is a failed test"
)]

#[path = "../fuzz/src/dns_answer.rs"]
mod fuzzed;

use bytes::Bytes;
use chronicle_connection::{
    AttemptError, Event, LookupErrorKind, NameServerError, Reply, State, WaitReason,
};
use chronicle_simulation::{DnsQuery, Hand, Setup};
use serde::Deserialize;
use std::{fs, path::Path, time::Instant};

#[test]
fn answers_mean_what_the_table_says() {
    for case in table() {
        let name = &case.name;
        let mut hand = looking_up(case.host.as_deref().unwrap_or("cluster.example.com"));
        let mut questions = Vec::new();
        while hand.state() == State::Resolving {
            if let Some(query) = hand.find_dns() {
                let turn = questions.len().min(case.exchange.len() - 1);
                questions.push(described(&query));
                for message in &case.exchange[turn] {
                    hand.reply(query.id, Reply::Message(addressed(message, &query)));
                }
                continue;
            }
            assert_eq!(hand.machine().wait_reason(), Some(WaitReason::Lookup));
            hand.wait(hand.timeout().unwrap());
        }
        let outcome = Outcome::of(hand.events());
        assert_eq!(outcome.servers, case.servers, "{name}: {outcome:?}");
        assert_eq!(outcome.error, case.error, "{name}");
        assert_eq!(outcome.warnings, case.warnings, "{name}");
        if !case.questions.is_empty() {
            assert_eq!(questions, case.questions, "{name}");
        }
    }
}

#[test]
fn an_answer_that_is_cut_anywhere_is_no_answer() {
    let cases = table().into_iter().filter(|case| case.error.is_none());
    for case in cases.filter(|case| case.exchange.len() == 1) {
        let message = case.exchange[0].last().unwrap();
        for length in 0..message.len() / 2 {
            let host = case.host.as_deref().unwrap_or("cluster.example.com");
            let mut hand = looking_up(host);
            let query = hand.take_dns();
            let mut cut = addressed(message, &query);
            cut.truncate(length);
            hand.reply(query.id, Reply::Message(cut));
            assert_eq!(
                hand.state(),
                State::Resolving,
                "{}, {length} bytes",
                case.name
            );
        }
    }
}

#[test]
fn the_corpus_of_the_fuzzer_holds() {
    let mut files = 0;
    for entry in fs::read_dir(workspace("fuzz/corpus/dns_answer")).unwrap() {
        fuzzed::check(&fs::read(entry.unwrap().path()).unwrap());
        files += 1;
    }
    assert!(files > 10, "{files}");
}

proptest::proptest! {
    #[test]
    fn any_bytes_end_in_a_bounded_error_or_in_servers_they_name(
        bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..600),
    ) {
        fuzzed::check(&bytes);
    }
}

/// A row of `data/dns.json`; see the README beside it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Case {
    name: String,
    #[serde(rename = "cases")]
    _cases: Vec<String>,
    host: Option<String>,
    exchange: Vec<Vec<String>>,
    #[serde(default)]
    questions: Vec<String>,
    #[serde(default)]
    servers: Vec<String>,
    #[serde(default)]
    warnings: Vec<String>,
    error: Option<Error>,
}

#[derive(Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Error {
    kind: String,
    last: Option<String>,
    code: Option<u16>,
}

/// How a lookup ended.
#[derive(Debug, Default)]
struct Outcome {
    servers: Vec<String>,
    warnings: Vec<String>,
    error: Option<Error>,
}

impl Outcome {
    fn of(events: Vec<Event>) -> Self {
        let mut outcome = Self::default();
        for event in events {
            match event {
                Event::Connecting { candidates, .. } => {
                    outcome.servers = candidates.iter().map(ToString::to_string).collect();
                }
                Event::Resolved { warnings, .. } => {
                    outcome.warnings = warnings.iter().map(ToString::to_string).collect();
                }
                Event::BackingOff { error, .. } => {
                    let AttemptError { lookup, candidates } = error.unwrap();
                    assert_eq!(candidates, []);
                    outcome.error = Some(Error::of(&lookup.unwrap().kind));
                }
                _ => {}
            }
        }
        outcome
    }
}

impl Error {
    fn of(kind: &LookupErrorKind) -> Self {
        let plain = |kind: &str| Self {
            kind: kind.to_owned(),
            last: None,
            code: None,
        };
        let last = match kind {
            LookupErrorKind::NoSuchName { .. } => return plain("noSuchName"),
            LookupErrorKind::NoRecords { .. } => return plain("noRecords"),
            LookupErrorKind::NotOffered { .. } => return plain("notOffered"),
            LookupErrorKind::NoHosts { .. } => return plain("noHosts"),
            LookupErrorKind::NoNameServers { .. } => return plain("noNameServers"),
            LookupErrorKind::NoAnswer { name_servers } => &name_servers[0].1,
        };
        let mut code = None;
        let last = match last {
            NameServerError::TimedOut { .. } => "timedOut",
            NameServerError::ServerFailure => "serverFailure",
            NameServerError::Refused => "refused",
            NameServerError::Code(number) => {
                code = Some(*number);
                "code"
            }
            NameServerError::NoEdns => "noEdns",
            NameServerError::Truncated => "truncated",
            NameServerError::Referral => "referral",
            NameServerError::Malformed(_) => "malformed",
            NameServerError::Failed(_) => "failed",
        };
        Self {
            last: Some(last.to_owned()),
            code,
            ..plain("noAnswer")
        }
    }
}

/// A machine that has been told to connect, and has asked the one name server that it knows.
fn looking_up(host: &str) -> Hand {
    let string = format!("chronicle+srv://{host}?srvNameServer=10.0.0.53");
    let mut hand = Hand::new(Instant::now(), Setup::new(&string).exact().patient());
    hand.connect();
    hand
}

/// How a question was asked, as the table says it.
fn described(query: &DnsQuery) -> String {
    let transport = query.transport.to_string().to_lowercase();
    let has_edns = query.message[11] == 1;
    if has_edns {
        format!("{transport} edns")
    } else {
        transport
    }
}

/// The message of a row, with the id of the query in place of 1234.
fn addressed(hex: &str, query: &DnsQuery) -> Bytes {
    let hex = match hex.strip_prefix("1234") {
        Some(rest) => format!("{:02x}{:02x}{rest}", query.message[0], query.message[1]),
        None => hex.to_owned(),
    };
    let digits: Vec<_> = hex.chars().collect();
    let bytes = digits.chunks(2).map(|pair| {
        let pair: String = pair.iter().collect();
        u8::from_str_radix(&pair, 16).unwrap()
    });
    bytes.collect()
}

fn table() -> Vec<Case> {
    let text = fs::read_to_string(workspace("tests/data/dns.json")).unwrap();
    let cases: Vec<Case> = serde_json::from_str(&text).unwrap();
    assert!(cases.len() > 50);
    cases
}

fn workspace(path: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path)
}
