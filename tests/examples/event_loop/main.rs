//! A connection over real sockets without any async runtime: one thread, one readiness loop.
//!
//! `client/` is all that it takes, written to be read; begin with `client/mod.rs`. Here is an
//! application around it, which prints what happens until somebody presses Enter.
//!
//! `cargo run -p chronicle-connection-tests --example event_loop -- CONNECTION_STRING`
//!
//! `cargo run -p chronicle-connection-cli -- connect` prints a string of servers to try it with.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "here are the clock, the sockets and the thread that the machine does without"
)]

mod client;

use chronicle_connection::{Command, Config, Connection, Contract};
use client::{EventLoop, tls};
use rand_chacha::ChaCha12Rng;
use rand_core::SeedableRng as _;
use std::{env, error::Error, io, thread, time::Instant};

fn main() -> Result<(), Box<dyn Error>> {
    let string = env::args()
        .nth(1)
        .ok_or("name the servers: event_loop 'chronicle://localhost?skipTlsValidation=true'")?;
    let config = Config::builder(string.parse()?)
        .connect_timeout(None)
        .build()?;
    let tls = tls::config(config.skip_tls_validation(), &[])?;
    let mut seed = [0; 32];
    getrandom::fill(&mut seed)?;
    let rng = ChaCha12Rng::from_seed(seed);
    let connection = Connection::new(config, Contract::default(), rng, Instant::now());
    let (event_loop, handle) = EventLoop::new(connection, tls)?;

    // Reading a line blocks, so it is not for the thread of the loop.
    thread::spawn(move || {
        let _ = io::stdin().read_line(&mut String::new());
        handle.command(Command::Close);
    });
    event_loop.run(|events, _| {
        for event in events {
            println!("{event}");
        }
    })?;
    Ok(())
}
