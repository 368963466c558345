//! Two servers on loopback with the contract of this application and one log of events behind them.
//!
//! `event-log [PORT]`: the first line of the output is the connection string; each line of the input
//! is a command, such as `kill 0` and `heal 0`; `help` lists them.
#![allow(clippy::disallowed_methods, reason = "a program reads its arguments")]

mod log;

use chronicle_reference_server::Said;
use std::{
    env,
    error::Error,
    fs,
    io::{self, BufRead as _},
};
use tokio::runtime::Runtime;

fn main() -> Result<(), Box<dyn Error>> {
    let port = env::args().nth(1).map_or(Ok(0), |port| port.parse())?;
    let runtime = Runtime::new()?;
    let mut servers = runtime.block_on(log::start(port))?;
    println!("{}", servers.connection_string());
    for line in io::stdin().lock().lines() {
        let said = runtime.block_on(servers.command(&line?, |file| fs::read(file)));
        println!("{said}");
        if said == Said::Quit {
            break;
        }
    }
    Ok(())
}
