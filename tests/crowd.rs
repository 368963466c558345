//! Many clients in one process: no one misses its answers, and memory stays flat.
//!
//! The clients are a process of their own, whose memory is measured.

#![cfg(target_os = "linux")]
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "a test on real sockets in real time"
)]

#[path = "../reference/tests/program/mod.rs"]
mod program;

use chronicle_reference_server::{Cluster, ServerOptions, Stats, model::ModelConfig, paths};
use program::Program;
use rustix::process::{Resource, getrlimit, setrlimit};
use std::{
    fs,
    sync::{Mutex, PoisonError},
    thread::sleep,
    time::{Duration, Instant},
};
use tokio::runtime::Runtime;

/// All answers come from one thread. Deadlines are so long that a loaded machine, on which this is
/// slow, passes as well; it is for each client to have its turn, as often as others have theirs.
#[test]
fn a_thousand_clients_share_one_thread_and_none_misses_its_answers() {
    let _alone = alone();
    let forever = Duration::from_secs(3600);
    let model = ModelConfig {
        keep_alive_interval: Duration::from_secs(4),
        evict_after: forever,
        evict_check: Duration::from_millis(100),
        ..ModelConfig::default()
    };
    let servers = Servers::start(3, model);
    // Each client connects to one server alone, which spares two thirds of the handshakes.
    let string = servers.cluster.connection_string();
    let string = format!("{string}&loadBalancer=round-robin");
    let begun = Instant::now();
    let mut crowd = Crowd::start(&string, 1000, &["--patient"]);
    let connected = begun.elapsed().as_secs_f64();
    let before = crowd.memory();

    let answers = || servers.sum(|stats| stats.requests(paths::CONNECTION_KEEP_ALIVE));
    let (begun, enough) = (Instant::now(), answers() + 2000);
    while answers() < enough {
        assert!(begun.elapsed() < Duration::from_secs(300), "{}", answers());
        sleep(Duration::from_millis(10));
    }
    let answered = begun.elapsed();
    // Whoever has not answered meanwhile is gone with the next look.
    servers.evict_after(answered + Duration::from_millis(500));
    sleep(Duration::from_millis(500));
    servers.evict_after(forever);
    let known = servers.sum(|stats| stats.clients.len() as u64);
    assert_eq!((known, crowd.ask("first")), (1000, 1000));

    let grown = crowd.memory().saturating_sub(before);
    println!(
        "measured: 1,000 clients on one thread: connected in {connected:.1} s, 2,000 answers in \
         {:.1} s; {before} KiB, and {grown} KiB more",
        answered.as_secs_f64()
    );
    assert!(grown < before / 10, "{grown} KiB more than {before} KiB");
    // The runtime's, and the one that reads the input.
    let threads = fs::read_dir(format!("/proc/{}/task", crowd.pid)).unwrap();
    assert_eq!(threads.count(), 2);
    crowd.end();
}

#[test]
fn memory_is_flat_under_floods_and_failures_with_readers_that_do_not_read() {
    let _alone = alone();
    let mut servers = Servers::start(1, ModelConfig::default());
    let string = servers.cluster.connection_string();
    let mut crowd = Crowd::start(&string, 20, &["--unread"]);

    let faults = servers.cluster.servers()[0].faults();
    faults.set(|faults| faults.model.keep_alive_interval = Duration::from_millis(2));
    let flooded = crowd.growth("in a flood of keep-alives", |_| {});
    assert_eq!(crowd.ask("first"), 20);
    assert!(flooded < FLAT, "{flooded} KiB");

    let server = &mut servers.cluster.servers_mut()[0];
    servers.runtime.block_on(server.kill());
    // Until the queues of events that nobody reads are full: 256 each.
    let reach = |attempts: u64| move |crowd: &mut Crowd| crowd.until("fewest", attempts);
    reach(100)(&mut crowd);
    let failing = crowd.growth("in a hundred failed attempts of each", reach(200));
    assert!(failing < FLAT, "{failing} KiB");

    servers.runtime.block_on(server.restart()).unwrap();
    crowd.until("up", 20);
    crowd.end();
}

/// Servers, and the threads that they run on.
struct Servers {
    runtime: Runtime,
    cluster: Cluster,
}

impl Servers {
    fn start(servers: usize, model: ModelConfig) -> Self {
        let mut files = getrlimit(Resource::Nofile);
        files.current = files.maximum;
        setrlimit(Resource::Nofile, files).unwrap();
        let runtime = Runtime::new().unwrap();
        let options = ServerOptions {
            model,
            ..ServerOptions::default()
        };
        let cluster = Cluster::start_with(vec![options; servers]);
        let cluster = runtime.block_on(cluster).unwrap();
        Self { runtime, cluster }
    }

    fn evict_after(&self, time: Duration) {
        for server in self.cluster.servers() {
            server
                .faults()
                .set(|faults| faults.model.evict_after = time);
        }
    }

    fn sum(&self, what: impl Fn(&Stats) -> u64) -> u64 {
        let servers = self.cluster.servers().iter();
        servers.map(|server| what(&server.stats())).sum()
    }
}

/// The program `crowd`, with all of its clients connected.
struct Crowd {
    program: Program,
    pid: u32,
}

impl Crowd {
    /// Ends the clients, and tells that they ended well.
    fn end(self) {
        assert!(self.program.end().success());
    }

    fn start(string: &str, clients: usize, options: &[&str]) -> Self {
        let clients = clients.to_string();
        let arguments = [&[string, &clients], options].concat();
        let mut program = Program::start(env!("CARGO_BIN_EXE_crowd"), &arguments);
        let pid = program.read();
        assert_eq!(program.read(), "connected");
        let pid = pid.strip_prefix("pid ").unwrap().parse().unwrap();
        Self { program, pid }
    }

    fn ask(&mut self, question: &str) -> u64 {
        self.program.say(question).parse().unwrap()
    }

    fn until(&mut self, question: &str, at_least: u64) {
        let begun = Instant::now();
        while self.ask(question) < at_least {
            assert!(begun.elapsed() < Duration::from_secs(60), "{question}");
            sleep(Duration::from_millis(20));
        }
    }

    /// How much memory is added in two seconds, and in something more; the first second is for
    /// buffers to reach the size that they keep.
    fn growth(&mut self, when: &str, more: impl FnOnce(&mut Self)) -> u64 {
        sleep(Duration::from_secs(1));
        let before = self.memory();
        more(self);
        sleep(Duration::from_secs(2));
        let grown = self.memory().saturating_sub(before);
        println!("measured: memory {when}: {before} KiB, and {grown} KiB more");
        grown
    }

    /// What is resident, in KiB.
    fn memory(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid)).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let number = line.unwrap().trim().trim_end_matches(" kB");
        number.parse().unwrap()
    }
}

/// The tests of this file load the machine too much to run at once.
fn alone() -> impl Drop {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// In KiB. Twenty clients that kept each keep-alive of a flood, or each event of a failed attempt,
/// would need several times as much.
const FLAT: u64 = 2048;
