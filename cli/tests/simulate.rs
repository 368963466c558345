//! `chronicle simulate`: what it prints, what it draws, and how it ends.

#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "tests of a program with files"
)]

use roxmltree::{Document, ParsingOptions};
use serde_json::Value;
use std::{
    fs,
    io::pipe,
    path::{Path, PathBuf},
    process::Command,
};

#[test]
fn a_run_is_printed_and_drawn() {
    let out = directory("run");
    let (code, text, errors) = run(&out, &["--scenario", "crash", "--strategy", "round-robin"]);
    assert_eq!((code, errors.as_str()), (0, ""), "{text}");
    for part in [
        "crash: 20 clients on 3 servers, round-robin, seed 1",
        "2 min 20 s of virtual time",
        "range  deviation",
        "the widest",
        "reconnecting",
        "calmest    median   busiest",
        "connects",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
    for name in ["crash.svg", "crash.html"] {
        let file = out.join(name);
        assert!(
            text.contains(&format!("drawn: {}", file.display())),
            "{text}"
        );
        is_picture_of(&file, "Crash: 20 clients on 3 servers");
    }
    let page = fs::read_to_string(out.join("crash.html")).unwrap();
    let again = "chronicle simulate --clients 20 --servers 3 --scenario crash --seed 1 --strategy \
                 round-robin</code>";
    assert!(page.contains(again));
}

#[test]
fn what_nobody_reads_is_drawn_all_the_same() {
    let out = directory("unread");
    let mut command = program();
    command.args(["simulate", "--clients", "2", "--servers", "1", "--out"]);
    let status = command.arg(&out).stdout(pipe().unwrap().1).status();
    assert_eq!(status.unwrap().code(), Some(0));
    for name in ["cold-start.svg", "cold-start.html"] {
        is_picture_of(&out.join(name), "Cold start: 2 clients on 1 server");
    }
}

#[test]
fn a_comparison_is_printed_and_drawn() {
    let out = directory("comparison");
    let (code, text, errors) = run(&out, &["--compare", "--clients", "8"]);
    assert_eq!((code, errors.as_str()), (0, ""), "{text}");
    for part in [
        "round-robin",
        "asks 2",
        "no wait before selections",
        "not counted",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
    for name in ["cold-start-comparison.svg", "cold-start-comparison.html"] {
        is_picture_of(
            &out.join(name),
            "Cold start: 8 clients on 3 servers, compared",
        );
    }
}

#[test]
fn the_same_seed_gives_the_same_bytes() {
    let all = |directory_name: &str, seed: &str| {
        let out = directory(directory_name);
        let options = [
            "--json",
            "--seed",
            seed,
            "--max-probes",
            "2",
            "--no-jitter=attempts",
        ];
        let (code, text, errors) = run(&out, &options);
        assert_eq!((code, errors.as_str()), (0, ""), "{text}");
        let read = |name: &str| fs::read_to_string(out.join(name)).unwrap();
        [text, read("cold-start.svg"), read("cold-start.html")]
    };
    let once = all("once", "7");
    assert_eq!(once, all("again", "7"));
    let other = all("other", "8");
    assert!(once.iter().zip(&other).all(|(one, other)| one != other));

    let report: Value = serde_json::from_str(&once[0]).unwrap();
    assert_eq!(report["fleet"]["strategy"], "least-connections asking 2");
    assert_eq!(report["fleet"]["backoff_jitter"], false);
    assert_eq!(report["fleet"]["selection_wait"], true);
    assert_eq!(report["fleet"]["reservations"], true);
    assert_eq!(report["fleet"]["seed"], 7);
    assert_eq!(report["connecting"]["number"], 20);
    assert_eq!(report["reconnecting"]["p50_ms"], Value::Null);
    assert_eq!(report["away"], 0);
    assert_eq!(
        report["worst_second_by_server"].as_array().unwrap().len(),
        3
    );
    let last = report["samples"].as_array().unwrap().last().unwrap();
    assert_eq!(
        (&last["at_ms"], &last["sessions"]),
        (&60_000.0.into(), &20.into())
    );
}

#[test]
fn what_is_switched_off_is_told() {
    let out = directory("off");
    let (code, text, _) = run(&out, &["--no-jitter", "--no-reservation"]);
    assert_eq!(code, 0, "{text}");
    let off = "no wait before selections, no jitter between attempts, no reservations";
    assert!(text.contains(off), "{text}");
    let page = fs::read_to_string(out.join("cold-start.html")).unwrap();
    assert!(page.contains("--no-jitter=both --no-reservation</code>"));
}

#[test]
fn bad_input_exits_with_two_and_says_why() {
    let out = directory("bad");
    let cases: [(&[&str], &str); 9] = [
        (&["--scenario", "flood"], "cold-start"),
        (&["--strategy", "fastest"], "round-robin"),
        (
            &["--clients", "0"],
            "0 clients cannot be simulated; give 1 to 100000",
        ),
        (
            &["--servers", "1001"],
            "1001 servers cannot be simulated; give 1 to 1000",
        ),
        (&["--seed=-1"], "--seed"),
        (&["--max-probes", "0"], "--max-probes"),
        (
            &["--strategy", "random", "--max-probes", "2"],
            "random asks nobody",
        ),
        (&["--no-jitter=some"], "attempts"),
        (
            &["--compare", "--strategy", "random"],
            "cannot be used with",
        ),
    ];
    for (options, part) in cases {
        let (code, _, errors) = run(&out, options);
        assert_eq!(code, 2, "{options:?}: {errors}");
        assert!(errors.contains(part), "{part} in {errors}");
    }
    let file = out.join("file");
    fs::write(&file, "in the way").unwrap();
    let (code, text, errors) = run(&file, &[]);
    assert_eq!((code, text.as_str()), (2, ""));
    assert!(errors.contains("cannot be written"), "{errors}");
}

#[test]
fn help_tells_what_each_scenario_does() {
    let output = program().args(["simulate", "--help"]).output().unwrap();
    let help = String::from_utf8(output.stdout).unwrap();
    for part in [
        "cold-start",
        "all clients start at the same instant",
        "GOAWAY",
        "Exit codes:",
    ] {
        assert!(help.contains(part), "{part} in {help}");
    }
}

fn is_picture_of(file: &Path, title: &str) {
    let text = fs::read_to_string(file).unwrap();
    let options = ParsingOptions {
        allow_dtd: true,
        ..ParsingOptions::default()
    };
    let document = Document::parse_with_options(&text, options).unwrap();
    let mut titles = document
        .descendants()
        .filter(|node| node.tag_name().name() == "title");
    assert_eq!(titles.next().unwrap().text(), Some(title));
    let mut all = document.descendants();
    assert!(all.any(|node| node.tag_name().name() == "polyline"));
}

/// Twenty clients and three servers, unless told otherwise: exit code, output, and errors.
fn run(out: &Path, options: &[&str]) -> (i32, String, String) {
    let mut command = program();
    command.args(["simulate", "--out"]).arg(out);
    for (option, value) in [("--clients", "20"), ("--servers", "3")] {
        if !options.contains(&option) {
            command.args([option, value]);
        }
    }
    let output = command.args(options).output().unwrap();
    (
        output.status.code().unwrap(),
        String::from_utf8(output.stdout).unwrap(),
        String::from_utf8(output.stderr).unwrap(),
    )
}

fn program() -> Command {
    Command::new(env!("CARGO_BIN_EXE_chronicle"))
}

/// An empty directory of a test.
fn directory(test: &str) -> PathBuf {
    let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR"))
        .join("simulate")
        .join(test);
    let _ = fs::remove_dir_all(&directory);
    fs::create_dir_all(&directory).unwrap();
    directory
}
