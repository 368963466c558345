//! Breadth first, with states told apart by 128 bits.

use super::{
    Counterexample, Exploration, Path,
    draws::Script,
    life::{Choice, Life},
    path::Move,
};
use crate::{Trace, Violation};
use std::{collections::BTreeSet, fmt};

/// How far an exploration has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Progress {
    /// All lives of so many inputs are explored.
    pub depth: usize,
    /// States that can be told apart.
    pub states: usize,
    /// Inputs given, in all states together.
    pub transitions: u64,
}

/// What an exploration without a counterexample has seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Report {
    /// How far it came.
    pub progress: Progress,
    /// Whether no input leads to a state that was not seen.
    pub is_all: bool,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Progress {
            depth,
            states,
            transitions,
        } = self.progress;
        write!(
            f,
            "depth {depth}, {states} distinct states, {transitions} transitions"
        )?;
        if self.is_all {
            f.write_str(", which is all there is")?;
        }
        Ok(())
    }
}

pub(super) struct Search<'a> {
    exploration: &'a Exploration,
    nodes: Vec<Node>,
    seen: BTreeSet<u128>,
    /// From where good answers are known to lead to a session.
    recovering: BTreeSet<u128>,
    transitions: u64,
    /// The lives on the way to the state at hand, the start being the first.
    way: Vec<(usize, Life)>,
    silence: Trace,
}

/// A state, as the step that led to it first.
struct Node {
    parent: usize,
    step: Move,
}

impl<'a> Search<'a> {
    /// Goes to the start.
    pub(super) fn new(exploration: &'a Exploration) -> Result<Self, Box<Counterexample>> {
        let mut silence = Trace::default();
        silence.set_recording(false);
        let mut search = Self {
            exploration,
            nodes: Vec::new(),
            seen: BTreeSet::new(),
            recovering: BTreeSet::new(),
            transitions: 0,
            way: Vec::new(),
            silence,
        };
        match search.begin() {
            Ok(()) => Ok(search),
            Err(violation) => Err(search.counterexample(None, violation)),
        }
    }

    fn begin(&mut self) -> Result<(), Violation> {
        let exploration = self.exploration;
        let mut life = Life::new(&exploration.setup, exploration.began);
        while let Some(choice) = exploration.overture(&life) {
            exploration.step(&mut life, &choice, Script::default(), &mut self.silence)?;
        }
        self.seen.insert(life.fingerprint());
        // Its own parent, so that the way back ends here.
        self.nodes.push(Node {
            parent: 0,
            step: Move {
                choice: 0,
                script: Script::default(),
            },
        });
        self.check(&life)?;
        self.way.push((0, life));
        Ok(())
    }

    pub(super) fn run(
        mut self,
        depth: usize,
        mut go_on: impl FnMut(&Progress) -> bool,
    ) -> Result<Report, Box<Counterexample>> {
        let mut level = 0..self.nodes.len();
        let mut complete = 0;
        while complete < depth && !level.is_empty() {
            for node in level.clone() {
                let progress = self.progress(complete);
                if !go_on(&progress) {
                    return Ok(Report {
                        progress,
                        is_all: false,
                    });
                }
                self.expand(node)?;
            }
            level = level.end..self.nodes.len();
            complete += 1;
        }
        Ok(Report {
            progress: self.progress(complete),
            is_all: level.is_empty(),
        })
    }

    fn progress(&self, depth: usize) -> Progress {
        Progress {
            depth,
            states: self.nodes.len(),
            transitions: self.transitions,
        }
    }

    /// Gives a state every input, with every draw.
    fn expand(&mut self, node: usize) -> Result<(), Box<Counterexample>> {
        let life = self.life(node);
        let fingerprint = life.fingerprint();
        let menu = life.menu(self.exploration.servers);
        for (index, choice) in menu.iter().enumerate() {
            // Menus have some dozens of choices.
            let index = index as u16;
            let mut script = Some(Script::default());
            while let Some(next) = script {
                let step = Move {
                    choice: index,
                    script: next,
                };
                let mut after = life.clone();
                let taken = self.take(&mut after, choice, next, fingerprint);
                match taken {
                    Ok(is_new) if is_new => self.nodes.push(Node { parent: node, step }),
                    Ok(_) => {}
                    Err(violation) => {
                        return Err(self.counterexample(Some((node, step)), violation));
                    }
                }
                script = after.next_script();
            }
        }
        Ok(())
    }

    /// Makes a choice; whether it led to a state that was not seen.
    fn take(
        &mut self,
        life: &mut Life,
        choice: &Choice,
        script: Script,
        before: u128,
    ) -> Result<bool, Violation> {
        self.transitions += 1;
        self.exploration
            .step(life, choice, script, &mut self.silence)?;
        let fingerprint = life.fingerprint();
        life.is_as_before(choice, before)?;
        let is_new = self.seen.insert(fingerprint);
        if is_new {
            self.check(life)?;
        }
        Ok(is_new)
    }

    /// Checks a state that was not seen.
    fn check(&mut self, life: &Life) -> Result<(), Violation> {
        life.is_sound()?;
        let is_known = |fingerprint| self.recovering.contains(&fingerprint);
        let way = self
            .exploration
            .recovers(life, &mut self.silence, is_known, |_, _, _| {})?;
        self.recovering.extend(way);
        Ok(())
    }

    /// The life that led to a state. Those on the way are kept: the next state mostly shares it.
    fn life(&mut self, node: usize) -> Life {
        let mut ahead = Vec::new();
        let mut at = node;
        // A parent is seen before its children, so the way kept is sorted, and starts with 0.
        while self
            .way
            .binary_search_by_key(&at, |(node, _)| *node)
            .is_err()
        {
            ahead.push(at);
            at = self.nodes[at].parent;
        }
        self.way.retain(|(node, _)| *node <= at);
        let (_, mut life) = self.way[self.way.len() - 1].clone();
        for node in ahead.into_iter().rev() {
            let Move { choice, script } = self.nodes[node].step;
            let menu = life.menu(self.exploration.servers);
            // It was made before, in the very same life, and broke nothing.
            let made = life.apply(&menu[usize::from(choice)], script, &mut self.silence);
            debug_assert!(made.is_ok());
            self.way.push((node, life.clone()));
        }
        life
    }

    fn counterexample(
        &self,
        last: Option<(usize, Move)>,
        violation: Violation,
    ) -> Box<Counterexample> {
        let mut moves = Vec::new();
        if let Some((mut node, step)) = last {
            moves.push(step);
            while node != 0 {
                moves.push(self.nodes[node].step);
                node = self.nodes[node].parent;
            }
        }
        moves.reverse();
        Box::new(Counterexample::new(
            self.exploration,
            Path(moves),
            violation,
        ))
    }
}
