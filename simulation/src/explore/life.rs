//! One state of an exploration: a machine with its books, and what it waits for.

use super::{
    Draws,
    draws::Script,
    replies::{Answer, Asked, Servers, What, answers, opened, spoils},
};
use crate::{
    Checks, Machine, Setup, Trace, Violation, id_of, request_of, trace::render_input,
    wire::connection_id_of,
};
use chronicle_connection::{Call, Command, Id, Input, NormalForm, Output, Reply, Request, State};
use siphasher::sip128::{Hasher128 as _, SipHasher13};
use std::{
    fmt,
    time::{Duration, Instant},
};

/// A machine, and what it has asked for.
#[derive(Debug, Clone)]
pub(super) struct Life {
    machine: Machine<Draws>,
    began: Instant,
    now: Instant,
    asked: Vec<Asked>,
    /// The last reply, to give it once more.
    replied: Option<(Id, Reply)>,
    /// A transport that is no more.
    closed: Option<Id>,
}

/// An input at a time.
#[derive(Debug, Clone)]
pub(super) struct Choice {
    pub(super) when: When,
    pub(super) input: Input,
    meaning: &'static str,
    /// Whether it must leave the state as it is.
    pub(super) changes_nothing: bool,
}

/// When an input comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum When {
    Now,
    /// Half way to the deadline.
    Halfway,
    /// A second later, where the deadline is later still.
    Later,
    /// Exactly at the deadline.
    Due,
    /// A moment after the deadline, and the machine was not woken.
    Overdue,
    /// A minute after the deadline, and the machine was not woken.
    Overslept,
}

impl Life {
    pub(super) fn new(setup: &Setup, began: Instant) -> Self {
        Self {
            machine: Machine::with_rng("c1", setup, Draws::default(), began).checked(Checks::Books),
            began,
            now: began,
            asked: Vec::new(),
            replied: None,
            closed: None,
        }
    }

    pub(super) fn checked(mut self, checks: Checks) -> Self {
        self.machine = self.machine.checked(checks);
        self
    }

    pub(super) fn machine(&self) -> &Machine<Draws> {
        &self.machine
    }

    /// Whether a request is under way.
    pub(super) fn asks(&self, wanted: Request) -> bool {
        let mut asked = self.asked.iter();
        asked.any(|one| matches!(one.what, What::Call { request, .. } if request == wanted))
    }

    /// What must hold in a state of which nothing more is known.
    pub(super) fn is_sound(&self) -> Result<(), Violation> {
        let waits = match self.machine.state() {
            State::Idle | State::Stopped => true,
            State::Resolving
            | State::Selecting
            | State::Handshaking { .. }
            | State::Connected(_)
            | State::BackingOff => self.machine.poll_timeout().is_some(),
        };
        if !waits {
            return Err(self.violation("there is no deadline to wait for".to_owned()));
        }
        if self.machine.poll_timeout().is_none() {
            return Ok(());
        }
        let mut trace = Trace::default();
        trace.set_recording(false);
        let mut tick = |life: &mut Self, when| {
            let choice = Choice::command(when, Command::Tick);
            life.apply(&choice, Script::default(), &mut trace)
        };
        let (mut at_once, mut with_a_stop) = (self.clone(), self.clone());
        tick(&mut at_once, When::Due)?;
        let early = tick(&mut with_a_stop, When::Halfway)?;
        tick(&mut with_a_stop, When::Due)?;
        if !early.is_empty() || at_once.fingerprint() != with_a_stop.fingerprint() {
            let rule = "waking up half way to the deadline made a difference".to_owned();
            return Err(self.violation(rule));
        }
        Ok(())
    }

    /// What must hold after a choice: it has changed the state, or may have.
    pub(super) fn is_as_before(&self, choice: &Choice, before: u128) -> Result<(), Violation> {
        if choice.changes_nothing && self.fingerprint() != before {
            let rule = "an input that must change nothing changed something".to_owned();
            return Err(self.violation(rule));
        }
        Ok(())
    }

