//! The share of the swarm that every change has to pass; `chronicle simulate --seeds` runs more.

#![allow(clippy::disallowed_methods, reason = "virtual time starts somewhere")]

use chronicle_simulation::swarm::{Scenario, Summary, explain, known_seeds, run, shrink};
use std::time::Instant;

/// Plays scenarios, and tells the first that breaks a rule as small as it can be made.
fn play(seeds: impl IntoIterator<Item = u64>) -> Summary {
    let base = Instant::now();
    let played = seeds.into_iter().map(|seed| {
        let scenario = Scenario::draw(seed);
        run(base, &scenario).unwrap_or_else(|violation| {
            let (small, violation) = shrink(base, scenario, violation);
            let text = explain(base, &small, &violation);
            panic!("{text}\nreplay: chronicle simulate --seeds {seed}");
        })
    });
    let total = played.sum();
    println!("{total:?}");
    total
}

#[test]
fn seeds_that_once_failed() {
    let seeds = known_seeds();
    assert!(!seeds.is_empty());
    play(seeds);
}

// Two tests, for two processors.

#[test]
fn even_seeds() {
    let total = play((0..SEEDS).filter(|seed| seed % 2 == 0));
    assert!(
        total.connects > total.clients && total.drops > total.scenarios,
        "{total:?}"
    );
}

#[test]
fn odd_seeds() {
    let total = play((0..SEEDS).filter(|seed| seed % 2 == 1));
    assert!(
        total.connects > total.clients && total.drops > total.scenarios,
        "{total:?}"
    );
}

const SEEDS: u64 = 1_000;
