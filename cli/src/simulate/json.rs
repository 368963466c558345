//! A run as JSON. Times are in milliseconds.

use chronicle_simulation::fleet::{Comparison, Fleet, Report, Sample, Times};
use serde_json::{Value, json};
use std::time::Duration;

/// A run, with everything.
pub(super) fn of_report(report: &Report) -> Value {
    let samples: Vec<Value> = report.samples.iter().map(of_sample).collect();
    let marks = report.marks.iter().map(|mark| {
        json!({ "from_ms": millis(mark.from), "until_ms": millis(mark.until), "text": mark.text })
    });
    let marks: Vec<Value> = marks.collect();
    let mut value = summary(report);
    value["marks"] = marks.into();
    value["samples"] = samples.into();
    value["worst_second_by_server"] = report.worst_seconds().iter().map(of_loads).collect();
    value
}

/// Variants, each without what it was like over time.
pub(super) fn of_comparison(comparison: &Comparison) -> Value {
    let groups = comparison.groups.iter().map(|group| {
        let variants = comparison.of(group).map(|(name, report)| {
            let mut value = summary(report);
            value["name"] = name.into();
            value
        });
        let variants: Vec<Value> = variants.collect();
        json!({ "title": group.title, "variants": variants })
    });
    let groups: Vec<Value> = groups.collect();
    json!({ "groups": groups })
}

fn summary(report: &Report) -> Value {
    json!({
        "fleet": of_fleet(&report.fleet),
        "duration_ms": millis(report.duration),
        "away": report.away,
        "spread_at_end": report.samples.last().map(of_sample),
        "widest": report.widest().map(of_sample),
        "connecting": of_times(&report.connecting),
        "reconnecting": of_times(&report.reconnecting),
        "worst_second": of_loads(&report.worst_second_of_a_server().map(|summary| summary.most)),
    })
}

fn of_fleet(fleet: &Fleet) -> Value {
    json!({
        "clients": fleet.clients,
        "servers": fleet.servers,
        "known_servers": fleet.known_servers(),
        "strategy": fleet.balancing.to_string(),
        "scenario": fleet.scenario.name(),
        "seed": fleet.seed,
        "selection_wait": fleet.has_selection_wait,
        "backoff_jitter": fleet.has_backoff_jitter,
        "reservations": fleet.has_reservations,
    })
}

fn of_sample(sample: &Sample) -> Value {
    let (at_ms, sessions) = (millis(sample.at), sample.sessions);
    match sample.spread {
        Some(spread) => json!({
            "at_ms": at_ms,
            "sessions": sessions,
            "fewest": spread.fewest,
            "most": spread.most,
            "range": spread.range(),
            "deviation": spread.deviation,
        }),
        None => json!({ "at_ms": at_ms, "sessions": sessions }),
    }
}

fn of_times(times: &Times) -> Value {
    let at = |percent| times.percentile(percent).map(millis);
    json!({
        "number": times.sorted().len(),
        "p50_ms": at(50),
        "p99_ms": at(99),
        "max_ms": times.max().map(millis),
    })
}

fn of_loads(loads: &[u32; 4]) -> Value {
    let pairs = Report::LOADS.into_iter().zip(loads);
    pairs
        .map(|(name, number)| (name.to_owned(), Value::from(*number)))
        .collect()
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
