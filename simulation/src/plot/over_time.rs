//! A fleet over time: how even it is spread, and how many of it have no session.

use super::{
    lines::{Lines, Names, Series},
    panel::Panel,
    scale::Axis,
    words::{count, time, trimmed},
};
use crate::fleet::{Report, Sample};
use std::time::Duration;

/// How many clients the fullest and the emptiest server have.
pub(super) fn clients_per_server(report: &Report, width: f64) -> Panel {
    let window = Window::of(&[report]);
    let last = report.final_spread();
    let end = |value: fn(&crate::fleet::Spread) -> f64| last.as_ref().map_or(0.0, value);
    let line = |name: &str, value: fn(&crate::fleet::Spread) -> f64| {
        let name = format!("{name} {}", count(end(value).round()));
        series(name, report, window, move |sample| {
            sample.spread.as_ref().map(value)
        })
    };
    let most = peak(report, window, |spread| spread.most as f64);
    Lines {
        title: "Clients on one server",
        about: format!(
            "On the fullest, the emptiest and the average of the servers that are up{}.",
            window.rest(report)
        ),
        x: Axis::time(window.0, ticks(width)),
        y: Axis::counts(most, 5, "clients"),
        series: vec![
            line("fullest", |spread| spread.most as f64),
            line("emptiest", |spread| spread.fewest as f64),
            line("average", |spread| spread.mean),
        ],
        has_band: true,
        shades: shades(report, window),
        notes: notes(report),
        tips: tips(report, window),
        names: Names::Direct,
    }
    .draw(width, if width > 600.0 { 260.0 } else { 200.0 })
}

/// How far servers are from each other.
pub(super) fn spread(report: &Report, width: f64) -> Panel {
    let window = Window::of(&[report]);
    let last = report.final_spread();
    let range = last.map_or(0, |spread| spread.range());
    let deviation = last.map_or(0.0, |spread| spread.deviation);
    let ranges = series(
        format!("range {}", count(range as f64)),
        report,
        window,
        |sample| sample.spread.map(|spread| spread.range() as f64),
    );
    let deviations = series(
        format!("deviation {}", trimmed(deviation, 1)),
        report,
        window,
        |sample| sample.spread.map(|spread| spread.deviation),
    );
    Lines {
        title: "Spread over time",
        about: "Range: the fullest server less the emptiest. Deviation: the standard deviation."
            .to_owned(),
        x: Axis::time(window.0, ticks(width)),
        y: Axis::counts(
            peak(report, window, |spread| spread.range() as f64),
            4,
            "clients",
        ),
        series: vec![ranges, deviations],
        has_band: false,
        shades: shades(report, window),
        notes: vec![],
        tips: tips(report, window),
        names: Names::Direct,
    }
    .draw(width, 170.0)
}

/// How many clients have no session.
pub(super) fn without_session(report: &Report, width: f64) -> Panel {
    let window = Window::of(&[report]);
    let away = |sample: &Sample| Some(sample.away as f64);
    let shown = report.samples.iter().filter(|sample| sample.at <= window.0);
    let most = shown.filter_map(away).fold(0.0, f64::max);
    let name = format!("away {}", count(report.away as f64));
    Lines {
        title: "Clients without a session",
        about: "Those that were told to connect, and have none; the most at any moment.".to_owned(),
        x: Axis::time(window.0, ticks(width)),
        y: Axis::counts(most, 4, "clients"),
        series: vec![series(name, report, window, away)],
        has_band: false,
        shades: shades(report, window),
        notes: vec![],
        tips: tips(report, window),
        names: Names::Direct,
    }
    .draw(width, 170.0)
}

/// The range of several fleets, side by side.
pub(super) fn ranges(variants: &[(&str, &Report)], width: f64) -> Panel {
    let reports: Vec<&Report> = variants.iter().map(|(_, report)| *report).collect();
    let window = Window::of(&reports);
    let range = |sample: &Sample| sample.spread.map(|spread| spread.range() as f64);
    let peaks = reports
        .iter()
        .map(|report| peak(report, window, |spread| spread.range() as f64));
    let most = peaks.fold(0.0, f64::max);
    let lines = variants
        .iter()
        .map(|(name, report)| series((*name).to_owned(), report, window, range));
    let first = reports.first();
    Lines {
        title: "Spread over time",
        about: "The fullest server less the emptiest.".to_owned(),
        x: Axis::time(window.0, ticks(width)),
        y: Axis::counts(most, 4, "clients"),
        series: with_equals_named(lines.collect()),
        has_band: false,
        shades: first.map_or(vec![], |report| shades(report, window)),
        notes: vec![],
        tips: vec![],
        names: Names::Key,
    }
    .draw(width, 200.0)
}

