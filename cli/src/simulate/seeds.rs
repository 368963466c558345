//! `chronicle simulate --seeds`: scenarios of many seeds, each under every checker.

use super::bar;
use crate::problem::{self, Problem};
use chronicle_simulation::{
    Violation, plural,
    swarm::{Scenario, Summary, explain, kind, known_seeds, run, shrink},
};
use std::{
    collections::BTreeSet,
    fmt,
    io::{self, Write as _},
    num::NonZeroUsize,
    ops::Range,
    process::ExitCode,
    str::FromStr,
    sync::{Mutex, PoisonError, mpsc},
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
    /// In the order of playing. There may be more of them than memory holds.
    fn order(&self) -> impl Iterator<Item = u64> + use<> {
        let known = self.known();
        let new = self.0.clone();
        let is_new = {
            let known = known.clone();
            move |seed: &u64| !known.contains(seed)
        };
        known.into_iter().chain(new.filter(is_new))
    }

    /// How many are played.
    fn count(&self) -> u64 {
        let known = self.known().into_iter();
        let beside = known.filter(|seed| !self.0.contains(seed)).count() as u64;
        (self.0.end - self.0.start).saturating_add(beside)
    }

    /// Those that once broke a rule. One seed is a replay, and played alone.
    fn known(&self) -> Vec<u64> {
        match self.0.end - self.0.start {
            1 => Vec::new(),
            _ => known_seeds(),
        }
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
    let (order, base) = (Mutex::new(seeds.order()), Instant::now());
    let (mut total, mut broken) = (Summary::default(), Vec::new());
    let bar = bar(seeds.count(), BAR);
    let next = || order.lock().unwrap_or_else(PoisonError::into_inner).next();
    let (tell, told) = mpsc::channel();
    thread::scope(|scope| {
        let workers = thread::available_parallelism().map_or(1, NonZeroUsize::get);
        for _ in 0..workers {
            let tell = tell.clone();
            scope.spawn(move || {
                while let Some(seed) = next() {
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
                "{} connects, {} broken",
                total.connects,
                broken.len()
            ));
        }
    });
    bar.finish_and_clear();
    broken.sort_by_key(|one| one.seed);
    let played = total.scenarios + broken.len() as u64;
    let rate = played as f64 / base.elapsed().as_secs_f64();
    problem::told(tell_of(&broken, base, &total, rate), judge(&broken))
}

fn tell_of(broken: &[Broken], base: Instant, total: &Summary, rate: f64) -> io::Result<()> {
    let mut out = io::stdout().lock();
    for one in first_of_each_kind(broken).take(MOST_EXPLAINED) {
        let scenario = Scenario::draw(one.seed);
        let (small, violation) = shrink(base, scenario, one.violation.clone());
        writeln!(out, "{}", explain(base, &small, &violation))?;
        writeln!(out, "replay: chronicle simulate --seeds {}\n", one.seed)?;
    }
    writeln!(out, "{}, {rate:.0} seeds/s", Told(total))
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
        let of = |noun, &number: &u64| format!("{number} {}", plural(noun, number));
        write!(
            f,
            "{} kept every rule: {}, {}, {}, {}, {stops} gave up for a reason, {}, {hours:.1} hours \
             of virtual time",
            of("scenario", scenarios),
            of("client", clients),
            of("attempt", attempts),
            of("connect", connects),
            of("drop", drops),
            of("event", events),
        )
    }
}

const BAR: &str = "{bar:40} {pos}/{len}, {per_sec}, {msg}, {eta} to go";
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
        let seeds = Seeds(0..300);
        let order: Vec<_> = seeds.order().collect();
        assert!(!known.is_empty() && order.starts_with(&known));
        let distinct: BTreeSet<_> = order.iter().collect();
        assert_eq!(distinct.len(), order.len());
        assert_eq!(seeds.count(), order.len() as u64);
        assert_eq!(Seeds(9..10).order().collect::<Vec<_>>(), [9]);
        assert_eq!(Seeds(9..10).count(), 1);
    }

    #[test]
    fn more_seeds_than_memory_holds_can_be_begun_with() {
        let all = Seeds(0..u64::MAX);
        assert_eq!(all.count(), u64::MAX);
        let begin: Vec<_> = all.order().take(1_000).collect();
        assert!(begin.starts_with(&known_seeds()) && begin.len() == 1_000);
    }

    #[test]
    fn one_is_told_as_one() {
        let one = Summary {
            scenarios: 1,
            clients: 1,
            events: 20,
            ..Summary::default()
        };
        let told = Told(&one).to_string();
        let begin = "1 scenario kept every rule: 1 client, 0 attempts, 0 connects, 0 drops, ";
        assert!(
            told.starts_with(begin) && told.contains("20 events"),
            "{told}"
        );
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
