//! What hit each server in its worst second.

use super::{
    panel::Panel,
    svg::{Anchor, Svg},
    words::count,
};
use crate::fleet::{Report, Summary};

/// Four rows of bars, one bar for each server.
pub(super) fn worst_seconds(report: &Report, width: f64) -> Panel {
    let mut panel = Panel::new(
        "The worst second of each server",
        "One bar a server, in their order. Each row has a scale of its own.",
        width,
    );
    let worst = report.worst_seconds();
    let summaries = report.worst_second_of_a_server();
    let columns = if width > 600.0 { 2 } else { 1 };
    let cell = (width - 40.0 * (columns - 1) as f64) / columns as f64;
    let top = panel.at;
    for (kind, name) in Report::LOADS.into_iter().enumerate() {
        let values: Vec<u32> = worst.iter().map(|all| all[kind]).collect();
        let bars = bars(name, &values, summaries[kind], cell);
        let (column, row) = (kind % columns, kind / columns);
        let x = column as f64 * (cell + 40.0);
        panel.svg.place(x, top + row as f64 * ROW, &bars);
    }
    panel.at = top + ROW * (4_usize.div_ceil(columns)) as f64;
    panel.done()
}

fn bars(name: &str, values: &[u32], summary: Summary, width: f64) -> Svg {
    let mut svg = Svg::default();
    let most = f64::from(summary.most.max(1));
    let (top, height) = (30.0, ROW - 50.0);
    let bottom = top + height;
    svg.text(
        "name",
        (0.0, 14.0),
        Anchor::Start,
        &format!("{name} per second"),
    );
    let Summary {
        median,
        most: highest,
        ..
    } = summary;
    let text = format!("median {}", count(f64::from(median)));
    svg.text("", (width - 92.0, 14.0), Anchor::End, &text);
    let text = format!("most {}", count(f64::from(highest)));
    svg.text("value", (width, 14.0), Anchor::End, &text);
    let step = width / values.len() as f64;
    for (server, &value) in values.iter().enumerate() {
        let tall = f64::from(value) / most * height;
        let tip = format!(
            "s{}: {} {name} in its worst second",
            server + 1,
            count(f64::from(value))
        );
        let corner = (server as f64 * step + step * 0.1, bottom - tall);
        svg.rect("b0", corner, (step * 0.8, tall), &tip);
    }
    svg.line("axis", (0.0, bottom), (width, bottom));
    svg.text("", (0.0, bottom + 15.0), Anchor::Start, "s1");
    svg.text(
        "",
        (width, bottom + 15.0),
        Anchor::End,
        &format!("s{}", values.len()),
    );
    svg
}

/// Of one kind of load, everything included.
const ROW: f64 = 128.0;
