//! Connects on each server over time, as a heat map.

use super::{
    over_time::{Window, ticks},
    panel::{Frame, Panel, Swatch},
    scale::{Axis, nice_step},
    style::HEATS,
    svg::Anchor,
    words::{count, time},
};
use crate::fleet::Report;
use std::time::Duration;

/// A row for each server, a column for each second, or for the worst of several. Of a run that is
/// over within seconds, a column is a fiftieth of a second, of sessions that came up.
pub(super) fn connects(report: &Report, width: f64) -> Panel {
    let grid = match Window::of(&[report]).0 {
        window if window <= Duration::from_secs(5) => Grid::of_new_sessions(report, window),
        _ => Grid::of_connects(report, (width / 4.0) as usize),
    };
    let mut panel = Panel::new(grid.title, &grid.about, width);
    let step = step_of(grid.most());
    panel.key(&key(step, grid.most(), !report.outages.is_empty()));

    let servers = report.fleet.servers;
    let row = (300.0 / servers as f64).clamp(1.5, 16.0);
    let x = Axis::time(grid.end(), ticks(width));
    let mut y = Axis::counts(servers as f64, 5, "server");
    y.ticks = names(servers, row);
    let frame = Frame::new(&mut panel, row * servers as f64, 14.0, x, y);
    let top = |server: usize| frame.top + server as f64 * row;

    let size = (frame.width, frame.height);
    panel.svg.rect("page", (frame.left, frame.top), size, "");
    let outages = report.outages.iter().filter(|one| one.from < grid.end());
    let down: Vec<_> = outages
        .map(|one| {
            let (from, until) = (one.from.as_secs_f64(), one.until.as_secs_f64());
            let (from, until) = (frame.x(from), frame.x(until));
            (from, top(one.server), until - from, row)
        })
        .collect();
    panel.svg.rects("down", &down);
    let column = frame.width / grid.columns as f64;
    let gap = |size: f64| if size > 4.0 { 1.0 } else { 0.0 };
    for level in 1..=HEATS {
        let mut cells = Vec::new();
        for (server, counts) in grid.rows.iter().enumerate() {
            let here = counts.iter().enumerate();
            for (index, _) in here.filter(|(_, count)| level_of(**count, step) == level) {
                let x = frame.left + index as f64 * column;
                cells.push((x, top(server), column - gap(column), row - gap(row)));
            }
        }
        panel.svg.rects(&format!("h{level}"), &cells);
    }
    for (value, name) in &frame.y.ticks {
        let y = frame.top + (value - 0.5) * row + 4.0;
        let at = (frame.left - 7.0, y);
        panel.svg.text("", at, Anchor::End, name);
    }
    let at = (0.0, frame.top - 12.0);
    panel.svg.text("", at, Anchor::Start, frame.y.title);
    frame.draw_x(&mut panel.svg);
    for (server, counts) in grid.rows.iter().enumerate() {
        let (corner, size) = ((frame.left, top(server)), (frame.width, row));
        panel
            .svg
            .rect("tip", corner, size, &grid.tip(server, counts));
    }
    panel.done()
}

/// What is shown: numbers by server and column.
struct Grid {
    title: &'static str,
    about: String,
    what: &'static str,
    rows: Vec<Vec<u32>>,
    columns: usize,
    column: Duration,
}

impl Grid {
    /// In seconds, and in the worst of several where there would be too many columns.
    fn of_connects(report: &Report, at_most: usize) -> Self {
        let seconds = shown_seconds(report);
        let together = seconds.div_ceil(at_most.max(1));
        let columns = seconds.div_ceil(together);
        let rows = report.loads.iter().map(|loads| {
            let shown = &loads[..loads.len().min(seconds)];
            let worst = shown.chunks(together).map(|loads| {
                let connects = loads.iter().map(|load| load.connects);
                connects.max().unwrap_or_default()
            });
            worst.collect()
        });
        let about = match together {
            1 => "A column is one second.".to_owned(),
            many => format!("A column is the worst of {many} seconds."),
        };
        Self {
            title: "Connects per second on each server",
            about: match (seconds as u64) < report.duration.as_secs() {
                true => format!("{about} Nobody connects later than is shown."),
                false => about,
            },
            what: "connects in a second",
            rows: rows.collect(),
            columns,
            column: Duration::from_secs(together as u64),
        }
    }

