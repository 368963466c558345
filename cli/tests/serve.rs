//! `chronicle serve`: a cluster that a terminal drives.

#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "tests of a program with files"
)]

#[path = "../../reference/tests/program/mod.rs"]
mod program;

use program::Program;
use std::{fs, path::PathBuf, process::Command};

#[test]
fn a_cluster_obeys_its_terminal() {
    let mut served = Program::start(CHRONICLE, &["serve", "--servers", "2"]);
    let string = served.read();
    let servers = string.strip_prefix("chronicle://").unwrap();
    let servers = servers.strip_suffix("/?skipTlsValidation=true").unwrap();
    let servers: Vec<&str> = servers.split(',').collect();
    assert_eq!(servers.len(), 2);
    let status = |served: &mut Program| {
        let first = served.say("status");
        [first, served.read()]
    };
    let line = |index: usize, state: &str| {
        let server = servers[index];
        format!("{index}  {server}  {state}  version 18.5.0  clients: 0, connections: 0")
    };
    assert_eq!(status(&mut served), [line(0, "up"), line(1, "up")]);
    assert_eq!(served.say("kill 0"), "ok");
    assert_eq!(served.say("silence 1"), "ok");
    assert_eq!(served.say("hang 1 /connections/count"), "ok");
    assert_eq!(status(&mut served), [line(0, "down"), line(1, "silent")]);
    for server in ["heal 0", "heal 1"] {
        assert_eq!(served.say(server), "ok");
    }
    assert_eq!(status(&mut served), [line(0, "up"), line(1, "up")]);
    assert_eq!(run(&["contract", "check", &string]).0, 0);

    for (command, complaint) in [
        ("kill", "error: \"\" is no server; status lists them"),
        ("kill 2", "error: \"2\" is no server; status lists them"),
        (
            "kill 0 now",
            "error: kill does not go with \"now\"; help says how it goes",
        ),
        ("fly 0", "error: \"fly\" is no command; help lists them"),
        ("fly", "error: \"fly\" is no command; help lists them"),
        (
            "upgrade 0",
            "error: upgrade takes a version, and the file of a contract if that changes",
        ),
        (
            "upgrade 0 19.0 /no/such",
            "error: /no/such: No such file or directory (os error 2)",
        ),
        (
            "upgrade 0 next",
            "error: \"next\" is no version; write numbers, such as 18.5.0, or unknown",
        ),
    ] {
        assert_eq!(served.say(command), complaint, "{command}");
    }
    let damaged = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("damaged.txt");
    fs::write(&damaged, "message {").unwrap();
    let told = served.say(format!("upgrade 0 19.0 {}", damaged.display()));
    let begin = format!("error: {}: ", damaged.display());
    assert!(told.starts_with(&begin), "{told}");
    let not_text = served.say(b"kill \xff");
    assert_eq!(
        not_text,
        "error: that line is not UTF-8; help lists the commands"
    );
    assert!(served.say("help").starts_with("Servers are counted"));
    while !served.read().starts_with("  quit") {}
    assert_eq!(served.say("quit"), "ok");
    assert!(served.end().success());
}

/// The verdict depends on what is served, and on the age of the server that judges.
#[test]
fn clients_are_judged_by_the_contract_that_is_served() {
    let files = Files::new();
    let narrow = files.text("narrow", "message M { string a = 1; }");
    let wide = files.text("wide", "message M { string a = 1; string b = 2; }");
    let renamed = files.text("renamed", "message M { string c = 1; }");
    let mut served = Program::start(
        CHRONICLE,
        &[
            "serve",
            "--servers",
            "1",
            "--contract",
            &narrow,
            "--server-version",
            "18.5.0",
        ],
    );
    let string = served.read();
    let client = files.fetch_as(&string, "narrow-client");
    let mut verdict = |upgrade: &str, contract: &str, version: &str| {
        assert_eq!(served.say(format!("upgrade 0 {upgrade}")), "ok");
        let contract = ["--contract", contract, "--protocol-version", version];
        run(&[&["contract", "check", &string][..], &contract].concat())
    };
    assert_eq!(verdict(&format!("18.5.0 {wide}"), &client, "18.5.0").0, 0);
    let wide_client = files.fetch_as(&string, "wide-client");
    let (code, told) = verdict(&format!("18.5.0 {narrow}"), &wide_client, "18.5.0");
    assert_eq!(code, 1);
    assert!(
        told.contains("FieldRemoved: .acme.M.b (string b = 2 -> gone)"),
        "{told}"
    );
    // What the newer client gained is no removal, except for servers that do not know better.
    assert_eq!(verdict("18.5.0", &wide_client, "18.6.0").0, 0);
    assert_eq!(verdict("18.4.2", &wide_client, "18.6.0").0, 1);
    // An older server says nothing, and this side judges.
    assert_eq!(verdict("16.34.0", &wide_client, "18.6.0").0, 0);
    let (code, told) = verdict("16.34.0", &wide_client, "16.34.0");
    assert_eq!(code, 1);
    assert!(told.contains("field-removed  acme.M.b"), "{told}");
    let (code, told) = verdict(&format!("18.5.0 {renamed}"), &client, "18.6.0");
    assert_eq!(code, 1);
    assert!(told.contains("FieldRenamed: .acme.M.c (c -> a)"), "{told}");
}

