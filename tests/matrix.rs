//! Which scenario runs on what, and how long it takes: `MATRIX.md`, which the suite writes.

use std::{
    collections::BTreeMap,
    env, fs,
    io::{self, Write as _},
    path::PathBuf,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

/// Runs a scenario of a module and a name. Its time goes into the matrix where that is written anew.
pub(crate) fn timed((module, name): (&str, &str), stack: &str, scenario: impl FnOnce()) {
    let begun = Instant::now();
    scenario();
    let took = begun.elapsed();
    if !is_written_anew() {
        return;
    }
    static WRITING: Mutex<()> = Mutex::new(());
    let _one_at_a_time = WRITING.lock().unwrap_or_else(PoisonError::into_inner);
    let mut times = times(&fs::read_to_string(file()).unwrap_or_default());
    let key = (module.to_owned(), name.to_owned(), stack.to_owned());
    times.insert(key, shown(took));
    fs::write(file(), rendered(&times)).unwrap();
}

/// Says aloud what is skipped, past the capture of tests, which would hide it. On CI nothing may be,
/// nor where the matrix is written anew: it would be shown as quick.
pub(crate) fn skip(why: &str) {
    assert!(env::var_os("CI").is_none() && !is_written_anew(), "{why}");
    let _ = writeln!(io::stderr(), "SKIPPED: {why}");
}

#[test]
fn the_matrix_has_every_scenario() {
    if is_written_anew() {
        return;
    }
    let text = fs::read_to_string(file()).unwrap_or_default();
    let times = times(&text);
    for (module, name, stacks) in all() {
        for stack in stacks {
            let key = (module.to_owned(), name.to_owned(), (*stack).to_owned());
            assert!(
                times.contains_key(&key),
                "{module}::{name} on {stack} has no time in tests/MATRIX.md; {REMEDY}"
            );
        }
    }
    assert!(
        text == rendered(&times),
        "tests/MATRIX.md is stale; {REMEDY}"
    );
}

/// By module, scenario and stack.
type Times = BTreeMap<(String, String, String), String>;

/// Every scenario with the stacks that it runs on.
fn all() -> impl Iterator<Item = (&'static str, &'static str, &'static [&'static str])> {
    macro_rules! names {
        ($($module:ident { $($name:ident)* })*) => {
            [$($((stringify!($module), stringify!($name))),*),*]
        };
    }
    let connections = connection_scenarios!(names!);
    let clients = client_scenarios!(names!);
    let connections = connections.map(|(module, name)| (module, name, &STACKS[..]));
    let clients = clients.map(|(module, name)| (module, name, &STACKS[..2]));
    connections.into_iter().chain(clients)
}

fn rendered(times: &Times) -> String {
    let mut text = HEAD.to_owned();
    for (module, name, stacks) in all() {
        text += &format!("| {module} | {} |", name.replace('_', " "));
        for stack in STACKS {
            let key = (module.to_owned(), name.to_owned(), stack.to_owned());
            let time = times.get(&key).filter(|_| stacks.contains(&stack));
            text += &format!(" {} |", time.map_or("", String::as_str));
        }
        text += "\n";
    }
    text
}

/// What `rendered` made a text of.
fn times(text: &str) -> Times {
    let mut times = Times::new();
    for line in text.lines().skip(HEAD.lines().count()) {
        let cells: Vec<_> = line.split('|').map(str::trim).collect();
        let [_, module, name, of @ .., _] = cells.as_slice() else {
            continue;
        };
        for (stack, time) in STACKS.iter().zip(of).filter(|(_, time)| !time.is_empty()) {
            let key = (*module).to_owned();
            times.insert(
                (key, name.replace(' ', "_"), (*stack).to_owned()),
                (*time).to_owned(),
            );
        }
    }
    times
}

/// With `CHRONICLE_REGENERATE` set.
fn is_written_anew() -> bool {
    env::var_os("CHRONICLE_REGENERATE").is_some()
}

fn shown(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}

fn file() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("MATRIX.md")
}

/// In the order of the columns; the first two are adapters.
const STACKS: [&str; 3] = ["tokio", "async-std", "event loop"];

const HEAD: &str = "\
# Scenarios by adapter

Written by `CHRONICLE_REGENERATE=1 cargo test -p chronicle-connection-tests --test end_to_end`. The
times are of one run of the whole suite on two cores, many tests at a time; most of each is waiting.
An empty cell: the event loop has no channels for application calls, no client certificates and no
subscriptions of its own.

| about | scenario | tokio | async-std | event loop |
|---|---|---:|---:|---:|
";

const REMEDY: &str =
    "run CHRONICLE_REGENERATE=1 cargo test -p chronicle-connection-tests --test end_to_end";
