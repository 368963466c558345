//! Servers on loopback for tests in other processes.
//!
//! `chronicle-reference-server [--servers N] [--port P]` starts N servers (default 1, at most 64) on the ports
//! from P on (default 0: any that are free), prints the connection string as one line, and then does
//! what each line on standard input says, as [`Console`] knows it: `help` lists the commands. It ends
//! at the end of the input. `chronicle serve` is the same for people.

#![allow(
    clippy::disallowed_methods,
    reason = "a program reads its arguments and files"
)]

use chronicle_reference_server::{Console, ServerOptions};
use std::{
    env, fs,
    io::{self, Write as _},
    process::ExitCode,
};
use tokio::runtime::Runtime;

fn main() -> ExitCode {
    let (servers, port) = match parse(env::args().skip(1)) {
        Ok(parsed) => parsed,
        Err(error) => {
            eprintln!("{error}\nusage: chronicle-reference-server [--servers N] [--port P]");
            return ExitCode::from(2);
        }
    };
    match run(servers, port) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            match error.kind() {
                io::ErrorKind::InvalidInput => ExitCode::from(2),
                _ => ExitCode::FAILURE,
            }
        }
    }
}

fn parse(mut arguments: impl Iterator<Item = String>) -> Result<(u16, u16), String> {
    let (mut servers, mut port) = (1, 0);
    while let Some(name) = arguments.next() {
        let value = arguments.next().unwrap_or_default();
        let number = value
            .parse()
            .map_err(|_| format!("{name} takes a number up to 65535, not {value:?}"));
        match name.as_str() {
            "--servers" => servers = number?,
            "--port" => port = number?,
            _ => return Err(format!("unknown option {name}")),
        }
    }
    Ok((servers, port))
}

fn run(servers: u16, port: u16) -> io::Result<()> {
    let runtime = Runtime::new()?;
    // Any client is welcome here, whatever its contract.
    let options = ServerOptions {
        port,
        ..ServerOptions::default()
    };
    let mut console = runtime.block_on(Console::start(options, servers))?;
    let mut out = io::stdout();
    writeln!(out, "{}", console.connection_string())?;
    runtime.block_on(console.obey(io::stdin().lock(), out, |file| fs::read(file)))
}
