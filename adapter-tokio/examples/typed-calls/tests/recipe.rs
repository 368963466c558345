//! The README's way to the first typed call: its commands run, and its code is that of this package.
//! The command that fetches the contract is run by the tests of the program `chronicle`.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "a test of programs"
)]

#[path = "../../../../reference/tests/program/mod.rs"]
mod program;

use program::Program;
use std::{env, process::Command};

#[test]
fn the_commands_of_the_recipe_lead_to_typed_calls() {
    let block = recipe().split("```sh\n").nth(1).unwrap();
    let block = block.split("```").next().unwrap();
    let mut commands = block.lines().filter(|line| !line.starts_with('#'));
    let mut next = |begin: &str| commands.next().unwrap().strip_prefix(begin).unwrap();

    assert_eq!(
        next("cargo run -p typed-calls --example event-log -- "),
        "35100"
    );
    let mut server = Program::start(&event_log(), &["0"]);
    let string = server.read();

    next("cargo run -p chronicle-connection-cli -- contract fetch ");

    let argument = next("cargo run -p typed-calls -- ");
    let expected = r#""chronicle://127.0.0.1:35100/?skipTlsValidation=true""#;
    assert_eq!(argument, expected);
    assert_eq!(commands.next(), None);
    let mut application = Program::start(TYPED_CALLS, &[&string]);
    for line in [
        "appended 0",
        r#"read 0 OrderPlaced {"total":42}"#,
        "observed 0 OrderPlaced",
    ] {
        assert_eq!(application.read(), line);
    }
    let mut another = Program::start(TYPED_CALLS, &[&string]);
    assert_eq!(another.read(), "appended 1");
    assert_eq!(application.read(), "observed 1 OrderPlaced");
    assert_eq!(server.say("quit"), "ok");
    assert!(server.end().success());
}

#[test]
fn errors_are_told_to_people() {
    let event_log = event_log();
    for (program, argument, begin) in [
        (TYPED_CALLS, "chronicle://", "typed-calls: "),
        (&event_log, "first", "event-log: \"first\" is no port"),
    ] {
        let output = Command::new(program).arg(argument).output().unwrap();
        let told = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{told}");
        assert!(told.starts_with(begin), "{told}");
    }
}

#[test]
fn the_code_of_the_recipe_is_that_of_this_package() {
    let files = [include_str!("../build.rs"), include_str!("../src/lib.rs")];
    let blocks: Vec<&str> = recipe().split("```rust,ignore\n").skip(1).collect();
    assert_eq!(blocks.len(), files.len());
    for (block, file) in blocks.iter().zip(files) {
        let block = block.split("```").next().unwrap();
        assert!(file.contains(block.trim_end()), "{block}");
    }
}

/// The server of the recipe.
fn event_log() -> String {
    let test = env::current_exe().unwrap();
    let built = test.parent().unwrap().parent().unwrap();
    let path = built.join("examples").join("event-log");
    path.to_str().unwrap().to_owned()
}

/// The section of the README.
fn recipe() -> &'static str {
    let readme = include_str!("../../../../README.md");
    let section = readme.split("\n## Typed calls in five minutes\n").nth(1);
    section.unwrap().split("\n## ").next().unwrap()
}

const TYPED_CALLS: &str = env!("CARGO_BIN_EXE_typed-calls");
