//! The rules for what goes on from attempt to attempt can be broken.

use super::*;
use chronicle_connection::Strategy;

#[test]
fn a_probe_before_the_end_of_its_wait() {
    let mut life = connected_with(&waiting());
    // The counts are asked for when the transports open, by the books.
    let counts = life.taken(is_count);
    let is_opening = |step: &&mut Step| {
        let Input::Reply { reply, .. } = &step.input else {
            return false;
        };
        matches!(reply, Reply::Opened { .. })
    };
    let opening = life.steps.iter_mut().rfind(is_opening);
    opening.unwrap().outputs.extend(counts);
    life.breaks("a probe before the random wait");
}

#[test]
fn a_probe_without_any_wait() {
    connected()
        .by(|setup| *setup = waiting())
        .breaks("a probe before the random wait");
}

#[test]
fn a_wait_that_is_too_long() {
    connected_with(&waiting())
        .by(|setup| setup.timing.selection_wait = Duration::from_nanos(1))
        .breaks("too long");
}

#[test]
fn waits_that_are_not_drawn_anew() {
    for reason in [WaitReason::DialWait, WaitReason::SelectionWait] {
        let life = connected_with(&waiting());
        let mut ledger = Ledger::new(&life.setup);
        let mut steps = life.steps.iter();
        let wait = steps.find(|step| step.after.wait_reason() == Some(reason));
        let wait = wait.unwrap();
        let mut broken = Ok(());
        for attempt in 1..=3 {
            let begins = Event::Connecting {
                attempt,
                candidates: vec![endpoint("s1"), endpoint("s2")],
            };
            // In a hurry, so that it need not wait.
            let began = life.steps[0].now;
            ledger.input(began, &Command::Connect.into(), false);
            let entered = ledger.output(began, &Output::Event(begins));
            broken = entered.and_then(|()| ledger.settled(wait.now, &wait.after));
            let wait = life.setup.backoff.base * (1 << (attempt - 1));
            let ends = Event::BackingOff { error: None, wait };
            broken = broken.and_then(|()| ledger.output(began, &Output::Event(ends)));
        }
        let rule = broken.err().map(|broken| broken.0).unwrap_or_default();
        assert!(rule.contains("not drawn anew"), "{rule}");
    }
}

/// Three attempts come as far as the counts, so long after the moment of their dials, and fail.
fn asked_thrice(late: Duration) -> Life {
    let mut life = Life::new(&waiting().patient());
    life.input(Command::Connect);
    for _ in 0..3 {
        life.wait_until(life.due() + late);
        let dials = life.ids(is_dial);
        let transports = [dials[dials.len() - 2], dials[dials.len() - 1]];
        for id in transports {
            life.reply(id, opened());
        }
        life.go_on();
        for id in transports {
            life.reply(id, gone());
        }
        life.wait_until(life.due());
    }
    life
}

#[test]
fn servers_that_are_dialled_only_when_the_wait_is_over() {
    let mut life = asked_thrice(Duration::ZERO);
    assert_eq!(life.broken(), None);
    // By the books, nothing but the wait for the dials is ever announced.
    for at in (1..life.steps.len()).rev() {
        if life.steps[at].after.wait_reason() == Some(WaitReason::SelectionWait) {
            life.steps[at].after = life.steps[at + 1].after.clone();
        }
    }
    life.breaks("three waits in a row are 0ns");
}

#[test]
fn who_is_woken_late_announces_but_the_first_of_its_waits() {
    assert_eq!(asked_thrice(Duration::from_secs(1)).broken(), None);
}

#[test]
fn a_dial_before_an_attempt() {
    let is_begin = |output: &Output| matches!(output, Output::Event(Event::Connecting { .. }));
    connected()
        .without(is_begin)
        .breaks("a dial before an attempt");
}

/// A tick half way through the wait that is announced, and one at its end.
fn woken_half_way(mut life: Life) -> Life {
    let due = life.due();
    life.wait_until(life.now + (due - life.now) / 2);
    life.wait_until(due);
    life
}

