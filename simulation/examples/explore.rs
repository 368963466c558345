//! Explores every life of one machine, as deep as the time allows.
//!
//! `cargo run --release -p chronicle-simulation --example explore -- [--seconds S] [PART OF A NAME]`
//!
//! gives each exploration whose name fits so many seconds, 60 unless told otherwise, and prints what it
//! came to. A life that breaks a rule is printed, and the exit code is 1. With `--replay NAME PATH` it
//! is lived again, with all that the machine puts out.

#![allow(
    clippy::disallowed_methods,
    reason = "here are the clock and the arguments that the exploration does without"
)]

use chronicle_simulation::{Exploration, explorations};
use std::{
    env,
    error::Error,
    process::ExitCode,
    time::{Duration, Instant},
};

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let all = explorations(Instant::now());
    match arguments[..] {
        ["--replay", name, path] => replay(&all, name, path),
        ["--seconds", seconds, ref part @ ..] if part.len() < 2 => {
            explore(&all, Duration::from_secs(seconds.parse()?), part)
        }
        ref part if part.len() < 2 => explore(&all, Duration::from_secs(60), part),
        _ => {
            Err("use: explore [--seconds S] [PART OF A NAME], or explore --replay NAME PATH".into())
        }
    }
}

fn explore(all: &[Exploration], time: Duration, part: &[&str]) -> Result<ExitCode, Box<dyn Error>> {
    let mut code = ExitCode::SUCCESS;
    let fits = |one: &&Exploration| part.iter().all(|part| one.name().contains(part));
    println!(
        "{:<36} {:>5} {:>10} {:>12} {:>9} {:>10}",
        "", "depth", "states", "transitions", "seconds", "states/s"
    );
    for exploration in all.iter().filter(fits) {
        let began = Instant::now();
        let name = exploration.name();
        match exploration.run(usize::MAX, |_| began.elapsed() < time) {
            Ok(report) => {
                let took = began.elapsed().as_secs_f64();
                let progress = report.progress;
                println!(
                    "{name:<36} {:>5} {:>10} {:>12} {took:>9.1} {:>10.0}{}",
                    progress.depth,
                    progress.states,
                    progress.transitions,
                    progress.states as f64 / took,
                    if report.is_all { "  all there is" } else { "" },
                );
            }
            Err(counterexample) => {
                println!("{counterexample}");
                code = ExitCode::FAILURE;
            }
        }
    }
    Ok(code)
}

fn replay(all: &[Exploration], name: &str, path: &str) -> Result<ExitCode, Box<dyn Error>> {
    let mut all = all.iter();
    let exploration = all.find(|one| one.name() == name);
    let exploration = exploration.ok_or_else(|| format!("there is no exploration {name:?}"))?;
    let (trace, result) = exploration.replay(&path.parse()?);
    print!("{}", trace.as_str());
    match result {
        Ok(()) => println!("no rule is broken"),
        Err(violation) => println!("{violation}"),
    }
    Ok(ExitCode::SUCCESS)
}
