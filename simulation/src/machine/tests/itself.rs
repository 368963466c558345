//! The rules for the connection itself, whatever it is about, can be broken.

use super::{super::Machine, *};
use crate::Trace;

/// A machine that has asked two servers for their counts, and the requests.
fn counting() -> (Machine, Vec<Id>) {
    let start = Life::new(&setup()).now;
    let mut machine = Machine::new("c1", &setup(), 1, start);
    let mut give = |input: Input| {
        let outputs = machine.handle(start, input, &mut Trace::default(), Duration::ZERO);
        outputs.iter().filter_map(id_of).collect::<Vec<_>>()
    };
    let dials = give(Command::Connect.into());
    let open = |id| {
        let reply = opened();
        give(Input::Reply { id, reply })
    };
    let counts = dials.into_iter().flat_map(open).collect();
    (machine, counts)
}

fn counted(id: Id) -> Input {
    let reply = http(200, "0");
    Input::Reply { id, reply }
}

fn breaks(result: Result<impl Sized, super::super::Broken>, rule: &str) {
    let broken = result.err().map(|broken| broken.0).unwrap_or_default();
    assert!(broken.contains(rule), "{broken:?} is not {rule:?}");
}

fn step_breaks(machine: &mut Machine, input: Input, rule: &str) {
    let step = machine.step(machine.now, input, &mut Trace::default(), Duration::ZERO);
    let broken = step.err().map(|violation| violation.rule);
    let broken = broken.unwrap_or_default();
    assert!(broken.contains(rule), "{broken:?} is not {rule:?}");
}

#[test]
fn a_reply_that_is_ignored_although_it_is_awaited() {
    let (mut machine, counts) = counting();
    // The connection has heard it, and the books have not.
    machine.connection.handle(machine.now, counted(counts[0]));
    step_breaks(&mut machine, counted(counts[0]), "was ignored although");
}

#[test]
fn a_reply_that_is_heard_although_nobody_waits_for_it() {
    let (mut machine, counts) = counting();
    machine
        .ledger
        .input(machine.now, &counted(counts[0]), false);
    step_breaks(&mut machine, counted(counts[0]), "was counted 0 times");
}

#[test]
fn a_late_reply_that_changes_something() {
    let (mut machine, counts) = counting();
    let before = machine.connection.clone();
    machine.connection.handle(machine.now, Command::Close);
    let outputs = drain(&mut machine.connection, machine.now);
    let outputs = outputs.unwrap_or_default();
    let rule = "a late reply changed something";
    breaks(machine.late_reply_changed_nothing(before, &outputs), rule);

    let (mut machine, _) = counting();
    machine
        .ledger
        .input(machine.now, &counted(counts[0]), false);
    let (id, reply) = (counts[0], opened());
    machine
        .ledger
        .input(machine.now, &Input::Reply { id, reply }, false);
    let before = machine.connection.clone();
    let rule = "opened too late and is not closed";
    breaks(machine.late_reply_changed_nothing(before, &[]), rule);
}

#[test]
fn a_tick_that_changes_something() {
    let (mut machine, _) = counting();
    machine.connection.handle(machine.now, Command::Close);
    breaks(machine.tick_changes_nothing(), "a spurious tick changed");
}

#[test]
fn a_deadline_that_does_not_fit_the_outputs() {
    let (mut machine, _) = counting();
    let hour = Duration::from_secs(3600);
    let late = machine.now + hour;
    breaks(drain(&mut machine.connection, late), "a hot loop");
    machine.connection.handle(machine.now, Command::Close);
    let early = machine.now - Duration::from_nanos(1);
    let rule = "the deadline is later than now";
    breaks(drain(&mut machine.connection, early), rule);
}
