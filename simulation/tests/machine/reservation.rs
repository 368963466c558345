//! The reservation on the winner, and the transports of the losers.

use crate::help::*;
use chronicle_connection::{CallError, Event, FailureKind, Output, Reply, Request};
use chronicle_simulation::{Fault, Hand, Setup, World, http, request_of};

#[test]
fn one_reservation_is_made_on_the_winner_and_none_on_the_losers() {
    let mut hand = hand(THREE);
    hand.connect();
    let transports = offer(
        &mut hand,
        &[("s1", Some(2)), ("s2", Some(1)), ("s3", Some(3))],
    );
    assert_eq!(asked(&hand, Request::Reserve).len(), 1);
    pass(&mut hand, transports[1]);
    assert!(!hand.asks(Request::Reserve));
}

#[test]
fn losing_transports_are_closed_when_the_check_has_passed_and_not_before() {
    let mut hand = hand(THREE);
    hand.connect();
    let transports = offer(
        &mut hand,
        &[("s1", Some(2)), ("s2", Some(1)), ("s3", Some(3))],
    );
    let check = hand.take(Request::CheckCompatibility, transports[1]);
    let losers = [transports[0], transports[2]];
    assert!(losers.iter().all(|&loser| !hand.is_closed(loser)));
    pass_check(&mut hand, check);
    assert!(losers.iter().all(|&loser| hand.is_closed(loser)));
    assert!(!hand.is_closed(transports[1]));
}

#[test]
fn a_loser_that_is_still_dialling_is_closed_when_the_check_has_passed() {
    let mut hand = hand("chronicle://s1,s2");
    hand.connect();
    let (first, second) = (hand.take_open("s1"), hand.take_open("s2"));
    hand.open(first);
    let ask = hand.take(Request::Count, first);
    hand.reply(ask, http(200, "0"));
    hand.wait(secs(2));
    // The count is two seconds old, and is asked for once more.
    let ask = hand.take(Request::Count, first);
    hand.reply(ask, http(200, "0"));
    let check = hand.take(Request::CheckCompatibility, first);
    pass_check(&mut hand, check);
    assert!(hand.is_closed(second));
}

#[test]
fn the_count_and_the_reservation_carry_no_credentials_and_follow_no_redirect() {
    let mut hand = hand("chronicle://s1,s2?apiKey=k3y");
    hand.connect();
    for server in ["s1", "s2"] {
        let transport = hand.take_open(server);
        hand.open(transport);
    }
    let mut plain = 0;
    for ask in asked(&hand, Request::Count) {
        let output = hand.find(|output| chronicle_simulation::id_of(output) == Some(ask));
        plain += usize::from(output.is_some_and(|output| is_plain(&output)));
        hand.reply(ask, http(307, ""));
    }
    let reserve = hand.find(|output| request_of(output) == Some(Request::Reserve));
    plain += usize::from(reserve.is_some_and(|output| is_plain(&output)));
    assert_eq!(plain, 3);
    assert!(dials(&mut hand).is_empty(), "nobody follows a redirect");
}

fn is_plain(output: &Output) -> bool {
    match output {
        Output::Http { request, .. } => {
            let headers = request.headers();
            ["authorization", "api-key", "cookie"]
                .iter()
                .all(|name| headers.get(*name).is_none())
                && !request.uri().to_string().contains("k3y")
        }
        _ => false,
    }
}

#[test]
fn a_reservation_that_fails_or_hangs_is_reported_and_stops_nothing() {
    let answers: [(Reply, CallError); 4] = [
        (http(500, ""), CallError::Http(500)),
        (http(404, ""), CallError::Http(404)),
        (http(307, ""), CallError::Http(307)),
        (
            failed(FailureKind::Reset),
            CallError::Failure(chronicle_connection::Failure::new(FailureKind::Reset, "")),
        ),
    ];
    for (answer, expected) in answers {
        let mut hand = hand("chronicle://s1");
        hand.connect();
        let transport = hand.take_open("s1");
        hand.open(transport);
        let reserve = hand.take(Request::Reserve, transport);
        hand.reply(reserve, answer);
        let check = hand.take(Request::CheckCompatibility, transport);
        pass_check(&mut hand, check);
        let stream = hand.take(Request::Connect, transport);
        beat(&mut hand, Live { transport, stream });
        assert_eq!(reserve_failures(&mut hand), [expected]);
        assert!(hand.session().is_some());
    }
}

#[test]
fn a_reservation_that_hangs_is_given_up_after_two_seconds() {
    let mut hand = hand("chronicle://s1");
    hand.connect();
    let transport = hand.take_open("s1");
    hand.open(transport);
    let reserve = hand.take(Request::Reserve, transport);
    let check = hand.take(Request::CheckCompatibility, transport);
    pass_check(&mut hand, check);
    hand.wait(secs(2) - MOMENT);
    assert!(!hand.asks(Request::Connect));
    hand.wait(MOMENT);
    assert!(hand.is_cancelled(reserve));
    assert_eq!(reserve_failures(&mut hand).len(), 1);
    let stream = hand.take(Request::Connect, transport);
    beat(&mut hand, Live { transport, stream });
    assert!(hand.session().is_some());
}

fn reserve_failures(hand: &mut Hand) -> Vec<CallError> {
    let events = hand.events().into_iter();
    events
        .filter_map(|event| match event {
            Event::ReserveFailed { cause, .. } => Some(cause),
            _ => None,
        })
        .collect()
}

#[test]
fn a_client_that_asks_a_moment_later_sees_the_reservation_and_goes_elsewhere() {
    for seed in 0..30 {
        let mut world = World::new(start(), seed);
        let servers = world.add_servers(2);
        // Nobody gets as far as a registration, so only reservations are counted.
        for &server in &servers {
            world.fail(server, Request::Connect, Fault::Hangs);
        }
        let first = world.add_client(Setup::new("chronicle://s1,s2"));
        world.connect(first);
        world.run_for(secs(1));
        let second = world.add_client(Setup::new("chronicle://s1,s2"));
        world.connect(second);
        world.run_for(secs(1));
        for &server in &servers {
            assert_eq!(
                world.server(server).arrived(Request::Reserve),
                1,
                "seed {seed}"
            );
        }
    }
}

#[test]
fn a_client_is_counted_once_before_and_after_its_registration() {
    let mut world = World::new(start(), 1);
    let server = world.add_server();
    world.fail(server, Request::Connect, Fault::Hangs);
    let client = world.add_client(Setup::new("chronicle://s1"));
    world.connect(client);
    world.run_for(secs(1));
    assert_eq!(world.count(server), 1, "the reservation");
    world.heal(server);
    assert!(world.run_until(secs(30), |world| world.client(client).session().is_some()));
    // Two attempts were made, and the registration cleared one of their two reservations.
    assert_eq!(world.count(server), 2);
    world.run_for(secs(30));
    assert_eq!(world.count(server), 1, "the abandoned one has expired");
}
