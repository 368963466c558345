//! What `chronicle simulate` is told.

use super::seeds::Seeds;
use chronicle_simulation::fleet::{Balancing, Fleet, Scenario};
use clap::{Args, ValueEnum, builder::PossibleValue};
use std::{num::NonZeroUsize, path::PathBuf};

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Play the scenarios of these seeds in place of a fleet, on all processors: everything goes wrong
    /// that can, and every rule is checked. Seeds that once broke a rule are played before a range; one
    /// number replays one seed.
    #[arg(long, exclusive = true, value_name = "A..B")]
    pub(super) seeds: Option<Seeds>,
    /// How many clients, up to 100,000.
    #[arg(long, default_value_t = 1_000, value_name = "N")]
    clients: usize,
    /// How many servers, up to 1,000. Of more than 64, each client knows 64 that are drawn for it,
    /// for a connection string holds no more.
    #[arg(long, default_value_t = 10, value_name = "N")]
    servers: usize,
    /// How clients choose a server.
    #[arg(long, value_enum, default_value = "least-connections")]
    strategy: Chooses,
    /// What happens to the fleet.
    #[arg(long, value_enum, default_value = "cold-start")]
    scenario: Happens,
    /// Where all that is random comes from. The same seed gives the same pictures.
    #[arg(long, default_value_t = 1, value_name = "N")]
    seed: u64,
    /// How many servers each client asks with least-connections, drawn at random; all it knows
    /// without this.
    #[arg(long, value_name = "K")]
    max_probes: Option<NonZeroUsize>,
    /// Switch off what is random: the waits before selections, the jitter between attempts, or both.
    #[arg(
        long,
        value_enum,
        value_name = "WHICH",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "both"
    )]
    no_jitter: Option<Jitter>,
    /// Let servers not count reservations. Clients make them all the same.
    #[arg(long)]
    no_reservation: bool,
    /// Compare the three strategies, 1, 2, 3, 5 and all probes, and jitter and reservations on and
    /// off, with one seed.
    #[arg(long, conflicts_with_all = ["strategy", "max_probes", "no_jitter", "no_reservation"])]
    pub(super) compare: bool,
    /// The directory for pictures; made where it is not there.
    #[arg(long, default_value = "chronicle-simulation", value_name = "DIR")]
    pub(super) out: PathBuf,
    /// Print one JSON object in place of the table.
    #[arg(long)]
    pub(super) json: bool,
}

impl Arguments {
    /// The fleet to simulate.
    ///
    /// # Errors
    /// Where options do not go together, as a text.
    pub(super) fn fleet(&self) -> Result<Fleet, String> {
        let max_probes = self.max_probes;
        let balancing = match self.strategy {
            Chooses::LeastConnections => Balancing::LeastConnections { max_probes },
            Chooses::RoundRobin => Balancing::RoundRobin,
            Chooses::Random => Balancing::Random,
        };
        if max_probes.is_some() && self.strategy != Chooses::LeastConnections {
            return Err(format!(
                "--max-probes is for least-connections; {balancing} asks nobody, so take one of the \
                 two out"
            ));
        }
        let (has_selection_wait, has_backoff_jitter) = match self.no_jitter {
            None => (true, true),
            Some(Jitter::Both) => (false, false),
            Some(Jitter::Selections) => (false, true),
            Some(Jitter::Attempts) => (true, false),
        };
        Ok(Fleet {
            clients: self.clients,
            servers: self.servers,
            balancing,
            scenario: self.scenario.0,
            seed: self.seed,
            has_selection_wait,
            has_backoff_jitter,
            has_reservations: !self.no_reservation,
        })
    }

    /// What a reader would type to make these pictures again.
    pub(super) fn command(&self, fleet: &Fleet) -> String {
        let Fleet {
            clients,
            servers,
            balancing,
            scenario,
            seed,
            ..
        } = fleet;
        let mut words = vec![format!(
            "chronicle simulate --clients {clients} --servers {servers} --scenario {scenario} --seed \
             {seed}"
        )];
        if self.compare {
            words.push("--compare".to_owned());
            return words.join(" ");
        }
        words.push(format!("--strategy {}", balancing.name()));
        if let Some(count) = self.max_probes {
            words.push(format!("--max-probes {count}"));
        }
        if let Some(value) = self.no_jitter.and_then(|which| which.to_possible_value()) {
            words.push(format!("--no-jitter={}", value.get_name()));
        }
        if self.no_reservation {
            words.push("--no-reservation".to_owned());
        }
        words.join(" ")
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Chooses {
    /// Asks how many clients servers have, and takes the one with the fewest.
    LeastConnections,
    /// One after the other, from a random start.
    RoundRobin,
    /// Any.
    Random,
}

/// What is random about waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Jitter {
    /// All of it.
    Both,
    /// The wait of 0 to 250 ms before a selection.
    Selections,
    /// That each wait between attempts is drawn from its upper half.
    Attempts,
}

/// A scenario with the words of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Happens(Scenario);

impl ValueEnum for Happens {
    fn value_variants<'a>() -> &'a [Self] {
        const ALL: [Happens; 5] = {
            let [first, second, third, fourth, fifth] = Scenario::ALL;
            [
                Happens(first),
                Happens(second),
                Happens(third),
                Happens(fourth),
                Happens(fifth),
            ]
        };
        &ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(self.0.name()).help(self.0.about()))
    }
}
