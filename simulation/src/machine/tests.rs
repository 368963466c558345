//! Each rule of the books can be broken: a life that keeps them all is tampered with, and the rule
//! that no longer holds must be the one that is named.

mod attempts;
mod choices;
mod credentials;
mod itself;
mod lives;
mod requests;
mod sessions;

use super::{ChaCha8Rng, Connection, Input, Ledger, Output, drain};
use crate::{Setup, endpoint, http, id_of, ok, request_of, status, wire::connection_id_of};
use chronicle_connection::{
    Code, Command, Event, Failure, FailureKind, Id, Reply, Request, WaitReason,
};
use lives::*;
use rand_core::SeedableRng as _;
use std::time::{Duration, Instant};

/// One step of a life: an input, what came of it, and the connection afterwards.
#[derive(Clone)]
struct Step {
    now: Instant,
    input: Input,
    outputs: Vec<Output>,
    after: Connection<ChaCha8Rng>,
}

/// A connect to the first of two servers, a keep-alive, and the loss of the session.
#[derive(Clone)]
struct Life {
    /// What the books are kept by.
    setup: Setup,
    now: Instant,
    steps: Vec<Step>,
}

impl Life {
    #[allow(clippy::disallowed_methods, reason = "the edge of virtual time")]
    fn new(setup: &Setup) -> Self {
        let now = Instant::now();
        let rng = ChaCha8Rng::seed_from_u64(1);
        let connection = Connection::new(setup.config(), setup.contract.clone(), rng, now);
        let first = Step {
            now,
            input: Command::Tick.into(),
            outputs: vec![],
            after: connection,
        };
        Self {
            setup: setup.clone(),
            now,
            steps: vec![first],
        }
    }

    fn input(&mut self, input: impl Into<Input>) {
        let input = input.into();
        let mut after = self.steps[self.steps.len() - 1].after.clone();
        after.handle(self.now, input.clone());
        let Ok(outputs) = drain(&mut after, self.now) else {
            panic!("the connection itself broke a rule");
        };
        self.steps.push(Step {
            now: self.now,
            input,
            outputs,
            after,
        });
    }

    /// The next deadline.
    fn due(&self) -> Instant {
        let last = &self.steps[self.steps.len() - 1];
        last.after.poll_timeout().unwrap()
    }

    fn wait_until(&mut self, time: Instant) {
        self.now = time;
        self.input(Command::Tick);
    }

    /// Waits out the random wait of a selection.
    fn go_on(&mut self) {
        let last = &self.steps[self.steps.len() - 1].after;
        if let Some(WaitReason::DialWait | WaitReason::SelectionWait) = last.wait_reason() {
            self.wait_until(self.due());
        }
    }

    fn reply(&mut self, id: Id, reply: Reply) {
        self.input(Input::Reply { id, reply });
    }

    fn outputs(&self) -> impl Iterator<Item = &Output> {
        self.steps.iter().flat_map(|step| &step.outputs)
    }

    fn ids(&self, fits: impl Fn(&Output) -> bool) -> Vec<Id> {
        let fitting = self.outputs().filter(|output| fits(output));
        fitting.filter_map(id_of).collect()
    }

    fn last(&self, request: Request) -> Id {
        let ids = self.ids(|output| request_of(output) == Some(request));
        ids[ids.len() - 1]
    }

    /// The rule that is broken first, if any.
    fn broken(&self) -> Option<String> {
        let mut ledger = Ledger::new(&self.setup);
        let mut due = None;
        for step in &self.steps {
            let overdue = due.is_some_and(|due| due < step.now);
            due = step.after.poll_timeout();
            ledger.input(step.now, &step.input, overdue);
            for output in &step.outputs {
                if let Err(broken) = ledger.output(step.now, output) {
                    return Some(broken.0);
                }
            }
            if let Err(broken) = ledger.settled(step.now, &step.after) {
                return Some(broken.0);
            }
        }
        None
    }

