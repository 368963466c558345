//! The program, as tests in other processes drive it.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::unwrap_used,
    reason = "a test on real sockets"
)]

mod program;

use program::Program;
use std::{net::TcpStream, process::Command};

#[test]
fn it_tells_where_it_is_obeys_and_ends_with_its_input() {
    let mut program = Program::start(SERVER, &["--servers", "2"]);
    let string = program.read();
    let ports: Vec<u16> = string
        .strip_prefix("chronicle://")
        .and_then(|rest| rest.strip_suffix("/?skipTlsValidation=true"))
        .unwrap()
        .split(',')
        .map(|endpoint| {
            endpoint
                .strip_prefix("127.0.0.1:")
                .unwrap()
                .parse()
                .unwrap()
        })
        .collect();
    let is_up = |index: usize| TcpStream::connect(("127.0.0.1", ports[index])).is_ok();

    assert_eq!((is_up(0), is_up(1)), (true, true));
    assert_eq!(program.say("kill 1"), "ok");
    assert_eq!((is_up(0), is_up(1)), (true, false));
    assert_eq!(program.say("restart 1"), "ok");
    assert!(is_up(1));
    for command in [
        "silence 0",
        "speak 0",
        "goaway 0",
        "end 0",
        "hang 0 /a",
        "answer 0 /a",
    ] {
        assert_eq!(program.say(command), "ok", "{command}");
    }
    assert_eq!(program.say("count 0"), "0");
    assert!(program.say("kill 2").starts_with("error: "));
    assert!(program.say(b"kill \xff").starts_with("error: "));
    assert!(program.say("fly 0").starts_with("error: "));

    assert!(program.end().success());
    assert!(!is_up(0));
}

#[test]
fn bad_arguments_end_it_with_code_2_and_the_reason() {
    for (arguments, reason) in [
        (&["--fly"][..], "--fly"),
        (&["--port", "70000"], "70000"),
        (&["--port"], "--port"),
        (&["--port", "65535", "--servers", "2"], "lower --port"),
        (&["--servers", "0"], "give 1 to 64"),
        (&["--servers", "65"], "give 1 to 64"),
    ] {
        let output = Command::new(SERVER).args(arguments).output().unwrap();
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{text}");
        assert!(text.contains(reason), "{text}");
    }
}

const SERVER: &str = env!("CARGO_BIN_EXE_chronicle-reference-server");
