//! Shorthand of all tests.

use bytes::Bytes;
use chronicle_connection::{
    AttemptError, Call, CandidateError, Command, DropCause, Endpoint, Event, Failure, FailureKind,
    FatalError, Id, Output, Reply, Request, State,
};
use chronicle_simulation::{Hand, Setup, compatible, http, id_of, keep_alive, ok, request_of};
use std::{
    net::Ipv4Addr,
    time::{Duration, Instant},
};

/// Where the time of a test starts.
#[allow(clippy::disallowed_methods, reason = "the edge of virtual time")]
pub(crate) fn start() -> Instant {
    Instant::now()
}

pub(crate) fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

pub(crate) fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Three servers.
pub(crate) const THREE: &str = "chronicle://s1,s2,s3";

/// The shortest time that anything here tells apart.
pub(crate) const MOMENT: Duration = Duration::from_micros(1);

/// A machine without random waits, which tries for ever.
pub(crate) fn hand(string: &str) -> Hand {
    Hand::new(start(), Setup::new(string).exact().patient())
}

/// A session that is up.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Live {
    pub(crate) transport: Id,
    pub(crate) stream: Id,
}

/// A machine with one server and a session, its first answer acknowledged.
pub(crate) fn live_hand() -> (Hand, Live) {
    let mut hand = hand("chronicle://s1");
    hand.connect();
    let live = go_live(&mut hand, "s1");
    hand.events();
    (hand, live)
}

/// Opens the dial to a server and goes on until the session is up.
pub(crate) fn go_live(hand: &mut Hand, server: &str) -> Live {
    let transport = hand.take_open(server);
    hand.open(transport);
    pass(hand, transport)
}

/// From the chosen transport to the session.
pub(crate) fn pass(hand: &mut Hand, transport: Id) -> Live {
    let stream = prove(hand, transport);
    let live = Live { transport, stream };
    beat(hand, live);
    assert!(hand.session().is_some(), "{}", hand.trace().as_str());
    acknowledge(hand, live);
    live
}

/// From the chosen transport to `Connect`.
pub(crate) fn prove(hand: &mut Hand, transport: Id) -> Id {
    let reserve = hand.take(Request::Reserve, transport);
    let check = hand.take(Request::CheckCompatibility, transport);
    hand.reply(reserve, http(200, ""));
    pass_check(hand, check);
    hand.take(Request::Connect, transport)
}

pub(crate) fn pass_check(hand: &mut Hand, check: Id) {
    hand.reply(check, compatible());
    hand.reply(check, ok());
}

/// A keep-alive arrives.
pub(crate) fn beat(hand: &mut Hand, live: Live) {
    let id = hand.connection_id();
    hand.reply(live.stream, keep_alive(&id));
}

/// The oldest answer is acknowledged.
pub(crate) fn acknowledge(hand: &mut Hand, live: Live) {
    let answer = hand.take(Request::KeepAlive, live.transport);
    acknowledge_id(hand, answer);
}

pub(crate) fn acknowledge_id(hand: &mut Hand, answer: Id) {
    hand.reply(answer, Reply::Message(Bytes::new()));
    hand.reply(answer, ok());
}

/// Keep-alives arrive and are acknowledged, one a second.
pub(crate) fn live_on(hand: &mut Hand, live: Live, seconds: u64) {
    for _ in 0..seconds {
        hand.wait(secs(1));
        beat(hand, live);
        acknowledge(hand, live);
    }
}

/// A stable session on a transport, and its end.
pub(crate) fn live_and_lose(hand: &mut Hand, transport: Id) {
    let live = pass(hand, transport);
    live_on(hand, live, 7);
    hand.take_all();
    hand.reply(transport, closed());
}

/// Opens all dials and answers each count; `None` is an error of the server. Gives the transports.
pub(crate) fn offer(hand: &mut Hand, counts: &[(&str, Option<u64>)]) -> Vec<Id> {
    let transports: Vec<Id> = counts
        .iter()
        .map(|(server, _)| hand.take_open(server))
        .collect();
    for &transport in &transports {
        hand.open(transport);
    }
    for (&transport, (_, count)) in transports.iter().zip(counts) {
        let ask = hand.take(Request::Count, transport);
        hand.reply(
            ask,
            match count {
                Some(count) => http(200, count.to_string()),
                None => http(500, ""),
            },
        );
    }
    transports
}

