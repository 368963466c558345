//! Everything at once, for a while; and that all is well afterwards.

use super::{
    proxy::Proxy,
    stack::{Stack, StackClient},
    world::{Last, World, echo, impatient, impatient_timing, measured, quick},
};
use chronicle_connection_driver::{
    Client, Runtime,
    core::{Code, DropCause, Strategy, Timing},
};
use chronicle_reference_server::{
    Answer, Faults,
    echo::{Payload, StreamRequest},
    paths,
};
use futures_util::{
    future::{join, join_all},
    stream,
};
use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};
use std::time::{Duration, Instant};

/// A cable is cut while an application sends as fast as it can: no answer, no error, full buffers.
pub(crate) async fn a_network_that_carries_nothing_any_more_is_left<R: Runtime>() {
    let world = World::<R>::start(2).await;
    let proxy = Proxy::to(world.servers()[0].port());
    let [near, far] = [proxy.port, world.servers()[1].port()];
    let string = format!("chronicle://127.0.0.1:{far},127.0.0.1:{near}/?skipTlsValidation=true");
    let timing = Timing {
        keep_alive: Duration::from_millis(1500),
        open: Duration::from_millis(500),
        ..impatient_timing()
    };
    let builder = impatient(Client::<R>::builder(string.parse().unwrap()));
    let builder = builder
        .timing(timing)
        .strategy(Strategy::Custom(Box::new(Last)));
    let client = world.soon("a session", builder.connect()).await.unwrap();
    let mut events = client.events();
    assert_eq!(world.connected(&mut events).await.server.port, near);
    let endless = stream::repeat(Payload {
        data: vec![0; 64 * 1024],
        ..Payload::default()
    });
    let mut uploading = echo(client.channel());
    let mut upload = uploading.duplex(endless).await.unwrap().into_inner();
    upload.message().await.unwrap();

    proxy.freeze();
    let (_, cause) = world.disconnected(&mut events).await;
    // Whichever clock was over first.
    assert!(
        matches!(
            cause,
            DropCause::Silence { .. } | DropCause::Unacknowledged { .. }
        ),
        "{cause}"
    );
    world.ends_unavailable(&mut upload).await;
    let session = world.connected(&mut events).await;
    assert_eq!((session.generation, session.server.port), (2, far));
    echo(client.channel())
        .unary(Payload::default())
        .await
        .unwrap();
    world.soon("close", client.close()).await;
    proxy.thaw();
    world.all_sockets_closed().await;
}

/// A server pushes as fast as it can, an application reads none of its streams, and a subscriber none
/// of its events. Then the server hears no answers any more.
pub(crate) async fn neither_a_flood_nor_slow_readers_stop_the_clocks<R: Runtime>() {
    let world = World::<R>::start(1).await;
    let keep_alive = Duration::from_millis(1500);
    let timing = Timing {
        keep_alive,
        ..impatient_timing()
    };
    let client = world.builder().timing(timing).connect().await.unwrap();
    let (blocked, mut events) = (client.events(), client.events());
    let session = client.session();
    let mut unread = vec![];
    for _ in 0..50 {
        let endless = StreamRequest {
            size: 1024,
            ..StreamRequest::default()
        };
        unread.push(echo(client.channel()).stream(endless).await.unwrap());
    }
    world.set(0, |faults| {
        faults.model.keep_alive_interval = Duration::from_millis(1);
    });
    let answers = || world.requests(paths::CONNECTION_KEEP_ALIVE);
    let before = answers();
    world.pass(2 * keep_alive).await;
    assert_eq!(client.session(), session);
    assert!(answers() > before + 20, "{} answers", answers() - before);

    world.set(0, |faults| {
        faults.on(paths::CONNECTION_KEEP_ALIVE).answer = Some(Answer::Hang);
    });
    let (_, cause) = world.disconnected(&mut events).await;
    let DropCause::Unacknowledged { unacknowledged } = cause else {
        panic!("{cause}");
    };
    let what = "newest acknowledged answer to drop, in a flood";
    measured(what, unacknowledged, keep_alive..=keep_alive);
    drop((blocked, unread));
}

/// Ten keep-alives at a time must not mean ten answers at a time.
pub(crate) async fn a_flood_of_keep_alives_is_answered_by_and_by<R: Stack>() {
    let world = World::<R>::start(1).await;
    world.set(0, |faults| {
        faults.model.keep_alive_interval = Duration::from_millis(1);
        faults.on(paths::CONNECTION_KEEP_ALIVE).delay = Duration::from_millis(100);
    });
    let begun = Instant::now();
    let client = world.connect().await;
    let session = client.session();
    world.pass(Duration::from_secs(2)).await;
    let answers = world.requests(paths::CONNECTION_KEEP_ALIVE);
    let one_by_one = begun.elapsed().as_millis() / 100 + 1;
    println!("measured: answers in 2 s of a flood of keep-alives, each taking 100 ms: {answers}");
    assert!(
        (2..=one_by_one).contains(&answers.into()),
        "{answers} of {one_by_one}"
    );
    assert_eq!(client.session(), session);
}

