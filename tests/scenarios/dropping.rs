//! How sessions end, and that the next one comes.

use super::{
    stack::{Stack, StackBuilder, StackClient},
    world::{World, impatient_timing, measured},
};
use chronicle_connection_driver::core::{
    CandidateError, Code, DropCause, Event, FailureKind, Session, Status, Timing,
};
use chronicle_reference_server::{Answer, paths};
use std::{
    sync::mpsc::{Sender, TryRecvError, channel},
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

pub(crate) async fn a_killed_server_is_noticed_at_once_and_never_shown_as_connected<R: Stack>() {
    let mut world = World::<R>::start(3).await;
    let client = R::connect(world.string()).await.unwrap();
    let mut events = client.events();
    let first = world.connected(&mut events).await;
    let server = world.server_of(&first);

    let witness = Witness::of(&client);
    let killed = Instant::now();
    world.kill(server).await;
    let (session, cause) = world.disconnected(&mut events).await;
    let noticed = killed.elapsed();
    assert_ne!(client.session().as_ref(), Some(&first));
    assert_eq!(session, first);
    let (DropCause::TransportClosed(failure) | DropCause::StreamFailed(failure)) = &cause else {
        panic!("{cause}");
    };
    assert!(
        matches!(failure.kind, FailureKind::Reset | FailureKind::Closed),
        "{cause}"
    );

    let second = world.connected(&mut events).await;
    let reconnected = killed.elapsed();
    assert_ne!(world.server_of(&second), server);
    assert_eq!(second.generation, 2);
    assert_eq!(witness.seen(), [Some(first), None, Some(second)]);
    println!("measured: cause of the end: {cause}");
    let promise = Duration::ZERO..=Duration::from_millis(100);
    measured("kill to Disconnected", noticed, promise);
    // Up to 1 s as the session was too short to be stable, up to 250 ms before the selection.
    let promise = Duration::ZERO..=Duration::from_millis(1500);
    measured("kill to the next session", reconnected, promise);
}

/// TCP stays open and nothing comes: only the watchdog can tell.
pub(crate) async fn silence_ends_a_session_after_five_seconds<R: Stack>() {
    let world = World::<R>::with(vec![Default::default()]).await;
    let client = R::connect(world.string()).await.unwrap();
    let mut events = client.events();
    let session = world.connected(&mut events).await;
    let answers = || world.requests(paths::CONNECTION_KEEP_ALIVE);
    // When the third keep-alive was not answered yet.
    let mut last = Instant::now();
    let third = || {
        let now = Instant::now();
        let is_there = answers() >= 3;
        if !is_there {
            last = now;
        }
        is_there
    };
    world.until("third keep-alive", third).await;
    world.set(0, |faults| faults.model.silent = true);
    let answered = answers();
    let (ended, cause) = world.disconnected(&mut events).await;
    let seen = last.elapsed();
    assert_eq!(ended, session);
    let DropCause::Silence { silent } = cause else {
        panic!("{cause}");
    };
    measured(
        "last keep-alive to drop, by the client",
        silent,
        FIVE_SECONDS,
    );
    measured("last keep-alive to drop, from outside", seen, FIVE_SECONDS);
    // One more may have been on its way.
    assert!((answered..=answered + 1).contains(&answers()));
    world.set(0, |faults| faults.model.silent = false);
    assert_eq!(world.connected(&mut events).await.generation, 2);
}

pub(crate) async fn answers_into_the_void_end_a_session_after_five_seconds<R: Stack>() {
    unacknowledged::<R>(Answer::Hang).await;
}

pub(crate) async fn answers_that_fail_end_a_session_after_five_seconds<R: Stack>() {
    unacknowledged::<R>(Answer::Grpc(Code::Unavailable, "overloaded".to_owned())).await;
}

async fn unacknowledged<R: Stack>(answer: Answer) {
    let world = World::<R>::with(vec![Default::default()]).await;
    let client = R::connect(world.string()).await.unwrap();
    let mut events = client.events();
    let session = world.connected(&mut events).await;
    world
        .until("third keep-alive", || {
            world.requests(paths::CONNECTION_KEEP_ALIVE) >= 3
        })
        .await;
    world.set(0, |faults| {
        faults.on(paths::CONNECTION_KEEP_ALIVE).answer = Some(answer.clone());
    });
    let (ended, cause) = world.disconnected(&mut events).await;
    assert_eq!(ended, session);
    let DropCause::Unacknowledged { unacknowledged } = cause else {
        panic!("{cause}");
    };
    let what = format!("newest acknowledged answer to drop, with {answer:?}");
    measured(&what, unacknowledged, FIVE_SECONDS);
    world.set(0, |faults| {
        faults.on(paths::CONNECTION_KEEP_ALIVE).answer = None
    });
    assert_eq!(world.connected(&mut events).await.generation, 2);
}

/// It does not evict either, as far as anybody can tell.
pub(crate) async fn a_server_that_knows_no_answers_keeps_its_session<R: Stack>() {
    let world = World::<R>::start(1).await;
    let client = world.connect().await;
    let session = client.session();
    world.set(0, |faults| {
        let unimplemented = Answer::Grpc(Code::Unimplemented, String::new());
        faults.on(paths::CONNECTION_KEEP_ALIVE).answer = Some(unimplemented);
    });
    let witness = Witness::of(&client);
    world
        .pass(*FIVE_SECONDS.end() + Duration::from_secs(1))
        .await;
    assert_eq!(witness.seen(), [session]);
}

pub(crate) async fn a_stream_that_the_server_ends_is_the_end_of_the_session<R: Stack>() {
    let world = World::<R>::start(1).await;
    let client = world.connect().await;
    let mut events = client.events();
    for (code, generation) in [Code::Ok, Code::Cancelled, Code::Unavailable]
        .into_iter()
        .zip(1..)
    {
        let session = world.connected(&mut events).await;
        assert_eq!(session.generation, generation);
        let message = if code == Code::Ok { "" } else { "enough" };
        world.servers()[0].faults().end_streams(code, message);
        let (ended, cause) = world.disconnected(&mut events).await;
        assert_eq!(ended, session);
        assert_eq!(cause, DropCause::StreamEnded(Status::grpc(code, message)));
    }
    world.connected(&mut events).await;
    // The transport of an ended session goes with it.
    world
        .until("one socket", || world.open_sockets() == 1)
        .await;
}

/// It is no failure, so the next attempt does not wait its turn on the ladder.
pub(crate) async fn a_server_that_goes_away_in_good_order_is_left_at_once<R: Stack>() {
    let world = World::<R>::start(2).await;
    let client = world.connect().await;
    let mut events = client.events();
    let first = world.connected(&mut events).await;
    world
        .until("second keep-alive", || {
            world.requests(paths::CONNECTION_KEEP_ALIVE) >= 2
        })
        .await;
    world.servers()[world.server_of(&first)].faults().go_away();
    let (ended, cause) = world.disconnected(&mut events).await;
    assert_eq!((ended, cause), (first, DropCause::GoingAway { code: 0 }));
    let next = world
        .event(&mut events, "next event", |event| Some(event.clone()))
        .await;
    assert!(
        matches!(next, Event::Connecting { attempt: 1, .. }),
        "{next}"
    );
    assert_eq!(world.connected(&mut events).await.generation, 2);
}

pub(crate) async fn a_client_comes_back_to_a_server_that_restarts<R: Stack>() {
    let mut world = World::<R>::start(1).await;
    let client = world.connect().await;
    let mut events = client.events();
    for generation in 1..=3 {
        let session = world.connected(&mut events).await;
        assert_eq!(session.generation, generation);
        assert!(world.knows(0, &session));
        world.restart(0).await;
        let (ended, _) = world.disconnected(&mut events).await;
        assert_eq!(ended, session);
    }
    world.connected(&mut events).await;
}

pub(crate) async fn a_rolling_restart_of_all_servers_is_survived_by_all_clients<R: Stack>() {
    let mut world = World::<R>::start(3).await;
    let mut clients = vec![];
    for _ in 0..6 {
        clients.push(world.connect().await);
    }
    for index in 0..3 {
        world.kill(index).await;
        for client in &clients {
            let elsewhere = || {
                let session = client.session();
                session.is_some_and(|session| world.server_of(&session) != index)
            };
            world.until("session elsewhere", elsewhere).await;
        }
        world.restart(index).await;
    }
    for client in &clients {
        let session = client.session().unwrap();
        assert!(world.knows(world.server_of(&session), &session));
        assert!(session.generation > 1, "every server was down once");
    }
}

pub(crate) async fn while_all_servers_are_down_a_client_tries_and_tells_why<R: Stack>() {
    let mut world = World::<R>::start(2).await;
    let client = world.connect().await;
    let mut events = client.events();
    world.kill_all().await;
    let causes = world
        .event(&mut events, "failed attempt", |event| match event {
            Event::BackingOff {
                error: Some(error), ..
            } => Some(error.candidates.clone()),
            _ => None,
        })
        .await;
    assert_eq!(causes.len(), 2);
    for (server, cause) in causes {
        let Some(CandidateError::Unreachable(failure)) = cause else {
            panic!("{server}: {cause:?}");
        };
        assert_eq!(failure.kind, FailureKind::Refused);
    }
    world.restart(0).await;
    let session = world.soon("a session", client.connected()).await.unwrap();
    assert_eq!((session.generation, world.server_of(&session)), (2, 0));
}

/// A registration alone is no session.
pub(crate) async fn a_server_that_sends_no_first_keep_alive_is_never_connected<R: Stack>() {
    let world = World::<R>::start(1).await;
    world.set(0, |faults| faults.model.silent = true);
    let timing = Timing {
        first_keep_alive: Duration::from_millis(200),
        ..impatient_timing()
    };
    let client = world.builder().timing(timing).start().unwrap();
    let witness = Witness::of(&client);
    let mut events = client.events();
    for _ in 0..3 {
        let cause = world
            .event(&mut events, "failure", |event| match event {
                Event::CandidateFailed { cause, .. } => Some(cause.clone()),
                Event::Connected(_) => panic!("connected without a keep-alive"),
                _ => None,
            })
            .await;
        assert!(
            matches!(cause, CandidateError::NoKeepAlive { .. }),
            "{cause}"
        );
    }
    assert_eq!(witness.seen(), [None]);
    world.set(0, |faults| faults.model.silent = false);
    world.connected(&mut events).await;
}

/// Looks at a client all the time, from a thread of its own.
struct Witness {
    stop: Sender<()>,
    thread: JoinHandle<Vec<Option<Session>>>,
}

impl Witness {
    fn of(client: &impl StackClient) -> Self {
        let client = client.clone();
        let (stop, stopped) = channel();
        let mut seen = vec![client.session()];
        let watch = move || {
            let mut last = false;
            while !last {
                last = stopped.try_recv() != Err(TryRecvError::Empty);
                let session = client.session();
                if seen.last() != Some(&session) {
                    seen.push(session);
                }
                thread::sleep(Duration::from_micros(200));
            }
            seen
        };
        Self {
            stop,
            thread: thread::spawn(watch),
        }
    }

    /// The sessions that were seen, one after the other.
    fn seen(self) -> Vec<Option<Session>> {
        drop(self.stop);
        self.thread.join().unwrap()
    }
}

const FIVE_SECONDS: std::ops::RangeInclusive<Duration> =
    Duration::from_secs(5)..=Duration::from_millis(5200);