    /// Leaves out the inputs that fit.
    fn without_input(mut self, fits: impl Fn(&Input) -> bool) -> Self {
        self.steps.iter_mut().for_each(|step| {
            if fits(&step.input) {
                step.input = Command::Tick.into();
            }
        });
        self
    }

    /// Leaves out the outputs that fit.
    fn without(mut self, fits: impl Fn(&Output) -> bool) -> Self {
        for step in &mut self.steps {
            step.outputs.retain(|output| !fits(output));
        }
        self
    }

    /// Puts the outputs that fit out twice.
    fn doubled(mut self, fits: impl Fn(&Output) -> bool) -> Self {
        for step in &mut self.steps {
            let twice = |output: Output| {
                let again = fits(&output).then(|| output.clone());
                [Some(output), again].into_iter().flatten()
            };
            step.outputs = std::mem::take(&mut step.outputs)
                .into_iter()
                .flat_map(twice)
                .collect();
        }
        self
    }

    /// Changes what the books are kept by.
    fn by(mut self, change: impl FnOnce(&mut Setup)) -> Self {
        change(&mut self.setup);
        self
    }

    /// Changes outputs.
    fn with(mut self, change: impl Fn(&mut Output)) -> Self {
        for step in &mut self.steps {
            step.outputs.iter_mut().for_each(&change);
        }
        self
    }

    /// Puts an event in front of the first that fits.
    fn inserted(mut self, event: Event, before: impl Fn(&Output) -> bool) -> Self {
        for step in &mut self.steps {
            if let Some(at) = step.outputs.iter().position(&before) {
                step.outputs.insert(at, Output::Event(event));
                break;
            }
        }
        self
    }

    /// Puts what fits out once more, the last of it, with an id of its own.
    fn again(mut self, fits: impl Fn(&Output) -> bool) -> Self {
        let fitting = |step: &mut Step| {
            let at = step.outputs.iter().rposition(&fits)?;
            step.outputs
                .insert(at + 1, with_id(step.outputs[at].clone(), later_id()));
            Some(())
        };
        self.steps.iter_mut().rev().find_map(fitting);
        self
    }

    /// Takes the outputs that fit out of their step.
    fn taken(&mut self, fits: impl Fn(&Output) -> bool) -> Vec<Output> {
        let of_step = |step: &mut Step| {
            let (taken, rest): (Vec<_>, _) = step.outputs.drain(..).partition(&fits);
            step.outputs = rest;
            taken
        };
        self.steps.iter_mut().flat_map(of_step).collect()
    }

    fn breaks(&self, rule: &str) {
        let broken = self.broken();
        let is_it = broken.as_ref().is_some_and(|text| text.contains(rule));
        assert!(is_it, "{broken:?} is not {rule:?}");
    }
}

fn is_verdict(output: &Output) -> bool {
    matches!(output, Output::Event(Event::Compatible { .. }))
}

fn is_count(output: &Output) -> bool {
    request_of(output) == Some(Request::Count)
}

fn is_dial(output: &Output) -> bool {
    matches!(output, Output::Open { .. })
}

#[test]
fn an_untouched_life_breaks_nothing() {
    for life in [
        connected(),
        connected_with(&waiting()),
        with_a_token(),
        lost(),
        reconnecting(),
        closed(),
        closed_too_late(),
        looked_up(),
        given_up(),
        judged_here(),
        refused(1),
        refused(7),
    ] {
        assert_eq!(life.broken(), None);
    }
}

/// An id that no other life here comes to.
fn later_id() -> Id {
    let dials = refused(20).ids(is_dial);
    dials[dials.len() - 1]
}

fn with_id(mut output: Output, new: Id) -> Output {
    match &mut output {
        Output::NameServers { id }
        | Output::Dns { id, .. }
        | Output::Open { id, .. }
        | Output::Http { id, .. } => *id = new,
        Output::Unary(call) | Output::ServerStream(call) => call.id = new,
        Output::Cancel(_) | Output::Close(_) | Output::Event(_) => {}
    }
    output
}