/// Twelve clients whose applications call all the time, and three servers that fail in every way.
pub(crate) async fn clients_outlive_servers_that_fail_in_every_way<R: Runtime>() {
    let mut world = World::<R>::start(3).await;
    let timing = Timing {
        keep_alive: Duration::from_millis(1500),
        first_keep_alive: Duration::from_millis(600),
        open: Duration::from_millis(600),
        count: Duration::from_millis(300),
        reserve: Duration::from_millis(300),
        check: Duration::from_millis(600),
        ..impatient_timing()
    };
    let clients: Vec<_> = (0..12)
        .map(|_| world.builder().timing(timing.clone()).start().unwrap())
        .collect();
    let end = Instant::now() + Duration::from_secs(10);
    let runtime = world.runtime.clone();
    let applications = clients
        .iter()
        .map(|client| application(&runtime, client, end));
    let (calls, ()) = join(join_all(applications), chaos(&mut world, end)).await;

    world.set_all(heal);
    for index in 0..3 {
        world.restart(index).await;
    }
    // Each has exactly one session, and with a server that has it as well.
    let settled = || {
        let registered = world.sum(|stats| stats.clients.len() as u64);
        registered == 12
            && clients.iter().all(|client| {
                client
                    .session()
                    .is_some_and(|session| world.knows(world.server_of(&session), &session))
            })
    };
    world.until("session of every client", settled).await;
    let sessions: u64 = clients
        .iter()
        .map(|client| client.session().unwrap().generation)
        .sum();
    let (ok, failed) = calls
        .iter()
        .fold((0, 0), |(ok, failed), call| (ok + call.0, failed + call.1));
    println!(
        "measured: ten seconds of failing servers: {sessions} sessions of 12 clients, {ok} calls \
         answered and {failed} unavailable",
    );
    assert!(ok > 0 && sessions > 12);
    for client in &clients {
        let mut echo = echo(client.channel());
        let call = echo.unary(Payload::default());
        world.soon("answer", call).await.unwrap();
    }
    drop(clients);
    world.all_sockets_closed().await;
}

/// Calls until the end; how many calls were answered, and how many not.
async fn application<R: Runtime>(runtime: &R, client: &Client<R>, end: Instant) -> (u32, u32) {
    let mut echo = echo(client.channel());
    let (mut answered, mut unavailable) = (0, 0);
    while Instant::now() < end {
        match echo.unary(Payload::default()).await {
            Ok(_) => answered += 1,
            Err(status) => {
                assert_eq!(status.code(), tonic::Code::Unavailable, "{status}");
                unavailable += 1;
            }
        }
        runtime
            .sleep_until(Instant::now() + Duration::from_millis(5))
            .await;
    }
    (answered, unavailable)
}

fn heal(faults: &mut Faults) {
    *faults = Faults::default();
    faults.model = quick().model;
}

async fn chaos<R: Runtime>(world: &mut World<R>, end: Instant) {
    let mut rng = ChaCha8Rng::seed_from_u64(0);
    let mut below = |limit: u32| (rng.next_u32() % limit) as usize;
    let paths = [
        paths::COUNT,
        paths::RESERVE,
        paths::CHECK_COMPATIBILITY,
        paths::CONNECT,
        paths::CONNECTION_KEEP_ALIVE,
    ];
    while Instant::now() < end {
        let server = below(3);
        let path = paths[below(5)];
        match below(9) {
            0 => world.kill(server).await,
            1 | 2 => world.restart(server).await,
            3 => world.servers()[server].faults().go_away(),
            4 => {
                let code = [Code::Ok, Code::Cancelled, Code::Internal][below(3)];
                world.servers()[server].faults().end_streams(code, "");
            }
            5 => world.set(server, |faults| faults.hang_tls = !faults.hang_tls),
            6 => world.set(server, |faults| faults.model.silent = !faults.model.silent),
            7 => {
                let answer = match below(3) {
                    0 => Answer::Hang,
                    1 => Answer::Grpc(Code::Unavailable, String::new()),
                    _ => Answer::Http(502, "<html>".into()),
                };
                world.set(server, |faults| faults.on(path).answer = Some(answer));
            }
            _ => world.set(server, heal),
        }
        world
            .pass(Duration::from_millis(20 + below(100) as u64))
            .await;
    }
}
