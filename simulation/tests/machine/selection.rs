//! Least connections: who is asked and who is chosen.

use crate::help::*;
use chronicle_connection::{Request, Strategy};
use chronicle_simulation::{Hand, Setup, http};
use std::{collections::BTreeMap, num::NonZeroUsize, time::Duration};

/// How often each server is chosen, over seeds.
fn choices(times: u64, choose: impl Fn(&mut Hand)) -> BTreeMap<String, usize> {
    let mut choices = BTreeMap::new();
    for seed in 0..times {
        let mut hand = Hand::seeded(start(), Setup::new(THREE).exact(), seed);
        hand.connect();
        choose(&mut hand);
        *choices.entry(the_chosen(&mut hand)).or_insert(0) += 1;
    }
    choices
}

#[test]
fn ties_go_to_each_equally_often_whatever_the_order_of_the_list() {
    let choices = choices(3000, |hand| {
        offer(hand, &[("s1", Some(4)), ("s2", Some(4)), ("s3", Some(4))]);
    });
    assert!(
        choices.values().all(|&times| (900..=1100).contains(&times)),
        "{choices:?}"
    );
}

#[test]
fn without_any_count_each_reachable_server_is_chosen_equally_often() {
    let all = choices(3000, |hand| {
        offer(hand, &[("s1", None), ("s2", None), ("s3", None)]);
    });
    assert!(
        all.values().all(|&times| (900..=1100).contains(&times)),
        "{all:?}"
    );

    let reachable = choices(2000, |hand| {
        let (first, second, third) = (
            hand.take_open("s1"),
            hand.take_open("s2"),
            hand.take_open("s3"),
        );
        hand.reply(second, refused());
        for transport in [first, third] {
            hand.open(transport);
            let ask = hand.take(Request::Count, transport);
            hand.reply(ask, http(404, ""));
        }
    });
    assert_eq!(reachable.get("s2"), None);
    assert!(
        reachable
            .values()
            .all(|&times| (900..=1100).contains(&times)),
        "{reachable:?}"
    );
}

#[test]
fn if_all_are_still_dialling_when_the_time_is_over_one_of_them_is_chosen_and_waited_for() {
    let choices = choices(2000, |hand| {
        let refusing = hand.take_open("s2");
        hand.reply(refusing, refused());
        hand.wait(secs(2) - MOMENT);
        assert!(hand.events().iter().all(|event| selected(event).is_none()));
        hand.wait(MOMENT);
    });
    assert_eq!(choices.get("s2"), None);
    assert!(
        choices.values().all(|&times| (900..=1100).contains(&times)),
        "{choices:?}"
    );

    let mut hand = hand("chronicle://s1,s2");
    hand.connect();
    let transports = [hand.take_open("s1"), hand.take_open("s2")];
    hand.wait(secs(2));
    let winner = usize::from(the_chosen(&mut hand) == "s2");
    hand.wait(secs(3) - MOMENT);
    hand.open(transports[winner]);
    pass(&mut hand, transports[winner]);
}

#[test]
fn one_candidate_is_dialled_at_once_and_never_asked() {
    for strategy in [Strategy::default(), Strategy::RoundRobin, Strategy::Random] {
        let setup = Setup::new("chronicle://s1").strategy(strategy);
        let mut hand = Hand::new(start(), setup);
        hand.connect();
        let transport = hand.take_open("s1");
        hand.open(transport);
        assert!(!hand.asks(Request::Count));
        pass(&mut hand, transport);
        assert_eq!(hand.elapsed(), Duration::ZERO);
    }
}

#[test]
fn a_server_that_is_named_twice_is_one_candidate() {
    let mut hand = hand("chronicle://s1,S1:35000,s1.");
    hand.connect();
    assert_eq!(dials(&mut hand), ["s1"]);
}

#[test]
fn only_so_many_as_told_are_asked_drawn_afresh_each_time() {
    let strategy = Strategy::LeastConnections {
        max_probes: NonZeroUsize::new(2),
    };
    let mut pairs = BTreeMap::new();
    for seed in 0..600 {
        let setup = Setup::new(THREE).strategy(strategy.clone()).exact();
        let mut hand = Hand::seeded(start(), setup, seed);
        hand.connect();
        let mut dialled = dials(&mut hand);
        dialled.sort();
        assert_eq!(dialled.len(), 2);
        *pairs.entry(dialled).or_insert(0) += 1;
    }
    assert_eq!(pairs.len(), 3);
    assert!(
        pairs.values().all(|&times| (150..=250).contains(&times)),
        "{pairs:?}"
    );
}

#[test]
fn more_probes_than_servers_are_all_servers() {
    let strategy = Strategy::LeastConnections {
        max_probes: NonZeroUsize::new(9),
    };
    let mut hand = Hand::new(start(), Setup::new(THREE).strategy(strategy).exact());
    hand.connect();
    assert_eq!(dials(&mut hand).len(), 3);
}
