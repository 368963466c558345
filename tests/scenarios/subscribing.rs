//! Who is told what, and whom it may hold up: nobody.

use super::{
    stack::{Stack, StackClient, StackEvents},
    world::{World, impatient_timing},
};
use chronicle_connection_driver::{
    Notice, Runtime,
    core::{Backoff, Event, Jitter, Timing},
};
use std::time::Duration;

pub(crate) async fn the_first_subscriber_hears_all_and_the_second_what_follows<R: Stack>() {
    let world = World::<R>::start(1).await;
    let client = world.connect().await;
    let mut first = client.events();
    let mut heard = vec![];
    let is_connected = |event: Option<&Event>| matches!(event, Some(Event::Connected(_)));
    while !is_connected(heard.last()) {
        heard.push(
            world
                .event(&mut first, "event", |event| Some(event.clone()))
                .await,
        );
    }
    let mut second = client.events();
    client.close().await;
    while let Some(Notice::Event(event)) = world.soon("event", first.next()).await {
        heard.push(event);
    }
    assert!(
        matches!(
            heard.as_slice(),
            [
                Event::Connecting { attempt: 1, .. },
                Event::Selected { .. },
                Event::Compatible { .. },
                Event::Connected(_),
                Event::Closed,
            ]
        ),
        "{heard:#?}"
    );
    let closed = Some(Notice::Event(Event::Closed));
    assert_eq!(world.soon("event", second.next()).await, closed);
    assert_eq!(world.soon("end", second.next()).await, None);
    assert_eq!(client.events().next().await, None);
}

pub(crate) async fn a_subscriber_that_does_not_read_holds_nothing_up_and_is_told_later<
    R: Runtime,
>() {
    let mut world = World::<R>::start(1).await;
    let client = world
        .builder()
        .timing(Timing {
            selection_wait: Duration::ZERO,
            keep_alive: Duration::from_secs(2),
            ..impatient_timing()
        })
        .backoff(Backoff {
            base: Duration::from_millis(1),
            ceiling: Duration::from_millis(1),
            jitter: Jitter::None,
        })
        .connect()
        .await
        .unwrap();
    let (mut blocked, mut reading) = (client.events(), client.events());
    world.kill(0).await;
    // Connecting, selected, failed, backing off: four events for each attempt.
    let hundredth = |event: &Event| match event {
        Event::Connecting { attempt, .. } => (*attempt == 100).then_some(()),
        _ => None,
    };
    world.event(&mut reading, "attempt", hundredth).await;
    world.restart(0).await;
    // Whoever reads would have to do so all the while not to be told of losses.
    let session = world.soon("a session", client.connected()).await.unwrap();
    world.pass(Duration::from_secs(3)).await;
    assert_eq!(client.session(), Some(session.clone()), "held up");

    let Some(Notice::Lagged(lost)) = blocked.next().await else {
        panic!("nothing was lost");
    };
    println!("measured: events lost to a blocked subscriber: {lost}");
    let kept = async {
        let mut kept = 1;
        while blocked.next().await != Some(Notice::Event(Event::Connected(session.clone()))) {
            kept += 1;
        }
        kept
    };
    assert_eq!(world.soon("the newest events", kept).await, 256);
}
