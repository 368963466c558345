//! The rules for what goes on from attempt to attempt can be broken, too.

use super::{super::Ledger, *};
use chronicle_connection::{Endpoint, FatalError};

fn waiting() -> Setup {
    Setup::new("chronicle://s1,s2")
}

/// A stable session that is lost, up to the dials of the next attempt.
fn reconnecting() -> Life {
    let mut life = connected_with(&waiting());
    stay(&mut life);
    lose(&mut life);
    life.go_on();
    life
}

/// Keep-alives arrive until the session is stable.
fn stay(life: &mut Life) {
    let stream = life.last(Request::Connect);
    let connection_id = life.outputs().find_map(connection_id_of);
    let connection_id = connection_id.unwrap_or_default();
    for _ in 0..7 {
        life.now += Duration::from_secs(1);
        let answer = life.last(Request::KeepAlive);
        life.reply(answer, ok());
        life.reply(stream, keep_alive(&connection_id));
    }
}

fn lose(life: &mut Life) {
    let stream = life.last(Request::Connect);
    let transport = life.outputs().find_map(|output| match output {
        Output::ServerStream(call) if call.id == stream => Some(call.on),
        _ => None,
    });
    life.reply(
        transport.unwrap(),
        Reply::Closed(Failure::new(FailureKind::Reset, "")),
    );
}

/// Both servers refuse every dial, so many times.
fn refused(attempts: usize) -> Life {
    let mut life = Life::new(&setup().patient());
    life.input(Command::Connect);
    for _ in 0..attempts {
        refuse(&mut life);
    }
    life
}

fn refuse(life: &mut Life) {
    let dials = life.ids(is_dial);
    for &id in &dials[dials.len() - 2..] {
        let failure = Failure::new(FailureKind::Refused, "");
        life.reply(id, Reply::Failed(failure));
    }
    if let Some(due) = life.steps[life.steps.len() - 1].after.poll_timeout() {
        life.now = due;
        life.input(Command::Tick);
    }
}

impl Life {
    /// Changes what the books are kept by.
    fn by(mut self, change: impl FnOnce(&mut Setup)) -> Self {
        change(&mut self.setup);
        self
    }

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
}

fn is_count(output: &Output) -> bool {
    request_of(output) == Some(Request::Count)
}

fn is_dial(output: &Output) -> bool {
    matches!(output, Output::Open { .. })
}

fn server(name: &str) -> Endpoint {
    Endpoint::new(chronicle_connection::Host::Name(name.to_owned()), 35000)
}

#[test]
fn untouched_lives_break_nothing() {
    for life in [
        connected_with(&waiting()),
        reconnecting(),
        refused(7),
        refused(1),
    ] {
        assert_eq!(life.broken(), None);
    }
}

#[test]
fn a_probe_before_the_end_of_its_wait() {
    let mut life = connected_with(&waiting());
    // The counts are asked for when the transports open, by the books.
    let asks = life.steps.iter_mut().find_map(|step| {
        let (counts, rest) = step.outputs.drain(..).partition(is_count);
        step.outputs = rest;
        let counts: Vec<Output> = counts;
        (!counts.is_empty()).then_some(counts)
    });
    let opened = life.steps.iter_mut().rev().find(|step| {
        matches!(
            step.input,
            Input::Reply {
                reply: Reply::Opened { .. },
                ..
            }
        )
    });
    opened.unwrap().outputs.extend(asks.unwrap());
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
        .breaks("waits");
}

