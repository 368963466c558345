//! A client on async-std in a process of its own, where no part of tokio runs: connect, drop and
//! reconnect, with the servers in another process.

#![cfg(target_os = "linux")]
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "a test on real sockets"
)]

#[path = "../reference/tests/program/mod.rs"]
mod program;

use program::Program;

#[test]
fn a_client_survives_its_server_with_the_threads_of_async_std_alone() {
    let mut servers = Program::start(env!("CARGO_BIN_EXE_reference_server"), &["--servers", "2"]);
    // By name, so that the resolver's threads are seen as well.
    let string = servers.read().replace("127.0.0.1", "localhost");
    let (_, endpoints) = string.split_once("://").unwrap();
    let (endpoints, _) = endpoints.split_once('/').unwrap();
    let endpoints: Vec<&str> = endpoints.split(',').collect();

    let mut client = Program::start(env!("CARGO_BIN_EXE_async_std_client"), &[&string]);
    let first = told(&mut client, "session 1 at ");
    let index = endpoints.iter().position(|at| *at == first).unwrap();
    assert_eq!(servers.say(format!("kill {index}")), "ok");
    let second = told(&mut client, "session 2 at ");
    assert_eq!(second, endpoints[1 - index]);

    // It would have aborted on a tokio runtime.
    let looks: u64 = told(&mut client, "looks ").parse().unwrap();
    assert!(looks > 100, "{looks}");
    let threads = told(&mut client, "threads ");
    println!("measured: {looks} looks, threads: {threads}");
    for name in threads.split(',') {
        let is_main = name == "async_std_clien";
        let is_async_std = name.starts_with("async-std/") || name == "async-io";
        let is_blocking = name.starts_with("blocking-");
        assert!(is_main || is_async_std || is_blocking, "{threads}");
    }
    assert!(threads.contains("async-std/"), "{threads}");
    assert!(client.end().success());
}

/// The rest of the next line, which must begin so.
fn told(program: &mut Program, what: &str) -> String {
    let line = program.read();
    let rest = line.strip_prefix(what);
    rest.unwrap_or_else(|| panic!("{line:?} in place of {what:?}"))
        .to_owned()
}
