//! The explorer finds what is broken by the shortest way, and takes for alike what is alike.

use super::{life::Choice, *};
use crate::trace::render_output;
use chronicle_connection::{Contract, Endpoint, Event, Input, Reply, Schema, Selector, Strategy};
use rand_core::Rng;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

#[allow(clippy::disallowed_methods, reason = "the edge of virtual time")]
fn start() -> Instant {
    Instant::now()
}

fn explore(string: &str) -> Exploration {
    Exploration::new("a test", Setup::new(string).patient(), start())
}

fn silent() -> Trace {
    let mut trace = Trace::default();
    trace.set_recording(false);
    trace
}

/// A state, as far as all has gone well.
fn reached(exploration: &Exploration) -> Life {
    let mut life = Life::new(&exploration.setup, exploration.began);
    while let Some(choice) = exploration.overture(&life) {
        apply(&mut life, &choice);
    }
    life
}

fn apply(life: &mut Life, choice: &Choice) {
    if let Err(violation) = life.apply(choice, Script::default(), &mut silent()) {
        panic!("{violation}");
    }
}

/// The state after the first choice of the menu that reads like this.
fn after(exploration: &Exploration, life: &Life, choice: &str) -> Life {
    let menu = life.menu(exploration.servers);
    let found = menu.iter().find(|one| life.describe(one).contains(choice));
    let Some(found) = found else {
        let menu: Vec<String> = menu.iter().map(|one| life.describe(one)).collect();
        panic!("no {choice:?} in {menu:#?}");
    };
    let mut life = life.clone();
    apply(&mut life, found);
    life
}

#[test]
fn every_exploration_is_sound_as_far_as_a_test_has_time() {
    let mut all = BTreeSet::new();
    for exploration in explorations(start()) {
        assert!(all.insert(exploration.name().to_owned()), "{exploration:?}");
        let has_time = |progress: &Progress| progress.depth < 2 || progress.transitions < 2_000;
        match exploration.run(usize::MAX, has_time) {
            Ok(report) => {
                println!("{}: {report}", exploration.name());
                assert!(report.progress.depth >= 2, "{report}");
                assert!(report.progress.transitions >= 2_000, "{report}");
            }
            Err(counterexample) => panic!("{counterexample}"),
        }
    }
}

#[test]
fn a_rule_that_is_broken_is_found_by_the_shortest_way() {
    let never_dropped = |_: &Machine<Draws>, outputs: &[Output]| {
        let is_drop = |one: &Output| matches!(one, Output::Event(Event::Disconnected { .. }));
        match outputs.iter().any(is_drop) {
            true => Err("planted: a session was dropped".to_owned()),
            false => Ok(()),
        }
    };
    let exploration = explore("chronicle://s1?skipCompatibilityCheck=true").rule(never_dropped);
    assert!(
        exploration.run(4, |_| true).is_ok(),
        "too short to be broken"
    );
    let found = exploration.run(9, |_| true).unwrap_err();
    assert_eq!(found.violation.rule, "planted: a session was dropped");
    // Connect, open, reserved, keep-alive, and the end of anything.
    assert_eq!(found.path.0.len(), 5, "{found}");
    assert_eq!(found.inputs.len(), 5, "{found}");
    assert!(found.inputs[0].ends_with("Connect"), "{found}");
    assert!(found.inputs[3].ends_with("(a keep-alive)"), "{found}");

    let printed = found.to_string();
    let argument = printed.rsplit('"').nth(1).unwrap();
    let path: Path = argument.parse().unwrap();
    assert_eq!(path, found.path);
    let (trace, result) = exploration.replay(&path);
    assert_eq!(result, Err(found.violation));
    assert!(
        trace.as_str().contains("Disconnected"),
        "{}",
        trace.as_str()
    );
}

