//! Variants of one fleet, side by side.

use super::{Balancing, Fleet, FleetError, Progress, Report};
use std::{num::NonZeroUsize, time::Instant};

/// Variants of one fleet, played with one seed.
#[derive(Debug, Clone, PartialEq)]
pub struct Comparison {
    /// What all variants have in common.
    pub fleet: Fleet,
    /// The questions that it answers.
    pub groups: Vec<Group>,
    /// One for each different variant.
    pub reports: Vec<Report>,
}

/// One question, and the variants that answer it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// The question.
    pub title: &'static str,
    /// The variants.
    pub variants: Vec<Variant>,
}

/// One variant within a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Variant {
    /// Its name there.
    pub name: String,
    /// Which of the comparison's reports is its own.
    pub report: usize,
}

impl Comparison {
    /// Plays all variants of a fleet, whose own balancing and switches do not matter. `progress` is
    /// told how far the whole is.
    ///
    /// # Errors
    /// As [`Fleet::run`].
    pub fn run(
        fleet: &Fleet,
        base: Instant,
        mut progress: impl FnMut(Progress),
    ) -> Result<Self, FleetError> {
        let fleet = Fleet {
            balancing: Balancing::LeastConnections { max_probes: None },
            has_selection_wait: true,
            has_backoff_jitter: true,
            has_reservations: true,
            ..fleet.clone()
        };
        let (groups, fleets) = variants(&fleet);
        let number = fleets.len() as u32;
        let mut reports = Vec::new();
        for variant in fleets {
            let before = reports.len() as u32;
            let report = variant.run(base, |one| {
                progress(Progress {
                    done: one.total * before + one.done,
                    total: one.total * number,
                });
            })?;
            reports.push(report);
        }
        Ok(Self {
            fleet,
            groups,
            reports,
        })
    }

    /// The variants of a group, each with its report.
    pub fn of<'a>(&'a self, group: &'a Group) -> impl Iterator<Item = (&'a str, &'a Report)> {
        let variants = group.variants.iter();
        variants.map(|variant| (variant.name.as_str(), &self.reports[variant.report]))
    }

    /// How many clients had no session at the end, in all variants together.
    pub fn away(&self) -> usize {
        self.reports.iter().map(|report| report.away).sum()
    }
}

/// The questions, and the fleets that answer them, each once.
fn variants(fleet: &Fleet) -> (Vec<Group>, Vec<Fleet>) {
    let mut fleets: Vec<Fleet> = Vec::new();
    let mut group = |title, variants: Vec<(String, Fleet)>| {
        let variants = variants.into_iter().map(|(name, fleet)| {
            let known = fleets.iter().position(|one| *one == fleet);
            let report = known.unwrap_or_else(|| {
                fleets.push(fleet);
                fleets.len() - 1
            });
            Variant { name, report }
        });
        let variants = variants.collect();
        Group { title, variants }
    };
    let groups = vec![
        group("How a server is chosen", by_strategy(fleet)),
        group("How many servers are asked", by_probes(fleet)),
        group("With and without jitter", by_jitter(fleet)),
        group("With and without reservations", by_reservation(fleet)),
    ];
    (groups, fleets)
}

fn by_strategy(fleet: &Fleet) -> Vec<(String, Fleet)> {
    let all = [fleet.balancing, Balancing::RoundRobin, Balancing::Random];
    let variant = |balancing: Balancing| {
        let name = balancing.name().to_owned();
        let fleet = Fleet {
            balancing,
            ..fleet.clone()
        };
        (name, fleet)
    };
    all.map(variant).into()
}

fn by_probes(fleet: &Fleet) -> Vec<(String, Fleet)> {
    // What is not named elsewhere comes first everywhere, and so has the same colour.
    let some = [1, 2, 3, 5].map(NonZeroUsize::new);
    let variant = |max_probes: Option<NonZeroUsize>| {
        let name = max_probes.map_or("all".to_owned(), |count| count.to_string());
        let fleet = Fleet {
            balancing: Balancing::LeastConnections { max_probes },
            ..fleet.clone()
        };
        (format!("asks {name}"), fleet)
    };
    [None].into_iter().chain(some).map(variant).collect()
}

fn by_jitter(fleet: &Fleet) -> Vec<(String, Fleet)> {
    let variant = |(name, has_selection_wait, has_backoff_jitter): (&str, bool, bool)| {
        let fleet = Fleet {
            has_selection_wait,
            has_backoff_jitter,
            ..fleet.clone()
        };
        (name.to_owned(), fleet)
    };
    let all = [
        ("both", true, true),
        ("no jitter between attempts", true, false),
        ("no wait before selections", false, true),
        ("neither", false, false),
    ];
    all.map(variant).into()
}

fn by_reservation(fleet: &Fleet) -> Vec<(String, Fleet)> {
    let variant = |(name, has_reservations): (&str, bool)| {
        let fleet = Fleet {
            has_reservations,
            ..fleet.clone()
        };
        (name.to_owned(), fleet)
    };
    [("counted", true), ("not counted", false)]
        .map(variant)
        .into()
}
