//! What a terminal shows of a run.

use chronicle_simulation::{
    fleet::{Comparison, Report, Times},
    plot,
};
use std::fmt::Write as _;

/// A run, in a few lines.
pub(super) fn of_report(report: &Report) -> String {
    let mut text = format!(
        "{}: {}\n{} of virtual time: {}\n\n",
        report.fleet.scenario,
        report.fleet,
        plot::time(report.duration),
        report.fleet.scenario.about()
    );
    spread(&mut text, report);
    times(&mut text, report);
    worst_seconds(&mut text, report);
    text
}

/// Variants, a line each.
pub(super) fn of_comparison(comparison: &Comparison) -> String {
    let mut text = format!("{}: {}\n", comparison.fleet.scenario, comparison.fleet);
    for group in &comparison.groups {
        let title = format!("{:-<34}", format!("{} ", group.title));
        put(
            &mut text,
            format_args!(
                "\n{title} {:>7} {:>7} {:>9} {:>9} {:>9} {:>7} {:>7} {:>8} {:>8} {:>5}\n",
                "range",
                "dev.",
                "p50",
                "p99",
                "max",
                "dials",
                "probes",
                "reserves",
                "connects",
                "away"
            ),
        );
        for (name, report) in comparison.of(group) {
            let spread = report.final_spread();
            let range = spread.map_or("-".to_owned(), |spread| spread.range().to_string());
            let deviation =
                spread.map_or("-".to_owned(), |spread| format!("{:.1}", spread.deviation));
            let (_, times) = report.main_times();
            let [p50, p99, max] = [50, 99, 100].map(|percent| at(times, percent));
            let [dials, probes, reserves, connects] = report
                .worst_second_of_a_server()
                .map(|summary| summary.most);
            put(
                &mut text,
                format_args!(
                    "{name:34} {range:>7} {deviation:>7} {p50:>9} {p99:>9} {max:>9} {dials:>7} \
                     {probes:>7} {reserves:>8} {connects:>8} {:>5}\n",
                    report.away
                ),
            );
        }
    }
    text.push_str(
        "\nrange and deviation of the clients per server at the end; p50, p99 and max of \
         reconnecting, or of connecting where\nnobody had to reconnect; what hit the busiest server \
         in its worst second\n\n",
    );
    text
}

fn spread(text: &mut String, report: &Report) {
    put(
        text,
        format_args!(
            "{:>12} {:>10} {:>9} {:>9} {:>9} {:>10}\n",
            "time", "sessions", "fewest", "most", "range", "deviation"
        ),
    );
    let last = report.duration;
    let moments = (1..=ROWS).map(|row| last.mul_f64(f64::from(row) / f64::from(ROWS)));
    let widest = report.widest().map(|sample| (sample, "  the widest"));
    let shown = moments.filter_map(|moment| report.at(moment).map(|sample| (sample, "")));
    let mut shown: Vec<_> = shown.chain(widest).collect();
    shown.sort_by_key(|(sample, _)| sample.at);
    for (sample, note) in shown {
        let (at, sessions) = (plot::time(sample.at), sample.sessions);
        match sample.spread {
            Some(spread) => put(
                text,
                format_args!(
                    "{at:>12} {sessions:>10} {:>9} {:>9} {:>9} {:>10.2}{note}\n",
                    spread.fewest,
                    spread.most,
                    spread.range(),
                    spread.deviation
                ),
            ),
            None => put(
                text,
                format_args!("{at:>12} {sessions:>10}  no server is up\n"),
            ),
        }
    }
}

fn times(text: &mut String, report: &Report) {
    put(
        text,
        format_args!(
            "\n{:>12} {:>10} {:>9} {:>9} {:>9}\n",
            "", "how many", "p50", "p99", "max"
        ),
    );
    let all = [
        ("connecting", &report.connecting),
        ("reconnecting", &report.reconnecting),
    ];
    for (name, times) in all {
        let [p50, p99, max] = [50, 99, 100].map(|percent| at(times, percent));
        let number = times.sorted().len();
        put(
            text,
            format_args!("{name:>12} {number:>10} {p50:>9} {p99:>9} {max:>9}\n"),
        );
    }
}

fn worst_seconds(text: &mut String, report: &Report) {
    put(
        text,
        format_args!(
            "\n{:>12} {:>10} {:>9} {:>9}   in the worst second of a server\n",
            "", "calmest", "median", "busiest"
        ),
    );
    let summaries = report.worst_second_of_a_server();
    for (name, summary) in Report::LOADS.into_iter().zip(summaries) {
        let (least, median, most) = (summary.least, summary.median, summary.most);
        put(
            text,
            format_args!("{name:>12} {least:>10} {median:>9} {most:>9}\n"),
        );
    }
    text.push('\n');
}

fn at(times: &Times, percent: usize) -> String {
    let time = times.percentile(percent);
    time.map_or("-".to_owned(), plot::time)
}

fn put(text: &mut String, arguments: std::fmt::Arguments<'_>) {
    // Writing to a `String` cannot fail.
    let _ = text.write_fmt(arguments);
}

const ROWS: u32 = 8;
