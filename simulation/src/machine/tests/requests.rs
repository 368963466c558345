//! The rules for transports, requests and lookups can be broken.

use super::*;
use chronicle_connection::Timing;
use chronicle_connection_proto::paths;

#[test]
fn an_id_that_does_not_rise() {
    connected()
        .doubled(|output| id_of(output).is_some())
        .breaks("ids must rise");
}

#[test]
fn a_request_without_a_limit() {
    let unlimited = |output: &mut Output| match output {
        Output::Http { limit, .. } => *limit = 0,
        Output::Unary(call) | Output::ServerStream(call) => call.limit = 0,
        _ => {}
    };
    connected().with(unlimited).breaks("no limit");
}

#[test]
fn a_request_that_nobody_knows() {
    let strange = |output: &mut Output| {
        if let Output::Http { request, .. } = output {
            *request.uri_mut() = http::Uri::from_static("/elsewhere");
        }
    };
    connected().with(strange).breaks("unknown request");
    let nowhere = later_id();
    let astray = |output: &mut Output| {
        if let Output::Http { on, .. } = output {
            *on = nowhere;
        }
    };
    connected()
        .with(astray)
        .breaks("unknown request or transport");
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

#[test]
fn what_there_may_only_be_one_of() {
    for (request, rule) in [
        (Request::Reserve, "a second reservation"),
        (Request::Connect, "a second `Connect`"),
        (Request::Token, "a second token request"),
    ] {
        with_a_token()
            .again(|output| request_of(output) == Some(request))
            .breaks(rule);
    }
}

#[test]
fn connect_before_the_reservation_is_over() {
    // By the books it has more time than the check.
    let life = connected().by(|setup| setup.timing.reserve = Duration::from_secs(60));
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
fn an_answer_that_is_not_of_its_stream() {
    let foreign = |output: &mut Output| {
        if let Output::Unary(call) = output
            && call.path == paths::CONNECTION_KEEP_ALIVE
        {
            call.message = bytes::Bytes::new();
        }
    };
    connected().with(foreign).breaks("without the stream");
}

/// Nobody acknowledges an answer.
fn unacknowledged() -> Life {
    let mut life = connected();
    for _ in 0..2 {
        life.now += Duration::from_millis(1500);
        beat(&mut life);
    }
    life
}

#[test]
fn more_answers_than_three() {
    let life = unacknowledged();
    assert_eq!(life.broken(), None);
    life.again(|output| request_of(output) == Some(Request::KeepAlive))
        .breaks("more than 3 answers");
}

#[test]
fn what_is_awaited_for_too_long() {
    type Shorten = fn(&mut Timing, Duration);
    let shorter: [(Life, Shorten, &str); 8] = [
        (
            connected(),
            |all, time| all.open = time,
            "Some(Selecting), and what is awaited",
        ),
        (connected(), |all, time| all.count = time, "what: Count"),
        (connected(), |all, time| all.reserve = time, "what: Reserve"),
        (
            connected(),
            |all, time| all.check = time,
            "what: CheckCompatibility",
        ),
        (
            connected(),
            |all, time| all.first_keep_alive = time,
            "what: Connect",
        ),
        (with_a_token(), |all, time| all.token = time, "what: Token"),
        (
            looked_up(),
            |all, time| all.lookup_try = time,
            "Some(Resolving), and what is awaited",
        ),
        (
            looked_up(),
            |all, time| all.lookup = time,
            "a lookup may take longer",
        ),
    ];
    for (life, shorten, what) in shorter {
        life.by(|setup| shorten(&mut setup.timing, Duration::from_millis(1)))
            .breaks(what);
    }
}

#[test]
fn a_check_that_takes_its_time_anew_with_each_request() {
    let mut life = asked(&setup());
    let so_far = life.steps.len();
    life.reply(
        life.last(Request::CheckCompatibility),
        status(Code::Unimplemented),
    );
    // Until now, its deadline comes first.
    life.reply(life.last(Request::Reserve), http(200, ""));
    assert_eq!(life.broken(), None);
    // By the books, the first request was made earlier, and nothing else is limited.
    for step in &mut life.steps[..so_far] {
        step.now -= Duration::from_secs(1);
    }
    life.by(|setup| {
        let timing = &mut setup.timing;
        for limit in [&mut timing.open, &mut timing.count, &mut timing.reserve] {
            *limit = Duration::from_secs(60);
        }
    })
    .breaks("what: GetDescriptorSet");
}

#[test]
fn an_answer_that_is_awaited_for_ever() {
    let mut life = connected();
    let first = life.last(Request::KeepAlive);
    for _ in 0..7 {
        life.now += Duration::from_millis(1500);
        beat(&mut life);
        let newest = life.last(Request::KeepAlive);
        life.reply(newest, ok());
    }
    assert_eq!(life.broken(), None);
    life.without(|output| matches!(output, Output::Cancel(id) if *id == first))
        .breaks("what: KeepAlive");
}

#[test]
fn a_cancel_of_what_is_not_in_flight() {
    looked_up()
        .doubled(|output| matches!(output, Output::Cancel(_)))
        .breaks("is cancelled and not in flight");
}

#[test]
fn a_close_of_what_is_not_open() {
    closed()
        .doubled(|output| matches!(output, Output::Close(_)))
        .breaks("is closed and not open");
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