    /// What this state is, whenever it is reached and whatever its ids are.
    ///
    /// Left out is what is given to the machine once more: a late reply changes nothing, and
    /// whatever it is, that is checked in every state.
    pub(super) fn fingerprint(&self) -> u128 {
        let mut form = NormalForm::new(SipHasher13::new(), self.now);
        self.machine.normal_form(&mut form);
        let mut asked: Vec<_> = self
            .asked
            .iter()
            .map(|one| (form.number(one.id), one))
            .collect();
        asked.sort_unstable_by_key(|(number, _)| *number);
        form.list(asked.into_iter(), |form, (number, asked)| {
            let Asked { id: _, on, what } = asked;
            form.value(number);
            form.optional(*on, NormalForm::id);
            match what {
                What::NameServers => form.value(0),
                // The question follows from the state of the lookup, but for its number.
                What::Dns { question: _ } => form.value(1),
                What::Dialled => form.value(2),
                What::Open { is_spoilt } => form.value((3, is_spoilt)),
                What::Call {
                    request,
                    has_message,
                    connection_id,
                } => {
                    form.value((4, request, has_message));
                    form.optional(connection_id.clone(), NormalForm::name);
                }
            }
        });
        form.finish().finish128().as_u128()
    }

    /// Every input that can come next. The same state has the same menu, in the same order unless
    /// its ids were minted in another.
    pub(super) fn menu(&self, servers: Servers) -> Vec<Choice> {
        let mut menu = Vec::new();
        for asked in &self.asked {
            let good = servers.good(&asked.what);
            for (index, answer) in answers(&asked.what).into_iter().enumerate() {
                let whens: &[When] = match good == Some(index) {
                    true => &[When::Now, When::Due, When::Overdue],
                    false => &[When::Now],
                };
                let choices = whens
                    .iter()
                    .map(|when| Choice::reply(*when, asked.id, answer.clone()));
                menu.extend(choices);
            }
        }
        let newest = self.machine.call_metadata().generation;
        let commands = [
            (When::Now, Command::Connect),
            (When::Overdue, Command::Connect),
            (When::Now, Command::Close),
            (When::Overdue, Command::Close),
            (When::Later, Command::Tick),
            (When::Due, Command::Tick),
            (When::Overslept, Command::Tick),
            (When::Now, Command::Slept(SHORT_SLEEP)),
            (When::Now, Command::Slept(LONG_SLEEP)),
            (When::Now, Command::RefreshToken { rejected: newest }),
        ];
        menu.extend(commands.map(|(when, command)| Choice::command(when, command)));
        if let Some(rejected) = newest.checked_sub(1) {
            menu.push(Choice::command(
                When::Now,
                Command::RefreshToken { rejected },
            ));
        }
        menu.retain(|choice| self.time(choice.when).is_some());
        menu.extend(self.idle());
        menu
    }

    /// What must change nothing: waking up for nothing, and replies that nobody waits for.
    fn idle(&self) -> Vec<Choice> {
        let is_over = |(id, _): &(Id, Reply)| self.asked.iter().all(|asked| asked.id != *id);
        let late = [
            self.replied.clone().filter(is_over),
            self.closed.map(|id| (id, opened())),
        ];
        let late = late.into_iter().flatten().map(|(id, reply)| {
            let meaning = "too late";
            Choice::reply(When::Now, id, Answer { reply, meaning })
        });
        let tick = Choice::command(When::Now, Command::Tick);
        let changes_nothing = true;
        std::iter::once(tick)
            .chain(late)
            .map(|choice| Choice {
                changes_nothing,
                ..choice
            })
            .collect()
    }

