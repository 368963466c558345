//! The running program, and servers for it.

use chronicle_reference_server::{Cluster, Faults, Server, Stats};
use serde_json::Value;
use std::{
    io::{BufRead as _, BufReader},
    process::{Child, Command, Stdio},
    sync::mpsc::{Receiver, channel},
    thread::{self, sleep},
    time::{Duration, Instant},
};
use tokio::runtime::Runtime;

/// `chronicle connect`, whose lines are read as they come.
pub(crate) struct Program {
    child: Child,
    coming: Receiver<String>,
    read: Vec<String>,
}

impl Program {
    pub(crate) fn start(arguments: &[&str], variable: Option<&str>) -> Self {
        let mut child = command(arguments, variable)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let (lines, coming) = channel();
        // Ends with the program.
        thread::spawn(move || {
            output
                .lines()
                .try_for_each(|line| lines.send(line.unwrap()))
        });
        Self {
            child,
            coming,
            read: vec![],
        }
    }

    /// Waits for a line that contains this.
    pub(crate) fn line_with(&mut self, part: &str) -> String {
        loop {
            let Ok(line) = self.coming.recv_timeout(PATIENCE) else {
                panic!("no {part}: {:#?}", self.read);
            };
            self.read.push(line.clone());
            if line.contains(part) {
                return line;
            }
        }
    }

    /// Waits for an event, in JSON.
    pub(crate) fn event(&mut self, kind: &str) -> Value {
        parse(&self.line_with(&format!(r#""event":"{kind}""#)))
    }

    pub(crate) fn signal(&self, name: &str) {
        // Every shell has it, which cannot be said of programs of that name.
        let kill = format!("kill -{name} {}", self.child.id());
        let killed = Command::new("sh").args(["-c", &kill]).status().unwrap();
        assert!(killed.success());
    }

    /// Waits for the end; all lines, and the exit code.
    pub(crate) fn rest(mut self) -> (Vec<String>, Option<i32>) {
        while let Ok(line) = self.coming.recv_timeout(PATIENCE) {
            self.read.push(line);
        }
        let patience = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return (std::mem::take(&mut self.read), status.code());
            }
            assert!(Instant::now() < patience, "no end: {:#?}", self.read);
            sleep(Duration::from_millis(2));
        }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Two servers.
pub(crate) struct World {
    pub(crate) string: String,
    cluster: Cluster,
    runtime: Runtime,
}

impl World {
    pub(crate) fn start() -> Self {
        let runtime = Runtime::new().unwrap();
        let cluster = runtime.block_on(Cluster::start(2)).unwrap();
        Self {
            string: cluster.connection_string(),
            cluster,
            runtime,
        }
    }

    pub(crate) fn set_all(&self, change: impl Fn(&mut Faults)) {
        for server in self.cluster.servers() {
            server.faults().set(&change);
        }
    }

    pub(crate) fn kill_all(&mut self) {
        for server in self.cluster.servers_mut() {
            self.runtime.block_on(server.kill());
        }
    }

    /// How the servers stand.
    pub(crate) fn stats(&self) -> Vec<Stats> {
        self.cluster.servers().iter().map(Server::stats).collect()
    }

    /// Waits until something holds for every server.
    pub(crate) fn until(&self, what: &str, holds: impl Fn(&Stats) -> bool) {
        let patience = Instant::now() + PATIENCE;
        while !self.stats().iter().all(&holds) {
            assert!(Instant::now() < patience, "no {what}: {:#?}", self.stats());
            sleep(Duration::from_millis(2));
        }
    }
}

/// `chronicle connect` with this in `CHRONICLE_CONNECTION_STRING`.
pub(crate) fn command(arguments: &[&str], variable: Option<&str>) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_chronicle"));
    command.arg("connect").args(arguments);
    match variable {
        Some(string) => command.env("CHRONICLE_CONNECTION_STRING", string),
        None => command.env_remove("CHRONICLE_CONNECTION_STRING"),
    };
    command
}

pub(crate) fn events(lines: &[String]) -> Vec<Value> {
    lines.iter().map(|line| parse(line)).collect()
}

pub(crate) fn kinds(events: &[Value]) -> Vec<&str> {
    events.iter().map(|event| text(event, "event")).collect()
}

pub(crate) fn parse(line: &str) -> Value {
    serde_json::from_str(line).unwrap_or_else(|error| panic!("{line}: {error}"))
}

pub(crate) fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    let text = value[field].as_str();
    text.unwrap_or_else(|| panic!("{value} has no text {field}"))
}

/// What must come has this long on any machine.
const PATIENCE: Duration = Duration::from_secs(30);
