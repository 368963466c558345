//! A client on async-std in a process of its own, where no part of tokio runs: connect, drop and
//! reconnect, with the servers in another process.

#![cfg(target_os = "linux")]
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "a test on real sockets"
)]

use std::{
    io::{BufRead as _, BufReader, Write as _},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};

#[test]
fn a_client_survives_its_server_with_the_threads_of_async_std_alone() {
    let mut servers = Program::start(env!("CARGO_BIN_EXE_reference_server"), &["--servers", "2"]);
    // By name, so that the resolver's threads are seen as well.
    let string = servers.read().replace("127.0.0.1", "localhost");
    let (_, endpoints) = string.split_once("://").unwrap();
    let (endpoints, _) = endpoints.split_once('/').unwrap();
    let endpoints: Vec<&str> = endpoints.split(',').collect();

    let mut client = Program::start(env!("CARGO_BIN_EXE_async_std_client"), &[&string]);
    let first = client.told("session 1 at ");
    let index = endpoints.iter().position(|at| *at == first).unwrap();
    assert_eq!(servers.say(&format!("kill {index}")), "ok");
    let second = client.told("session 2 at ");
    assert_eq!(second, endpoints[1 - index]);

    // It would have aborted on a tokio runtime.
    let looks: u64 = client.told("looks ").parse().unwrap();
    assert!(looks > 100, "{looks}");
    let threads = client.told("threads ");
    println!("measured: {looks} looks, threads: {threads}");
    for name in threads.split(',') {
        let is_main = name == "async_std_clien";
        let is_async_std = name.starts_with("async-std/") || name == "async-io";
        let is_blocking = name.starts_with("blocking-");
        assert!(is_main || is_async_std || is_blocking, "{threads}");
    }
    assert!(threads.contains("async-std/"), "{threads}");
    assert!(client.child.wait().unwrap().success());
}

/// Another process; ends with this one.
struct Program {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Program {
    fn start(program: &str, arguments: &[&str]) -> Self {
        let mut child = Command::new(program)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        Self {
            input: child.stdin.take().unwrap(),
            output: BufReader::new(child.stdout.take().unwrap()),
            child,
        }
    }

    fn say(&mut self, line: &str) -> String {
        writeln!(self.input, "{line}").unwrap();
        self.read()
    }

    /// The rest of the next line, which must begin so.
    fn told(&mut self, what: &str) -> String {
        let line = self.read();
        let rest = line.strip_prefix(what);
        rest.unwrap_or_else(|| panic!("{line:?} in place of {what:?}"))
            .to_owned()
    }

    fn read(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
