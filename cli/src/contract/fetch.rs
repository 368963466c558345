//! `chronicle contract fetch`

use super::{directory::Directory, source};
use crate::problem::{Problem, bad_input};
use chronicle_connection_tokio::Contract;
use chronicle_simulation::plural;
use clap::Args;
use std::{
    io::{self, Write as _},
    path::PathBuf,
};

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Whose contract: where to connect, as `chronicle connect` takes it.
    connection_string: String,
    /// Where to write it. Files there that an earlier fetch wrote are replaced, or removed where the
    /// contract has their package no more; others of the same name are never touched.
    #[arg(long)]
    out: PathBuf,
}

pub(super) const EXIT_CODES: &str = "\
Exit codes:
  0  the contract is in the directory
  2  it could not be fetched or written; nothing in the directory has changed, unless a write failed";

/// Fetches a contract, and writes it.
pub(super) async fn fetch(arguments: &Arguments) -> Result<(), Problem> {
    let told = source::told(&arguments.connection_string).await?;
    let version = printable(told.version);
    // Servers that do not tell it take the version of their contract for their own.
    let protocol_version = match printable(told.protocol_version) {
        told if told == UNKNOWN => version.clone(),
        told => told,
    };
    let contract = Contract::from_source_text(&told.text, &*protocol_version).map_err(bad_input)?;
    let title = format!("version {version}, protocol version {protocol_version}");
    let mut directory = Directory::open(&arguments.out, &title)?;
    for file in contract.to_proto_files().map_err(bad_input)? {
        directory.add_proto(file)?;
    }
    let set = contract.to_descriptor_set().map_err(bad_input)?;
    directory.add("chronicle.desc", set.into())?;
    directory.add("chronicle.version", format!("{protocol_version}\n").into())?;
    let written = directory.write()?;
    writeln!(
        io::stdout().lock(),
        "{title}: {} {} in {}, {} changed, {} removed",
        written.files,
        plural("file", written.files),
        arguments.out.display(),
        written.changed,
        written.removed,
    )?;
    Ok(())
}

/// A version as it may stand in a file; what no server should tell is not known.
fn printable(version: Option<String>) -> String {
    let is_printable = |version: &String| {
        (1..=MAX_VERSION).contains(&version.len())
            && version.bytes().all(|byte| byte.is_ascii_graphic())
    };
    version.filter(is_printable).unwrap_or(UNKNOWN.to_owned())
}

const UNKNOWN: &str = "unknown";
const MAX_VERSION: usize = 100;
