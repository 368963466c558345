//! Fleets: their scenarios, the arithmetic of reports, and the pictures.

#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "tests start a world somewhere in time"
)]

mod arithmetic;
mod pictures;
mod scenarios;

use chronicle_simulation::fleet::{Fleet, Report, Scenario};
use std::time::{Duration, Instant};

fn small(scenario: Scenario) -> Fleet {
    Fleet {
        clients: 24,
        servers: 4,
        ..Fleet::new(scenario)
    }
}

fn play(fleet: &Fleet) -> Report {
    fleet.run(Instant::now(), |_| {}).unwrap()
}

fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}
