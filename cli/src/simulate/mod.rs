//! `chronicle simulate`: fleets in virtual time, and with `--seeds` whole lives of clusters.

mod arguments;
mod json;
mod seeds;
mod table;

pub(crate) use arguments::Arguments;

use crate::problem::{self, Problem, bad_input};
use chronicle_simulation::{
    fleet::{Comparison, Fleet, FleetError, Progress},
    plot, plural,
};
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
    match &arguments.seeds {
        Some(seeds) => seeds::run_seeds(seeds),
        None => problem::end(simulate(arguments)),
    }
}

fn simulate(arguments: &Arguments) -> Result<(), Problem> {
    let fleet = arguments.fleet().map_err(bad_input)?;
    fleet.check().map_err(bad_input)?;
    let out = &arguments.out;
    // A run takes a while: where it cannot be written down, that is told before.
    fs::create_dir_all(out).map_err(|error| unwritable(out, &error))?;
    let (drawing, text, away) = match arguments.compare {
        true => compare(&fleet, arguments)?,
        false => play(&fleet, arguments)?,
    };
    // Before anything is printed: whoever reads may stop doing so.
    let drawn = drawing.write(out)?;
    problem::told(tell(&text, &drawn, arguments.json), judge(away))
}

fn judge(away: usize) -> Result<(), Problem> {
    match away {
        0 => Ok(()),
        away => Err(Problem::GaveUp(format!(
            "{away} {} had no session at the end",
            plural("client", away)
        ))),
    }
}

/// What there is to draw and to print, and how many clients had no session at the end.
type Shown = (Drawing, String, usize);

fn play(fleet: &Fleet, arguments: &Arguments) -> Result<Shown, Problem> {
    let bar = bar(0, BAR);
    let report = fleet.run(Instant::now(), |progress| show(&bar, progress));
    bar.finish_and_clear();
    let report = report.map_err(no_report)?;
    let page = plot::page(&report, &arguments.command(fleet));
    let drawing = Drawing {
        name: fleet.scenario.name().to_owned(),
        picture: plot::picture(&report),
        page,
    };
    let text = match arguments.json {
        true => format!("{}\n", json::of_report(&report)),
        false => table::of_report(&report),
    };
    Ok((drawing, text, report.away))
}

/// All variants together.
fn compare(fleet: &Fleet, arguments: &Arguments) -> Result<Shown, Problem> {
    let bar = bar(0, BAR);
    let comparison = Comparison::run(fleet, Instant::now(), |progress| show(&bar, progress));
    bar.finish_and_clear();
    let comparison = comparison.map_err(no_report)?;
    let page = plot::comparison_page(&comparison, &arguments.command(fleet));
    let drawing = Drawing {
        name: format!("{}-comparison", fleet.scenario),
        picture: plot::comparison_picture(&comparison),
        page,
    };
    let text = match arguments.json {
        true => format!("{}\n", json::of_comparison(&comparison)),
        false => table::of_comparison(&comparison),
    };
    Ok((drawing, text, comparison.away()))
}

/// What is drawn, and what its files are called.
struct Drawing {
    name: String,
    picture: String,
    page: String,
}

impl Drawing {
    /// Gives the files.
    fn write(&self, out: &Path) -> Result<[PathBuf; 2], Problem> {
        let write = |kind: &str, content: &str| {
            let file = out.join(format!("{}.{kind}", self.name));
            let written = fs::write(&file, content).map_err(|error| unwritable(&file, &error));
            written.map(|()| file)
        };
        Ok([write("svg", &self.picture)?, write("html", &self.page)?])
    }
}

fn tell(text: &str, drawn: &[PathBuf], json: bool) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    for file in drawn.iter().filter(|_| !json) {
        writeln!(out, "drawn: {}", file.display())?;
    }
    out.flush()
}

/// Hidden where standard error is no terminal.
fn bar(length: u64, template: &str) -> ProgressBar {
    let bar = ProgressBar::new(length);
    let style = ProgressStyle::with_template(template);
    // Only a mistake in the template could keep it from its style.
    style.into_iter().for_each(|style| bar.set_style(style));
    bar
}

fn show(bar: &ProgressBar, progress: Progress) {
    bar.set_length(progress.total.as_millis() as u64);
    bar.set_position(progress.done.as_millis() as u64);
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
  0  every client had a session at the end; with --seeds, every rule was kept
  1  some had none, or a client broke a rule of the checkers
  2  bad input: an option is wrong, or the pictures cannot be written";

const BAR: &str = "{bar:40} {percent:>3} %, {eta} to go";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fleet_that_is_not_complete_at_the_end_has_failed() {
        assert!(judge(0).is_ok());
        let text = |away| match judge(away) {
            Err(Problem::GaveUp(text)) => text,
            Ok(()) | Err(Problem::BadInput(_) | Problem::Found | Problem::Unread) => String::new(),
        };
        assert_eq!(text(1), "1 client had no session at the end");
        assert_eq!(text(20), "20 clients had no session at the end");
    }
}
