//! One life, as the choices that were made in it.

use super::{Exploration, draws::Script};
use crate::Violation;
use std::{fmt, str::FromStr};

/// The choices of a life, from the start of an exploration: `4,0,17/1`.
///
/// Each is the place of an input on the menu of its state, and after the slash what was drawn.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Path(pub(super) Vec<Move>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Move {
    pub(super) choice: u16,
    pub(super) script: Script,
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, Move { choice, script }) in self.0.iter().enumerate() {
            let separator = if index == 0 { "" } else { "," };
            write!(f, "{separator}{choice}")?;
            if *script != Script::default() {
                write!(f, "/{}", script.0)?;
            }
        }
        Ok(())
    }
}

impl FromStr for Path {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let moves = text.split(',').filter(|one| !one.is_empty());
        let moves = moves.map(|one| {
            let (choice, script) = one.split_once('/').unwrap_or((one, "0"));
            Ok(Move {
                choice: choice.parse()?,
                script: Script(script.parse()?),
            })
        });
        moves.collect::<Result<_, _>>().map(Self)
    }
}

/// A life that breaks a rule: no shorter one does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counterexample {
    /// The name of the exploration.
    pub exploration: String,
    /// What is broken.
    pub violation: Violation,
    /// The choices, for [`Exploration::replay`].
    pub path: Path,
    /// Every input from the very beginning, one a line.
    pub inputs: Vec<String>,
}

impl Counterexample {
    pub(super) fn new(exploration: &Exploration, path: Path, violation: Violation) -> Self {
        let mut inputs = Vec::new();
        // How it ends is known.
        let _ = exploration.relive(
            &path,
            &mut crate::Trace::default(),
            |life, choice, script| {
                let mut line = life.describe(choice);
                if script != Script::default() {
                    line = format!("{line}, draws {}", script.0);
                }
                inputs.push(line);
            },
        );
        Self {
            exploration: exploration.name.clone(),
            violation,
            path,
            inputs,
        }
    }
}

impl fmt::Display for Counterexample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}: {}", self.exploration, self.violation)?;
        writeln!(f, "the shortest way there has these inputs:")?;
        for (index, line) in self.inputs.iter().enumerate() {
            writeln!(f, "{:>4}. {line}", index + 1)?;
        }
        writeln!(f, "replay it, with all that the machine puts out:")?;
        write!(
            f,
            "  cargo run --release -p chronicle-simulation --example explore -- --replay {:?} {:?}",
            self.exploration,
            self.path.to_string(),
        )
    }
}

impl std::error::Error for Counterexample {}
