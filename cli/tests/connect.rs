//! The program as a user or another program meets it: arguments, lines, signals and exit codes.
//!
//! What is measured is printed: `cargo test -p chronicle-connection-cli -- --nocapture`.

#![cfg(unix)]
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "tests of a program in real time"
)]

mod program;

use chronicle_reference_server::{
    Answer,
    model::{Authentication, Verdict},
    paths,
};
use program::{Program, World, command, events, kinds, parse, text, with_credentials};
use std::{
    io::{BufRead as _, BufReader},
    process::Stdio,
    thread::sleep,
    time::{Duration, Instant},
};

#[test]
fn without_a_string_it_shows_a_fail_over_within_ten_seconds() {
    let (lines, code) = Program::start(&["--json", "--once"], None).rest();
    assert_eq!(code, Some(0));
    let events = events(&lines);
    let kinds = kinds(&events);
    let begin = [
        "embedded",
        "resolving",
        "resolved",
        "connecting",
        "selected",
        "compatible",
        "connected",
    ];
    assert_eq!(kinds[..7], begin);
    assert_eq!(kinds[kinds.len() - 2..], ["connected", "closed"]);
    let ms = |name: &str, index: usize| events[index][name].as_f64().unwrap();
    assert!(
        (0..events.len()).is_sorted_by_key(|index| ms("at_ms", index)),
        "{lines:#?}"
    );

    let position = |kind: &str| kinds.iter().position(|found| *found == kind).unwrap();
    let (down, end) = (position("server_down"), position("disconnected"));
    let (first, again) = (6, kinds.len() - 2);
    for field in ["server", "peer", "connection_id", "generation"] {
        assert_eq!(events[first][field], events[end][field]);
    }
    for field in ["server", "peer", "connection_id"] {
        assert_ne!(events[first][field], events[again][field]);
    }
    assert_eq!(
        (&events[first]["generation"], &events[again]["generation"]),
        (&1.into(), &2.into())
    );
    let cause = text(&events[end], "cause");
    assert!(
        cause.contains("connection reset") || cause.contains("connection closed"),
        "{cause}"
    );
    assert!(ms("lasted_ms", end) > 5_500.0, "{}", events[end]);
    println!("measured: connected after {} ms", ms("at_ms", first));
    println!("measured: server down after {} ms", ms("at_ms", down));
    println!("measured: disconnected after {} ms", ms("at_ms", end));
    println!("measured: connected again after {} ms", ms("at_ms", again));
    // Promised are ten; the rest is for a loaded machine.
    assert!(ms("at_ms", again) < 12_000.0);
}

#[test]
fn each_transition_is_one_line_for_programs_or_for_people() {
    let world = World::start();
    let mut program = Program::start(&["--json", &world.string], None);
    program.event("connected");
    program.signal("INT");
    let (lines, code) = program.rest();
    assert_eq!(code, Some(0));
    let events = events(&lines);
    let expected = [
        "connecting",
        "selected",
        "compatible",
        "connected",
        "closed",
    ];
    assert_eq!(kinds(&events), expected);
    assert_eq!(events[0]["attempt"], 1);
    assert_eq!(events[0]["candidates"].as_array().unwrap().len(), 2);
    assert_eq!(events[1]["count"], 0);
    assert_eq!(events[2]["server_version"], "18.5.0");
    assert_eq!(events[3]["server"], events[1]["server"]);
    assert_eq!(events[3]["peer"], events[1]["server"]);
    assert_eq!(text(&events[3], "connection_id").len(), 36);

    let mut program = Program::start(&[&world.string], None);
    program.line_with(" connected to ");
    program.signal("INT");
    let (lines, code) = program.rest();
    assert_eq!((lines.len(), code), (5, Some(0)));
    for (line, expected) in lines.iter().zip([
        "  connecting, attempt 1, to 127.0.0.1:",
        "  selected 127.0.0.1:",
        " is compatible, version 18.5.0",
        "  connected to 127.0.0.1:",
        "  closed",
    ]) {
        assert!(line.contains(expected), "{line}");
        let (time, _) = line.split_once(" s  ").unwrap();
        assert!(time.trim().parse::<f64>().is_ok(), "{line}");
    }
}

