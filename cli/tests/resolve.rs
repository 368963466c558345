//! `chronicle resolve` as a user or another program meets it.

#![cfg(unix)]
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "tests of a program in real time"
)]

use chronicle_connection_tokio::{Endpoint, Host, SrvRecord};
use chronicle_reference_server::{DnsAnswer, DnsServer};
use serde_json::{Value, json};
use std::{
    io::pipe,
    process::{Command, Output},
};
use tokio::runtime::Runtime;

#[test]
fn each_try_is_told_with_its_timing_and_the_records_in_order() {
    let dns = Dns::start(&[(20, 0, "standby"), (10, 1, "b"), (10, 9, "a")]);
    dns.server.set_faults(|faults| faults.truncate = true);
    let output = resolve(&["--json", &dns.string()], None);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let events = events(&output);
    let kinds: Vec<_> = events.iter().map(|event| event["event"].clone()).collect();
    assert_eq!(
        kinds,
        ["resolving", "lookup_try_failed", "resolved", "servers"]
    );
    assert_eq!(events[0]["name"], "cluster.test");
    for (event, transport) in [(&events[1], "UDP"), (&events[2], "TCP")] {
        assert_eq!(event["transport"], transport);
        assert_eq!(event["name_server"], dns.server.address().to_string());
        assert!(event["took_ms"].as_f64().unwrap() > 0.0, "{event}");
    }
    assert_eq!(
        events[2]["records"],
        json!([
            { "server": "a:35000", "priority": 10, "weight": 9 },
            { "server": "b:35000", "priority": 10, "weight": 1 },
            { "server": "standby:35000", "priority": 20, "weight": 0 },
        ])
    );
    let servers = json!(["a:35000", "b:35000", "standby:35000"]);
    assert_eq!(events[3]["servers"], servers);
}

#[test]
fn people_read_the_same_in_lines() {
    let dns = Dns::start(&[(10, 9, "a")]);
    // The string may come from the environment.
    let output = resolve(&[], Some(&dns.string()));
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("a:35000 (priority 10, weight 9)"), "{text}");
    assert!(text.contains("servers: a:35000"), "{text}");
}

#[test]
fn an_explicit_list_is_its_own_answer() {
    let output = resolve(&["--json", "chronicle://b,a:1"], None);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let events = events(&output);
    assert_eq!(events.len(), 1);
    assert_eq!(events[0]["servers"], json!(["b:35000", "a:1"]));
}

#[test]
fn no_servers_end_it_with_code_1_and_the_reason() {
    let dns = Dns::start(&[]);
    for (answer, reason) in [
        (None, "no SRV records"),
        (Some(DnsAnswer::Code(2)), "SERVFAIL"),
        (Some(DnsAnswer::Code(3)), "NXDOMAIN"),
    ] {
        dns.server.set_faults(|faults| faults.answer = answer);
        let output = resolve(&["--json", &dns.string()], None);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        let error = String::from_utf8(output.stderr.clone()).unwrap();
        assert!(error.contains(reason), "{error}");
        let last = events(&output).pop().unwrap();
        assert_eq!(last["event"], "failed");
        assert!(last["text"].as_str().unwrap().contains(reason), "{last}");
        let mut unread = command(&[&dns.string()], None);
        unread.stdout(pipe().unwrap().1);
        assert_eq!(unread.status().unwrap().code(), Some(1), "{reason}");
    }
}

#[test]
fn bad_input_ends_it_with_code_2() {
    for arguments in [
        &["chronicle+srv://a:1"][..],
        &["chronicle+srv://a", "chronicle+srv://b"],
        &["--fly"],
        // Nothing to look up.
        &[],
    ] {
        let output = resolve(arguments, None);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(!output.stderr.is_empty(), "{arguments:?}");
        assert!(output.stdout.is_empty(), "{arguments:?}");
    }
}

/// A name server that knows `cluster.test`.
struct Dns {
    server: DnsServer,
    _runtime: Runtime,
}

impl Dns {
    fn start(records: &[(u16, u16, &str)]) -> Self {
        let records = records.iter().map(|(priority, weight, host)| SrvRecord {
            server: Endpoint::new(Host::Name((*host).to_owned()), 35000),
            priority: *priority,
            weight: *weight,
        });
        let runtime = Runtime::new().unwrap();
        let started = DnsServer::start("cluster.test", records.collect());
        Self {
            server: runtime.block_on(started).unwrap(),
            _runtime: runtime,
        }
    }

    fn string(&self) -> String {
        let address = self.server.address();
        format!("chronicle+srv://cluster.test?srvNameServer={address}")
    }
}

fn resolve(arguments: &[&str], variable: Option<&str>) -> Output {
    command(arguments, variable).output().unwrap()
}

fn command(arguments: &[&str], variable: Option<&str>) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_chronicle"));
    command.arg("resolve").args(arguments);
    match variable {
        Some(string) => command.env("CHRONICLE_CONNECTION_STRING", string),
        None => command.env_remove("CHRONICLE_CONNECTION_STRING"),
    };
    command
}

fn events(output: &Output) -> Vec<Value> {
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    let lines = text.lines();
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}
