//! `chronicle contract`: as a gate in somebody's CI meets it.

#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "tests of a program with files"
)]

use chronicle_connection_tokio::Schema;
use chronicle_reference_server::{
    Answer, Server, ServerOptions,
    model::{Age, ModelConfig, Verdict},
    paths,
};
use serde_json::{Value, json};
use std::{
    fs,
    io::{PipeWriter, pipe},
    path::PathBuf,
    process::Command,
    thread,
};
use tokio::runtime::Runtime;

#[test]
fn diff_tells_what_is_gone_and_exits_with_one() {
    let files = Files::new("diff");
    let old = files.text("old.proto", "message M { string a = 1; int32 b = 2; }");
    let new = files.set("new.desc", "message M { repeated string a = 1; }");
    let (code, out) = run(&["contract", "diff", &old, &new, "--json"]);
    assert_eq!(code, 1, "{out}");
    let report: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(report["compatible"], false);
    assert_eq!(report["missing_on_server"], json!([]));
    let found = report["incompatibilities"].as_array().unwrap();
    assert_eq!(found.len(), 2);
    assert_eq!(found[0]["kind"], "field-label-changed");
    assert_eq!(found[0]["path"], "acme.M.a");
    assert_eq!(found[0]["before"], "singular");
    assert_eq!(found[0]["after"], "repeated");
    assert!(found[0]["message"].as_str().unwrap().contains("decodes"));
    assert_eq!(found[1]["kind"], "field-removed");
    assert_eq!(found[1]["after"], Value::Null);

    let (code, table) = run(&["contract", "diff", &old, &new]);
    assert_eq!(code, 1);
    for part in [
        "incompatible: 2 findings",
        "field-removed",
        "acme.M.b",
        "int32 b = 2 -> gone",
    ] {
        assert!(table.contains(part), "{part} in {table}");
    }
    assert_eq!(run(&["contract", "diff", &old, &old]).0, 0);

    let one = files.text(
        "one.proto",
        "message M { repeated string a = 1; int32 b = 2; }",
    );
    let (_, table) = run(&["contract", "diff", &old, &one]);
    assert!(table.starts_with("incompatible: 1 finding, "), "{table}");
}

#[test]
fn a_verdict_stands_whoever_reads_it() {
    let files = Files::new("unread");
    let old = files.text("old.proto", "message M { string a = 1; }");
    let new = files.text("new.proto", "message M {}");
    for (arguments, code) in [
        (&["diff", &old, &new][..], 1),
        (&["diff", &old, &new, "--json"], 1),
        (&["diff", &old, &old], 0),
        (&["show", &old], 0),
        (&["show", "/no/such"], 2),
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_chronicle"));
        command.arg("contract").args(arguments);
        let output = command.stdout(closed()).output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{arguments:?}");
        let is_told = !output.stderr.is_empty();
        assert_eq!(is_told, code == 2, "{arguments:?}: {output:?}");
        let unheard = command.stderr(closed()).status().unwrap();
        assert_eq!(unheard.code(), Some(code), "{arguments:?}");
    }
}

#[test]
fn diff_with_both_versions_lets_a_newer_client_have_gained_data() {
    let files = Files::new("versions");
    let client = files.set("client.desc", "message M { string a = 1; }");
    let server = files.text("server.proto", "message M {}");
    let sides = ["contract", "diff", &client, &server, "--json"];
    let with =
        |old, new| run(&[&sides[..], &["--old-version", old, "--new-version", new]].concat());
    let (code, out) = with("2.0", "1.0");
    assert_eq!(code, 0, "{out}");
    let report: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(report["old_version"], "2.0");
    assert_eq!(report["missing_on_server"][0]["path"], "acme.M.a");
    assert_eq!(with("1.0", "2.0").0, 1);
    assert_eq!(with("unknown", "1.0").0, 1);
    for wrong in ["latest", "2.x", ""] {
        assert_eq!(with(wrong, "1.0").0, 2, "{wrong:?}");
        assert_eq!(with("2.0", wrong).0, 2, "{wrong:?}");
    }
}