#[test]
fn the_string_comes_from_the_environment_unless_it_is_given() {
    let (variable, argument) = (World::start(), World::start());
    for (arguments, expected) in [
        (vec!["--json"], &variable),
        (vec!["--json", &argument.string], &argument),
    ] {
        let mut program = Program::start(&arguments, Some(&variable.string));
        let connected = program.event("connected");
        assert!(
            expected.string.contains(text(&connected, "server")),
            "{connected}"
        );
        program.signal("TERM");
        assert_eq!(program.rest().1, Some(0));
    }
}

#[test]
fn an_interrupt_closes_cleanly_in_every_phase() {
    for reached in ["connecting", "selected", "connected", "backing_off"] {
        let mut world = World::start();
        match reached {
            "connecting" => world.set_all(|faults| faults.hang_tls = true),
            "selected" => world.set_all(|faults| {
                faults.on(paths::CHECK_COMPATIBILITY).answer = Some(Answer::Hang);
            }),
            "backing_off" => world.kill_all(),
            _ => {}
        }
        let mut program = Program::start(&["--json", &world.string], None);
        program.event(reached);
        let begun = Instant::now();
        program.signal("INT");
        let (lines, code) = program.rest();
        println!(
            "measured: interrupt to exit after {reached}: {:?}",
            begun.elapsed()
        );
        assert_eq!(code, Some(0));
        assert_eq!(text(&parse(lines.last().unwrap()), "event"), "closed");
        // What hung looks again whether anybody is there.
        world.set_all(|faults| faults.hang_tls = false);
        world.until("end of all sockets", |stats| stats.open == 0);
    }
}

