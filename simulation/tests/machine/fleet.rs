//! Many clients at once, and what the whole of them shows.

use crate::help::*;
use chronicle_connection::{Code, Command, Request, Status};
use chronicle_simulation::{
    ClientId, Fault, Latency, Network, ServerId, Setup, Trace, World, replay,
};
use std::time::Duration;

fn add_clients(world: &mut World, count: usize, setup: &Setup) -> Vec<ClientId> {
    let clients: Vec<ClientId> = (0..count)
        .map(|_| world.add_client(setup.clone()))
        .collect();
    for &client in &clients {
        world.connect(client);
    }
    clients
}

fn registered(world: &World) -> Vec<usize> {
    world
        .server_ids()
        .map(|server| world.server(server).registered())
        .collect()
}

fn all_connected(world: &World) -> bool {
    world.clients().all(|client| client.session().is_some())
}

#[test]
fn a_server_that_fails_every_check_captures_nobody() {
    // s1 has the lowest count of all, since nobody stays.
    for seed in 0..20 {
        replay(start(), seed, |world| {
            let servers = world.add_servers(3);
            let unavailable = Fault::Status(Status::grpc(Code::Unavailable, "starting"));
            world.fail(servers[0], Request::CheckCompatibility, unavailable);
            add_clients(world, 10, &Setup::new(THREE));
            assert!(world.run_until(secs(10), all_connected), "seed {seed}");
            let counts = registered(world);
            assert_eq!(counts[0], 0);
            assert_eq!(counts[1] + counts[2], 10);
        });
    }
}

#[test]
fn three_clients_that_start_at_once_take_one_of_three_idle_servers_each() {
    let mut even = 0;
    for seed in 0..1000 {
        let mut world = World::new(start(), seed);
        world.set_network(Network {
            latency: Latency::Fixed(millis(1)),
            ..Network::default()
        });
        world.add_servers(3);
        add_clients(&mut world, 3, &Setup::new(THREE));
        assert!(world.run_until(secs(2), all_connected), "seed {seed}");
        even += usize::from(registered(&world) == [1, 1, 1]);
    }
    println!("one client on each of three servers: {even} of 1000 seeds");
    assert!(even >= 960, "{even} of 1000");
}

/// Sixty clients on two of three servers lose their sessions at the same instant, and the servers
/// have not noticed yet: they count 30 each, and the third, which is back, none. Gives how many
/// clients the third gets.
fn share_of_the_returned(seed: u64, setup: &Setup) -> usize {
    let mut world = World::new(start(), seed);
    world.set_network(Network {
        latency: Latency::Between(millis(2), millis(25)),
        ..Network::default()
    });
    let servers = world.add_servers(3);
    world.crash(servers[2]);
    let clients = add_clients(&mut world, 60, setup);
    world.run_for(secs(8));
    world.start(servers[2]);
    for client in clients {
        world.black_hole(client);
        world.command(client, Command::Slept(secs(60)));
    }
    world.run_for(secs(15));
    assert!(all_connected(&world), "seed {seed}");
    registered(&world)[2]
}

#[test]
fn a_server_that_comes_back_empty_does_not_take_the_whole_fleet() {
    // Thirty to draw level with the others, and ten of the other thirty.
    let setup = Setup::new(THREE);
    let shares = (0..12).map(|seed| share_of_the_returned(seed, &setup));
    let shares: Vec<usize> = shares.collect();
    assert!(
        shares.iter().all(|share| (30..=52).contains(share)),
        "{shares:?}"
    );
}

#[test]
fn without_the_wait_it_would_take_nearly_all() {
    let setup = Setup::new(THREE).timing(|timing| timing.selection_wait = Duration::ZERO);
    let shares = (0..12).map(|seed| share_of_the_returned(seed, &setup));
    let shares: Vec<usize> = shares.collect();
    assert!(shares.iter().all(|&share| share > 55), "{shares:?}");
}

