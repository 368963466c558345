//! `chronicle simulate --seeds`, as a program.

#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "tests start programs"
)]

use std::process::{Command, Output};

fn simulate(seeds: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_chronicle"))
        .args(["simulate", "--seeds", seeds])
        .output()
        .unwrap()
}

#[test]
fn a_seed_is_played_and_told() {
    let output = simulate("3");
    let (out, err) = (
        String::from_utf8(output.stdout).unwrap(),
        String::from_utf8(output.stderr).unwrap(),
    );
    assert_eq!(output.status.code(), Some(0), "{out}{err}");
    assert!(out.starts_with("1 scenario kept every rule: "), "{out}");
    assert!(out.contains(" connects, "), "{out}");
    assert_eq!(err, "", "no progress where nobody watches");
}

#[test]
fn what_is_no_range_is_bad_input() {
    for (seeds, text) in [("9..3", "is empty"), ("many", "is no seed")] {
        let output = simulate(seeds);
        let err = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{err}");
        assert!(err.contains(text), "{err}");
    }
}
