//! How long it takes to play 10,000 clients on 100 servers through a cold start and a rolling
//! restart of all servers, ten virtual minutes, and how much memory: a minute and 1 GiB are the most
//! that is allowed, on one core.

#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "a failure is a failed benchmark, and the memory of a process is told by a file"
)]

use chronicle_simulation::fleet::{Fleet, Scenario};
use divan::Bencher;
use std::{fs, time::Instant};

fn main() {
    divan::main();
    // Linux tells the most memory that the process had at a time.
    if let Ok(status) = fs::read_to_string("/proc/self/status") {
        let peak = status.lines().find(|line| line.starts_with("VmHWM"));
        println!("{}", peak.unwrap_or("peak memory unknown"));
    }
}

#[divan::bench(sample_count = 1, sample_size = 1)]
fn rolling_restart_of_100_servers_with_10_000_clients(bencher: Bencher<'_, '_>) {
    let fleet = Fleet {
        clients: 10_000,
        servers: 100,
        ..Fleet::new(Scenario::RollingRestart)
    };
    bencher.bench_local(|| {
        let report = fleet.run(Instant::now(), |_| {}).unwrap();
        assert_eq!(report.away, 0, "everybody has a session at the end");
        report
    });
}
