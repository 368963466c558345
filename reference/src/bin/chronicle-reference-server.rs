//! Servers on loopback for tests in other processes.
//!
//! `chronicle-reference-server [--servers N] [--port P]` starts N servers (default 1) on the ports
//! from P on (default 0: any that are free), prints the connection string as one line, and then
//! answers each command on standard input with one line: `ok`, a number, or `error: ...`. It ends
//! at the end of the input.

#![allow(clippy::disallowed_methods, reason = "a program reads its arguments")]

use chronicle_connection::Code;
use chronicle_reference_server::{Answer, Cluster, ServerOptions};
use std::{
    env, io,
    io::{BufRead as _, Write as _},
    process::ExitCode,
};
use tokio::runtime::Runtime;

fn main() -> ExitCode {
    let servers = match parse(env::args().skip(1)) {
        Ok(servers) => servers,
        Err(error) => {
            eprintln!("{error}\nusage: chronicle-reference-server [--servers N] [--port P]");
            return ExitCode::from(2);
        }
    };
    match run(servers) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Vec<ServerOptions>, String> {
    let (mut servers, mut port) = (1_u16, 0_u16);
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
    let ports = (0..servers).map(|index| match port {
        0 => Some(0),
        first => first.checked_add(index),
    });
    ports
        .map(|port| {
            let port = port.ok_or("the ports would pass 65535; give a lower --port")?;
            Ok(ServerOptions {
                port,
                ..ServerOptions::default()
            })
        })
        .collect()
}

fn run(servers: Vec<ServerOptions>) -> io::Result<()> {
    let runtime = Runtime::new()?;
    let mut cluster = runtime.block_on(Cluster::start_with(servers))?;
    let mut out = io::stdout();
    writeln!(out, "{}", cluster.connection_string())?;
    for line in io::stdin().lock().lines() {
        match runtime.block_on(command(&mut cluster, &line?)) {
            Ok(answer) => writeln!(out, "{answer}")?,
            Err(error) => writeln!(out, "error: {error}")?,
        }
    }
    Ok(())
}

/// `COMMAND I [PATH]`, with I counting from 0.
async fn command(cluster: &mut Cluster, line: &str) -> Result<String, String> {
    let mut words = line.split_whitespace();
    let (name, index, path) = (words.next(), words.next(), words.next());
    let server = index
        .and_then(|index| cluster.servers_mut().get_mut(index.parse::<usize>().ok()?))
        .ok_or("give a command and the index of a server")?;
    let faults = server.faults();
    match (name.unwrap_or_default(), path) {
        ("kill", None) => server.kill().await,
        ("restart", None) => server.restart().await.map_err(|error| error.to_string())?,
        ("silence", None) => faults.set(|faults| faults.model.silent = true),
        ("speak", None) => faults.set(|faults| faults.model.silent = false),
        ("goaway", None) => faults.go_away(),
        ("end", None) => faults.end_streams(Code::Ok, ""),
        ("hang", Some(path)) => faults.set(|faults| faults.on(path).answer = Some(Answer::Hang)),
        ("answer", Some(path)) => faults.set(|faults| faults.on(path).answer = None),
        ("count", None) => return Ok(server.stats().count.to_string()),
        _ => {
            return Err(
                "know kill, restart, silence, speak, goaway, end and count, each with I, \
                 and hang and answer, each with I PATH"
                    .to_owned(),
            );
        }
    }
    Ok("ok".to_owned())
}
