//! What a broken rule looks like.

use super::{Scenario, play::Play};
use crate::Violation;
use std::{fmt::Write as _, time::Instant};

/// Plays a scenario once more and tells, in lines, what it is made of and how it breaks its rule: the
/// end of the life of whoever breaks it, and of the world around it.
pub fn explain(base: Instant, scenario: &Scenario, violation: &Violation) -> String {
    let mut play = Play::new(base, scenario).traced();
    let again = play.run().err();
    let whose = format!(" {} ", violation.whose);
    let lines = play.trace().as_str().lines();
    let lines: Vec<&str> = lines
        .filter(|line| line.contains(&whose) || line.contains(" ! "))
        .collect();
    let mut text = scenario.to_string();
    // Writing to a `String` cannot fail.
    let _ = writeln!(text, "the trace of {} ends with", violation.whose);
    for line in &lines[lines.len().saturating_sub(TAIL)..] {
        let _ = writeln!(text, "{line}");
    }
    let _ = writeln!(text, "{violation}");
    if again.as_ref() != Some(violation) {
        let _ = writeln!(text, "and it does not replay: {again:?}");
    }
    text
}

const TAIL: usize = 60;
