//! `chronicle simulate`: clusters in virtual time.

mod seeds;

use clap::Args;
use std::process::ExitCode;

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Play the scenarios of these seeds, such as 0..1000, or of one: everything goes wrong that can,
    /// and every rule is checked. Seeds that once broke a rule are played before a range.
    #[arg(long, value_name = "A..B")]
    seeds: seeds::Seeds,
}

/// Runs the command to its end.
pub(crate) fn run(arguments: &Arguments) -> ExitCode {
    seeds::run_seeds(&arguments.seeds)
}

pub(crate) use seeds::EXIT_CODES;
