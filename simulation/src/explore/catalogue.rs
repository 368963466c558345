//! The machines whose lives are explored.

use super::{Exploration, Start};
use crate::Setup;
use chronicle_connection::{Contract, Request, Schema, Strategy};
use std::{num::NonZeroUsize, time::Instant};

/// Explorations of all that lives differ in: one to three servers, both strategies that have a memory
/// or ask, with and without tokens, each from before the first `Connect`; what is decided in one
/// place, each once: an API key, the other strategies, a limit of time, no check, old servers, DNS.
/// And others from where it gets interesting, which is farther from there than an exploration comes
/// in short time.
///
/// # Panics
/// Never, but where this crate contradicts itself.
pub fn explorations(began: Instant) -> Vec<Exploration> {
    let explore = |name: &str, setup: Setup| Exploration::new(name, setup, began);
    let mut all = Vec::new();
    for (count, servers) in [(1, "s1"), (2, "s1,s2"), (3, "s1,s2,s3")] {
        for strategy in ["least-connections", "round-robin"] {
            for (auth, credentials) in [("no credentials", ""), ("tokens", "id:s3cr3t@")] {
                let name = format!("{count} by {strategy}, {auth}");
                let setup = setup(&format!(
                    "chronicle://{credentials}{servers}?loadBalancer={strategy}"
                ));
                all.push(explore(&name, setup));
            }
        }
    }
    let two = |start: &str, at| explore(start, setup("chronicle://s1,s2")).from(at);
    let tokens = |start: &str, at| explore(start, setup("chronicle://id:s3cr3t@s1")).from(at);
    let key = |start: &str, at| explore(start, setup("chronicle://s1?apiKey=s3cr3t")).from(at);
    let old = |start: &str, string, at| {
        let mut setup = setup(string);
        setup.contract = newer_contract();
        explore(start, setup).with_old_servers().from(at)
    };
    let srv = |start: &str, at| explore(start, setup("chronicle+srv://cluster.test")).from(at);
    let three = setup("chronicle://s1,s2,s3");
    let impatient = Setup::new("chronicle://s1,s2");
    let at_random = setup("chronicle://s1,s2,s3?loadBalancer=random");
    let least_of_two = setup("chronicle://s1,s2,s3").strategy(Strategy::LeastConnections {
        max_probes: NonZeroUsize::new(2),
    });
    let skips = setup("chronicle://s1,s2?skipCompatibilityCheck=true");
    all.extend([
        explore("counts of 3", three).from(Start::Asked(Request::Count)),
        two("handshake with 1 of 2", Start::Asked(Request::Reserve)),
        two("registered with 1 of 2", Start::Asked(Request::Connect)),
        two("session with 1 of 2", Start::Connected),
        two("stable session with 1 of 2", Start::Stable),
        tokens("handshake with a token", Start::Asked(Request::Reserve)),
        tokens("registered with a token", Start::Asked(Request::Connect)),
        tokens("session with a token", Start::Connected),
        tokens("stable session with a token", Start::Stable),
        key("an API key", Start::Idle),
        key("handshake with an API key", Start::Asked(Request::Reserve)),
        key("registered with an API key", Start::Asked(Request::Connect)),
        explore("3 at random", at_random),
        explore("3 by the counts of 2", least_of_two),
        explore("time for the first connect", impatient),
        explore("check skipped", skips.clone()),
        explore("session without check", skips).from(Start::Connected),
        old(
            "old server",
            "chronicle://s1,s2",
            Start::Asked(Request::Reserve),
        ),
        old(
            "text of an old server",
            "chronicle://s1,s2",
            Start::Asked(Request::GetDescriptorSet),
        ),
        old(
            "version of an old server",
            "chronicle://id:s3cr3t@s1",
            Start::Asked(Request::GetVersionInfo),
        ),
        srv("lookup", Start::Idle),
        srv("session after a lookup", Start::Connected),
        srv("stable session after a lookup", Start::Stable),
    ]);
    all
}

/// Tries for ever.
fn setup(string: &str) -> Setup {
    Setup::new(string).patient()
}

/// A contract with a field that the text of a good old server lacks, so that the versions decide.
fn newer_contract() -> Contract {
    let text = "syntax = \"proto3\";\npackage a;\nmessage M { string b = 1; }\n\
        service S { rpc Call (M) returns (M); }\n";
    let contract = Schema::from_source_text(text).and_then(|schema| {
        Contract::from_descriptor_set(schema.descriptor_set().clone(), "17.0.0")
    });
    match contract {
        Ok(contract) => contract,
        Err(error) => panic!("{error}"),
    }
}
