//! The ways a connection ends for good, and that nothing is left of it.

use super::{
    stack::{Stack, StackBuilder, StackClient, StackEvents},
    world::{World, measured},
};
use chronicle_connection_driver::{
    ConnectError, Notice,
    core::{Backoff, Event, State},
};
use chronicle_reference_server::{Answer, paths};
use futures_util::future::{Either, select};
use std::{
    future::{Future, poll_fn},
    pin::pin,
    task::Poll,
    time::{Duration, Instant},
};

pub(crate) async fn close_is_prompt_in_every_phase_and_leaves_no_socket<R: Stack>() {
    for phase in [
        Phase::Selecting,
        Phase::Handshaking,
        Phase::Registering,
        Phase::Connected,
        Phase::BackingOff,
    ] {
        let mut world = World::<R>::start(3).await;
        phase.prepare(&mut world).await;
        let long = Duration::from_secs(60);
        let backoff = Backoff {
            base: long,
            ceiling: long,
            ..Backoff::default()
        };
        let client = world.builder().backoff(backoff).start().unwrap();
        let mut events = client.events();
        world
            .until("phase", || phase.is_reached(&world, &client))
            .await;

        let begun = Instant::now();
        world.soon("close", client.close()).await;
        let promise = Duration::ZERO..=Duration::from_millis(100);
        measured(&format!("close while {phase:?}"), begun.elapsed(), promise);
        assert_eq!(client.state(), State::Stopped);
        assert_eq!(client.session(), None);
        assert_eq!(client.connected().await, Err(ConnectError::Closed));
        world.soon("second close", client.close()).await;
        world.all_sockets_closed().await;
        let mut last = None;
        while let Some(notice) = world.soon("end of events", events.next()).await {
            last = Some(notice);
        }
        assert_eq!(last, Some(Notice::Event(Event::Closed)));
    }
}

pub(crate) async fn a_connect_that_is_dropped_midway_leaves_nothing<R: Stack>() {
    for phase in [Phase::Selecting, Phase::Handshaking, Phase::Registering] {
        let mut world = World::<R>::start(3).await;
        phase.prepare(&mut world).await;
        {
            let connecting = pin!(world.builder().connect());
            let reached = pin!(world.until("phase", || phase.is_reached_by_server(&world)));
            match select(connecting, reached).await {
                Either::Left((connected, _)) => panic!("{connected:?} in spite of {phase:?}"),
                Either::Right(_) => {}
            }
        }
        world.all_sockets_closed().await;
    }
}

pub(crate) async fn a_connect_may_be_dropped_after_any_number_of_polls<R: Stack>() {
    let world = World::<R>::start(2).await;
    let mut was_connected = false;
    for polls in 0..=20 {
        let mut left = polls;
        let mut connecting = Box::pin(world.builder().connect());
        let until_dropped = poll_fn(|cx| {
            if left == 0 {
                return Poll::Ready(None);
            }
            left -= 1;
            let poll = connecting.as_mut().poll(cx).map(Some);
            if left == 0 {
                // Nobody else would wake this.
                cx.waker().wake_by_ref();
            }
            poll
        });
        let connected = world.soon("a poll", until_dropped).await;
        drop(connecting);
        if let Some(connected) = connected {
            connected.unwrap();
            was_connected = true;
            break;
        }
    }
    assert!(was_connected);
    world.all_sockets_closed().await;
    let clients = || world.sum(|stats| stats.clients.len() as u64);
    world.until("end of all clients", || clients() == 0).await;
}

pub(crate) async fn a_connection_that_nobody_holds_is_closed<R: Stack>() {
    let world = World::<R>::start(2).await;
    let client = world.connect().await;
    let mut events = client.events();
    let session = world.connected(&mut events).await;
    let clone = client.clone();
    drop(client);
    world.pass(Duration::from_millis(200)).await;
    assert_eq!(clone.session(), Some(session), "one handle is enough");
    drop(clone);
    world.all_sockets_closed().await;
    let closed = world
        .event(&mut events, "last event", |event| Some(event.clone()))
        .await;
    assert_eq!(closed, Event::Closed);
    assert_eq!(world.soon("end of events", events.next()).await, None);
}

/// What a connection may be busy with.
#[derive(Debug, Clone, Copy)]
enum Phase {
    Selecting,
    Handshaking,
    Registering,
    Connected,
    BackingOff,
}

impl Phase {
    /// Makes it last.
    async fn prepare<R: Stack>(self, world: &mut World<R>) {
        match self {
            Self::Selecting => world.set_all(|faults| faults.hang_tls = true),
            Self::Handshaking => world.set_all(|faults| {
                faults.on(paths::CHECK_COMPATIBILITY).answer = Some(Answer::Hang);
            }),
            Self::Registering => world.set_all(|faults| faults.model.silent = true),
            Self::Connected => {}
            Self::BackingOff => world.kill_all().await,
        }
    }

    fn is_reached<R: Stack>(self, world: &World<R>, client: &R::Client) -> bool {
        let state = client.state();
        self.is_reached_by_server(world)
            && match self {
                Self::Selecting => state == State::Selecting,
                Self::Handshaking | Self::Registering => {
                    matches!(state, State::Handshaking { .. })
                }
                Self::Connected => matches!(state, State::Connected(_)),
                Self::BackingOff => state == State::BackingOff,
            }
    }

    fn is_reached_by_server<R: Stack>(self, world: &World<R>) -> bool {
        match self {
            Self::Selecting => world.open_sockets() == 3,
            Self::Handshaking => world.requests(paths::CHECK_COMPATIBILITY) >= 1,
            Self::Registering | Self::Connected => world.requests(paths::CONNECT) >= 1,
            Self::BackingOff => true,
        }
    }
}
