//! `chronicle simulate`: fleets in virtual time.

mod arguments;
mod json;
mod table;

pub(crate) use arguments::Arguments;

use crate::problem::{self, Problem, bad_input};
use chronicle_simulation::{Comparison, Fleet, FleetError, Progress, Report, plot};
use indicatif::{ProgressBar, ProgressStyle};
use std::{
    fs,
    io::{self, Write as _},
    path::{Path, PathBuf},
    process::ExitCode,
    time::Instant,
};

/// Runs the command to its end.
pub(crate) fn run(arguments: &Arguments) -> ExitCode {
    problem::end(simulate(arguments))
}

fn simulate(arguments: &Arguments) -> Result<(), Problem> {
    let fleet = arguments.fleet().map_err(bad_input)?;
    fleet.check().map_err(bad_input)?;
    let out = &arguments.out;
    // A run takes a while: where it cannot be written down, that is told before.
    fs::create_dir_all(out).map_err(|error| unwritable(out, &error))?;
    let drawn = match arguments.compare {
        true => compare(&fleet, arguments)?,
        false => play(&fleet, arguments)?,
    };
    match drawn.away {
        0 => Ok(()),
        1 => Err(Problem::GaveUp(
            "1 client had no session at the end".to_owned(),
        )),
        many => Err(Problem::GaveUp(format!(
            "{many} clients had no session at the end"
        ))),
    }
}

/// What came of it, for the exit code.
struct Drawn {
    away: usize,
}

fn play(fleet: &Fleet, arguments: &Arguments) -> Result<Drawn, Problem> {
    let bar = bar();
    let report = fleet.run(Instant::now(), |progress| show(&bar, progress));
    bar.finish_and_clear();
    let report: Report = report.map_err(no_report)?;
    let name = fleet.scenario.name();
    let page = plot::page(&report, &arguments.command(fleet));
    let files = write(&arguments.out, name, &plot::picture(&report), &page)?;
    let mut out = io::stdout().lock();
    match arguments.json {
        true => writeln!(out, "{}", json::of_report(&report))?,
        false => {
            write!(out, "{}", table::of_report(&report))?;
            writeln!(out, "drawn in {}", files.join(" and "))?;
        }
    }
    let away = report.away;
    Ok(Drawn { away })
}

fn compare(fleet: &Fleet, arguments: &Arguments) -> Result<Drawn, Problem> {
    let bar = bar();
    let comparison = Comparison::run(fleet, Instant::now(), |progress| show(&bar, progress));
    bar.finish_and_clear();
    let comparison = comparison.map_err(no_report)?;
    let name = format!("{}-comparison", fleet.scenario);
    let page = plot::comparison_page(&comparison, &arguments.command(fleet));
    let picture = plot::comparison_picture(&comparison);
    let files = write(&arguments.out, &name, &picture, &page)?;
    let mut out = io::stdout().lock();
    match arguments.json {
        true => writeln!(out, "{}", json::of_comparison(&comparison))?,
        false => {
            write!(out, "{}", table::of_comparison(&comparison))?;
            writeln!(out, "drawn in {}", files.join(" and "))?;
        }
    }
    let away = comparison.away();
    Ok(Drawn { away })
}

/// Hidden where standard error is no terminal.
fn bar() -> ProgressBar {
    let bar = ProgressBar::new(0);
    let style = ProgressStyle::with_template("{bar:40} {percent:>3} %, {eta} to go");
    // Only a mistake in the template could keep it from its style.
    style.into_iter().for_each(|style| bar.set_style(style));
    bar
}

fn show(bar: &ProgressBar, progress: Progress) {
    bar.set_length(progress.total.as_millis() as u64);
    bar.set_position(progress.done.as_millis() as u64);
}

fn write(out: &Path, name: &str, picture: &str, page: &str) -> Result<Vec<String>, Problem> {
    let files = [("svg", picture), ("html", page)];
    let write = |(kind, content): (&str, &str)| {
        let file: PathBuf = out.join(format!("{name}.{kind}"));
        fs::write(&file, content).map_err(|error| unwritable(&file, &error))?;
        Ok(file.display().to_string())
    };
    files.into_iter().map(write).collect()
}

fn no_report(error: FleetError) -> Problem {
    match error {
        FleetError::OutOfRange { .. } => bad_input(error),
        FleetError::Broken(_) => Problem::GaveUp(error.to_string()),
    }
}

fn unwritable(path: &Path, error: &io::Error) -> Problem {
    let path = path.display();
    bad_input(format!(
        "{path} cannot be written: {error}; --out says where pictures go"
    ))
}

pub(crate) const EXIT_CODES: &str = "\
Exit codes:
  0  every client had a session at the end
  1  some had none, or a client broke a rule of the checkers
  2  bad input: an option is wrong, or the pictures cannot be written";
