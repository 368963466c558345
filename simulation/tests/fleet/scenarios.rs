//! What each scenario does to a fleet.

use crate::{millis, play, secs, small};
use chronicle_simulation::fleet::{
    Balancing, Comparison, Fleet, FleetError, Outage, Report, Scenario,
};
use std::{
    num::NonZeroUsize,
    time::{Duration, Instant},
};

/// How many sessions came up with a server within these seconds.
fn new_sessions(report: &Report, server: usize, from: u64, until: u64) -> usize {
    let within = secs(from)..secs(until);
    let all = report.new_sessions.iter();
    all.filter(|(at, who)| *who == server && within.contains(at))
        .count()
}

fn sessions_at(report: &Report, at: Duration) -> usize {
    report.at(at).unwrap().sessions
}

#[test]
fn in_a_cold_start_everybody_is_there_within_a_second() {
    let report = play(&small(Scenario::ColdStart));
    assert_eq!(report.duration, secs(60));
    assert_eq!(
        (report.samples[0].sessions, report.samples[0].away),
        (0, 24)
    );
    assert_eq!(sessions_at(&report, secs(1)), 24);
    assert_eq!(report.away, 0);
    assert_eq!(report.connecting.sorted().len(), 24);
    assert_eq!(report.reconnecting.max(), None);
    // The dials begin within the wait of 250 ms; then a handful of round trips of 2 to 20 ms.
    assert!(report.connecting.max().unwrap() < millis(500));
    assert_eq!((report.marks.len(), report.outages.len()), (0, 0));
    // 24 clients ask 4 servers, and take one.
    let all: [u32; 4] = report.worst_seconds().iter().fold([0; 4], |sum, one| {
        std::array::from_fn(|kind| sum[kind] + one[kind])
    });
    assert_eq!(all, [96, 96, 24, 24]);
}

#[test]
fn of_more_than_64_servers_each_client_knows_64_and_every_server_is_known() {
    let report = play(&Fleet {
        clients: 150,
        servers: 70,
        ..Fleet::new(Scenario::ColdStart)
    });
    assert_eq!((report.away, report.connecting.sorted().len()), (0, 150));
    let probes = report.loads.iter().map(|seconds| {
        let all = seconds.iter().map(|second| second.counts);
        all.sum::<u32>()
    });
    let probes: Vec<u32> = probes.collect();
    assert_eq!(probes.iter().sum::<u32>(), 150 * 64);
    assert!(probes.iter().all(|&probes| probes > 0), "{probes:?}");
}

#[test]
fn in_a_crash_those_of_the_dead_servers_go_to_the_others() {
    let report = play(&small(Scenario::Crash));
    let dead = |server| Outage {
        server,
        from: secs(20),
        until: secs(80),
    };
    assert_eq!(
        report.outages,
        [dead(0), dead(1)],
        "a third of four, rounded up"
    );
    let before = new_sessions(&report, 0, 0, 20) + new_sessions(&report, 1, 0, 20);
    assert!(before > 0);
    assert_eq!(report.reconnecting.sorted().len(), before);
    assert_eq!(new_sessions(&report, 0, 20, 80), 0);
    assert_eq!(new_sessions(&report, 1, 20, 80), 0);
    let during = report.at(secs(70)).unwrap().spread.unwrap();
    assert_eq!(during.mean, 12.0, "24 clients on the two that are up");
    let peak = report.samples.iter().map(|sample| sample.away).max();
    assert!(peak >= Some(before), "{peak:?} of {before}");
    assert_eq!(report.away, 0);
}

#[test]
fn in_a_rolling_restart_every_server_goes_once_and_everybody_comes_back() {
    let report = play(&Fleet {
        clients: 12,
        servers: 3,
        ..small(Scenario::RollingRestart)
    });
    let outage = |server: usize| Outage {
        server,
        from: millis(20_000 + 5_500 * server as u64),
        until: millis(23_500 + 5_500 * server as u64),
    };
    assert_eq!(report.outages, [0, 1, 2].map(outage));
    assert_eq!(report.duration, millis(66_500));
    assert_eq!(report.away, 0);
    assert!(report.reconnecting.sorted().len() >= 12);
    for outage in &report.outages {
        let within = outage.from..outage.until;
        let mut new = report.new_sessions.iter();
        assert!(!new.any(|(at, who)| *who == outage.server && within.contains(at)));
    }
}