#[test]
fn every_client_opens_one_transport_to_each_server_and_keeps_one() {
    let mut world = World::new(start(), 1);
    let servers = world.add_servers(3);
    let clients = add_clients(&mut world, 1, &Setup::new(THREE));
    world.run_for(secs(3));
    let accepted: usize = servers
        .iter()
        .map(|&server| world.server(server).dials().len())
        .sum();
    assert_eq!(accepted, 3);
    let open: usize = servers
        .iter()
        .map(|&server| world.open_transports(server))
        .sum();
    assert_eq!(open, 1);
    assert!(world.client(clients[0]).session().is_some());
}

#[test]
fn a_rolling_restart_keeps_every_client_connected_to_somebody() {
    let world = replay(start(), 4, |world| {
        let servers = world.add_servers(3);
        add_clients(world, 30, &Setup::new(THREE));
        world.run_for(secs(10));
        for server in servers {
            world.go_away(server, 0);
            world.run_for(secs(2));
            assert!(all_connected(world), "after the farewell of {server}");
            world.crash(server);
            world.run_for(secs(5));
            assert!(all_connected(world), "while {server} is down");
            world.start(server);
            world.run_for(secs(5));
        }
    });
    assert!(world.clients().all(|client| client.stats().sessions >= 2));
}

#[test]
fn servers_that_fail_at_random_for_an_hour_leave_everybody_connected_in_the_end() {
    for seed in 0..2 {
        replay(start(), seed, |world| {
            world.set_network(Network {
                latency: Latency::Between(millis(1), millis(60)),
                ..Network::default()
            });
            let servers = world.add_servers(3);
            let clients = add_clients(world, 8, &Setup::new(THREE).patient());
            for round in 0..120 {
                trouble(world, &servers, &clients, seed * 131 + round);
                world.run_for(secs(10));
            }
            for &server in &servers {
                world.heal(server);
                world.reconfigure(server, |model| model.silent = false);
                world.start(server);
            }
            // The last suspension is over ten minutes after the last trouble.
            world.run_for(secs(660));
            assert!(all_connected(world), "seed {seed}");
        });
    }
}

/// Something goes wrong, or right again; which, the number says.
fn trouble(world: &mut World, servers: &[ServerId], clients: &[ClientId], number: u64) {
    let server = servers[(number % 3) as usize];
    let client = clients[(number % 8) as usize];
    let unavailable = || Fault::Status(Status::grpc(Code::Unavailable, ""));
    match number * 7 % 17 {
        0 => world.crash(server),
        1 => world.restart(server),
        2 => world.go_away(server, 0),
        3 => world.go_away(server, 2),
        4 => world.reconfigure(server, |model| model.silent = !model.silent),
        5 => world.fail(server, Request::KeepAlive, Fault::Hangs),
        6 => world.fail(server, Request::KeepAlive, Fault::Slow(secs(4))),
        7 => world.fail(server, Request::CheckCompatibility, unavailable()),
        8 => world.fail(server, Request::Connect, Fault::Hangs),
        9 => world.fail(server, Request::Count, Fault::Slow(secs(1))),
        10 => world.fail(server, Request::Reserve, Fault::Hangs),
        11 => world.black_hole(client),
        12 => world.pause(client, secs(7)),
        13 => world.suspend(client, secs(600)),
        14 => world.finish_streams(server, &Status::grpc(Code::Ok, "")),
        15 => world.set_reachable(server, chronicle_simulation::Reachable::Hangs),
        _ => {
            world.heal(server);
            world.start(server);
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_trace_and_another_seed_another() {
    let play = |seed| -> Trace {
        let mut world = World::new(start(), seed);
        world.add_servers(3);
        add_clients(&mut world, 5, &Setup::new(THREE));
        world.run_for(secs(10));
        world.trace().clone()
    };
    assert_eq!(play(1), play(1));
    assert_ne!(play(1), play(2));
}
