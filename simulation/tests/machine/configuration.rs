//! What is refused before anything is dialled.

use crate::help::*;
use chronicle_connection::{
    Backoff, Config, ConfigError, ConnectionString, Jitter, Strategy, Timing,
};
use std::time::Duration;

fn string(text: &str) -> ConnectionString {
    text.parse().unwrap()
}

#[test]
fn a_wait_that_makes_no_sense_is_a_configuration_error() {
    let below = Backoff {
        base: secs(2),
        ceiling: secs(1),
        jitter: Jitter::None,
    };
    let zero = Backoff {
        base: Duration::ZERO,
        ..Backoff::default()
    };
    for (backoff, expected) in [
        (below, ConfigError::CeilingBelowBase),
        (zero, ConfigError::Zero("backoff.base")),
    ] {
        let builder = Config::builder(string("chronicle://s1")).backoff(backoff);
        assert_eq!(builder.build().unwrap_err(), expected);
    }
}

#[test]
fn a_wait_without_width_is_none() {
    // No wait before selections and a ladder of one step: draws from empty ranges.
    let setup = chronicle_simulation::Setup::new("chronicle://s1,s2").patient();
    let mut setup = setup.timing(|timing| timing.selection_wait = Duration::ZERO);
    setup.backoff.base = MOMENT;
    setup.backoff.ceiling = MOMENT;
    let mut hand = chronicle_simulation::Hand::new(start(), setup);
    hand.connect();
    for _ in 0..50 {
        hand.wait_until(has_dialled);
        while let Some((transport, _)) = hand.find_open() {
            hand.reply(transport, refused());
        }
    }
    assert!(hand.elapsed() <= MOMENT * 50);
}

#[test]
fn deadlines_of_zero_are_configuration_errors() {
    let changes: [(&str, fn(&mut Timing)); 9] = [
        ("timing.lookup_try", |timing| {
            timing.lookup_try = Duration::ZERO
        }),
        ("timing.lookup", |timing| timing.lookup = Duration::ZERO),
        ("timing.open", |timing| timing.open = Duration::ZERO),
        ("timing.count", |timing| timing.count = Duration::ZERO),
        ("timing.reserve", |timing| timing.reserve = Duration::ZERO),
        ("timing.check", |timing| timing.check = Duration::ZERO),
        ("timing.first_keep_alive", |timing| {
            timing.first_keep_alive = Duration::ZERO;
        }),
        ("timing.keep_alive", |timing| {
            timing.keep_alive = Duration::ZERO
        }),
        ("timing.answer_pace", |timing| {
            timing.answer_pace = Duration::ZERO
        }),
    ];
    for (name, change) in changes {
        let mut timing = Timing::default();
        change(&mut timing);
        let builder = Config::builder(string("chronicle://s1")).timing(timing);
        assert_eq!(builder.build().unwrap_err(), ConfigError::Zero(name));
    }
}

#[test]
fn the_longest_durations_neither_panic_nor_overflow() {
    let long = secs(366 * 86_400);
    let timing = Timing {
        lookup_try: long,
        lookup: long,
        selection_wait: long,
        open: long,
        count: long,
        stale_count: long,
        reserve: long,
        check: long,
        token: long,
        first_keep_alive: long,
        keep_alive: long,
        answer_pace: long,
        stable_after: long,
    };
    let mut setup = chronicle_simulation::Setup::new("chronicle://s1,s2");
    setup.timing = timing;
    setup.backoff = Backoff {
        base: long,
        ceiling: long,
        jitter: Jitter::UpperHalf,
    };
    setup.connect_timeout = Some(long);
    let mut hand = chronicle_simulation::Hand::new(start(), setup);
    hand.connect();
    for _ in 0..20 {
        let Some(due) = hand.timeout() else { break };
        hand.oversleep(due);
        hand.input(chronicle_connection::Command::Tick);
        while let Some((transport, _)) = hand.find_open() {
            hand.open(transport);
        }
    }
}

#[test]
fn an_option_in_code_and_string_must_agree() {
    let contradicting = Config::builder(string("chronicle://s1?loadBalancer=random"));
    let error = contradicting.strategy(Strategy::RoundRobin).build();
    assert_eq!(
        error.unwrap_err(),
        ConfigError::Contradiction("loadBalancer")
    );
    let contradicting = Config::builder(string("chronicle://s1?skipCompatibilityCheck=true"));
    let error = contradicting.skip_compatibility_check(false).build();
    assert_eq!(
        error.unwrap_err(),
        ConfigError::Contradiction("skipCompatibilityCheck")
    );
}

#[test]
fn the_string_names_the_strategy() {
    // Round-robin dials one server, least connections all of them.
    for (option, dialled) in [
        ("", 3),
        ("?loadBalancer=least-connections", 3),
        ("?loadBalancer=round-robin", 1),
        ("?loadBalancer=random", 1),
    ] {
        let mut hand = hand(&format!("chronicle://s1,s2,s3{option}"));
        hand.connect();
        assert_eq!(dials(&mut hand).len(), dialled, "{option}");
    }
}

#[test]
fn validation_that_is_asked_for_anywhere_is_on() {
    let table = [
        (None, "", false),
        (None, "?skipTlsValidation=false", false),
        (None, "?skipTlsValidation=true", true),
        (Some(false), "", false),
        (Some(false), "?skipTlsValidation=false", false),
        (Some(false), "?skipTlsValidation=true", false),
        (Some(true), "", true),
        (Some(true), "?skipTlsValidation=false", false),
        (Some(true), "?skipTlsValidation=true", true),
    ];
    for (code, option, skips) in table {
        let mut builder = Config::builder(string(&format!("chronicle://s1{option}")));
        if let Some(skip) = code {
            builder = builder.skip_tls_validation(skip);
        }
        let config = builder.build().unwrap();
        assert_eq!(config.skip_tls_validation(), skips, "{code:?} {option}");
    }
}
