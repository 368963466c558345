//! Each rule of the books can be broken: a life that keeps them all is tampered with, and the rule
//! that no longer holds must be the one that is named.

mod habits;

use super::{ChaCha8Rng, Connection, Input, Ledger, Output, drain};
use crate::{
    Setup, compatible, http, id_of, keep_alive, ok, request_of, status,
    wire::{connection_id_of, message},
};
use chronicle_connection::{
    Code, Command, Event, Failure, FailureKind, Id, Reply, Request, WaitReason,
};
use chronicle_connection_proto::clients::DescriptorSetResponse;
use chronicle_reference_server::model::ModelConfig;
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

    /// Waits out the random waits of a selection.
    fn go_on(&mut self) {
        let last = &self.steps[self.steps.len() - 1].after;
        if let (Some(WaitReason::DialWait | WaitReason::SelectionWait), Some(due)) =
            (last.wait_reason(), last.poll_timeout())
        {
            self.now = due;
            self.input(Command::Tick);
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

    fn breaks(&self, rule: &str) {
        let broken = self.broken();
        let is_it = broken.as_ref().is_some_and(|text| text.contains(rule));
        assert!(is_it, "{broken:?} is not {rule:?}");
    }
}

fn setup() -> Setup {
    Setup::new("chronicle://s1,s2").exact()
}

fn connected() -> Life {
    connected_with(&setup())
}

fn connected_with(setup: &Setup) -> Life {
    let mut life = Life::new(setup);
    life.input(Command::Connect);
    life.go_on();
    connect(&mut life);
    life.now += Duration::from_secs(1);
    let stream = life.last(Request::Connect);
    let connection_id = life.outputs().find_map(connection_id_of);
    life.reply(stream, keep_alive(&connection_id.unwrap_or_default()));
    life
}

/// From the dials that wait for their answers to the first keep-alive.
fn connect(life: &mut Life) {
    let dials = life.ids(|output| matches!(output, Output::Open { .. }));
    let transports = &dials[dials.len() - 2..];
    for &id in transports {
        let peer = ([10, 0, 0, 1], 35000).into();
        life.reply(id, Reply::Opened { peer });
    }
    life.go_on();
    let counts = life.ids(|output| request_of(output) == Some(Request::Count));
    let counts = &counts[counts.len() - 2..];
    life.reply(counts[0], http(200, "0"));
    life.reply(counts[1], http(200, "1"));
    life.reply(life.last(Request::Reserve), http(200, ""));
    let check = life.last(Request::CheckCompatibility);
    life.reply(check, compatible());
    life.reply(check, ok());
    let stream = life.last(Request::Connect);
    let connection_id = life.outputs().find_map(connection_id_of);
    let connection_id = connection_id.unwrap_or_default();
    life.reply(stream, keep_alive(&connection_id));
}

fn lost() -> Life {
    let mut life = connected();
    let transport = life.ids(|output| matches!(output, Output::Open { .. }))[0];
    life.reply(
        transport,
        Reply::Closed(Failure::new(FailureKind::Reset, "")),
    );
    life
}

fn closed() -> Life {
    let mut life = connected();
    life.input(Command::Close);
    life
}

/// The session was over before it was closed, and nobody had looked.
fn closed_too_late() -> Life {
    let mut life = connected();
    life.now += Duration::from_secs(6);
    life.input(Command::Close);
    life
}

/// The time for the first connect is up, and then it is closed.
fn given_up() -> Life {
    let mut life = Life::new(&setup());
    life.input(Command::Connect);
    life.now += Duration::from_secs(31);
    life.input(Command::Tick);
    life.input(Command::Close);
    life
}

/// The client compares, and the server's version comes last.
fn judged_here() -> Life {
    let mut life = Life::new(&setup());
    life.input(Command::Connect);
    for id in life.ids(|output| matches!(output, Output::Open { .. })) {
        let peer = ([10, 0, 0, 1], 35000).into();
        life.reply(id, Reply::Opened { peer });
    }
    life.now += Duration::from_secs(2);
    life.input(Command::Tick);
    life.reply(life.last(Request::Reserve), http(200, ""));
    let unknown = status(Code::Unimplemented);
    life.reply(life.last(Request::CheckCompatibility), unknown.clone());
    let text = life.last(Request::GetDescriptorSet);
    let response = DescriptorSetResponse {
        schema_definition: ModelConfig::default().schema,
    };
    life.reply(text, message(&response));
    life.reply(text, ok());
    life.reply(life.last(Request::GetVersionInfo), unknown);
    life.last(Request::Connect);
    life
}

/// The one name server fails in the first round and is silent in the second.
fn looked_up() -> Life {
    let string = "chronicle+srv://cluster.test?srvNameServer=10.0.0.1";
    let mut life = Life::new(&Setup::new(string).exact());
    life.input(Command::Connect);
    let question = life.ids(|output| matches!(output, Output::Dns { .. }))[0];
    let failure = Failure::new(FailureKind::Refused, "");
    life.reply(question, Reply::Failed(failure));
    life.now += Duration::from_secs(2);
    life.input(Command::Tick);
    life
}

fn is_verdict(output: &Output) -> bool {
    matches!(output, Output::Event(Event::Compatible { .. }))
}

#[test]
fn an_untouched_life_breaks_nothing() {
    for life in [
        connected(),
        lost(),
        closed(),
        closed_too_late(),
        looked_up(),
        given_up(),
        judged_here(),
    ] {
        assert_eq!(life.broken(), None);
    }
}

#[test]
fn an_id_that_does_not_rise() {
    connected()
        .doubled(|output| id_of(output).is_some())
        .breaks("ids must rise");
}

#[test]
fn connect_before_the_reservation_is_over() {
    let life = connected();
    let reserve = life.last(Request::Reserve);
    life.without_input(|input| matches!(input, Input::Reply { id, .. } if *id == reserve))
        .breaks("before the reservation");
}

#[test]
fn connect_before_the_check_has_passed() {
    let life = connected();
    let check = life.last(Request::CheckCompatibility);
    let is_end = |input: &Input| matches!(input, Input::Reply { id, reply: Reply::Finished(_) } if *id == check);
    let life = life.without_input(is_end);
    life.clone().breaks("without a check that could tell");
    life.without(is_verdict).breaks("without a passed check");
}

#[test]
fn connect_after_a_text_that_nobody_has_judged() {
    judged_here()
        .without(is_verdict)
        .breaks("without a passed check");
}

#[test]
fn connect_after_a_check_that_found_something() {
    let mut life = connected();
    for step in &mut life.steps {
        if let Input::Reply { reply, .. } = &mut step.input
            && let Reply::Message(_) = reply
        {
            *reply = crate::incompatible(true, &["something"]);
        }
    }
    life.clone().breaks("without a check that could tell");
    life.without(is_verdict).breaks("without a passed check");
}

#[test]
fn losers_that_stay_open() {
    connected()
        .without(|output| matches!(output, Output::Close(_)))
        .breaks("transports that lost");
}

#[test]
fn a_session_without_its_stream() {
    let life = connected();
    life.without(|output| request_of(output) == Some(Request::Connect))
        .breaks("without a live `Connect` stream");
}

#[test]
fn a_session_that_comes_up_twice() {
    connected()
        .doubled(|output| matches!(output, Output::Event(Event::Connected(_))))
        .breaks("two live sessions");
}

#[test]
fn a_session_that_is_not_reported() {
    connected()
        .without(|output| matches!(output, Output::Event(Event::Connected(_))))
        .breaks("events and state disagree");
}

#[test]
fn a_drop_that_is_not_reported() {
    lost()
        .without(|output| matches!(output, Output::Event(Event::Disconnected { .. })))
        .breaks("events and state disagree");
}

#[test]
fn a_request_on_a_transport_that_never_opened() {
    connected()
        .without_input(|input| {
            matches!(
                input,
                Input::Reply {
                    reply: Reply::Opened { .. },
                    ..
                }
            )
        })
        .breaks("not open");
}

#[test]
fn something_that_stays_open_while_backing_off() {
    let life = lost();
    let first = life.ids(|output| matches!(output, Output::Open { .. }))[0];
    life.without_input(
        |input| matches!(input, Input::Reply { id, reply: Reply::Closed(_) } if *id == first),
    )
    .breaks("with something open");
}

#[test]
fn a_question_beside_another() {
    let is_reply = |input: &Input| matches!(input, Input::Reply { .. });
    looked_up().without_input(is_reply).breaks("at a time");
}

#[test]
fn a_question_that_outlives_its_lookup() {
    let is_cancel = |output: &Output| matches!(output, Output::Cancel(_));
    looked_up()
        .without(is_cancel)
        .breaks("the lookup in flight");
}

#[test]
fn a_lookup_that_waits_for_nothing() {
    let is_question = |output: &Output| matches!(output, Output::Dns { .. });
    looked_up()
        .without(is_question)
        .breaks("the lookup in flight");
}

#[test]
fn a_close_of_what_is_not_open() {
    closed()
        .doubled(|output| matches!(output, Output::Close(_)))
        .breaks("is closed and not open");
}

#[test]
fn a_word_after_the_close() {
    closed()
        .doubled(|output| matches!(output, Output::Event(Event::Closed)))
        .breaks("around the end");
    closed_too_late()
        .doubled(|output| matches!(output, Output::Event(Event::Closed)))
        .breaks("around the end");
    closed()
        .without(|output| matches!(output, Output::Event(Event::Closed)))
        .breaks("events and state disagree");
}

#[test]
fn a_word_after_giving_up() {
    given_up()
        .doubled(|output| matches!(output, Output::Event(Event::Failed(_))))
        .breaks("around the end");
}

#[test]
fn a_session_that_outlives_its_clocks() {
    let mut life = connected();
    let late = Step {
        now: life.now + Duration::from_secs(6),
        input: Command::Tick.into(),
        outputs: vec![],
        after: life.steps[life.steps.len() - 1].after.clone(),
    };
    life.steps.push(late);
    life.breaks("one of its clocks had run out");
}

#[test]
fn a_deadline_that_does_not_watch_the_session() {
    // By the books everything was a second earlier than the connection saw it.
    let mut life = connected();
    for step in &mut life.steps {
        step.now -= Duration::from_secs(1);
    }
    life.breaks("does not watch");
}