    /// The next step of a life in which all goes well; `None` once it has got where it goes.
    pub(super) fn good(&self, servers: Servers) -> Option<Choice> {
        match self.machine.state() {
            State::Connected(_) | State::Stopped => return None,
            State::Idle => return Some(Choice::command(When::Now, Command::Connect)),
            State::Resolving | State::Selecting | State::Handshaking { .. } | State::BackingOff => {
            }
        }
        let mut asked = self.asked.iter();
        let reply = asked.find_map(|asked| {
            let index = servers.good(&asked.what)?;
            let answer = answers(&asked.what).into_iter().nth(index)?;
            Some(Choice::reply(When::Now, asked.id, answer))
        });
        reply.or_else(|| Some(Choice::command(When::Due, Command::Tick)))
    }

    /// What a good server does for a session that is up: a keep-alive a second, and an
    /// acknowledgement for each answer.
    pub(super) fn beat(&self) -> Option<Choice> {
        let of = |wanted: Request| {
            self.asked
                .iter()
                .find(|asked| matches!(asked.what, What::Call { request, .. } if request == wanted))
        };
        let (when, asked) = match of(Request::KeepAlive) {
            Some(answer) => (When::Now, answer),
            None => (When::Later, of(Request::Connect)?),
        };
        let answer = answers(&asked.what).into_iter().next()?;
        Some(Choice::reply(when, asked.id, answer))
    }

    /// Gives an input to the machine, whose draws follow a script.
    pub(super) fn apply(
        &mut self,
        choice: &Choice,
        script: Script,
        trace: &mut Trace,
    ) -> Result<Vec<Output>, Violation> {
        self.now = self.time(choice.when).unwrap_or(self.now);
        self.note_input(&choice.input);
        self.machine.generator().follow(script);
        let outputs = self
            .machine
            .step(self.now, choice.input.clone(), trace, self.elapsed())?;
        for output in &outputs {
            self.note_output(output);
        }
        if self.machine.generator().has_overdrawn() {
            let rule = "more was drawn in one step than is explored".to_owned();
            return Err(self.violation(rule));
        }
        Ok(outputs)
    }

    /// The draws to try next for the step that was just made.
    pub(super) fn next_script(&mut self) -> Option<Script> {
        self.machine.generator().next_script()
    }

    pub(super) fn violation(&self, rule: String) -> Violation {
        Violation::new(self.machine.name(), self.elapsed(), rule)
    }

    /// The choice in one line, as of this state.
    pub(super) fn describe(&self, choice: &Choice) -> String {
        let at = self.time(choice.when).unwrap_or(self.now) - self.began;
        let (seconds, millis) = (at.as_secs(), at.subsec_millis());
        let (when, input) = (choice.when, render_input(&choice.input));
        let mut line = format!("{seconds:>4}.{millis:03} s {when}{input}");
        if !choice.meaning.is_empty() {
            line = format!("{line} ({})", choice.meaning);
        }
        line
    }

    fn elapsed(&self) -> Duration {
        self.now - self.began
    }

    /// The instant of an input; `None` where it can come at no such time.
    fn time(&self, when: When) -> Option<Instant> {
        if when == When::Now {
            return Some(self.now);
        }
        let due = self.machine.poll_timeout()?;
        match when {
            When::Now => Some(self.now),
            When::Halfway => Some(self.now + (due - self.now) / 2),
            When::Later => Some(self.now + PAUSE).filter(|later| *later < due),
            When::Due => Some(due),
            When::Overdue => Some(due + MOMENT),
            When::Overslept => Some(due + LONG_SLEEP),
        }
    }

