//! How one server is chosen of many (S1, "Multiple servers and load balancing").

use crate::Endpoint;
use rand_core::Rng;
use std::{fmt, num::NonZeroUsize};

/// How a server is chosen, on every connect and reconnect.
#[derive(Debug, Clone)]
pub enum Strategy {
    /// Ask servers how many clients they have and take the one with the fewest, ties at random.
    LeastConnections {
        /// Ask this many servers, drawn at random each time; all of them where `None`.
        ///
        /// At scale a small number is far more even than all: a fleet that acts on the same
        /// counts herds onto the emptiest server (the power of two choices).
        max_probes: Option<NonZeroUsize>,
    },
    /// One after the other, from a random start.
    RoundRobin,
    /// Any, uniformly.
    Random,
    /// The application chooses.
    Custom(Box<dyn Selector>),
}

impl Default for Strategy {
    fn default() -> Self {
        Self::LeastConnections { max_probes: None }
    }
}

/// A strategy of the application's own.
pub trait Selector: fmt::Debug + Send + Sync {
    /// The one of `candidates` to connect to next. There is at least one. Servers that failed
    /// since the last session, or whose session was too short to be stable, are left out while
    /// there are others. What is not one of the list is taken for its first.
    fn select<'a>(&mut self, candidates: &'a [Endpoint], rng: &mut dyn Rng) -> &'a Endpoint;

    /// A copy of this strategy, for a copy of its connection.
    fn clone_box(&self) -> Box<dyn Selector>;
}

impl Clone for Box<dyn Selector> {
    fn clone(&self) -> Self {
        self.clone_box()
    }
}
