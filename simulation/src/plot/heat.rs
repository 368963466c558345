//! Connects per second on each server, as a heat map.

use super::{
    over_time::ticks,
    panel::{Frame, Panel, Swatch},
    scale::{Axis, nice_step},
    style::HEATS,
    svg::Anchor,
    words::{count, time},
};
use crate::{Load, fleet::Report};
use std::time::Duration;

/// A row for each server, a column for each second, or for the worst of several.
pub(super) fn connects(report: &Report, width: f64) -> Panel {
    let seconds = shown_seconds(report);
    let servers = report.fleet.servers;
    let most = report.worst_second_of_a_server()[3].most;
    // In steps of whole connects.
    let step = nice_step(f64::from(most.max(1)), HEATS).max(1.0) as u32;
    let columns = seconds.min((width / 4.0) as usize).max(1);
    let per_column = seconds.div_ceil(columns);
    let columns = seconds.div_ceil(per_column);

    let mut panel = Panel::new(
        "Connects per second on each server",
        &about(per_column, seconds, report),
        width,
    );
    panel.key(&key(step, most, !report.outages.is_empty()));
    let row = (300.0 / servers as f64).clamp(1.5, 16.0);
    let mut x = Axis::time(
        Duration::from_secs((columns * per_column) as u64),
        ticks(width),
    );
    x.title = "virtual time";
    let mut y = Axis::counts(servers as f64, 5, "server");
    y.ticks = names(servers, row);
    let frame = Frame::new(&mut panel, row * servers as f64, 14.0, x, y);
    let cell = (frame.width / columns as f64, row);
    let place = |second: f64| frame.left + second / per_column as f64 * cell.0;
    let top = |server: usize| frame.top + server as f64 * row;
    let gap = |size: f64| if size > 4.0 { 1.0 } else { 0.0 };

    let size = (frame.width, frame.height);
    panel.svg.rect("page", (frame.left, frame.top), size, "");
    let down: Vec<_> = report
        .outages
        .iter()
        .map(|outage| (outage, place(outage.from.as_secs_f64())))
        .filter(|(_, from)| *from < frame.right())
        .map(|(outage, from)| {
            let until = place(outage.until.as_secs_f64()).min(frame.right());
            (from, top(outage.server), until - from, row)
        })
        .collect();
    panel.svg.rects("down", &down);
    for level in 1..=HEATS {
        let mut cells = Vec::new();
        for (server, loads) in report.loads.iter().enumerate() {
            let loads = &loads[..loads.len().min(seconds)];
            for (column, loads) in loads.chunks(per_column).enumerate() {
                let most = loads
                    .iter()
                    .map(|load| load.connects)
                    .max()
                    .unwrap_or_default();
                if level_of(most, step) == level {
                    let x = frame.left + column as f64 * cell.0;
                    cells.push((x, top(server), cell.0 - gap(cell.0), row - gap(row)));
                }
            }
        }
        panel.svg.rects(&format!("h{level}"), &cells);
    }
    for (value, name) in &frame.y.ticks {
        let y = frame.top + (value - 0.5) * row + 4.0;
        panel.svg.text("", (frame.left - 7.0, y), Anchor::End, name);
    }
    panel
        .svg
        .text("", (0.0, frame.top - 11.0), Anchor::Start, frame.y.title);
    frame.draw_x(&mut panel.svg);
    for (server, loads) in report.loads.iter().enumerate() {
        let size = (frame.width, row);
        panel
            .svg
            .rect("tip", (frame.left, top(server)), size, &tip(server, loads));
    }
    panel.done()
}

/// Until nobody connects any more, but ten seconds at least.
fn shown_seconds(report: &Report) -> usize {
    let last = |loads: &Vec<Load>| loads.iter().rposition(|load| load.connects > 0);
    let last = report
        .loads
        .iter()
        .filter_map(last)
        .max()
        .unwrap_or_default();
    let ends = report
        .outages
        .iter()
        .map(|outage| outage.until.as_secs() as usize);
    let needed = (last + 3).max(ends.max().unwrap_or_default() + 3).max(10);
    let all = report.duration.as_secs().max(1) as usize;
    match needed * 10 > all * 6 {
        true => all,
        false => needed,
    }
}

fn about(per_column: usize, seconds: usize, report: &Report) -> String {
    let column = match per_column {
        1 => "A column is one second".to_owned(),
        many => format!("A column is the worst of {many} seconds"),
    };
    match (seconds as u64) < report.duration.as_secs() {
        true => format!("{column}. Nobody connects later than is shown."),
        false => format!("{column}."),
    }
}

fn key(step: u32, most: u32, has_outages: bool) -> Vec<(Swatch, String)> {
    let classes = ["h1", "h2", "h3", "h4", "h5", "h6"];
    let last = level_of(most, step).max(1);
    let levels = (1..=last as u32).zip(classes);
    let mut items: Vec<_> = levels
        .map(|(level, class)| {
            let (from, until) = ((level - 1) * step + 1, level * step);
            let name = match from == until {
                true => count(f64::from(until)),
                false => format!("{}–{}", count(f64::from(from)), count(f64::from(until))),
            };
            (Swatch::Box(class), name)
        })
        .collect();
    if has_outages {
        items.push((Swatch::Box("down"), "down, or leaving".to_owned()));
    }
    items
}

/// 0 for none, then 1 to as many as there are colours.
fn level_of(connects: u32, step: u32) -> usize {
    (connects.div_ceil(step) as usize).min(HEATS)
}

/// As many names of servers as there is room for.
fn names(servers: usize, row: f64) -> Vec<(f64, String)> {
    let every = nice_step(16.0 / row, 1).max(1.0) as usize;
    let named = (1..=servers).filter(|server| *server == 1 || server.is_multiple_of(every));
    let named = named.filter(|server| *server == 1 || every == 1 || *server >= every);
    named
        .map(|server| (server as f64, format!("s{server}")))
        .collect()
}

fn tip(server: usize, loads: &[Load]) -> String {
    let worst = loads
        .iter()
        .enumerate()
        .rev()
        .max_by_key(|(_, load)| load.connects);
    match worst {
        Some((second, load)) if load.connects > 0 => format!(
            "s{}: {} connects in its worst second, at {}",
            server + 1,
            count(f64::from(load.connects)),
            time(Duration::from_secs(second as u64))
        ),
        Some(_) | None => format!("s{}: no connects", server + 1),
    }
}
