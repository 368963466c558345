//! The rules for sessions and for the end can be broken.

use super::*;
use chronicle_connection::Session;
use chronicle_connection_proto::clients::ConnectRequest;
use prost::Message as _;

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

/// Changes what is told of a session, and of the id that it registers.
fn with_session(life: Life, change: impl Fn(&mut Session)) -> Life {
    life.with(|output| match output {
        Output::Event(Event::Connected(session)) => change(session),
        Output::ServerStream(call) => {
            let mut request = ConnectRequest::decode(call.message.clone()).unwrap();
            let mut session = Session {
                connection_id: request.connection_id.parse().unwrap(),
                server: endpoint("s1"),
                peer: ([10, 0, 0, 1], 35000).into(),
                generation: 1,
            };
            change(&mut session);
            request.connection_id = session.connection_id.to_string();
            call.message = request.encode_to_vec().into();
        }
        _ => {}
    })
}

#[test]
fn a_session_that_is_not_as_it_is_told() {
    type Change = fn(&mut Session);
    let changes: [(Change, &str); 4] = [
        (
            |session| session.server = endpoint("s2"),
            "to another server",
        ),
        (|session| session.peer.set_port(1), "to another server"),
        (|session| session.generation = 7, "another generation"),
        (
            |session| session.connection_id = Default::default(),
            "of version 4",
        ),
    ];
    for (change, rule) in changes {
        with_session(connected(), change).breaks(rule);
    }
}

#[test]
fn a_connection_id_that_is_used_again() {
    let mut life = reconnecting();
    connect(&mut life);
    assert_eq!(life.broken(), None);
    let used = life.outputs().find_map(connection_id_of).unwrap();
    with_session(life, |session| {
        session.connection_id = used.parse().unwrap()
    })
    .breaks("was used again");
}

#[test]
fn a_session_whose_first_keep_alive_came_too_late() {
    let mut life = connecting();
    beat(&mut life);
    assert_eq!(life.broken(), None);
    if let Some(last) = life.steps.last_mut() {
        last.now += Duration::from_secs(5);
    }
    life.breaks("after `Connect`");
}

#[test]
fn an_end_that_is_not_that_of_the_session() {
    let is_end = |output: &Output| matches!(output, Output::Event(Event::Disconnected { .. }));
    lost().doubled(is_end).breaks("that was not live");
    let another = |output: &mut Output| {
        if let Output::Event(Event::Disconnected { session, .. }) = output {
            session.generation += 1;
        }
    };
    lost().with(another).breaks("another session ended");
    let longer = |output: &mut Output| {
        if let Output::Event(Event::Disconnected { lasted, .. }) = output {
            *lasted += Duration::from_nanos(1);
        }
    };
    lost().with(longer).breaks("the session lasted");
}

#[test]
fn a_transport_that_outlives_its_session() {
    let life = reconnecting();
    let first = life.ids(is_dial)[0];
    let is_end = |input: &Input| matches!(input, Input::Reply { id, reply: Reply::Closed(_) } if *id == first);
    life.without_input(is_end).breaks("outlives it");
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
    connected()
        .by(|setup| setup.timing.keep_alive = Duration::from_secs(4))
        .breaks("does not watch the newest keep-alive");
    let mut life = connected();
    for _ in 0..2 {
        let answer = life.last(Request::KeepAlive);
        life.reply(answer, ok());
    }
    assert_eq!(life.broken(), None);
    // The second, which was sent a second later, was not acknowledged by the books.
    let answer = life.last(Request::KeepAlive);
    life.without_input(|input| matches!(input, Input::Reply { id, .. } if *id == answer))
        .breaks("does not watch the newest acknowledged answer");
}

#[test]
fn a_deadline_without_a_reason() {
    // Whoever has not drained its outputs wants to be woken at once.
    let mut life = closed();
    let before = life.steps.len() - 2;
    let mut undrained = life.steps[before].after.clone();
    undrained.handle(life.now, Command::Close);
    life.steps[before + 1].after = undrained;
    life.breaks("a deadline without a reason");
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
fn a_close_that_nobody_heard() {
    let mut life = Life::new(&setup());
    life.input(Command::Connect);
    life.input(Command::Tick);
    life.steps[2].input = Command::Close.into();
    life.breaks("told to close");
}