#[test]
fn a_set_and_a_text_of_one_contract_are_served_alike() {
    let files = Files::new();
    let text = files.text("either", "message M { .bcl.Guid a = 1; }");
    let mut served = Program::start(CHRONICLE, &["serve", "--servers", "1", "--contract", &text]);
    let set = files.fetch_as(&served.read(), "either-set");
    let mut again = Program::start(CHRONICLE, &["serve", "--servers", "1", "--contract", &set]);
    let same = files.fetch_as(&again.read(), "either-again");
    assert!(fs::read(set).unwrap() == fs::read(same).unwrap());
    for served in [&mut served, &mut again] {
        assert_eq!(served.say("quit"), "ok");
    }
}

#[test]
fn bad_input_exits_with_two_and_a_port_in_use_with_one() {
    let files = Files::new();
    let bad = files.write("bad.txt", "message {");
    for arguments in [
        &["--contract", &bad][..],
        &["--contract", "/no/such"],
        &["--servers", "0"],
        &["--servers", "65"],
        &["--server-version", "next"],
        &["--port", "65535"],
        &["--fly"],
    ] {
        assert_eq!(run(&[&["serve"], arguments].concat()).0, 2, "{arguments:?}");
    }
    let mut served = Program::start(CHRONICLE, &["serve", "--servers", "1"]);
    let string = served.read();
    let port = string
        .rsplit_once("/?")
        .unwrap()
        .0
        .rsplit_once(':')
        .unwrap()
        .1;
    let (code, told) = run(&["serve", "--port", port]);
    assert_eq!(code, 1, "{told}");
    let begin = format!("chronicle: no server can listen on 127.0.0.1:{port}: ");
    assert!(told.starts_with(&begin), "{told}");
    assert!(told.ends_with("free it, or take another port\n"), "{told}");
    served.say("quit");
}

#[cfg(unix)]
#[test]
fn without_a_terminal_it_stays_until_it_is_asked_to_go() {
    use std::{
        io::{BufRead as _, BufReader},
        process::Stdio,
    };

    let mut command = Command::new(CHRONICLE);
    command.args(["serve", "--servers", "1"]);
    let mut served = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut string = String::new();
    BufReader::new(served.stdout.take().unwrap())
        .read_line(&mut string)
        .unwrap();
    assert_eq!(run(&["contract", "check", string.trim_end()]).0, 0);
    let kill = format!("kill -TERM {}", served.id());
    Command::new("sh").args(["-c", &kill]).status().unwrap();
    assert!(served.wait().unwrap().success());
}

/// The exit code, and what was printed to either stream.
fn run(arguments: &[&str]) -> (i32, String) {
    let output = Command::new(CHRONICLE).args(arguments).output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    (
        output.status.code().unwrap(),
        String::from_utf8(text).unwrap(),
    )
}

struct Files(PathBuf);

impl Files {
    fn new() -> Self {
        let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("serve");
        fs::create_dir_all(&directory).unwrap();
        Self(directory)
    }

    /// Source text of the package `acme`, without the session.
    fn text(&self, name: &str, declarations: &str) -> String {
        let text = format!("package acme; {declarations} service S {{ rpc Go (M) returns (M); }}");
        self.write(&format!("{name}.txt"), &text)
    }

    fn write(&self, name: &str, content: &str) -> String {
        let path = self.0.join(name);
        fs::write(&path, content).unwrap();
        path.to_str().unwrap().to_owned()
    }

    /// The descriptor set of what is served.
    fn fetch_as(&self, string: &str, name: &str) -> String {
        let out = self.0.join(name);
        let (code, told) = run(&["contract", "fetch", string, "--out", out.to_str().unwrap()]);
        assert_eq!(code, 0, "{told}");
        out.join("chronicle.desc").to_str().unwrap().to_owned()
    }
}

const CHRONICLE: &str = env!("CARGO_BIN_EXE_chronicle");