/// What lies exactly under another line says so, for it cannot be seen.
pub(super) fn with_equals_named(mut lines: Vec<Series>) -> Vec<Series> {
    for index in 1..lines.len() {
        let (before, rest) = lines.split_at_mut(index);
        let equal = before.iter().find(|one| one.stretches == rest[0].stretches);
        if let (Some(equal), [line, ..]) = (equal, rest) {
            line.name = format!("{}, exactly as {}", line.name, equal.name);
        }
    }
    lines
}

/// How much of a run is worth showing: all, or what comes before nothing changes any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Window(pub(super) Duration);

impl Window {
    pub(super) fn of(reports: &[&Report]) -> Self {
        let duration = reports
            .iter()
            .map(|report| report.duration)
            .max()
            .unwrap_or_default();
        let still = reports.iter().map(|report| {
            let marks = report.marks.iter().map(|mark| mark.until);
            report.still_from().max(marks.max().unwrap_or_default())
        });
        let still = still.max().unwrap_or_default();
        let shown = still.mul_f64(1.25).max(Duration::from_millis(500));
        match shown > duration.mul_f64(0.6) {
            true => Self(duration),
            false => Self(shown),
        }
    }

    fn rest(self, report: &Report) -> String {
        match self.0 < report.duration {
            true => format!(
                "; nothing changes from here to the end, at {}",
                time(report.duration)
            ),
            false => String::new(),
        }
    }
}

fn series(
    name: String,
    report: &Report,
    window: Window,
    value: impl Fn(&Sample) -> Option<f64>,
) -> Series {
    let samples = report.samples.iter().filter(|sample| sample.at <= window.0);
    let points = samples.map(|sample| (sample.at.as_secs_f64(), value(sample)));
    Series::new(name, points)
}

fn peak(report: &Report, window: Window, value: fn(&crate::fleet::Spread) -> f64) -> f64 {
    let samples = report.samples.iter().filter(|sample| sample.at <= window.0);
    let values = samples.filter_map(|sample| sample.spread.as_ref().map(value));
    values.fold(0.0, f64::max)
}

fn shades(report: &Report, window: Window) -> Vec<(f64, f64)> {
    let marks = report.marks.iter().filter(|mark| mark.from < window.0);
    marks
        .map(|mark| (mark.from.as_secs_f64(), mark.until.as_secs_f64()))
        .collect()
}

fn notes(report: &Report) -> Vec<String> {
    let note = |mark: &crate::fleet::Mark| {
        let (from, until) = (time(mark.from), time(mark.until));
        format!("{from} to {until}: {}", mark.text)
    };
    report.marks.iter().map(note).collect()
}

fn tips(report: &Report, window: Window) -> Vec<(f64, f64, String)> {
    let shown: Vec<&Sample> = report
        .samples
        .iter()
        .filter(|sample| sample.at <= window.0)
        .collect();
    let step = shown.len().div_ceil(80).max(1);
    let starts = shown.iter().step_by(step);
    let ends = shown
        .iter()
        .skip(step)
        .step_by(step)
        .map(|sample| sample.at);
    let ends = ends.chain([window.0]);
    let tip = |(sample, end): (&&Sample, Duration)| {
        let spread = match &sample.spread {
            Some(spread) => format!(
                "{} to {} clients on a server, deviation {}",
                count(spread.fewest as f64),
                count(spread.most as f64),
                trimmed(spread.deviation, 1)
            ),
            None => "no server is up".to_owned(),
        };
        let away = count(sample.away as f64);
        let text = format!("{}: {spread}; {away} without a session", time(sample.at));
        (sample.at.as_secs_f64(), end.as_secs_f64(), text)
    };
    starts.zip(ends).map(tip).collect()
}

pub(super) fn ticks(width: f64) -> usize {
    (width / 75.0).max(3.0) as usize
}
