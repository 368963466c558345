//! The rules for what is chosen, what is given up and what is kept secret can be broken.

use super::*;
use chronicle_connection::{FatalError, Strategy};

#[test]
fn a_server_that_captures() {
    let failed = Event::CandidateFailed {
        server: endpoint("s1"),
        cause: chronicle_connection::CandidateError::GoingAway { code: 0 },
    };
    let is_begin = |output: &Output| matches!(output, Output::Event(Event::Connecting { .. }));
    connected()
        .inserted(failed.clone(), is_choice)
        .breaks("which is no candidate or out");
    connected()
        .inserted(failed, is_begin)
        .breaks("which failed since the last session");
    connected()
        .with(|output| {
            if let Output::Event(Event::Selected { server, .. }) = output {
                server.port = 1;
            }
        })
        .breaks("which is no candidate");
}

/// Changes what the last of the choices is.
fn with_choice(mut life: Life, name: &str, told: Option<u64>) -> Life {
    let outputs = life.steps.iter_mut().flat_map(|step| &mut step.outputs);
    let mut choices = outputs.filter(|output| is_choice(output));
    if let Some(Output::Event(Event::Selected {
        server: chosen,
        count,
    })) = choices.next_back()
    {
        *chosen = endpoint(name);
        *count = told;
    }
    life
}

#[test]
fn servers_that_pass_a_client_to_and_fro() {
    let setup = Setup::new("chronicle://s1,s2,s3").strategy(Strategy::RoundRobin);
    let mut life = Life::new(&setup.exact());
    life.input(Command::Connect);
    for _ in 0..2 {
        flap(&mut life);
    }
    assert_eq!(life.broken(), None);
    let had_a_session = |output: &Output| match output {
        Output::Event(Event::Connected(session)) => Some(session.server.host.to_string()),
        _ => None,
    };
    let had: Vec<_> = life.outputs().filter_map(had_a_session).collect();
    assert_eq!(had.len(), 2);
    for name in had {
        with_choice(life.clone(), &name, None).breaks("which failed since the last session");
    }
    // Once all have had one, all but the newest get another chance.
    flap(&mut life);
    assert_eq!(life.broken(), None);
}

/// A session that is lost at once, up to the next dial.
fn flap(life: &mut Life) {
    connect_to_one(life);
    lose(life);
    life.wait_until(life.due());
}

#[test]
fn a_choice_that_is_not_the_lowest_count() {
    with_choice(connected(), "s2", Some(1)).breaks("there is one of Some(0)");
    with_choice(connected(), "s2", None).breaks("there is one of Some(0)");
    with_choice(connected(), "s1", Some(7)).breaks("it told Some(0)");
}

#[test]
fn of_two_counts_of_a_server_the_last_one_counts() {
    let mut life = Life::new(&setup());
    life.input(Command::Connect);
    for id in life.ids(is_dial) {
        life.reply(id, opened());
    }
    let counts = life.ids(is_count);
    life.reply(counts[0], http(200, "0"));
    life.now += Duration::from_secs(1);
    life.reply(counts[1], http(200, " 1\n"));
    let counts = life.ids(is_count);
    assert_eq!(counts.len(), 4, "stale counts are asked for once more");
    life.reply(counts[2], http(200, "2"));
    life.reply(counts[3], http(500, ""));
    assert_eq!(life.broken(), None);
    with_choice(life.clone(), "s1", Some(0)).breaks("it told Some(2)");
    with_choice(life, "s2", Some(3)).breaks("there is one of Some(2)");
}

#[test]
fn giving_up_without_a_reason() {
    let timeout = Duration::from_secs(30);
    let last = chronicle_connection::AttemptError::default();
    let refused_all = FatalError::Incompatible(chronicle_connection::AttemptError {
        lookup: None,
        candidates: vec![(endpoint("s1"), None), (endpoint("s2"), None)],
    });
    let credentials = FatalError::Credentials {
        server: endpoint("s1"),
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

fn is_choice(output: &Output) -> bool {
    matches!(output, Output::Event(Event::Selected { .. }))
}
