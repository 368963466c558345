//! `chronicle resolve`

use crate::{
    ResolveArguments,
    problem::{self, Problem, VARIABLE, bad_input},
    render::Printer,
};
use chronicle_connection_tokio::{Client, ConnectionString, Event};
use std::{io, process::ExitCode};

/// Runs the command to its end.
pub(crate) fn run(arguments: &ResolveArguments) -> ExitCode {
    problem::run(resolve(arguments))
}

async fn resolve(arguments: &ResolveArguments) -> Result<(), Problem> {
    let given = problem::connection_string(arguments.connection_string.as_ref())?;
    let missing = || bad_input(format!("no connection string; give one, or set {VARIABLE}"));
    let string = given.ok_or_else(missing)?;
    let string = ConnectionString::parse(&string).map_err(bad_input)?;
    let printer = Printer::new(arguments.json);
    let mut printed = Ok(());
    let mut failure = None;
    let print = |event: &Event| {
        if let Event::BackingOff { error, .. } = event {
            failure = error.as_ref().map(ToString::to_string);
        }
        if printed.is_ok() {
            printed = print(&printer, event);
        }
    };
    let servers = Client::builder(string).resolve(print).await;
    let verdict = match servers.map_err(bad_input)?.is_empty() {
        true => Err(Problem::GaveUp(failure.unwrap_or_default())),
        false => Ok(()),
    };
    problem::told(printed, verdict)
}

fn print(printer: &Printer, event: &Event) -> io::Result<()> {
    match event {
        // There is no next attempt here.
        Event::BackingOff { error, .. } => {
            let text = error.as_ref().map(ToString::to_string).unwrap_or_default();
            printer.note("failed", &text)
        }
        Event::Connecting { candidates, .. } => printer.servers(candidates),
        event => printer.event(event),
    }
}