/// The servers that were chosen since the last look at the events.
pub(crate) fn chosen(hand: &mut Hand) -> Vec<String> {
    let events = hand.events().into_iter();
    events.filter_map(|event| selected(&event)).collect()
}

pub(crate) fn selected(event: &Event) -> Option<String> {
    match event {
        Event::Selected { server, .. } => Some(name(server)),
        _ => None,
    }
}

/// The one server that was chosen since the last look at the events.
pub(crate) fn the_chosen(hand: &mut Hand) -> String {
    let mut chosen = chosen(hand);
    assert_eq!(chosen.len(), 1, "{}", hand.trace().as_str());
    chosen.remove(0)
}

/// `s1` of `s1:35000`.
pub(crate) fn name(server: &Endpoint) -> String {
    server.host.to_string()
}

/// The dials in the outbox, taken: the servers in order.
pub(crate) fn dials(hand: &mut Hand) -> Vec<String> {
    std::iter::from_fn(|| hand.find_open())
        .map(|(_, server)| server)
        .collect()
}

/// The ids of all requests of a kind in the outbox, which stay there.
pub(crate) fn asked(hand: &Hand, request: Request) -> Vec<Id> {
    let outbox = hand.outbox().iter();
    outbox
        .filter(|output| request_of(output) == Some(request))
        .filter_map(id_of)
        .collect()
}

pub(crate) fn has_dialled(hand: &Hand) -> bool {
    let mut outbox = hand.outbox().iter();
    outbox.any(|output| matches!(output, Output::Open { .. }))
}

pub(crate) fn refused() -> Reply {
    failed(FailureKind::Refused)
}

pub(crate) fn failed(kind: FailureKind) -> Reply {
    Reply::Failed(Failure::new(kind, ""))
}

pub(crate) fn closed() -> Reply {
    Reply::Closed(Failure::new(FailureKind::Reset, ""))
}

/// The errors and waits of all `BackingOff` events since the last look.
pub(crate) fn back_offs(hand: &mut Hand) -> Vec<(Option<AttemptError>, Duration)> {
    let events = hand.events().into_iter();
    events
        .filter_map(|event| match event {
            Event::BackingOff { error, wait } => Some((error, wait)),
            _ => None,
        })
        .collect()
}

/// The one failed attempt since the last look at the events.
pub(crate) fn the_failure(hand: &mut Hand) -> AttemptError {
    match back_offs(hand).as_slice() {
        [(Some(error), _)] => error.clone(),
        other => panic!("{other:?}\n{}", hand.trace().as_str()),
    }
}

/// The cause of a server in a failed attempt.
pub(crate) fn cause(error: &AttemptError, server: &str) -> Option<CandidateError> {
    let mut candidates = error.candidates.iter();
    let found = candidates.find(|(candidate, _)| name(candidate) == server);
    found.and_then(|(_, cause)| cause.clone())
}

/// The call of a request in the outbox, which is taken.
pub(crate) fn call(hand: &mut Hand, request: Request) -> Call {
    let output = hand.find(|output| request_of(output) == Some(request));
    match output {
        Some(Output::Unary(call) | Output::ServerStream(call)) => call,
        other => panic!("{other:?}\n{}", hand.trace().as_str()),
    }
}

/// One server, its transport open, nothing answered.
pub(crate) fn proving(string: &str) -> (Hand, Id) {
    let mut hand = hand(string);
    hand.connect();
    let transport = hand.take_open("s1");
    hand.open(transport);
    (hand, transport)
}

/// Refuses every dial of one attempt, when it comes.
pub(crate) fn refuse_all(hand: &mut Hand) {
    hand.wait_until(has_dialled);
    while let Some((transport, _)) = hand.find_open() {
        hand.reply(transport, refused());
    }
}

/// The waits that were announced since the last look.
pub(crate) fn waits(hand: &mut Hand) -> Vec<Duration> {
    back_offs(hand).into_iter().map(|(_, wait)| wait).collect()
}

pub(crate) fn in_secs(waits: &[u64]) -> Vec<Duration> {
    waits.iter().map(|&wait| secs(wait)).collect()
}