    fn of_new_sessions(report: &Report, window: Duration) -> Self {
        let column = Duration::from_millis(20);
        let columns = window.as_millis().div_ceil(column.as_millis()) as usize;
        let mut rows = vec![vec![0; columns]; report.fleet.servers];
        for (at, server) in &report.new_sessions {
            let index = (at.as_millis() / column.as_millis()) as usize;
            if let Some(number) = rows.get_mut(*server).and_then(|row| row.get_mut(index)) {
                *number += 1;
            }
        }
        Self {
            title: "New sessions on each server",
            about: "A column is 20 ms, the time of a few messages.".to_owned(),
            what: "new sessions in 20 ms",
            rows,
            columns,
            column,
        }
    }

    fn end(&self) -> Duration {
        self.column * self.columns as u32
    }

    fn most(&self) -> u32 {
        self.rows
            .iter()
            .flatten()
            .copied()
            .max()
            .unwrap_or_default()
    }

    fn tip(&self, server: usize, counts: &[u32]) -> String {
        let name = server + 1;
        // The first of equals.
        let worst = counts
            .iter()
            .enumerate()
            .rev()
            .max_by_key(|(_, count)| **count);
        match worst {
            Some((column, &most)) if most > 0 => {
                let at = time(self.column * column as u32);
                format!(
                    "s{name}: at most {} {}, at {at}",
                    count(f64::from(most)),
                    self.what
                )
            }
            Some(_) | None => format!("s{name}: none"),
        }
    }
}

/// Until nobody connects any more, but ten seconds at least.
fn shown_seconds(report: &Report) -> usize {
    let connected = report.loads.iter().filter_map(|loads| {
        let last = loads.iter().rposition(|load| load.connects > 0)?;
        Some(last + 3)
    });
    let ends = report
        .outages
        .iter()
        .map(|outage| outage.until.as_secs() as usize + 3);
    let needed = connected.chain(ends).max().unwrap_or_default().max(10);
    let all = report.duration.as_secs().max(1) as usize;
    match needed * 10 > all * 6 {
        true => all,
        false => needed,
    }
}

fn key(step: u32, most: u32, has_outages: bool) -> Vec<(Swatch, String)> {
    let classes = ["h1", "h2", "h3", "h4", "h5", "h6"];
    let last = level_of(most, step).max(1);
    let levels = (1..=last as u32).zip(classes);
    let name = |level: u32| {
        let (from, until) = ((level - 1) * step + 1, level * step);
        match from == until {
            true => count(f64::from(until)),
            false => format!("{}–{}", count(f64::from(from)), count(f64::from(until))),
        }
    };
    let levels = levels.map(|(level, class)| (Swatch::Box(class), name(level)));
    let down = (Swatch::Box("down"), "down, or leaving".to_owned());
    levels.chain(has_outages.then_some(down)).collect()
}

/// A number with one or two digits before its zeros, so that all colours reach `most`.
fn step_of(most: u32) -> u32 {
    let rough = most.div_ceil(HEATS as u32).max(1);
    let power = 10_u32.pow(rough.ilog10().saturating_sub(1));
    rough.next_multiple_of(power)
}

/// 0 for none, then 1 to as many as there are colours.
fn level_of(connects: u32, step: u32) -> usize {
    (connects.div_ceil(step) as usize).min(HEATS)
}

/// As many names of servers as there is room for.
fn names(servers: usize, row: f64) -> Vec<(f64, String)> {
    let every = nice_step(14.0 / row, 1).max(1.0) as usize;
    let named = (1..=servers)
        .filter(|server| server.is_multiple_of(every) && (server - 1) as f64 * row >= 14.0);
    let named = [1].into_iter().chain(named);
    named
        .map(|server| (server as f64, format!("s{server}")))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_number_has_the_last_colour_and_steps_are_round() {
        assert_eq!([0, 1, 6, 7, 133, 1_000].map(step_of), [1, 1, 1, 2, 23, 170]);
        assert_eq!(
            [0, 1, 23, 24, 133].map(|number| level_of(number, 23)),
            [0, 1, 1, 2, 6]
        );
    }
}