#[test]
fn a_rule_that_only_one_outcome_of_a_draw_breaks_is_found() {
    let never_third = |_: &Machine<Draws>, outputs: &[Output]| {
        let is_third = |one: &Output| match one {
            Output::Event(Event::Selected { server, .. }) => server.to_string() == "s3:35000",
            _ => false,
        };
        match outputs.iter().any(is_third) {
            true => Err("planted: the third was chosen".to_owned()),
            false => Ok(()),
        }
    };
    let exploration = explore("chronicle://s1,s2,s3?loadBalancer=random").rule(never_third);
    let found = exploration.run(3, |_| true).unwrap_err();
    assert_eq!(found.path.0.len(), 1, "{found}");
    assert_ne!(found.path.0[0].script, Script::default());
    let path: Path = found.path.to_string().parse().unwrap();
    assert_eq!(exploration.replay(&path).1, Err(found.violation));
}

/// A strategy that chooses another server each time, whichever life asks, and draws so often.
#[derive(Debug, Clone)]
struct Fickle {
    turns: Arc<AtomicUsize>,
    draws: u32,
}

impl Selector for Fickle {
    fn select<'a>(&mut self, candidates: &'a [Endpoint], rng: &mut dyn Rng) -> &'a Endpoint {
        for _ in 0..self.draws {
            rng.next_u64();
        }
        &candidates[self.turns.fetch_add(1, Ordering::Relaxed) % candidates.len()]
    }

    fn clone_box(&self) -> Box<dyn Selector> {
        Box::new(self.clone())
    }
}

fn fickle(draws: u32) -> Exploration {
    let turns = Arc::default();
    let strategy = Strategy::Custom(Box::new(Fickle { turns, draws }));
    let setup = Setup::new("chronicle://s1,s2").patient().strategy(strategy);
    Exploration::new("a test", setup, start())
}

#[test]
fn a_deadline_that_does_another_thing_each_time_is_found() {
    let exploration = fickle(0);
    let mut life = reached(&exploration);
    for choice in ["Connect", "(refused)", "(refused)"] {
        life = after(&exploration, &life, choice);
    }
    let violation = life.is_sound().unwrap_err();
    assert!(violation.rule.contains("half way"), "{violation}");
}

#[test]
fn draws_that_no_script_reaches_are_found() {
    let connect = |draws| {
        let mut life = reached(&fickle(draws));
        let connect = life.good(Servers { are_old: false }).unwrap();
        life.apply(&connect, Script::default(), &mut silent())
    };
    assert!(connect(Script::LONGEST).is_ok());
    let violation = connect(Script::LONGEST + 1).unwrap_err();
    assert!(violation.rule.contains("more was drawn"), "{violation}");
}

#[test]
fn an_idle_input_that_changes_something_is_found() {
    let mut life = reached(&explore("chronicle://s1"));
    let before = life.fingerprint();
    let mut connect = life.good(Servers { are_old: false }).unwrap();
    connect.changes_nothing = true;
    assert!(life.is_as_before(&connect, before).is_ok());
    apply(&mut life, &connect);
    let violation = life.is_as_before(&connect, before).unwrap_err();
    assert!(
        violation.rule.contains("must change nothing"),
        "{violation}"
    );
}

#[test]
fn a_life_that_good_servers_end_is_found() {
    let text = "syntax = \"proto3\";\npackage a;\nmessage M {}\n\
        service Unknown { rpc Call (M) returns (M); }\n";
    let schema = Schema::from_source_text(text).unwrap();
    let contract = Contract::from_descriptor_set(schema.descriptor_set().clone(), "17.0.0");
    let mut setup = Setup::new("chronicle://s1").patient();
    setup.contract = contract.unwrap();
    let exploration = Exploration::new("a test", setup, start()).with_old_servers();
    let found = exploration.run(1, |_| true).unwrap_err();
    assert_eq!(found.violation.rule, "good answers lead to the end");
}

#[test]
fn a_choice_that_is_not_there_is_told() {
    let (_, result) = explore("chronicle://s1").replay(&"999".parse().unwrap());
    let violation = result.unwrap_err();
    assert!(violation.rule.contains("no choice 999"), "{violation}");
}