/// The cause of the one drop since the last look at the events, and how long the session lasted.
pub(crate) fn the_drop(hand: &mut Hand) -> (DropCause, Duration) {
    let events = hand.events().into_iter();
    let drops: Vec<_> = events
        .filter_map(|event| match event {
            Event::Disconnected { cause, lasted, .. } => Some((cause, lasted)),
            _ => None,
        })
        .collect();
    match drops.as_slice() {
        [drop] => drop.clone(),
        other => panic!("{other:?}\n{}", hand.trace().as_str()),
    }
}

pub(crate) fn answers(hand: &Hand) -> usize {
    asked(hand, Request::KeepAlive).len()
}

/// The fatal error, if the machine has given up.
pub(crate) fn fatal(hand: &mut Hand) -> Option<FatalError> {
    let mut events = hand.events().into_iter();
    let error = events.find_map(|event| match event {
        Event::Failed(error) => Some(error),
        _ => None,
    });
    assert_eq!(error.is_some(), hand.state() == State::Stopped);
    error
}

/// A name server of a number.
pub(crate) fn name_server(number: u8) -> Endpoint {
    Endpoint::new(Ipv4Addr::new(10, 0, 0, number).into(), 53)
}

/// A machine in each phase of its life.
pub(crate) fn phases() -> Vec<(&'static str, Hand)> {
    let idle = Hand::new(start(), Setup::new("chronicle://s1,s2").patient());

    let asking_whom_to_ask = {
        let string = "chronicle+srv://cluster.test";
        let mut hand = Hand::new(start(), Setup::new(string).patient());
        hand.connect();
        hand
    };
    let mut looking_up = asking_whom_to_ask.clone();
    let name_servers = looking_up.take_name_servers();
    looking_up.reply(name_servers, Reply::NameServers(vec![name_server(1)]));
    assert_eq!(looking_up.state(), State::Resolving);

    let mut waiting_to_dial = idle.clone();
    waiting_to_dial.connect();
    assert!(!has_dialled(&waiting_to_dial));

    let mut dialling = waiting_to_dial.clone();
    dialling.wait_until(has_dialled);

    let mut half_open = dialling.clone();
    let first = half_open.take_open("s1");
    half_open.open(first);

    let mut counting = half_open.clone();
    let second = counting.take_open("s2");
    counting.open(second);
    counting.wait_until(|hand| hand.asks(Request::Count));

    let mut proving = counting.clone();
    let counts = [(first, "1"), (second, "2")];
    for (transport, count) in counts {
        let ask = proving.take(Request::Count, transport);
        proving.reply(ask, http(200, count));
    }

    let mut connecting = proving.clone();
    let stream = prove(&mut connecting, first);

    let mut connected = connecting.clone();
    let live = Live {
        transport: first,
        stream,
    };
    beat(&mut connected, live);
    acknowledge(&mut connected, live);

    let mut unanswered = connected.clone();
    for _ in 0..3 {
        unanswered.wait(millis(100));
        beat(&mut unanswered, live);
    }

    let mut backing_off = connected.clone();
    backing_off.reply(first, closed());
    assert_eq!(backing_off.state(), State::BackingOff);

    let mut after_a_session = connected.clone();
    live_on(&mut after_a_session, live, 7);
    after_a_session.reply(first, closed());
    assert_eq!(after_a_session.state(), State::Selecting);

    let client = Setup::new("chronicle://app:canary@s1").patient();
    let mut fetching = Hand::new(start(), client);
    fetching.connect();
    let only = fetching.take_open("s1");
    fetching.open(only);

    let mut refreshing = fetching.clone();
    let token = refreshing.take(Request::Token, only);
    refreshing.reply(token, http(200, r#"{"access_token":"t"}"#));
    pass(&mut refreshing, only);
    refreshing.input(Command::RefreshToken { rejected: 1 });
    assert!(refreshing.asks(Request::Token));

    let mut stopped = connected.clone();
    stopped.input(Command::Close);
    assert_eq!(stopped.state(), State::Stopped);

    vec![
        ("idle", idle),
        ("asking whom to ask", asking_whom_to_ask),
        ("looking up", looking_up),
        ("waiting to dial", waiting_to_dial),
        ("dialling", dialling),
        ("half open", half_open),
        ("counting", counting),
        ("proving", proving),
        ("connecting", connecting),
        ("connected", connected),
        ("with unacknowledged answers", unanswered),
        ("backing off", backing_off),
        ("selecting after a session", after_a_session),
        ("fetching a token", fetching),
        ("refreshing a token", refreshing),
        ("stopped", stopped),
    ]
}
