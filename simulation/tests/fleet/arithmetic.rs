//! Against values worked out by hand.

use crate::{millis, secs};
use chronicle_simulation::{
    Load,
    fleet::{Fleet, Report, Sample, Scenario, Spread, Summary, Times},
};

/// Three servers, four samples.
fn report() -> Report {
    let sample = |at, sessions, counts: &[usize]| Sample {
        at: secs(at),
        sessions,
        away: 0,
        spread: Spread::of(counts),
    };
    let load = |dials, counts, reserves, connects| Load {
        dials,
        counts,
        reserves,
        connects,
    };
    Report {
        fleet: Fleet::new(Scenario::ColdStart),
        duration: secs(4),
        marks: vec![],
        outages: vec![],
        samples: vec![
            sample(0, 0, &[0, 0, 0]),
            sample(1, 9, &[1, 3, 5]),
            sample(2, 10, &[2, 2, 6]),
            sample(3, 10, &[4, 3, 3]),
            sample(4, 10, &[4, 3, 3]),
        ],
        connecting: Times::of([30, 10, 20].map(millis).into()),
        reconnecting: Times::of((1..=200).rev().map(millis).collect()),
        new_sessions: vec![],
        loads: vec![
            vec![load(5, 0, 1, 1), load(2, 9, 0, 4)],
            vec![load(7, 1, 2, 2)],
            vec![],
        ],
        away: 0,
    }
}

#[test]
fn a_spread_is_that_of_all_servers() {
    // The mean is 5; the squares of the distances are 9, 1, 1, 1, 0, 0, 4, 16, and their mean is 4.
    let spread = Spread::of(&[2, 4, 4, 4, 5, 5, 7, 9]).unwrap();
    assert_eq!((spread.fewest, spread.most, spread.range()), (2, 9, 7));
    assert_eq!((spread.mean, spread.deviation), (5.0, 2.0));
    assert_eq!(Spread::of(&[7]).unwrap().deviation, 0.0);
    assert_eq!(Spread::of(&[]), None);
}

#[test]
fn a_percentile_is_the_nearest_rank() {
    let times = report().reconnecting;
    let at = |percent| times.percentile(percent).unwrap();
    assert_eq!([at(50), at(99), at(100)], [100, 198, 200].map(millis));
    assert_eq!(times.max(), Some(millis(200)));
    assert_eq!(times.percentile(0), Some(millis(1)));

    let three = report().connecting;
    assert_eq!(three.sorted(), [10, 20, 30].map(millis));
    assert_eq!(three.percentile(50), Some(millis(20)));
    assert_eq!(three.percentile(34), Some(millis(20)));
    assert_eq!(three.percentile(33), Some(millis(10)));
    assert_eq!(three.percentile(99), Some(millis(30)));

    let none = Times::default();
    assert_eq!((none.percentile(50), none.max()), (None, None));
}

#[test]
fn each_kind_of_load_has_a_worst_second_of_its_own() {
    let report = report();
    assert_eq!(
        report.worst_seconds(),
        [[5, 9, 1, 4], [7, 1, 2, 2], [0, 0, 0, 0]]
    );
    let [dials, probes, reserves, connects] = report.worst_second_of_a_server();
    let summary = |least, median, most| Summary {
        least,
        median,
        most,
    };
    assert_eq!(dials, summary(0, 5, 7));
    assert_eq!(probes, summary(0, 1, 9));
    assert_eq!(reserves, summary(0, 1, 2));
    assert_eq!(connects, summary(0, 2, 4));
}

#[test]
fn samples_are_found_by_what_they_show() {
    let report = report();
    assert_eq!(report.widest().unwrap().at, secs(1), "the first of two");
    assert_eq!(report.median_range(), Some(1), "of 0, 1, 1, 4, 4");
    assert_eq!(report.final_spread().unwrap().range(), 1);
    assert_eq!(report.still_from(), secs(3));
    assert_eq!(report.at(millis(2_999)).unwrap().at, secs(2));
    assert_eq!(report.at(secs(9)).unwrap().at, secs(4));
}