#[test]
fn the_same_exploration_counts_the_same() {
    let run = || explore("chronicle://s1,s2").run(3, |_| true).unwrap();
    assert_eq!(run(), run());
}

#[test]
fn what_it_is_told_to_stop_it_stops() {
    let mut states = 0;
    let report = explore("chronicle://s1").run(9, |progress| {
        states = progress.states;
        progress.depth < 2
    });
    let report = report.unwrap();
    assert_eq!(report.progress.depth, 2);
    assert_eq!(report.progress.states, states);
    assert!(!report.is_all);
}

#[test]
fn when_a_state_is_reached_and_with_which_ids_makes_no_difference() {
    let setup = Setup::new("chronicle://s1").patient().exact();
    let later = start() + Duration::from_secs(86_400);
    let (one, other) = (Life::new(&setup, start()), Life::new(&setup, later));
    assert_eq!(one.fingerprint(), other.fingerprint());

    // From the seventh wait on, all are 30 s: but for ids, time and counters, all is as before.
    let exploration = explore("chronicle://s1");
    let mut life = after(&exploration, &reached(&exploration), "Connect");
    let mut waits = Vec::new();
    for _ in 0..8 {
        life = after(&exploration, &life, "(refused)");
        waits.push(life.fingerprint());
        life = after(&exploration, &life, "at the deadline: Tick");
    }
    let distinct: BTreeSet<_> = waits.iter().collect();
    assert_eq!(distinct.len(), 6, "1, 2, 4, 8, 16 and 30 s");
    assert_eq!(waits[5], waits[7]);

    // A second session is as good as the first, but for what only the first connect does.
    let exploration = exploration.from(Start::Stable);
    let first = reached(&exploration);
    let dropped = after(&exploration, &first, "(closed)");
    let mut again = dropped.clone();
    for _ in 0..2 {
        while let Some(choice) = again.good(exploration.servers) {
            apply(&mut again, &choice);
        }
        while !again.machine().stats().keep_alives.is_multiple_of(8) {
            let beat = again.beat().unwrap();
            apply(&mut again, &beat);
        }
        let next = after(&exploration, &again, "(closed)");
        assert_eq!(next.fingerprint(), dropped.fingerprint());
        again = next;
    }
}

#[test]
fn whatever_decides_what_follows_tells_states_apart() {
    let session = |at| explore("chronicle://id:secret@s1").from(at);
    let counts = explore("chronicle://s1,s2").from(Start::Asked(Request::Count));
    let lookup = explore("chronicle+srv://cluster.test");
    let opened = after(&lookup, &reached(&lookup), "Connect");
    let cases: Vec<(Exploration, Life, &str, &str)> = vec![
        (
            counts.clone(),
            reached(&counts),
            "(1 client)",
            "(2 clients)",
        ),
        (
            counts.clone(),
            reached(&counts),
            "(1 client)",
            "(no number)",
        ),
        (counts.clone(), reached(&counts), "(refused)", "(open)"),
        (counts.clone(), reached(&counts), "later: Tick", "Slept(3s)"),
        (
            lookup.clone(),
            opened.clone(),
            "later: Tick",
            "(two name servers)",
        ),
        (lookup.clone(), opened, "Close", "(no name servers)"),
    ];
    for (exploration, life, one, other) in cases {
        let states = [
            life.fingerprint(),
            after(&exploration, &life, one).fingerprint(),
            after(&exploration, &life, other).fingerprint(),
        ];
        let distinct: BTreeSet<_> = states.iter().collect();
        assert_eq!(distinct.len(), 3, "{one} and {other}");
    }
    // How a session ended, and whether a slot was reserved, is told and decides nothing.
    let pairs = [
        (
            Start::Asked(Request::Reserve),
            "(reserved)",
            "(refused)",
            true,
        ),
        (
            Start::Asked(Request::Reserve),
            "(reserved)",
            "(compatible)",
            false,
        ),
        (
            Start::Asked(Request::Reserve),
            "(compatible)",
            "(incompatible)",
            false,
        ),
        (
            Start::Asked(Request::Reserve),
            "(a token for 4 s)",
            "(failed)",
            false,
        ),
        (
            Start::Asked(Request::Connect),
            "(a keep-alive)",
            "(unauthenticated)",
            false,
        ),
        (Start::Connected, "(a keep-alive)", "later: Tick", false),
        (
            Start::Connected,
            "#5 Finished OK (OK)",
            "(unknown method)",
            false,
        ),
        (
            Start::Connected,
            "RefreshToken { rejected: 1 }",
            "(unauthenticated)",
            false,
        ),
        (Start::Connected, "(closed)", " s Close", false),
        (Start::Connected, "(closed)", "(a foreign keep-alive)", true),
        (Start::Stable, "(closed)", "(a foreign keep-alive)", true),
    ];
    for (at, one, other, alike) in pairs {
        let exploration = session(at);
        let life = reached(&exploration);
        let states = [one, other].map(|choice| after(&exploration, &life, choice).fingerprint());
        assert_eq!(states[0] == states[1], alike, "{at:?}: {one} and {other}");
    }
}

