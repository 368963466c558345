//! Several fleets measured side by side, a block of bars for each measure.

use super::{
    panel::Panel,
    style::LINES,
    svg::{Anchor, Svg, width_of},
    words::{count, time},
};
use crate::fleet::Report;

/// All measures of all variants.
pub(super) fn measures(variants: &[(&str, &Report)], width: f64) -> Panel {
    let mut panel = Panel::new(
        "In numbers",
        "Spread in clients. Loads are those of the busiest server in its worst second. Each block \
         has a scale of its own; shorter is better.",
        width,
    );
    let all = all(variants.iter().any(|(_, report)| report.has_reconnects()));
    let cell = |columns: usize| (width - GAP * (columns - 1) as f64) / columns as f64;
    let fits = |columns: &usize| cell(*columns) >= needed(&all, variants);
    let columns = [4, 2].into_iter().find(fits).unwrap_or(1);
    let cell = cell(columns);
    let height = variants.len() as f64 * ROW + 44.0;
    let top = panel.at + 8.0;
    for (index, (title, measure)) in all.iter().enumerate() {
        let block = block(title, *measure, variants, cell);
        let (column, row) = (index % columns, index / columns);
        let (x, y) = (column as f64 * (cell + GAP), top + row as f64 * height);
        panel.svg.place(x, y, &block);
    }
    panel.at = top + height * all.len().div_ceil(columns) as f64 - 20.0;
    panel.done()
}

/// How wide a block has to be for its texts.
fn needed(all: &[(&str, Measure)], variants: &[(&str, &Report)]) -> f64 {
    let titles = all.iter().map(|(title, _)| width_of(title, 12.0));
    let rows = all.iter().flat_map(|(_, measure)| {
        variants.iter().map(|(name, report)| {
            let text = measure(report).map_or(String::new(), |(_, text)| text);
            width_of(name, 12.0) + width_of(&text, 13.0) + 8.0
        })
    });
    titles.chain(rows).fold(0.0, f64::max)
}

/// A number, and how it is written; `None` where there is none.
type Measure = fn(&Report) -> Option<(f64, String)>;

fn all(has_reconnects: bool) -> Vec<(&'static str, Measure)> {
    let spread: [(&str, Measure); 2] = [
        ("spread at the end", |report| {
            let range = report.final_spread()?.range() as f64;
            Some((range, count(range)))
        }),
        ("spread, median over time", |report| {
            let range = report.median_range()?;
            Some((range as f64, count(range as f64)))
        }),
    ];
    let connecting: [(&str, Measure); 2] = [
        ("connecting, p99", |report| {
            of_time(report.connecting.percentile(99))
        }),
        ("connecting, longest", |report| {
            of_time(report.connecting.max())
        }),
    ];
    let reconnecting: [(&str, Measure); 2] = [
        ("reconnecting, p99", |report| {
            of_time(report.reconnecting.percentile(99))
        }),
        ("reconnecting, longest", |report| {
            of_time(report.reconnecting.max())
        }),
    ];
    let loads: [(&str, Measure); 4] = [
        ("dials, worst second", |report| of_load(report, 0)),
        ("probes, worst second", |report| of_load(report, 1)),
        ("reserves, worst second", |report| of_load(report, 2)),
        ("connects, worst second", |report| of_load(report, 3)),
    ];
    let times = if has_reconnects {
        reconnecting
    } else {
        connecting
    };
    spread.into_iter().chain(times).chain(loads).collect()
}

fn of_time(time_taken: Option<std::time::Duration>) -> Option<(f64, String)> {
    time_taken.map(|taken| (taken.as_secs_f64(), time(taken)))
}

fn of_load(report: &Report, kind: usize) -> Option<(f64, String)> {
    let most = f64::from(report.worst_second_of_a_server()[kind].most);
    Some((most, count(most)))
}

fn block(title: &str, measure: Measure, variants: &[(&str, &Report)], width: f64) -> Svg {
    let mut svg = Svg::default();
    let values: Vec<_> = variants.iter().map(|(_, report)| measure(report)).collect();
    let numbers = values.iter().flatten().map(|(number, _)| *number);
    let most = numbers.fold(0.0, f64::max).max(1e-9);
    svg.text("name", (0.0, 12.0), Anchor::Start, title);
    svg.line("axis", (0.0, 18.5), (width, 18.5));
    for (index, ((name, _), value)) in variants.iter().zip(&values).enumerate() {
        let top = 22.0 + index as f64 * ROW;
        let (number, text) = value.clone().unwrap_or((0.0, "–".to_owned()));
        svg.text("", (0.0, top + 12.0), Anchor::Start, name);
        svg.text("value", (width, top + 12.0), Anchor::End, &text);
        let (corner, size) = ((0.0, top + 17.0), (width * number / most, 7.0));
        svg.rect(
            &format!("b{}", index % LINES),
            corner,
            size,
            &format!("{name}: {text}"),
        );
    }
    svg
}

const GAP: f64 = 36.0;
const ROW: f64 = 30.0;
