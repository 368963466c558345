//! `chronicle contract`: judges contracts, as a gate in somebody's CI.

mod directory;
mod fetch;
mod report;
mod source;

use crate::problem::{self, Problem, bad_input};
use chronicle_connection_tokio::{
    CandidateError, Client, Config, ConnectionString, Contract, Event, Findings, Incompatible,
    Notice, Schema, compare,
};
use chronicle_reference_server::version;
use clap::{Args, Subcommand};
use report::Report;
use std::{
    fs,
    io::{self, Write as _},
    path::PathBuf,
    process::ExitCode,
};

/// What can be done with contracts.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Compare two contracts: what of OLD is not in NEW as it was. Additions are never reported.
    #[command(after_help = EXIT_CODES)]
    Diff(DiffArguments),
    /// Print what a contract declares, in the form that is compared.
    #[command(after_help = SHOW_EXIT_CODES)]
    Show {
        /// A descriptor set or proto source text in a file, or the connection string of a server.
        source: String,
    },
    /// Connect to a server as a client with this contract would, and tell its verdict.
    #[command(after_help = EXIT_CODES)]
    Check(CheckArguments),
    /// Write the contract of a live server to a directory, to be committed and compiled: a descriptor
    /// set, chronicle.desc; its version, chronicle.version; and a .proto file for each package.
    #[command(after_help = fetch::EXIT_CODES)]
    Fetch(fetch::Arguments),
}

#[derive(Debug, Args)]
pub(crate) struct DiffArguments {
    /// The expected side: a descriptor set or proto source text in a file, or the connection string
    /// of a server.
    old: String,
    /// The actual side, in any of these forms.
    new: String,
    /// The version of OLD. With it, OLD is a client's contract and NEW a server's: what only a newer
    /// client has is missing on the server and breaks nothing. Without it, both are alike.
    #[arg(long, value_parser = version)]
    old_version: Option<String>,
    /// The version of NEW; a server tells that of its contract.
    #[arg(long, value_parser = version)]
    new_version: Option<String>,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct CheckArguments {
    /// Where to connect, as `chronicle connect` takes it.
    connection_string: String,
    /// The client's contract, a descriptor set with its imports; without it, that of a session alone.
    #[arg(long, requires = "protocol_version")]
    contract: Option<PathBuf>,
    /// The version of that contract.
    #[arg(long, requires = "contract", value_parser = version)]
    protocol_version: Option<String>,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

/// Runs a command to its end.
pub(crate) fn run(command: &Command) -> ExitCode {
    problem::run(async {
        // The exit code of what was given up is here that of a verdict.
        judge(command).await.map_err(|problem| match problem {
            Problem::GaveUp(text) => Problem::BadInput(text),
            problem => problem,
        })
    })
}

async fn judge(command: &Command) -> Result<(), Problem> {
    match command {
        Command::Diff(arguments) => diff(arguments).await,
        Command::Show { source } => {
            let source = source::read(source).await?;
            Ok(write!(io::stdout().lock(), "{}", source.schema)?)
        }
        Command::Check(arguments) => check(arguments).await,
        Command::Fetch(arguments) => fetch::fetch(arguments).await,
    }
}

async fn diff(arguments: &DiffArguments) -> Result<(), Problem> {
    let old = source::read(&arguments.old).await?;
    let new = source::read(&arguments.new).await?;
    // That of a server would make a client of it.
    let old_version = arguments.old_version.clone();
    let new_version = arguments.new_version.clone().or(new.version);
    let comparison = compare(
        &old.schema,
        old_version.as_deref().unwrap_or_default(),
        &new.schema,
        new_version.as_deref().unwrap_or_default(),
    );
    let report = Report::of(comparison, old_version, new_version);
    report.print(arguments.json)
}

async fn check(arguments: &CheckArguments) -> Result<(), Problem> {
    let contract = match (&arguments.contract, &arguments.protocol_version) {
        (Some(file), Some(version)) => {
            let name = file.display();
            let bytes = fs::read(file).map_err(|error| bad_input(format!("{name}: {error}")))?;
            Contract::from_descriptor_set(bytes, version)
                .map_err(|error| bad_input(format!("{name}: {error}")))?
        }
        (_, _) => Contract::default(),
    };
    let string = ConnectionString::parse(&arguments.connection_string).map_err(bad_input)?;
    if string.skip_compatibility_check() == Some(true) {
        return Err(bad_input(
            "skipCompatibilityCheck=true leaves nothing to check; take it out",
        ));
    }
    let version = contract.protocol_version().to_owned();
    let client = Client::builder(string)
        .contract(contract)
        .connect_timeout(Some(Config::DEFAULT_CONNECT_TIMEOUT))
        .start()
        .map_err(bad_input)?;
    let verdict = verdict(&client, version).await;
    client.close().await;
    verdict?.print(arguments.json)
}

/// The first verdict of a server; its failures are retried, as a client would.
async fn verdict(client: &Client, version: String) -> Result<Report, Problem> {
    let mut events = client.events();
    while let Some(notice) = events.next().await {
        let Notice::Event(event) = notice else {
            continue;
        };
        match event {
            Event::Compatible {
                server_version,
                missing_on_server,
                ..
            } => {
                return Ok(Report {
                    missing_on_server,
                    ..Report::new(Some(version), Some(server_version))
                });
            }
            Event::CandidateFailed {
                cause: CandidateError::Incompatible(refusal),
                ..
            } => return of_refusal(refusal),
            Event::Failed(error) => return Err(bad_input(format!("could not judge: {error}"))),
            Event::Resolving { .. }
            | Event::LookupTryFailed { .. }
            | Event::Resolved { .. }
            | Event::LastGoodListUsed { .. }
            | Event::Connecting { .. }
            | Event::Selected { .. }
            | Event::ReserveFailed { .. }
            | Event::Token { .. }
            | Event::CandidateFailed { .. }
            | Event::BackingOff { .. }
            | Event::Connected(_)
            | Event::Disconnected { .. }
            | Event::Closed => {}
        }
    }
    Err(bad_input("the connection was closed without a verdict"))
}

fn of_refusal(refusal: Incompatible) -> Result<Report, Problem> {
    let report = Report {
        is_compatible: false,
        remarks: refusal.remarks(),
        // As where it is compatible: the version of the server, whatever its contract's is.
        ..Report::new(
            Some(refusal.client_protocol_version.clone()),
            Some(refusal.server_version.clone()),
        )
    };
    match refusal.findings {
        Findings::CannotVerify(_) => Err(bad_input(refusal)),
        Findings::Compared(incompatibilities) => Ok(Report {
            incompatibilities,
            ..report
        }),
        Findings::Reported(reported) => Ok(Report { reported, ..report }),
    }
}

/// A contract to judge.
struct Source {
    schema: Schema,
    /// That of the contract, where a server told it.
    version: Option<String>,
}

const EXIT_CODES: &str = "\
Exit codes:
  0  compatible
  1  incompatible
  2  could not judge: bad input, an unreadable contract, or no server that answers";

const SHOW_EXIT_CODES: &str = "\
Exit codes:
  0  printed
  2  it cannot be read: bad input, or no server that answers";