#[test]
fn it_ends_quietly_where_nobody_reads_its_output_any_more() {
    let mut world = World::start();
    let mut program = command(&["--json", &world.string], None)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(program.stdout.take().unwrap()).lines();
    while !lines.next().unwrap().unwrap().contains(r#""connected""#) {}
    drop(lines);
    world.kill_all();
    let output = program.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
}

#[test]
fn bad_strings_end_it_with_code_2_the_place_the_remedy_and_no_secret() {
    for (string, reasons) in [
        ("", vec!["chronicle://"]),
        ("http://localhost", vec!["chronicle://"]),
        ("chronicle://localhost:70000", vec!["65535"]),
        ("chronicle://a,,b", vec!["host"]),
        (
            "chronicle://h/?skipTlsValidaton=true",
            vec!["skipTlsValidation"],
        ),
        ("chronicle://id:s3cret@h/?apiKey=s3cret", vec!["apiKey"]),
        ("chronicle://id:s3cr/et@h", vec!["%2F"]),
        ("chronicle://:s3cret@h", vec!["id:secret@"]),
        (
            "chronicle://id:s3cret@h/?certificatePath=no/such.pem",
            vec!["no/such.pem", "certificatePath"],
        ),
        ("chronicle+srv://a,b", vec!["one"]),
    ] {
        for (arguments, variable) in [(vec![string], None), (vec![], Some(string))] {
            let output = command(&arguments, variable).output().unwrap();
            let error = String::from_utf8(output.stderr).unwrap();
            println!("{string:42} {}", error.trim_end());
            assert_eq!(output.status.code(), Some(2), "{string}: {error}");
            assert!(output.stdout.is_empty(), "{string}");
            for reason in &reasons {
                assert!(error.contains(reason), "{string}: {error}");
            }
            assert!(!error.contains("s3cr"), "{string}: {error}");
        }
    }
}

#[test]
#[cfg(target_os = "linux")]
fn without_any_root_certificate_it_says_how_to_get_some() {
    let nowhere = "/nowhere";
    let output = command(&["chronicle://localhost"], None)
        .env("SSL_CERT_FILE", nowhere)
        .env("SSL_CERT_DIR", nowhere)
        .output()
        .unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{error}");
    assert!(error.contains("SSL_CERT_FILE"), "{error}");
}

#[test]
fn bad_arguments_end_it_with_code_2() {
    for arguments in [
        &["--embedded", "chronicle://localhost"][..],
        &["chronicle://a", "chronicle://b"],
        &["--fly"],
    ] {
        let output = command(arguments, None).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(!output.stderr.is_empty(), "{arguments:?}");
    }
}

#[test]
fn it_gives_up_with_code_1_where_every_server_refuses() {
    let world = World::start();
    world.set_all(|faults| {
        let findings = vec!["FieldRemoved: .a.B.c".to_owned()];
        faults.model.verdict = Verdict::Incompatible(findings);
    });
    let output = command(&["--json", &world.string], None).output().unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{error}");
    assert!(error.contains("FieldRemoved: .a.B.c"), "{error}");
    let lines = String::from_utf8(output.stdout).unwrap();
    let last = parse(lines.lines().last().unwrap());
    assert_eq!(text(&last, "event"), "failed");
}

#[test]
fn refused_credentials_are_told_with_the_remedy_in_one_sentence() {
    let world = World::start();
    world.set_all(|faults| faults.model.authentication = Some(Authentication::default()));
    let right = "chronicle-dev-client:chronicle-dev-secret@";
    for (credentials, options, remedy) in [
        ("", "", "give a client id and secret"),
        ("app:s3cret@", "", "correct the client id and secret"),
        ("", "&apiKey=s3cret", "correct the apiKey"),
    ] {
        let string = with_credentials(&world, credentials);
        let output = command(&[&format!("{string}{options}")], None)
            .output()
            .unwrap();
        let error = String::from_utf8(output.stderr).unwrap();
        println!("{}", error.trim_end());
        assert_eq!(output.status.code(), Some(1), "{error}");
        assert_eq!(error.lines().count(), 1, "{error}");
        assert!(error.contains(remedy), "{error}");
        let development = format!("chronicle://{right}127.0.0.1:");
        assert!(error.contains(&development), "{error}");
        assert!(!error.contains("s3cret"), "{error}");
    }
    // What the remedy says helps.
    let string = with_credentials(&world, right);
    Program::start(&["--json", &string], None).event("connected");
}

/// SIGSTOP and SIGCONT: nothing of the process runs, and its clocks go on.
#[test]
fn a_process_paused_for_seven_seconds_drops_its_session_and_reconnects() {
    let world = World::start();
    let mut program = Program::start(&["--json", &world.string], None);
    let first = program.event("connected");
    program.signal("STOP");
    sleep(Duration::from_secs(7));
    let resumed = Instant::now();
    program.signal("CONT");
    let end = program.event("disconnected");
    println!(
        "measured: resumed to disconnected: {:?}, {end}",
        resumed.elapsed()
    );
    let second = program.event("connected");
    println!(
        "measured: resumed to connected again: {:?}",
        resumed.elapsed()
    );
    assert_eq!(first["connection_id"], end["connection_id"]);
    // Whichever of the two clocks is the older one when the process is stopped.
    let causes = [
        "no keep-alive for 7.",
        "no keep-alive answer acknowledged for 7.",
    ];
    let cause = text(&end, "cause");
    assert!(causes.iter().any(|start| cause.starts_with(start)), "{end}");
    assert!(end["lasted_ms"].as_f64().unwrap() >= 7_000.0, "{end}");
    assert_eq!(second["generation"], 2);
    let id = text(&second, "connection_id").to_owned();
    world.until("registration in place of the old one", |stats| {
        stats.clients.contains(&id) || stats.clients.is_empty()
    });
    program.signal("INT");
    assert_eq!(program.rest().1, Some(0));
}
