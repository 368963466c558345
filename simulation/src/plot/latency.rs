//! How long connecting took.

use super::{
    lines::{Lines, Names, Series},
    over_time::with_equals_named,
    panel::{Frame, Panel},
    scale::Axis,
    svg::{Anchor, width_of},
    words::{count, time},
};
use crate::fleet::{Report, Times};
use std::time::Duration;

/// How many times were how long.
pub(super) fn histogram(title: &str, about: &str, times: &Times, width: f64) -> Panel {
    let mut panel = Panel::new(title, about, width);
    let sorted = times.sorted();
    let (Some(first), Some(last)) = (sorted.first(), sorted.last()) else {
        panel.paragraph("There was none.");
        return panel.done();
    };
    let x = Axis::durations(
        first.as_secs_f64(),
        last.as_secs_f64(),
        "duration, logarithmic",
    );
    let bins = bins(&x, sorted);
    let most = bins.iter().map(|bin| bin.2).max().unwrap_or_default();
    // Above, the names of the marks.
    panel.at += 46.0;
    let frame = Frame::new(
        &mut panel,
        170.0,
        14.0,
        x,
        Axis::counts(most as f64, 4, "sessions"),
    );
    frame.draw(&mut panel.svg, &[]);
    for &(from, until, number) in &bins {
        let (left, right) = (frame.x(from), frame.x(until));
        let y = frame.y(number as f64);
        let tip = format!(
            "{} took {} to {}",
            count(number as f64),
            time(Duration::from_secs_f64(from)),
            time(Duration::from_secs_f64(until))
        );
        let size = (right - left - 1.0, frame.bottom() - y);
        panel.svg.rect("b0", (left + 0.5, y), size, &tip);
    }
    marks(&mut panel, &frame, times);
    panel.done()
}

/// The share of times that were not longer, for several fleets side by side.
pub(super) fn shares(variants: &[(&str, &Report)], width: f64) -> Panel {
    let is_reconnecting = variants.iter().any(|(_, report)| report.has_reconnects());
    let of = |report: &Report| match is_reconnecting {
        true => report.reconnecting.clone(),
        false => report.connecting.clone(),
    };
    let all: Vec<(&str, Times)> = variants
        .iter()
        .map(|(name, report)| (*name, of(report)))
        .collect();
    let firsts = all.iter().filter_map(|(_, times)| times.sorted().first());
    let lasts = all.iter().filter_map(|(_, times)| times.max());
    let shortest = firsts.min().copied().unwrap_or_default();
    let longest = lasts.max().unwrap_or_default();
    let x = Axis::durations(
        shortest.as_secs_f64(),
        longest.as_secs_f64(),
        "duration, logarithmic",
    );
    let (from, to) = x.ends();
    let line = |(name, times): &(&str, Times)| {
        let sorted = times.sorted();
        let step = sorted.len().div_ceil(150).max(1);
        let last = sorted.len().saturating_sub(1);
        let ranks = (0..sorted.len()).filter(|rank| rank.is_multiple_of(step) || *rank == last);
        let points = ranks.map(|rank| {
            let share = (rank + 1) as f64 * 100.0 / sorted.len() as f64;
            (sorted[rank].as_secs_f64(), Some(share))
        });
        let begin = sorted.first().map(|first| (first.as_secs_f64(), Some(0.0)));
        let end = (!sorted.is_empty()).then_some((to, Some(100.0)));
        let whole = [(from, begin.and(Some(0.0)))].into_iter().chain(begin);
        Series::new((*name).to_owned(), whole.chain(points).chain(end))
    };
    let (title, about) = match is_reconnecting {
        true => (
            "How long reconnecting took",
            "The share of reconnects that took no longer.",
        ),
        false => (
            "How long connecting took",
            "Of the clients that got a session, the share that had it by then.",
        ),
    };
    Lines {
        title,
        about: about.to_owned(),
        x,
        y: Axis::percent("share"),
        series: with_equals_named(all.iter().map(line).collect()),
        has_band: false,
        shades: vec![],
        notes: vec![],
        tips: vec![],
        names: Names::Key,
    }
    .draw(width, 200.0)
}

/// From, until, and how many, on a logarithmic scale.
fn bins(axis: &Axis, sorted: &[Duration]) -> Vec<(f64, f64, usize)> {
    let (from, to) = axis.ends();
    let number = (((to / from).log10() * 12.0).round() as usize).max(14);
    let edge = |index: usize| from * (to / from).powf(index as f64 / number as f64);
    let below = |limit: f64| sorted.partition_point(|time| time.as_secs_f64() < limit);
    let bins = (0..number).map(|index| {
        let (begin, end) = (edge(index), edge(index + 1));
        // What is longest belongs to the last, wherever rounding put its edge.
        let before = if index == 0 { 0 } else { below(begin) };
        let until = if index + 1 == number {
            sorted.len()
        } else {
            below(end)
        };
        (begin, end, until - before)
    });
    bins.filter(|bin| bin.2 > 0).collect()
}

/// The median and the slowest, as lines from top to bottom.
fn marks(panel: &mut Panel, frame: &Frame, times: &Times) {
    let all = [
        ("p50", times.percentile(50)),
        ("p99", times.percentile(99)),
        ("max", times.max()),
    ];
    let found = all.into_iter().enumerate();
    let found: Vec<_> = found
        .filter_map(|(row, (name, value))| {
            let y = frame.top - 60.0 + 16.0 * row as f64;
            value.map(|value| (name, value, frame.x(value.as_secs_f64()), y))
        })
        .collect();
    for &(_, _, x, y) in &found {
        panel.svg.line("mark", (x, y + 2.0), (x, frame.bottom()));
    }
    for &(name, value, x, y) in &found {
        let text = format!("{name} {}", time(value));
        match x + width_of(&text, 13.0) + 8.0 > panel.width {
            true => panel
                .svg
                .text("value", (x - 5.0, y + 8.0), Anchor::End, &text),
            false => panel
                .svg
                .text("value", (x + 5.0, y + 8.0), Anchor::Start, &text),
        }
    }
}