#[test]
fn waits_that_are_not_drawn_anew() {
    let life = connected_with(&waiting());
    let mut ledger = Ledger::new(&life.setup);
    let wait = life.steps.iter().find(|step| {
        let reason = step.after.wait_reason();
        reason == Some(WaitReason::SelectionWait)
    });
    let wait = wait.unwrap();
    let mut broken = Ok(());
    for _ in 0..3 {
        let begins = Event::Connecting {
            attempt: 1,
            candidates: vec![server("s1"), server("s2")],
        };
        let began = life.steps[0].now;
        let entered = ledger.output(began, &Output::Event(begins));
        broken = entered.and_then(|()| ledger.settled(wait.now, &wait.after));
    }
    let rule = broken.err().map(|broken| broken.0).unwrap_or_default();
    assert!(rule.contains("not drawn anew"), "{rule}");
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
fn a_transport_that_outlives_its_session() {
    let life = reconnecting();
    let first = life.ids(is_dial)[0];
    let is_end = |input: &Input| matches!(input, Input::Reply { id, reply: Reply::Closed(_) } if *id == first);
    life.without_input(is_end).breaks("outlives it");
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

#[test]
fn a_ladder_that_starts_afresh_without_a_stable_session() {
    let mut life = refused(3);
    connect(&mut life);
    stay(&mut life);
    lose(&mut life);
    life.go_on();
    refuse(&mut life);
    assert_eq!(life.broken(), None);
    life.by(|setup| setup.timing.stable_after = Duration::from_secs(60))
        .breaks("wait 4 of the ladder");
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
fn a_server_that_captures() {
    let failed = Event::CandidateFailed {
        server: server("s1"),
        cause: chronicle_connection::CandidateError::GoingAway { code: 0 },
    };
    let begins = Event::Connecting {
        attempt: 2,
        candidates: vec![server("s1"), server("s2")],
    };
    let is_begin = |output: &Output| matches!(output, Output::Event(Event::Connecting { .. }));
    let is_choice = |output: &Output| matches!(output, Output::Event(Event::Selected { .. }));
    connected()
        .inserted(failed.clone(), is_choice)
        .breaks("which is no candidate or out");
    connected()
        .inserted(failed, is_begin)
        .breaks("which failed since the last session");
    connected()
        .inserted(begins, is_choice)
        .with(|output| {
            if let Output::Event(Event::Selected { server, .. }) = output {
                server.port = 1;
            }
        })
        .breaks("which is no candidate");
}

#[test]
fn giving_up_without_a_reason() {
    let timeout = Duration::from_secs(30);
    let last = chronicle_connection::AttemptError::default();
    let refused_all = FatalError::Incompatible(chronicle_connection::AttemptError {
        lookup: None,
        candidates: vec![(server("s1"), None), (server("s2"), None)],
    });
    let credentials = FatalError::Credentials {
        server: server("s1"),
        error: chronicle_connection::CredentialsError::Token(
            chronicle_connection::TokenError::NoSession,
        ),
    };
    for error in [
        FatalError::ConnectTimeout { timeout, last },
        refused_all,
        credentials,
    ] {
        connected()
            .inserted(Event::Failed(error), is_count)
            .breaks("gave up without a reason");
    }
}

#[test]
fn a_first_connect_that_nobody_ends() {
    connected()
        .by(|setup| setup.connect_timeout = Some(Duration::from_millis(1)))
        .breaks("is not watched to end");
}

#[test]
fn a_secret_in_an_event() {
    let keyed = Setup::new("chronicle://s1,s2?apiKey=canary7").exact();
    let told = |text: &str| Event::ReserveFailed {
        server: server("s1"),
        cause: chronicle_connection::CallError::Malformed(text.to_owned()),
    };
    connected_with(&keyed)
        .inserted(told("the key canary7"), is_count)
        .breaks("a secret");
    assert_eq!(
        connected_with(&keyed)
            .inserted(told("the key"), is_count)
            .broken(),
        None
    );
}

#[test]
fn a_request_that_does_not_belong_to_its_state() {
    let life = connected();
    let counts = life.ids(is_count);
    let losers = |output: &Output| matches!(output, Output::Cancel(id) if counts.contains(id));
    let is_count_reply =
        |input: &Input| matches!(input, Input::Reply { id, .. } if *id == counts[0]);
    life.without(losers)
        .without_input(is_count_reply)
        .breaks("is in flight while");
}
