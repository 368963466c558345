//! `chronicle`: connects to a cluster of Chronicle servers, stays connected, and tells what happens.
#![allow(
    clippy::disallowed_methods,
    reason = "a program reads the clock and its environment"
)]

mod connect;
mod contract;
mod credentials;
mod embedded;
mod problem;
mod render;
mod resolve;
mod serve;
mod signals;
mod simulate;
mod token;

use clap::{Args, Parser, Subcommand};
use std::process::ExitCode;

/// Reach a cluster of Chronicle servers, and stay connected.
#[derive(Debug, Parser)]
#[command(name = "chronicle", version, after_help = HELP)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Connect, print every transition with its reason and timing, and stay connected until Ctrl-C.
    #[command(after_help = EXIT_CODES)]
    Connect(ConnectArguments),
    /// Show that a token can be had for the client credentials of a connection string, and for how
    /// long it is valid.
    #[command(after_help = token::EXIT_CODES)]
    Token(token::Arguments),
    /// Look the servers up as a client would, once, and print each try with its timing and the
    /// servers in order.
    #[command(after_help = RESOLVE_EXIT_CODES)]
    Resolve(ResolveArguments),
    /// Judge contracts, and fetch them: descriptor sets and proto source text, from files and servers.
    #[command(subcommand)]
    Contract(contract::Command),
    /// Let something happen to a fleet of simulated clients and servers, in virtual time, and draw
    /// how even the clients are spread, how long they took, and what hit each server.
    #[command(after_help = simulate::EXIT_CODES)]
    Simulate(simulate::Arguments),
    /// Start a cluster on loopback, to develop and test how an application connects.
    #[command(long_about = serve::ABOUT, after_help = serve::EXIT_CODES)]
    Serve(serve::Arguments),
}

#[derive(Debug, Args)]
#[allow(
    rustdoc::broken_intra_doc_links,
    reason = "the text is the help that a terminal shows"
)]
struct ConnectArguments {
    /// Where to connect: chronicle://host:port,host:port/?options or chronicle+srv://name/?options.
    /// Without it, the environment variable CHRONICLE_CONNECTION_STRING says so; without both,
    /// --embedded holds.
    connection_string: Option<String>,

    /// Start three servers on loopback, connect to them, and take the one in use down and up again
    /// every six seconds.
    #[arg(long, conflicts_with = "connection_string")]
    embedded: bool,

    /// Exit after one connect, one drop and one reconnect.
    #[arg(long)]
    once: bool,

    /// Print one JSON object a line.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
struct ResolveArguments {
    /// Whose servers to look up: chronicle+srv://name/?options. Without it, the environment variable
    /// CHRONICLE_CONNECTION_STRING says so.
    connection_string: Option<String>,

    /// Print one JSON object a line.
    #[arg(long)]
    json: bool,
}

const HELP: &str = "\
Exit codes:
  0  done, with a good verdict where there is one
  1  it did not work, or the verdict is a bad one
  2  bad input
chronicle COMMAND --help says what that means for a command.";

const RESOLVE_EXIT_CODES: &str = "\
Exit codes:
  0  there are servers
  1  there are none, or nobody could tell
  2  bad input: the connection string or an option is wrong";

const EXIT_CODES: &str = "\
Exit codes:
  0  closed: by Ctrl-C, with --once after the reconnect, or as nobody reads the output any more
  1  gave up: not connected in time, refused by every server, or credentials refused
  2  bad input: the connection string or an option is wrong";

fn main() -> ExitCode {
    match Arguments::parse().command {
        Command::Connect(arguments) => connect::run(&arguments),
        Command::Token(arguments) => token::run(&arguments),
        Command::Resolve(arguments) => resolve::run(&arguments),
        Command::Contract(command) => contract::run(&command),
        Command::Simulate(arguments) => simulate::run(&arguments),
        Command::Serve(arguments) => serve::run(&arguments),
    }
}
