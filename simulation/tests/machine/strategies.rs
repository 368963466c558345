//! Round-robin, random, and a strategy of the application's own.

use crate::help::*;
use chronicle_connection::{Code, Command, Endpoint, Request, Selector, State, Strategy};
use chronicle_simulation::{Hand, Setup, World, status};
use rand_core::Rng;
use std::{collections::BTreeMap, time::Duration};

fn hand_with(strategy: Strategy, seed: u64) -> Hand {
    let setup = Setup::new(THREE).strategy(strategy).exact().patient();
    let mut hand = Hand::seeded(start(), setup, seed);
    hand.connect();
    hand
}

/// Lets the chosen server refuse at the dial; gives its name.
fn refuse(hand: &mut Hand) -> String {
    hand.wait_until(has_dialled);
    let (transport, server) = hand.find_open().unwrap();
    assert!(!has_dialled(hand), "only the chosen server is dialled");
    hand.reply(transport, refused());
    server
}

/// Connects to the chosen server, stays for a while, and loses it; gives its name.
fn live_and_lose_any(hand: &mut Hand) -> String {
    hand.wait_until(has_dialled);
    let (transport, server) = hand.find_open().unwrap();
    hand.open(transport);
    live_and_lose(hand, transport);
    server
}

#[test]
fn round_robin_starts_anywhere() {
    let mut starts = BTreeMap::new();
    for seed in 0..900 {
        let mut hand = hand_with(Strategy::RoundRobin, seed);
        *starts.entry(refuse(&mut hand)).or_insert(0) += 1;
    }
    assert!(
        starts.values().all(|&times| (240..=360).contains(&times)),
        "{starts:?}"
    );
}

#[test]
fn round_robin_goes_on_in_order_over_reconnects() {
    for seed in 0..6 {
        let mut hand = hand_with(Strategy::RoundRobin, seed);
        let first = live_and_lose_any(&mut hand);
        let order = ["s1", "s2", "s3"];
        let start = order.iter().position(|&server| server == first).unwrap();
        for nth in 1..8 {
            assert_eq!(live_and_lose_any(&mut hand), order[(start + nth) % 3]);
        }
    }
}

#[test]
fn round_robin_moves_past_every_server_that_it_chose_the_failing_included() {
    let mut hand = hand_with(Strategy::RoundRobin, 1);
    let first = refuse(&mut hand);
    let second = live_and_lose_any(&mut hand);
    let third = live_and_lose_any(&mut hand);
    let again = live_and_lose_any(&mut hand);
    assert_eq!(again, first);
    let mut all = [first, second, third];
    all.sort();
    assert_eq!(all, ["s1", "s2", "s3"]);
}

#[test]
fn round_robin_tries_each_server_once_in_an_attempt() {
    let mut hand = hand_with(Strategy::RoundRobin, 1);
    let mut tried: Vec<String> = (0..3).map(|_| refuse(&mut hand)).collect();
    assert_eq!(hand.state(), State::BackingOff);
    tried.sort();
    assert_eq!(tried, ["s1", "s2", "s3"]);
    assert_eq!(hand.elapsed(), Duration::ZERO);
}

#[test]
fn random_chooses_each_server_equally_often_on_every_connect() {
    let mut firsts = BTreeMap::new();
    for seed in 0..900 {
        let mut hand = hand_with(Strategy::Random, seed);
        *firsts.entry(refuse(&mut hand)).or_insert(0) += 1;
    }
    assert!(
        firsts.values().all(|&times| (240..=360).contains(&times)),
        "{firsts:?}"
    );

    let mut hand = hand_with(Strategy::Random, 1);
    let mut all = BTreeMap::new();
    for _ in 0..300 {
        *all.entry(live_and_lose_any(&mut hand)).or_insert(0) += 1;
    }
    assert!(
        all.values().all(|&times| (70..=130).contains(&times)),
        "{all:?}"
    );
}

#[test]
fn only_least_connections_asks_for_counts_and_every_strategy_reserves() {
    for strategy in [Strategy::RoundRobin, Strategy::Random, first_of_all()] {
        let mut hand = hand_with(strategy, 1);
        let (transport, _) = hand.find_open().unwrap();
        hand.open(transport);
        assert!(!hand.asks(Request::Count));
        assert!(hand.asks(Request::Reserve));
        pass(&mut hand, transport);
    }
}

