//! Two servers on loopback with the contract of this application and one log of events behind them.
//!
//! `event-log [PORT]`: the first line of the output is the connection string; each line of the input
//! is a command, such as `kill 0` and `heal 0`; `help` lists them.
#![allow(clippy::disallowed_methods, reason = "a program reads its arguments")]

mod log;

use std::{env, error::Error, fs, io, process::ExitCode};
use tokio::runtime::Runtime;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("event-log: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn Error>> {
    let port = match env::args().nth(1) {
        Some(port) => port
            .parse()
            .map_err(|error| format!("{port:?} is no port ({error}); give 0 to 65534"))?,
        None => 0,
    };
    let runtime = Runtime::new()?;
    let mut servers = runtime.block_on(log::start(port))?;
    println!("{}", servers.connection_string());
    let obeyed = servers.obey(io::stdin().lock(), io::stdout(), |file| fs::read(file));
    Ok(runtime.block_on(obeyed)?)
}
