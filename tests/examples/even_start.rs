//! Three clients that start at the same instant on three idle servers, thirty times, on real
//! sockets: how often did each server get one?
//!
//! `cargo run --release -p chronicle-connection-tests --example even_start [ROUNDS]`

#![allow(
    clippy::disallowed_methods,
    reason = "an example on real sockets in real time"
)]

use chronicle_connection_tokio::Client;
use chronicle_reference_server::Cluster;
use futures_util::future::try_join_all;
use std::{collections::BTreeMap, env, error::Error, sync::Arc};
use tokio::{sync::Barrier, task::spawn};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let rounds = match env::args().nth(1) {
        Some(rounds) => rounds.parse()?,
        None => 30,
    };
    let mut outcomes = BTreeMap::<Vec<u64>, u32>::new();
    for _ in 0..rounds {
        *outcomes.entry(round().await?).or_default() += 1;
    }
    let even = outcomes.get(&vec![1; SERVERS]).copied().unwrap_or_default();
    println!("one client on each of {SERVERS} servers: {even} of {rounds}");
    println!("clients on each server, fewest first, and how often: {outcomes:?}");
    Ok(())
}

/// How many clients each server got, fewest first.
async fn round() -> Result<Vec<u64>, Box<dyn Error>> {
    let cluster = Cluster::start(SERVERS).await?;
    let start = Arc::new(Barrier::new(SERVERS));
    let connecting = (0..SERVERS).map(|_| {
        let (start, string) = (start.clone(), cluster.connection_string());
        spawn(async move {
            start.wait().await;
            Client::connect(string).await
        })
    });
    let clients = try_join_all(connecting).await?;
    let clients = clients.into_iter().collect::<Result<Vec<_>, _>>()?;
    let servers = cluster.servers().iter();
    let mut counts: Vec<_> = servers.map(|server| server.stats().count).collect();
    counts.sort_unstable();
    drop(clients);
    Ok(counts)
}

const SERVERS: usize = 3;
