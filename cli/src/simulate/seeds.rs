//! `chronicle simulate --seeds`: scenarios of many seeds, each under every checker.

use crate::problem::{self, Problem};
use chronicle_simulation::{
    Violation,
    swarm::{Scenario, Summary, explain, kind, known_seeds, run, shrink},
};
use indicatif::{ProgressBar, ProgressStyle};
use std::{
    collections::BTreeSet,
    fmt,
    io::{self, Write as _},
    num::NonZeroUsize,
    ops::Range,
    process::ExitCode,
    str::FromStr,
    sync::{
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
    thread,
    time::Instant,
};

/// Which seeds: `A..B` without `B`, or one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Seeds(Range<u64>);

impl FromStr for Seeds {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |text: &str| {
            let seed: Result<u64, _> = text.parse();
            seed.map_err(|_| format!("{text:?} is no seed; write a number, or two such as 0..1000"))
        };
        let (first, end) = match text.split_once("..") {
            Some((first, end)) => (number(first)?, number(end)?),
            None => {
                let only = number(text)?;
                (only, only.checked_add(1).ok_or("that seed is too large")?)
            }
        };
        if first >= end {
            return Err(format!(
                "{first}..{end} is empty; the second number must be larger"
            ));
        }
        Ok(Self(first..end))
    }
}

impl Seeds {
    /// In the order of playing. One seed is a replay, and played alone.
    fn order(&self) -> Vec<u64> {
        let Range { start, end } = self.0;
        let known = if end - start > 1 {
            known_seeds()
        } else {
            Vec::new()
        };
        let is_new = |seed: &u64| !known.contains(seed);
        let new: Vec<u64> = self.0.clone().filter(is_new).collect();
        [known, new].concat()
    }
}

/// A rule that the scenario of a seed broke.
struct Broken {
    seed: u64,
    violation: Violation,
}

/// Plays the scenarios of seeds, on all processors.
pub(super) fn run_seeds(seeds: &Seeds) -> ExitCode {
    problem::end(play(seeds))
}

fn play(seeds: &Seeds) -> Result<(), Problem> {
    let (order, base) = (seeds.order(), Instant::now());
    let (mut total, mut broken) = (Summary::default(), Vec::new());
    let bar = bar(order.len());
    let (next, (tell, told)) = (AtomicUsize::new(0), mpsc::channel());
    thread::scope(|scope| {
        let workers = thread::available_parallelism().map_or(1, NonZeroUsize::get);
        for _ in 0..workers.min(order.len()) {
            let (tell, order, next) = (tell.clone(), &order, &next);
            scope.spawn(move || {
                while let Some(&seed) = order.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let played = run(base, &Scenario::draw(seed));
                    // Nobody listens any more only where the program ends.
                    let _ = tell.send(played.map_err(|violation| Broken { seed, violation }));
                }
            });
        }
        drop(tell);
        for played in told {
            match played {
                Ok(summary) => total = total + summary,
                Err(one) => broken.push(one),
            }
            bar.inc(1);
            bar.set_message(format!(
                "{} connects, {} violations",
                total.connects,
                broken.len()
            ));
        }
    });
    bar.finish_and_clear();
    broken.sort_by_key(|one| one.seed);
    let mut out = io::stdout().lock();
    for one in first_of_each_kind(&broken).take(MOST_EXPLAINED) {
        let scenario = Scenario::draw(one.seed);
        let (small, violation) = shrink(base, scenario, one.violation.clone());
        writeln!(out, "{}", explain(base, &small, &violation))?;
        writeln!(out, "replay: chronicle simulate --seeds {}\n", one.seed)?;
    }
    let rate = order.len() as f64 / base.elapsed().as_secs_f64();
    writeln!(out, "{}, {rate:.0} seeds/s", Told(&total))?;
    judge(&broken)
}

fn judge(broken: &[Broken]) -> Result<(), Problem> {
    if broken.is_empty() {
        return Ok(());
    }
    let seeds: Vec<_> = broken.iter().map(|one| one.seed.to_string()).collect();
    let text = format!(
        "{} of the scenarios broke a rule: {}",
        broken.len(),
        seeds.join(", ")
    );
    Err(Problem::GaveUp(text))
}

fn first_of_each_kind(broken: &[Broken]) -> impl Iterator<Item = &Broken> {
    let mut known = BTreeSet::new();
    broken
        .iter()
        .filter(move |one| known.insert(kind(&one.violation)))
}

/// What scenarios came to, in one line.
struct Told<'a>(&'a Summary);

impl fmt::Display for Told<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Summary {
            scenarios,
            clients,
            connects,
            drops,
            attempts,
            stops,
            events,
            time,
        } = self.0;
        let hours = time.as_secs_f64() / 3600.0;
        write!(
            f,
            "{scenarios} scenarios kept every rule: {clients} clients, {attempts} attempts, \
             {connects} connects, {drops} drops, {stops} gave up for a reason, {events} events, \
             {hours:.1} hours of virtual time"
        )
    }
}

/// Hidden where standard error is no terminal.
fn bar(count: usize) -> ProgressBar {
    let bar = ProgressBar::new(count as u64);
    let style = ProgressStyle::with_template("{bar:40} {pos}/{len}, {per_sec}, {msg}, {eta} to go");
    // Only a mistake in the template could keep it from its style.
    style.into_iter().for_each(|style| bar.set_style(style));
    bar
}

const MOST_EXPLAINED: usize = 3;

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn seeds(text: &str) -> Result<Seeds, String> {
        text.parse()
    }

    #[test]
    fn seeds_are_a_range_or_one() {
        assert_eq!(seeds("0..1000"), Ok(Seeds(0..1000)));
        assert_eq!(seeds("7"), Ok(Seeds(7..8)));
        for wrong in [
            "",
            "x",
            "3..",
            "..3",
            "5..5",
            "6..5",
            "-1",
            "18446744073709551615",
            "1..=3",
        ] {
            let error = seeds(wrong);
            assert!(error.is_err(), "{wrong}: {error:?}");
        }
    }

    #[test]
    fn seeds_that_once_failed_come_first_and_once() {
        let known = known_seeds();
        let order = Seeds(0..300).order();
        assert!(!known.is_empty() && order.starts_with(&known));
        let distinct: BTreeSet<_> = order.iter().collect();
        assert_eq!(distinct.len(), order.len());
        assert_eq!(Seeds(9..10).order(), [9]);
    }

    #[test]
    fn one_of_each_kind_is_explained_and_all_are_counted() {
        let broken = |seed, rule: &str| Broken {
            seed,
            violation: Violation {
                whose: "c1".to_owned(),
                at: Duration::ZERO,
                rule: rule.to_owned(),
            },
        };
        let broken = [
            broken(3, "late by 4s"),
            broken(5, "late by 7s"),
            broken(6, "lost"),
        ];
        let first: Vec<_> = first_of_each_kind(&broken).map(|one| one.seed).collect();
        assert_eq!(first, [3, 6]);
        let Err(Problem::GaveUp(text)) = judge(&broken) else {
            panic!("exit code 1 is for this");
        };
        assert_eq!(text, "3 of the scenarios broke a rule: 3, 5, 6");
        assert!(judge(&[]).is_ok());
    }
}
