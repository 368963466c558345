//! Whole lives of clusters, drawn from seeds: anything goes wrong, and then all is well again.
//!
//! A [`Scenario`] is plain data that [`Scenario::draw`] makes of a seed: servers of all ages, clients
//! of all kinds, a network, and what goes wrong when. Which kinds of trouble there are is drawn too,
//! for trouble of one kind hides trouble of another. [`run`] plays it with every checker on; at the
//! end everything is healed, and every client that can be connected must be, in bounded time. What
//! breaks a rule is made small by [`shrink`], and told by [`explain`].
//!
//! The checkers themselves are in `machine/ledger/` (what one machine does), in `world/client.rs` and
//! `world/perform.rs` (what both sides together show) and in `swarm/judge.rs` (what all comes to).

mod draw;
mod explain;
mod judge;
mod play;
mod scenario;
mod shrink;
#[cfg(test)]
mod tests;

pub use explain::explain;
pub use scenario::{
    Action, Choice, ClientNo, ClientPlan, Finds, Proof, Scenario, ServerNo, ServerPlan, Speech,
    Ways, Wrong,
};
pub use shrink::{kind, shrink};

use crate::Violation;
use play::Play;
use std::{
    iter::Sum,
    ops::Add,
    time::{Duration, Instant},
};

/// What scenarios came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Summary {
    /// Scenarios.
    pub scenarios: u64,
    /// Clients that were told to connect.
    pub clients: u64,
    /// Sessions that came up.
    pub connects: u64,
    /// Sessions that ended other than by a `Close`.
    pub drops: u64,
    /// Attempts begun.
    pub attempts: u64,
    /// Clients that gave up for good, each for a reason that servers were seen to give.
    pub stops: u64,
    /// Events of all clients.
    pub events: u64,
    /// Virtual time.
    pub time: Duration,
}

impl Add for Summary {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            scenarios: self.scenarios + other.scenarios,
            clients: self.clients + other.clients,
            connects: self.connects + other.connects,
            drops: self.drops + other.drops,
            attempts: self.attempts + other.attempts,
            stops: self.stops + other.stops,
            events: self.events + other.events,
            time: self.time + other.time,
        }
    }
}

impl Sum for Summary {
    fn sum<I: Iterator<Item = Self>>(summaries: I) -> Self {
        summaries.fold(Self::default(), Self::add)
    }
}

/// The seeds that once broke a rule, oldest first. They are to be run before others.
///
/// # Panics
/// Where `simulation/seeds.txt` has a line that does not begin with a number.
pub fn known_seeds() -> Vec<u64> {
    let lines = include_str!("../seeds.txt").lines();
    let lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
    let seed = |line: &str| match line.split(' ').next().unwrap_or(line).parse() {
        Ok(seed) => seed,
        Err(error) => panic!("seeds.txt: {line:?}: {error}"),
    };
    lines.map(seed).collect()
}

/// Plays a scenario from an instant on. The instant decides nothing.
///
/// # Errors
/// The first rule that was broken.
pub fn run(base: Instant, scenario: &Scenario) -> Result<Summary, Violation> {
    Play::new(base, scenario).run()
}