    fn note_input(&mut self, input: &Input) {
        let Input::Reply { id, reply } = input else {
            return;
        };
        self.replied = Some((*id, reply.clone()));
        let Some(at) = self.asked.iter().position(|asked| asked.id == *id) else {
            return;
        };
        if spoils(&self.asked[at].what, reply) {
            let on = self.asked[at].on;
            for transport in self.asked.iter_mut().filter(|one| Some(one.id) == on) {
                transport.what = What::Open { is_spoilt: true };
            }
        }
        // A reply of the wrong kind ends nothing: the machine has to.
        let what = &mut self.asked[at].what;
        let is_over = match what {
            What::NameServers => matches!(reply, Reply::NameServers(_) | Reply::Failed(_)),
            What::Dns { .. } => matches!(reply, Reply::Failed(_)),
            What::Dialled => {
                if matches!(reply, Reply::Opened { .. }) {
                    *what = What::Open { is_spoilt: false };
                }
                matches!(reply, Reply::Failed(_))
            }
            What::Open { .. } => matches!(reply, Reply::Closed(_)),
            What::Call {
                request,
                has_message,
                ..
            } => match request {
                Request::Count | Request::Reserve | Request::Token => {
                    matches!(reply, Reply::Http(_) | Reply::Failed(_))
                }
                Request::CheckCompatibility
                | Request::GetDescriptorSet
                | Request::GetVersionInfo => {
                    // It decides what a good server says next, and with other calls it does not.
                    *has_message |= matches!(reply, Reply::Message(_));
                    matches!(reply, Reply::Finished(_) | Reply::Failed(_))
                }
                Request::Connect | Request::KeepAlive => {
                    matches!(reply, Reply::Finished(_) | Reply::Failed(_))
                }
            },
        };
        if is_over {
            self.forget(*id);
        }
    }

    fn note_output(&mut self, output: &Output) {
        let (on, what) = match output {
            Output::NameServers { .. } => (None, What::NameServers),
            Output::Dns { message, .. } => {
                let question = message.clone();
                (None, What::Dns { question })
            }
            Output::Open { .. } => (None, What::Dialled),
            Output::Http { on, .. }
            | Output::Unary(Call { on, .. })
            | Output::ServerStream(Call { on, .. }) => {
                let Some(request) = request_of(output) else {
                    return;
                };
                let call = What::Call {
                    request,
                    has_message: false,
                    connection_id: connection_id_of(output),
                };
                (Some(*on), call)
            }
            Output::Cancel(id) | Output::Close(id) => return self.forget(*id),
            Output::Event(_) => return,
        };
        // What was sent on a transport that had ended before the machine knew comes to nothing.
        let is_lost = on.is_some_and(|on| self.asked.iter().all(|one| one.id != on));
        if let Some(id) = id_of(output).filter(|_| !is_lost) {
            self.asked.push(Asked { id, on, what });
        }
    }

    /// What was asked for is over, and all that was asked for on it.
    fn forget(&mut self, id: Id) {
        let is_transport = |one: &Asked| matches!(one.what, What::Dialled | What::Open { .. });
        if self
            .asked
            .iter()
            .any(|one| one.id == id && is_transport(one))
        {
            self.closed = Some(id);
        }
        self.asked.retain(|one| one.id != id && one.on != Some(id));
    }
}

impl fmt::Display for When {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Now => "",
            Self::Halfway => "half way to the deadline: ",
            Self::Later => "later: ",
            Self::Due => "at the deadline: ",
            Self::Overdue => "after the deadline: ",
            Self::Overslept => "long after the deadline: ",
        })
    }
}

impl Choice {
    fn reply(when: When, id: Id, answer: Answer) -> Self {
        let Answer { meaning, reply } = answer;
        Self {
            when,
            input: Input::Reply { id, reply },
            meaning,
            changes_nothing: false,
        }
    }

    fn command(when: When, command: Command) -> Self {
        Self {
            when,
            input: command.into(),
            meaning: "",
            changes_nothing: false,
        }
    }
}

/// Longer than counts are fresh, and a divisor of most deadlines.
const PAUSE: Duration = Duration::from_secs(1);

const MOMENT: Duration = Duration::from_millis(1);

/// Shorter than most deadlines.
const SHORT_SLEEP: Duration = Duration::from_secs(3);

/// Longer than any deadline but that of a lasting token.
const LONG_SLEEP: Duration = Duration::from_secs(60);
