//! `chronicle token`: shows that a token can be had, and not the token.

#![cfg(unix)]
#![allow(
    dead_code,
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "tests of a program in real time, with helpers that others need too"
)]

mod program;

use chronicle_reference_server::{Answer, model::Authentication, paths};
use program::{World, with_credentials};
use std::process::{Command, Output};

const RIGHT: &str = "chronicle-dev-client:chronicle-dev-secret@";

#[test]
fn it_tells_the_life_of_a_token_and_the_token_only_if_asked_to_reveal_it() {
    let world = authenticated();
    let string = with_credentials(&world, RIGHT);
    let (code, out, error) = token(&[&string]);
    assert_eq!((code, error.as_str()), (Some(0), ""));
    assert!(out.contains("valid for 3600 s"), "{out}");
    assert!(!out.contains("chronicle-dev-secret"), "{out}");
    assert_eq!(
        out.lines().count(),
        1,
        "the token is a line of its own: {out}"
    );

    let (code, out, _) = token(&[&string, "--reveal"]);
    assert_eq!(code, Some(0));
    let revealed = out.lines().nth(1).unwrap();
    assert!(
        revealed.starts_with("token") && revealed.contains('-'),
        "{out}"
    );
}

#[test]
fn refused_credentials_end_it_with_code_1_and_the_remedy() {
    let world = authenticated();
    let (code, out, error) = token(&[&with_credentials(&world, "app:s3cret@")]);
    assert_eq!((code, out.as_str()), (Some(1), ""));
    for part in ["invalid_client", "correct the client id and secret", RIGHT] {
        assert!(error.contains(part), "{error}");
    }
    assert!(!error.contains("s3cret"), "{error}");
    let asked: u64 = world
        .stats()
        .iter()
        .map(|stats| stats.requests(paths::TOKEN))
        .sum();
    assert_eq!(asked, 1, "attempts end up in a log");
}

#[test]
fn nobody_is_sent_back_to_the_string_that_was_just_refused() {
    let world = World::start();
    world.set_all(|faults| {
        faults.model.authentication = Some(Authentication {
            client_secret: "another".to_owned(),
            ..Authentication::default()
        });
    });
    let (code, _, error) = token(&[&with_credentials(&world, RIGHT)]);
    assert_eq!(code, Some(1));
    assert!(!error.contains(RIGHT), "{error}");
    let remedy = "the server does not know the development client; give the client id and secret that \
                  it was set up with\n";
    assert!(error.ends_with(remedy), "{error}");
}

#[test]
fn what_an_endpoint_says_is_not_repeated() {
    let world = authenticated();
    world.set_all(|faults| {
        faults.on(paths::TOKEN).answer = Some(Answer::Http(403, "<html>".into()));
    });
    let (code, _, error) = token(&[&with_credentials(&world, RIGHT)]);
    assert_eq!(code, Some(1));
    assert!(error.contains("HTTP 403"), "{error}");
    assert!(!error.contains("<html>"), "{error}");
}

#[test]
fn a_string_that_needs_no_token_is_bad_input() {
    for (string, part) in [
        ("chronicle://localhost", "no client credentials"),
        ("chronicle://localhost?apiKey=s3cret", "apiKey"),
        ("chronicle://", "host"),
    ] {
        let (code, out, error) = token(&[string]);
        assert_eq!((code, out.as_str()), (Some(2), ""), "{string}: {error}");
        assert!(error.contains(part), "{string}: {error}");
        assert!(!error.contains("s3cret"), "{error}");
    }
}

fn authenticated() -> World {
    let world = World::start();
    world.set_all(|faults| faults.model.authentication = Some(Authentication::default()));
    world
}

/// The exit code and what was written to standard output and error.
fn token(arguments: &[&str]) -> (Option<i32>, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_chronicle"));
    let output: Output = command.arg("token").args(arguments).output().unwrap();
    println!("{output:?}");
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (
        output.status.code(),
        text(output.stdout),
        text(output.stderr),
    )
}