/// What the normal form leaves out makes no difference: from two lives that led to one state, the
/// same inputs put out the same and lead to the same states.
#[test]
fn states_that_are_alike_stay_alike() {
    let mut pairs = 0;
    for exploration in explorations(start()).into_iter().step_by(4) {
        let mut known = BTreeMap::new();
        let mut level = vec![reached(&exploration)];
        for _ in 0..3 {
            let mut next = Vec::new();
            for life in &level {
                for (choice, state) in futures(&exploration, life) {
                    let Some(first) = known.get(&state.fingerprint()) else {
                        known.insert(state.fingerprint(), state.clone());
                        next.push(state);
                        continue;
                    };
                    // A sample is enough: the differences looked for are not rare.
                    pairs += 1;
                    if pairs % 23 == 0 {
                        let both = [first, &state].map(|life| told(&exploration, life));
                        let name = exploration.name();
                        assert_eq!(both[0], both[1], "{name}: {}", life.describe(&choice));
                    }
                }
            }
            next.truncate(12);
            level = next;
        }
    }
    assert!(pairs > 500, "{pairs}");
}

fn futures(exploration: &Exploration, life: &Life) -> Vec<(Choice, Life)> {
    let menu = life.menu(exploration.servers).into_iter();
    menu.map(|choice| {
        let mut after = life.clone();
        apply(&mut after, &choice);
        (choice, after)
    })
    .collect()
}

/// What each input puts out, without ids and names, and the state that it leads to.
fn told(exploration: &Exploration, life: &Life) -> BTreeSet<(String, Vec<String>, u128)> {
    let menu = life.menu(exploration.servers).into_iter();
    let futures = menu
        // The last reply is given once more: that may be another.
        .filter(|choice| !choice.changes_nothing)
        .map(|choice| {
            let mut after = life.clone();
            let outputs = after.apply(&choice, Script::default(), &mut silent());
            let outputs = outputs.unwrap_or_else(|violation| panic!("{violation}"));
            let kinds = outputs.iter().map(|output| match output {
                Output::Event(event) => format!("{event:?}")
                    .split([' ', '('])
                    .next()
                    .map(str::to_owned),
                other => render_output(other).split(' ').next().map(str::to_owned),
            });
            let input = match &choice.input {
                Input::Command(command) => format!("{command:?}").replace(char::is_numeric, ""),
                Input::Reply {
                    reply: Reply::Message(_),
                    ..
                } => "Message".to_owned(),
                Input::Reply { reply, .. } => format!("{reply:?}"),
            };
            let input = format!("{}{input}", choice.when);
            (input, kinds.flatten().collect(), after.fingerprint())
        });
    futures.collect()
}
