//! Draws what a fleet showed: one SVG, or one page of HTML, each of which needs nothing else.
//!
//! All functions are pure: the same report gives the same bytes. Pictures follow the reader's
//! choice of light or dark. Pages have each picture twice, for wide screens and for phones.

mod bars;
mod heat;
mod latency;
mod lines;
mod load;
mod over_time;
mod page;
mod panel;
mod scale;
mod sheet;
mod style;
mod svg;
mod words;

pub use words::time;

use crate::{
    fleet::{Comparison, Fleet, Report},
    plural,
};
use page::{Page, Table};
use sheet::{HALF, NARROW, Row, Section, WIDE, sheet};
use words::{count, trimmed};

/// One picture of a run.
pub fn picture(report: &Report) -> String {
    let sections = sections(report, WIDE, HALF);
    sheet(
        &title(&report.fleet),
        &about(&report.fleet),
        &facts(report),
        &sections,
    )
}

/// A page about a run. `command` is what a reader would type to make it again.
pub fn page(report: &Report, command: &str) -> String {
    let page = Page {
        title: &title(&report.fleet),
        about: &about(&report.fleet),
        facts: &facts(report),
        wide: &sections(report, WIDE, HALF),
        narrow: &sections(report, NARROW, NARROW),
        tables: &[over_time_table(report), servers_table(report)],
        command,
    };
    page.html()
}

/// One picture of variants side by side.
pub fn comparison_picture(comparison: &Comparison) -> String {
    let sections = comparison_sections(comparison, WIDE, HALF);
    let fleet = &comparison.fleet;
    sheet(
        &comparison_title(fleet),
        &comparison_about(fleet),
        &[],
        &sections,
    )
}

/// A page about variants side by side. `command` is what a reader would type to make it again.
pub fn comparison_page(comparison: &Comparison, command: &str) -> String {
    let fleet = &comparison.fleet;
    let page = Page {
        title: &comparison_title(fleet),
        about: &comparison_about(fleet),
        facts: &[],
        wide: &comparison_sections(comparison, WIDE, HALF),
        narrow: &comparison_sections(comparison, NARROW, NARROW),
        tables: &[],
        command,
    };
    page.html()
}

fn sections(report: &Report, wide: f64, half: f64) -> Vec<Section> {
    let connecting = |width| {
        let about = "From a client's start to its first session.";
        latency::histogram("How long connecting took", about, &report.connecting, width)
    };
    let reconnecting = |width| {
        let about = "From the end of a session to the client's next one.";
        latency::histogram(
            "How long reconnecting took",
            about,
            &report.reconnecting,
            width,
        )
    };
    let latencies = match report.has_reconnects() {
        true => Row::Two(reconnecting(half), connecting(half)),
        false => Row::One(connecting(wide)),
    };
    let rows = vec![
        Row::One(over_time::clients_per_server(report, wide)),
        Row::Two(
            over_time::spread(report, half),
            over_time::without_session(report, half),
        ),
        latencies,
        Row::One(heat::connects(report, wide)),
        Row::One(load::worst_seconds(report, wide)),
    ];
    let title = String::new();
    vec![Section { title, rows }]
}

fn comparison_sections(comparison: &Comparison, wide: f64, half: f64) -> Vec<Section> {
    let section = |group: &crate::fleet::Group| {
        let variants: Vec<_> = comparison.of(group).collect();
        let lines = (
            over_time::ranges(&variants, half),
            latency::shares(&variants, half),
        );
        Section {
            title: group.title.to_owned(),
            rows: vec![
                Row::Two(lines.0, lines.1),
                Row::One(bars::measures(&variants, wide)),
            ],
        }
    };
    comparison.groups.iter().map(section).collect()
}

fn title(fleet: &Fleet) -> String {
    let scenario = heading(fleet);
    let of = |noun, number| format!("{} {}", count(number as f64), plural(noun, number));
    let (clients, servers) = (of("client", fleet.clients), of("server", fleet.servers));
    format!("{scenario}: {clients} on {servers}")
}

fn heading(fleet: &Fleet) -> String {
    let name = fleet.scenario.name().replace('-', " ");
    let mut letters = name.chars();
    let first = letters.next().map(|letter| letter.to_ascii_uppercase());
    first.into_iter().chain(letters).collect()
}

fn about(fleet: &Fleet) -> String {
    let mut how = vec![fleet.balancing.to_string()];
    how.extend(known(fleet));
    how.extend(fleet.switched_off().into_iter().map(str::to_owned));
    let (how, seed, what) = (how.join(", "), fleet.seed, fleet.scenario.about());
    format!("{how}; seed {seed}. What happens: {what} of virtual time.")
}

/// Where clients do not know all servers, how many they know.
fn known(fleet: &Fleet) -> Option<String> {
    let known = fleet.known_servers();
    let text = || format!("each client knows {known} servers, drawn at random");
    (known < fleet.servers).then(text)
}

fn comparison_title(fleet: &Fleet) -> String {
    format!("{}, compared", title(fleet))
}

fn comparison_about(fleet: &Fleet) -> String {
    let (seed, what) = (fleet.seed, fleet.scenario.about());
    let known = known(fleet).map_or(String::new(), |known| format!("; {known}"));
    format!(
        "Every variant with seed {seed}; what is not named is least-connections asking all{known}. \
         What happens: {what} of virtual time."
    )
}

fn facts(report: &Report) -> Vec<(String, String)> {
    let spread = report.final_spread();
    let range = spread.map_or("–".to_owned(), |spread| count(spread.range() as f64));
    let deviation = spread.map_or("–".to_owned(), |spread| trimmed(spread.deviation, 1));
    let (what, times) = report.main_times();
    let time_of = |percent| times.percentile(percent).map_or("–".to_owned(), time);
    let fact = |name: &str, value: String| (name.to_owned(), value);
    vec![
        fact("spread at the end", range),
        fact("deviation at the end", deviation),
        fact(&format!("{what}, p50"), time_of(50)),
        fact(&format!("{what}, p99"), time_of(99)),
        fact(&format!("{what}, longest"), time_of(100)),
        fact("without a session", count(report.away as f64)),
    ]
}

fn over_time_table(report: &Report) -> Table {
    let heads = ["time", "sessions", "fewest", "most", "range", "deviation"];
    let every = report.samples.len().div_ceil(60).max(1);
    let last = report.samples.len().saturating_sub(1);
    let samples = report.samples.iter().enumerate();
    let shown = samples.filter(|(index, _)| index.is_multiple_of(every) || *index == last);
    let row = |(_, sample): (usize, &crate::fleet::Sample)| {
        let mut row = vec![time(sample.at), count(sample.sessions as f64)];
        if let Some(spread) = sample.spread {
            let counts = [spread.fewest, spread.most, spread.range()];
            row.extend(counts.map(|number| count(number as f64)));
            row.push(trimmed(spread.deviation, 2));
        }
        row
    };
    Table {
        title: "Spread over time, in numbers".to_owned(),
        heads: heads.map(str::to_owned).into(),
        rows: shown.map(row).collect(),
    }
}

fn servers_table(report: &Report) -> Table {
    let heads = ["server", "dials", "probes", "reserves", "connects"];
    let servers = report.worst_seconds();
    let row = |(index, worst): (usize, &[u32; 4])| {
        let mut row = vec![format!("s{}", index + 1)];
        row.extend(worst.map(|number| count(f64::from(number))));
        row
    };
    Table {
        title: "The worst second of each server, in numbers".to_owned(),
        heads: heads.map(str::to_owned).into(),
        rows: servers.iter().enumerate().map(row).collect(),
    }
}