#[test]
fn what_cannot_be_judged_exits_with_two() {
    let files = Files::new("bad");
    let good = files.text("good.proto", "message M {}");
    let bad = files.text("bad.proto", "message {");
    let empty = files.write("empty.desc", b"");
    for other in [&*bad, &*empty, "/no/such/file", "chronicle://"] {
        assert_eq!(run(&["contract", "diff", &good, other]).0, 2, "{other}");
    }
    assert_eq!(run(&["contract", "show", &bad]).0, 2);
    assert_eq!(run(&["contract", "diff", &good]).0, 2);
    let skipping = "chronicle://localhost/?skipCompatibilityCheck=true";
    assert_eq!(run(&["contract", "check", skipping]).0, 2);
    let complaint = complaint(&[
        "show",
        "chronicle://localhost/?skipCompatibilityCheck=false",
    ]);
    assert!(
        complaint.ends_with("take skipCompatibilityCheck=false out\n"),
        "{complaint}"
    );
}

#[test]
fn a_server_that_does_not_answer_is_not_waited_for_for_ever() {
    let show = |(path, what): (&str, &str)| {
        let (_runtime, server) = server();
        server
            .faults()
            .set(|faults| faults.on(path).answer = Some(Answer::Hang));
        let string = format!("chronicle://{}/?skipTlsValidation=true", server.endpoint());
        let complaint = complaint(&["show", &string]);
        let expected = format!("the server did not tell its {what} within 10 s; ");
        assert!(complaint.contains(&expected), "{path}: {complaint}");
    };
    // Each takes its time, so all do at once.
    thread::scope(|scope| {
        for hanging in [
            (paths::GET_DESCRIPTOR_SET, "contract"),
            (paths::GET_VERSION_INFO, "version"),
            (paths::CHECK_COMPATIBILITY, "version"),
        ] {
            scope.spawn(move || show(hanging));
        }
    });
}

#[test]
fn show_prints_what_is_compared() {
    let files = Files::new("show");
    let set = files.set(
        "set.desc",
        "message M { oneof o { string a = 1; } repeated E e = 2; } enum E { A = 0; }",
    );
    let (code, out) = run(&["contract", "show", &set]);
    assert_eq!(code, 0);
    assert_eq!(
        out,
        "service acme.S\n  Go (acme.M) returns (acme.M), unary call\n\
         message acme.M\n  string a = 1, oneof o\n  repeated enum acme.E e = 2\nenum acme.E\n  A = 0\n"
    );
}

#[test]
fn check_tells_the_verdict_of_a_server_of_any_age() {
    let files = Files::new("check");
    let contract = files.set("client.desc", "message M { string a = 1; }");
    let (_runtime, server) = server();
    let string = format!("chronicle://{}/?skipTlsValidation=true", server.endpoint());
    let check = |change: fn(&mut ModelConfig), version: &str| {
        server.faults().set(|faults| {
            faults.model = ModelConfig::default();
            faults.model.schema += "\nsyntax = \"proto3\"; package acme; message M {}
                service S { rpc Go (M) returns (M); }";
            change(&mut faults.model);
        });
        let contract = ["--contract", &contract, "--protocol-version", version];
        let (code, out) = run(&[&["contract", "check", &string, "--json"][..], &contract].concat());
        (code, serde_json::from_str(&out).unwrap_or(Value::Null))
    };
    assert_eq!(check(|_| {}, "17.0.0").0, 0);

    let (code, report) = check(
        |model| model.verdict = Verdict::Incompatible(vec!["FieldRemoved: .acme.M.a".to_owned()]),
        "17.0.0",
    );
    assert_eq!((code, &report["new_version"]), (1, &json!("18.5.0")));
    let refusing: fn(&mut ModelConfig) = |model| {
        model.version = "18.4.2".to_owned();
        model.protocol_version = "18.3.0".to_owned();
        model.verdict = Verdict::Incompatible(vec![]);
    };
    let agreeing: fn(&mut ModelConfig) = |model| {
        model.version = "18.4.2".to_owned();
        model.protocol_version = "18.3.0".to_owned();
    };
    for (change, expected) in [(refusing, 1), (agreeing, 0)] {
        let (code, report) = check(change, "17.0.0");
        assert_eq!(code, expected);
        assert_eq!(report["new_version"], "18.4.2", "that of the server");
    }
    assert_eq!(
        report["incompatibilities"][0]["message"],
        "FieldRemoved: .acme.M.a"
    );

    let older: fn(&mut ModelConfig) = |model| model.age = Age::WithoutCheck;
    let (code, report) = check(older, "17.0.0");
    assert_eq!(code, 1);
    assert_eq!(report["incompatibilities"][0]["path"], "acme.M.a");
    let (code, report) = check(older, "19.0.0");
    assert_eq!(code, 0, "{report}");
    assert_eq!(report["missing_on_server"][0]["path"], "acme.M.a");

    let neither: fn(&mut ModelConfig) = |model| model.age = Age::WithoutCheckAndDescriptors;
    assert_eq!(check(neither, "17.0.0").0, 2);
}

