//! What holds for a lookup whatever a name server sends. The fuzzer and the tests both call it.

use chronicle_connection::{
    Command, Config, Connection, ConnectionString, Contract, Event, Host, Input, Output, Reply,
    State,
};
use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng as _};
use std::time::Instant;

/// Answers every question of one lookup with these bytes, under its id and, where the first byte
/// says so, after its question; panics where a promise is broken.
pub(crate) fn check(data: &[u8]) {
    let Some((mode, data)) = data.split_first() else {
        return;
    };
    let string = "chronicle+srv://cluster.example.com?srvNameServer=10.0.0.53";
    let string: ConnectionString = string.parse().expect("a good string");
    let config = Config::builder(string).build().expect("a good string");
    let rng = ChaCha8Rng::from_seed([0; 32]);
    let start = Instant::now();
    let mut machine = Connection::new(config, Contract::default(), rng, start);
    machine.handle(start, Command::Connect);
    for _ in 0..MOST_QUESTIONS {
        let mut events = Vec::new();
        let mut question = None;
        while let Some(output) = machine.poll_output() {
            match output {
                Output::Dns { id, message, .. } => question = Some((id, message)),
                Output::Event(event) => events.push(event),
                _ => {}
            }
        }
        check_events(&events, data);
        let Some((id, question)) = question else {
            assert_ne!(machine.state(), State::Resolving, "nobody is asked");
            return;
        };
        let mut answer = data.to_vec();
        if let Some(start) = answer.get_mut(..2) {
            start.copy_from_slice(&question[..2]);
        }
        if mode % 2 == 0 && answer.len() >= HEADER {
            answer[2] |= 0x80;
            answer[4..6].copy_from_slice(&[0, 1]);
            let end = HEADER + QUESTION;
            answer.splice(HEADER..HEADER, question[HEADER..end].iter().copied());
        }
        let reply = Reply::Message(answer.into());
        machine.handle(start, Input::Reply { id, reply });
        // If that was no answer, nothing else comes.
        if machine.state() == State::Resolving {
            let due = machine.poll_timeout().expect("a lookup has a deadline");
            machine.handle(due, Command::Tick);
        }
    }
    panic!("more than {MOST_QUESTIONS} questions to one name server");
}

/// Servers are those that the bytes name, in bounds, and what is told of errors is bounded.
fn check_events(events: &[Event], data: &[u8]) {
    for event in events {
        assert!(event.to_string().len() < 100_000);
        let Event::Resolved { records, .. } = event else {
            continue;
        };
        assert!((1..=64).contains(&records.len()));
        for record in records {
            let server = &record.server;
            let Host::Name(name) = &server.host else {
                panic!("{server} is an address");
            };
            let labels = name.split('.');
            for label in labels.filter(|label| !QUESTION_LABELS.contains(label)) {
                let mut found = data.windows(label.len());
                let is_in = found.any(|bytes| bytes.eq_ignore_ascii_case(label.as_bytes()));
                assert!(is_in, "{name} is invented");
            }
            let string = format!("chronicle://{server}");
            let string: ConnectionString = string.parse().expect("a server that can be dialled");
            assert_eq!(string.to_string(), format!("chronicle://{server}"));
        }
    }
}

const HEADER: usize = 12;
/// The name, its type and its class.
const QUESTION: usize = 41;
const QUESTION_LABELS: [&str; 5] = ["_chronicle", "_tcp", "cluster", "example", "com"];
/// Two rounds, each over UDP with and without EDNS, and over TCP; and once to see the end.
const MOST_QUESTIONS: usize = 7;
