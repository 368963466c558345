//! `chronicle serve`

use crate::{
    problem::{self, Problem, bad_input},
    signals::interrupted,
};
use chronicle_reference_server::{Console, Said, ServerOptions, version};
use clap::{Args, value_parser};
use futures_util::FutureExt as _;
use std::{
    fs,
    io::{self, BufRead as _, Write as _},
    path::PathBuf,
    pin::pin,
    process::ExitCode,
    thread,
};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The contract that the servers serve: a descriptor set with its imports, or proto source text
    /// as servers return it. Without it, that of what they can do: sessions, and the service
    /// chronicle.reference.Echo.
    #[arg(long, value_name = "FILE")]
    contract: Option<PathBuf>,
    /// How many servers, up to the 64 that a connection string holds.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = value_parser!(u16).range(1..=64))]
    servers: u16,
    /// The port of the first; the others follow. 0 stands for any that are free.
    #[arg(long, value_name = "P", default_value_t = 0)]
    port: u16,
    /// The version of the servers and of their contract. Servers below 17 know no compatibility
    /// check; those up to 18.4 refuse clients that only gained something.
    #[arg(long, value_name = "V", default_value = "18.5.0", value_parser = version)]
    server_version: String,
}

pub(crate) const ABOUT: &str = "\
Start a cluster on loopback, to develop and test how an application connects.

This is no event store. The servers keep connections as those of Chronicle do, over TLS, and judge the \
contracts of clients by their own; they store nothing, and answer an application's own calls as \
UNIMPLEMENTED.

The first line of the output is the connection string. Each line of the input is a command: kill N, \
heal N, silence N, upgrade N VERSION [FILE], status, quit, and what else help lists. At the end of \
the input the servers stay until Ctrl-C.";

pub(crate) const EXIT_CODES: &str = "\
Exit codes:
  0  ended: by quit, by Ctrl-C, or as nobody reads the output any more
  1  gave up: a port cannot be had
  2  bad input: the contract or an option is wrong";

/// Runs the command to its end.
pub(crate) fn run(arguments: &Arguments) -> ExitCode {
    problem::run(serve(arguments))
}

async fn serve(arguments: &Arguments) -> Result<(), Problem> {
    let contract = match &arguments.contract {
        Some(file) => {
            let bytes = fs::read(file);
            let bytes = bytes.map_err(|error| bad_input(format!("{}: {error}", file.display())))?;
            Some(bytes)
        }
        None => None,
    };
    let model = Console::model(contract.as_deref(), &arguments.server_version);
    let model = model.map_err(|error| match &arguments.contract {
        Some(file) => bad_input(format!("{}: {error}", file.display())),
        None => bad_input(error),
    })?;
    let options = ServerOptions {
        port: arguments.port,
        model,
        ..ServerOptions::default()
    };
    let console = Console::start(options, arguments.servers).await;
    let mut console = console.map_err(|error| match error.kind() {
        io::ErrorKind::InvalidInput => bad_input(error),
        _ => Problem::from(error),
    })?;
    let mut stop = pin!(interrupted()?.fuse());
    let mut out = io::stdout();
    writeln!(out, "{}", console.connection_string())?;
    let (mut lines, mut is_open) = (lines(), true);
    loop {
        tokio::select! {
            line = lines.recv(), if is_open => match line {
                Some(line) => {
                    let said = match line {
                        Ok(line) => console.command(line, |file| fs::read(file)).await,
                        Err(error) => Said::Error(format!("the input cannot be read: {error}")),
                    };
                    writeln!(out, "{said}")?;
                    if said == Said::Quit {
                        return Ok(());
                    }
                }
                None => is_open = false,
            },
            () = &mut stop => return Ok(()),
        }
    }
}

/// The lines of the input, up to one that cannot be read. Reading them blocks, and cannot be called
/// off.
fn lines() -> UnboundedReceiver<io::Result<Vec<u8>>> {
    let (sender, lines) = unbounded_channel();
    thread::spawn(move || {
        for line in io::stdin().lock().split(b'\n') {
            let is_readable = line.is_ok();
            if sender.send(line).is_err() || !is_readable {
                return;
            }
        }
    });
    lines
}