#[test]
fn a_partition_moves_those_who_are_cut_off_to_the_other_half() {
    let report = play(&small(Scenario::Partition));
    // The first 12 clients cannot reach the first 2 servers any more, and notice when nothing has
    // come for 5 s.
    let moved = report.reconnecting.sorted().len();
    assert!((1..=12).contains(&moved), "{moved}");
    assert!(sessions_at(&report, secs(27)) < 24);
    assert_eq!(sessions_at(&report, secs(49)), 24);
    assert_eq!(
        new_sessions(&report, 0, 20, 110) + new_sessions(&report, 1, 20, 110),
        0
    );
    assert_eq!(report.away, 0);
}

#[test]
fn a_server_that_flaps_does_not_keep_the_fleet_from_its_sessions() {
    let report = play(&small(Scenario::Flap));
    assert_eq!(report.outages.len(), 10);
    assert!(report.outages.iter().all(|one| one.server == 0));
    assert!(
        report
            .outages
            .iter()
            .all(|one| one.until - one.from == secs(3))
    );
    assert!(!report.reconnecting.sorted().is_empty());
    assert_eq!(report.connecting.sorted().len(), 24);
    assert_eq!(report.away, 0);
}

#[test]
fn of_many_servers_each_client_knows_as_many_as_a_connection_string_holds() {
    let report = play(&Fleet {
        clients: 3,
        servers: 70,
        ..small(Scenario::ColdStart)
    });
    assert_eq!(report.fleet.known_servers(), 64);
    let dialled: u32 = report.worst_seconds().iter().map(|worst| worst[0]).sum();
    assert_eq!(dialled, 3 * 64);
    assert_eq!(report.away, 0);
}

#[test]
fn max_probes_and_the_switches_reach_clients_and_servers() {
    let fleet = small(Scenario::ColdStart);
    let two = play(&Fleet {
        balancing: Balancing::LeastConnections {
            max_probes: NonZeroUsize::new(2),
        },
        ..fleet.clone()
    });
    let probes: u32 = two.worst_seconds().iter().map(|worst| worst[1]).sum();
    assert_eq!(probes, 48);

    let random = play(&Fleet {
        balancing: Balancing::Random,
        ..fleet.clone()
    });
    let probes: u32 = random.worst_seconds().iter().map(|worst| worst[1]).sum();
    assert_eq!(probes, 0);

    let hasty = play(&Fleet {
        has_selection_wait: false,
        ..fleet.clone()
    });
    assert!(hasty.connecting.max() < play(&fleet).connecting.max());

    // What reservations are for: without them a fleet takes the same empty server for longer.
    let fleet = Fleet {
        clients: 150,
        servers: 6,
        ..fleet
    };
    let counted = play(&fleet).final_spread().unwrap();
    let not_counted = play(&Fleet {
        has_reservations: false,
        ..fleet
    });
    let not_counted = not_counted.final_spread().unwrap();
    assert!(
        not_counted.deviation > counted.deviation,
        "{not_counted:?} {counted:?}"
    );
}

#[test]
fn a_comparison_plays_each_variant_once() {
    let mut told = Vec::new();
    let fleet = Fleet {
        clients: 4,
        servers: 3,
        balancing: Balancing::Random,
        ..small(Scenario::ColdStart)
    };
    let comparison =
        Comparison::run(&fleet, Instant::now(), |progress| told.push(progress)).unwrap();
    let names = |index: usize| -> Vec<&str> {
        let variants = comparison.groups[index].variants.iter();
        variants.map(|variant| variant.name.as_str()).collect()
    };
    assert_eq!(names(0), ["least-connections", "round-robin", "random"]);
    assert_eq!(
        names(1),
        ["asks all", "asks 1", "asks 2", "asks 3", "asks 5"]
    );
    assert_eq!(comparison.groups.len(), 4);
    // 3 + 5 + 4 + 2 variants, of which four are the same.
    assert_eq!(comparison.reports.len(), 11);
    assert_eq!(comparison.away(), 0);
    assert!(told.is_sorted_by_key(|progress| progress.done));
    let last = told.last().unwrap();
    assert_eq!((last.done, last.total), (secs(660), secs(660)));
}

#[test]
fn what_cannot_be_simulated_is_told() {
    let fleet = Fleet {
        clients: 0,
        ..small(Scenario::Crash)
    };
    let error = fleet.run(Instant::now(), |_| {}).unwrap_err();
    let expected = FleetError::OutOfRange {
        what: "clients",
        number: 0,
        most: 100_000,
    };
    assert_eq!(error, expected);
    assert_eq!(
        error.to_string(),
        "0 clients cannot be simulated; give 1 to 100000"
    );
    let fleet = Fleet {
        servers: 1_001,
        ..small(Scenario::Crash)
    };
    assert!(fleet.check().is_err());
}