#[test]
fn a_dial_before_its_time() {
    let mut first = Life::new(&waiting());
    first.input(Command::Connect);
    // Where nobody is asked, the wait of a reconnect is the only one.
    let mut again = Life::new(&waiting().strategy(Strategy::RoundRobin));
    again.input(Command::Connect);
    connect_to_one(&mut again);
    stay(&mut again);
    lose(&mut again);
    for life in [first, again] {
        let mut life = woken_half_way(life);
        assert_eq!(life.broken(), None);
        let last = life.steps.len() - 1;
        let dials = std::mem::take(&mut life.steps[last].outputs);
        life.steps[last - 1].outputs = dials;
        life.breaks("a dial before its time");
    }
}

#[test]
fn a_reconnect_without_its_wait() {
    let mut life = reconnecting();
    let dials = life.steps.pop().map(|step| step.outputs);
    let last = life.steps.len() - 1;
    life.steps[last].outputs.extend(dials.unwrap_or_default());
    life.breaks("without its random wait");
}

#[test]
fn waits_that_are_not_of_the_ladder() {
    let shorter = |output: &mut Output| {
        if let Output::Event(Event::BackingOff { wait, .. }) = output {
            *wait /= 2;
        }
    };
    refused(2).with(shorter).breaks("of the ladder");
    // Seven rungs reach the ceiling, and the books know of a lower one.
    refused(7)
        .by(|setup| setup.backoff.ceiling = Duration::from_secs(16))
        .breaks("wait 6 of the ladder");
}

/// After three attempts in vain, a session that is lost at once, or later.
fn connected_at_last(is_stable: bool) -> Life {
    let mut life = refused(3);
    connect(&mut life);
    if is_stable {
        stay(&mut life);
    }
    lose(&mut life);
    life
}

#[test]
fn a_ladder_that_starts_afresh_without_a_stable_session() {
    assert_eq!(connected_at_last(false).broken(), None);
    let first = |output: &mut Output| {
        if let Output::Event(Event::BackingOff { error: None, wait }) = output {
            *wait = Duration::from_secs(1);
        }
    };
    connected_at_last(false)
        .with(first)
        .breaks("wait 4 of the ladder");
}

#[test]
fn an_attempt_without_the_wait_before_it() {
    let is_wait = |output: &Output| matches!(output, Output::Event(Event::BackingOff { .. }));
    refused(1).without(is_wait).breaks("without the wait");
    let mut unstable = lost();
    unstable.wait_until(unstable.due());
    unstable.without(is_wait).breaks("without the wait");
    connected_at_last(true)
        .by(|setup| setup.timing.stable_after = Duration::from_secs(60))
        .breaks("without the wait");
}

#[test]
fn a_wait_that_nothing_has_failed_before() {
    let mut life = connected();
    lose(&mut life);
    assert_eq!(life.broken(), None);
    life.by(|setup| setup.timing.stable_after = Duration::ZERO)
        .breaks("nothing has failed");
}

#[test]
fn an_attempt_that_is_not_the_next() {
    let skip = |output: &mut Output| {
        if let Output::Event(Event::Connecting { attempt, .. }) = output {
            *attempt *= 2;
        }
    };
    connected()
        .with(skip)
        .breaks("attempt 2 comes after 0 others");
    let begins = Event::Connecting {
        attempt: 2,
        candidates: vec![endpoint("s1")],
    };
    looked_up()
        .inserted(begins, |output| matches!(output, Output::Dns { .. }))
        .breaks("attempt 1 goes on as attempt 2");
}

#[test]
fn an_attempt_before_its_time() {
    let mut life = refused(1);
    for step in &mut life.steps[1..] {
        step.now = life.now - Duration::from_millis(1);
    }
    life.steps[0].now = life.now - Duration::from_millis(1);
    let last = life.steps.len() - 1;
    life.steps[last].now = life.now;
    life.breaks("the ladder says");
}

#[test]
fn a_wait_that_is_longer_than_it_is_told() {
    let mut life = Life::new(&waiting().patient());
    life.input(Command::Connect);
    life.go_on();
    refuse(&mut life);
    life.wait_until(life.due());
    assert_eq!(life.broken(), None);
    let shortest = life.setup.backoff.base / 2;
    let shorter = |output: &mut Output| {
        if let Output::Event(Event::BackingOff { wait, .. }) = output {
            *wait = shortest;
        }
    };
    life.with(shorter).breaks("backs off for longer");
}