#[test]
fn a_first_connect_waits_only_to_probe_and_every_reconnect_waits_once() {
    for strategy in [Strategy::RoundRobin, Strategy::Random, first_of_all()] {
        let mut waits = Vec::new();
        for seed in 0..40 {
            let setup = Setup::new(THREE).strategy(strategy.clone());
            let mut hand = Hand::seeded(start(), setup, seed);
            hand.connect();
            assert!(has_dialled(&hand), "nothing to probe, nothing to wait for");
            live_and_lose_any(&mut hand);
            let lost = hand.elapsed();
            hand.wait_until(has_dialled);
            waits.push(hand.elapsed() - lost);
            // The next best follows without another wait.
            refuse(&mut hand);
            assert!(has_dialled(&hand));
        }
        assert!(waits.iter().all(|&wait| wait <= millis(250)));
        assert!(waits.iter().any(|&wait| wait > millis(125)), "{waits:?}");
        assert!(waits.iter().any(|&wait| wait < millis(125)), "{waits:?}");
    }
}

#[test]
fn with_one_server_too_a_reconnect_waits_once() {
    let mut waits = Vec::new();
    for seed in 0..20 {
        let mut hand = Hand::seeded(start(), Setup::new("chronicle://s1"), seed);
        hand.connect();
        live_and_lose_any(&mut hand);
        let lost = hand.elapsed();
        hand.wait_until(has_dialled);
        waits.push(hand.elapsed() - lost);
    }
    assert!(waits.iter().all(|&wait| wait <= millis(250)));
    assert!(waits.iter().any(|&wait| wait > millis(100)), "{waits:?}");
}

/// Takes the first of the list.
#[derive(Debug, Clone)]
struct First;

impl Selector for First {
    fn select<'a>(&mut self, candidates: &'a [Endpoint], _rng: &mut dyn Rng) -> &'a Endpoint {
        &candidates[0]
    }

    fn clone_box(&self) -> Box<dyn Selector> {
        Box::new(self.clone())
    }
}

fn first_of_all() -> Strategy {
    Strategy::Custom(Box::new(First))
}

#[test]
fn a_custom_strategy_chooses() {
    let mut hand = hand_with(first_of_all(), 1);
    let order: Vec<String> = (0..3).map(|_| refuse(&mut hand)).collect();
    assert_eq!(order, ["s1", "s2", "s3"], "each is out once it has failed");
}

#[test]
fn a_custom_strategy_is_handed_the_best_rank_only() {
    // What it is handed shows in what it takes: the first of the list that has not failed.
    let mut hand = hand_with(first_of_all(), 1);
    let (transport, server) = hand.find_open().unwrap();
    assert_eq!(server, "s1");
    hand.open(transport);
    let check = hand.take(Request::CheckCompatibility, transport);
    hand.reply(check, status(Code::Unavailable));
    let (transport, server) = hand.find_open().unwrap();
    assert_eq!(server, "s2");
    hand.open(transport);
    let live = pass(&mut hand, transport);
    live_on(&mut hand, live, 7);
    hand.take_all();
    hand.reply(transport, closed());
    // A session clears the ranks.
    assert_eq!(live_and_lose_any(&mut hand), "s1");
}

#[test]
fn a_custom_strategy_sees_all_again_when_all_have_failed() {
    let mut hand = hand_with(first_of_all(), 1);
    for round in 0..3 {
        let order: Vec<String> = (0..3).map(|_| refuse(&mut hand)).collect();
        assert_eq!(order, ["s1", "s2", "s3"], "{round}");
        hand.take_all();
    }
}

#[test]
fn when_one_server_refuses_its_share_goes_to_all_others_alike() {
    // Round-robin, s2 refuses; each client connects, loses its session, and connects again.
    let mut share = BTreeMap::new();
    for seed in 0..150 {
        let setup = Setup::new(THREE).strategy(Strategy::RoundRobin).exact();
        let mut hand = Hand::seeded(start(), setup.patient(), seed);
        hand.connect();
        for _ in 0..2 {
            loop {
                hand.wait_until(has_dialled);
                let (transport, server) = hand.find_open().unwrap();
                if server == "s2" {
                    hand.reply(transport, refused());
                    continue;
                }
                hand.open(transport);
                live_and_lose(&mut hand, transport);
                *share.entry(server).or_insert(0) += 1;
                break;
            }
        }
    }
    assert!(
        share.values().all(|&times| (140..=160).contains(&times)),
        "{share:?}"
    );
}

#[test]
fn a_fleet_that_only_lists_servers_spreads_over_them_with_every_strategy() {
    for strategy in [Strategy::default(), Strategy::RoundRobin, Strategy::Random] {
        let mut world = World::new(start(), 1);
        let servers = world.add_servers(3);
        for _ in 0..60 {
            let client = world.add_client(Setup::new(THREE).strategy(strategy.clone()));
            world.command(client, Command::Connect);
        }
        world.run_for(secs(3));
        let counts: Vec<usize> = servers
            .iter()
            .map(|&server| world.server(server).registered())
            .collect();
        assert_eq!(counts.iter().sum::<usize>(), 60);
        assert!(
            counts.iter().all(|&count| count >= 8),
            "{strategy:?} {counts:?}"
        );
    }
}