#[test]
fn a_refusal_is_told_with_the_way_through() {
    let (_runtime, server) = server();
    server
        .faults()
        .set(|faults| faults.model.verdict = Verdict::Incompatible(vec![]));
    let string = format!("chronicle://{}/?skipTlsValidation=true", server.endpoint());
    let files = Files::new("refusal");
    let contract = files.set("client.desc", "message M {}");
    let check = |version: &str| {
        let contract = ["--contract", &contract, "--protocol-version", version];
        run(&[&["contract", "check", &string][..], &contract].concat())
    };
    let (code, table) = check("18.5.0");
    assert_eq!(code, 1);
    assert_eq!(
        table,
        "incompatible: 0 findings, version 18.5.0 against 18.5.0\n  the server gave no reason\n"
    );
    let (_, table) = check("18.6.0");
    assert!(
        table.ends_with("set skipCompatibilityCheck=true in the connection string\n"),
        "{table}"
    );
    assert_eq!(check("newest").0, 2);
}

#[test]
fn a_live_server_is_a_side_of_a_diff() {
    let (_runtime, server) = server();
    let string = format!("chronicle://{}/?skipTlsValidation=true", server.endpoint());
    let files = Files::new("live");
    let client = files.write("session.proto", ModelConfig::default().schema.as_bytes());
    let (code, out) = run(&["contract", "diff", &client, &string, "--json"]);
    assert_eq!(code, 0, "{out}");
    let report: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(report["new_version"], "18.5.0");
    server.faults().set(|faults| {
        faults.model.version = "19.0.0".to_owned();
        faults.model.protocol_version = "18.5.1".to_owned();
    });
    let string = string.replace("chronicle://", "CHRONICLE://");
    let (code, out) = run(&["contract", "diff", &client, &string, "--json"]);
    assert_eq!(code, 0, "{out}");
    let report: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(report["new_version"], "18.5.1", "that of the contract");

    // A server is no client because it tells its version.
    let without = ModelConfig::default().schema;
    let without: Vec<_> = without
        .lines()
        .filter(|line| !line.contains("ProcessId"))
        .collect();
    assert!(without.len() < ModelConfig::default().schema.lines().count());
    let without = files.write("without.proto", without.join("\n").as_bytes());
    let older = [
        "contract",
        "diff",
        &string,
        &without,
        "--json",
        "--new-version",
        "1.0",
    ];
    let (code, out) = run(&older);
    assert_eq!(code, 1, "{out}");
    let report: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(report["old_version"], Value::Null);
    assert_eq!(run(&[&older[..], &["--old-version", "2.0"]].concat()).0, 0);

    let other = files.text("other.proto", "");
    assert_eq!(run(&["contract", "diff", &other, &string]).0, 1);
}

fn server() -> (Runtime, Server) {
    let runtime = Runtime::new().unwrap();
    let server = runtime.block_on(Server::start(ServerOptions::default()));
    (runtime, server.unwrap())
}

/// The exit code, and what was printed.
fn run(arguments: &[&str]) -> (i32, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_chronicle"));
    let output = command.args(arguments).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    (output.status.code().unwrap(), text)
}

/// What is said about what cannot be judged.
fn complaint(arguments: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_chronicle"));
    let output = command.arg("contract").args(arguments).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    String::from_utf8(output.stderr).unwrap()
}

/// What nobody reads.
fn closed() -> PipeWriter {
    pipe().unwrap().1
}

/// A directory of a test.
struct Files(PathBuf);

impl Files {
    fn new(test: &str) -> Self {
        let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(test);
        fs::create_dir_all(&directory).unwrap();
        Self(directory)
    }

    /// Source text of the package `acme`, with a service.
    fn text(&self, name: &str, declarations: &str) -> String {
        self.write(name, source(declarations).as_bytes())
    }

    /// The same as a descriptor set.
    fn set(&self, name: &str, declarations: &str) -> String {
        let schema = Schema::from_source_text(&source(declarations)).unwrap();
        self.write(name, schema.descriptor_set())
    }

    fn write(&self, name: &str, content: &[u8]) -> String {
        let path = self.0.join(name);
        fs::write(&path, content).unwrap();
        path.to_str().unwrap().to_owned()
    }
}

fn source(declarations: &str) -> String {
    format!("package acme;\n{declarations}\nservice S {{ rpc Go (M) returns (M); }}\n")
}
