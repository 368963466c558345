//! What a run showed, as plain data, and the arithmetic on it.

use super::{Fleet, Mark};
use crate::Load;
use std::time::Duration;

/// What a run showed.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    /// What was played.
    pub fleet: Fleet,
    /// How long it was, in virtual time.
    pub duration: Duration,
    /// What was done to the fleet.
    pub marks: Vec<Mark>,
    /// When servers were down, or about to be.
    pub outages: Vec<Outage>,
    /// The fleet at moments, in order.
    pub samples: Vec<Sample>,
    /// From a client's start to its first session, for each client that got one.
    pub connecting: Times,
    /// From the end of a session to the next session of the same client, for each that followed.
    pub reconnecting: Times,
    /// Every session that came up, in order: when, and with which server, from zero.
    pub new_sessions: Vec<(Duration, usize)>,
    /// For each server, what hit it in each second, as far as anything did.
    pub loads: Vec<Vec<Load>>,
    /// How many clients had no session at the end.
    pub away: usize,
}

/// When a server took nobody new.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outage {
    /// The server, from zero.
    pub server: usize,
    /// From when.
    pub from: Duration,
    /// Until when.
    pub until: Duration,
}

/// A fleet at one moment.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sample {
    /// When.
    pub at: Duration,
    /// How many clients had a session.
    pub sessions: usize,
    /// How many that had been told to connect had none: the most at any moment since the last
    /// sample.
    pub away: usize,
    /// How clients were spread over the servers that were up; `None` where none was.
    pub spread: Option<Spread>,
}

/// How clients are spread over servers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    /// On the emptiest server.
    pub fewest: usize,
    /// On the fullest server.
    pub most: usize,
    /// On average.
    pub mean: f64,
    /// The standard deviation, over all servers (divided by their number).
    pub deviation: f64,
}

impl Spread {
    /// Of these numbers of clients, one for each server; `None` for no servers.
    pub fn of(counts: &[usize]) -> Option<Self> {
        let (&fewest, &most) = (counts.iter().min()?, counts.iter().max()?);
        let number = counts.len() as f64;
        let mean = counts.iter().sum::<usize>() as f64 / number;
        let squares = counts.iter().map(|&count| (count as f64 - mean).powi(2));
        Some(Self {
            fewest,
            most,
            mean,
            deviation: (squares.sum::<f64>() / number).sqrt(),
        })
    }

    /// The fullest server less the emptiest.
    pub fn range(&self) -> usize {
        self.most - self.fewest
    }
}

/// How long something took, shortest first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Times(Vec<Duration>);

impl Times {
    /// Sorts them.
    pub fn of(mut times: Vec<Duration>) -> Self {
        times.sort_unstable();
        Self(times)
    }

    /// All, shortest first.
    pub fn sorted(&self) -> &[Duration] {
        &self.0
    }

    /// The shortest time that at least so many per cent did not exceed (nearest rank); `None`
    /// where there are none.
    pub fn percentile(&self, percent: usize) -> Option<Duration> {
        let rank = (self.0.len() * percent.min(100)).div_ceil(100);
        self.0.get(rank.saturating_sub(1)).copied()
    }

    /// The longest.
    pub fn max(&self) -> Option<Duration> {
        self.0.last().copied()
    }
}

/// The lowest, middle and highest of some numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Summary {
    /// The lowest.
    pub least: u32,
    /// The middle one, the lower of two.
    pub median: u32,
    /// The highest.
    pub most: u32,
}

impl Report {
    /// What is counted of the load of a server, in the order of a connect.
    pub const LOADS: [&'static str; 4] = ["dials", "probes", "reserves", "connects"];

    /// For each server, the highest number of each kind in any second, in the order of
    /// [`Report::LOADS`].
    pub fn worst_seconds(&self) -> Vec<[u32; 4]> {
        let worst = |loads: &Vec<Load>| {
            loads.iter().fold([0; 4], |worst, load| {
                let here = [load.dials, load.counts, load.reserves, load.connects];
                std::array::from_fn(|kind| here[kind].max(worst[kind]))
            })
        };
        self.loads.iter().map(worst).collect()
    }

    /// Over all servers, what each had in its worst second, in the order of [`Report::LOADS`].
    pub fn worst_second_of_a_server(&self) -> [Summary; 4] {
        let servers = self.worst_seconds();
        std::array::from_fn(|kind| {
            let mut all: Vec<u32> = servers.iter().map(|worst| worst[kind]).collect();
            all.sort_unstable();
            Summary {
                least: all.first().copied().unwrap_or_default(),
                median: all
                    .get(all.len().saturating_sub(1) / 2)
                    .copied()
                    .unwrap_or_default(),
                most: all.last().copied().unwrap_or_default(),
            }
        })
    }

    /// Whether any client got a session after another.
    pub fn has_reconnects(&self) -> bool {
        self.reconnecting.max().is_some()
    }

    /// How long what matters most took, and what that is: reconnecting, or connecting where nobody
    /// had to reconnect.
    pub fn main_times(&self) -> (&'static str, &Times) {
        match self.has_reconnects() {
            true => ("reconnecting", &self.reconnecting),
            false => ("connecting", &self.connecting),
        }
    }

    /// How clients were spread at the end.
    pub fn final_spread(&self) -> Option<Spread> {
        self.samples.last().and_then(|sample| sample.spread)
    }

    /// How far the fullest server was from the emptiest in the middle one of all samples, by that
    /// distance; the lower of two.
    pub fn median_range(&self) -> Option<usize> {
        let spreads = self.samples.iter().filter_map(|sample| sample.spread);
        let mut ranges: Vec<usize> = spreads.map(|spread| spread.range()).collect();
        ranges.sort_unstable();
        ranges.get(ranges.len().saturating_sub(1) / 2).copied()
    }

    /// The sample in which the fullest server was furthest from the emptiest, the first of them.
    pub fn widest(&self) -> Option<&Sample> {
        let range = |sample: &Sample| sample.spread.map_or(0, |spread| spread.range());
        // The last of equals wins in `max_by_key`.
        self.samples.iter().rev().max_by_key(|sample| range(sample))
    }

    /// The sample at a moment: the last that is not later.
    pub fn at(&self, moment: Duration) -> Option<&Sample> {
        let after = self.samples.partition_point(|sample| sample.at <= moment);
        after.checked_sub(1).map(|index| &self.samples[index])
    }

    /// From when on neither sessions nor the spread change any more.
    pub fn still_from(&self) -> Duration {
        let same = |one: &Sample, other: &Sample| {
            one.sessions == other.sessions && one.spread == other.spread
        };
        let pairs = self.samples.windows(2).rev();
        let changed = pairs.into_iter().find(|pair| !same(&pair[0], &pair[1]));
        changed.map_or(Duration::ZERO, |pair| pair[1].at)
    }
}
