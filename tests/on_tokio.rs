//! The scenarios on tokio, and what only tokio has: two kinds of runtimes, and their ends.

use crate::scenarios::world::{World, echo};
use chronicle_connection_tokio::{State, Tokio};
use chronicle_reference_server::{Answer, echo::Payload, paths};
use std::{
    future::Future,
    pin::pin,
    sync::Arc,
    task::{Context, Poll, Wake},
    thread,
    time::Duration,
};
use tokio::runtime::{Builder, Runtime};
use tonic::{Code, Request};

mod connections {
    connection_scenarios!(tests! "tokio", chronicle_connection_tokio::Tokio, crate::on_tokio::run:);
}

mod clients {
    client_scenarios!(tests! "tokio", chronicle_connection_tokio::Tokio, crate::on_tokio::run:);
}

fn run(scenario: impl Future<Output = ()>) {
    many_threads().block_on(scenario);
}

#[test]
fn one_thread_is_enough() {
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut world = World::<Tokio>::start(2).await;
        let client = world.connect().await;
        let mut events = client.events();
        let first = world.connected(&mut events).await;
        echo(client.channel())
            .unary(Payload::default())
            .await
            .unwrap();
        world.kill(world.server_of(&first)).await;
        let second = world.connected(&mut events).await;
        assert_eq!(second.generation, 2);
        world.soon("close", client.close()).await;
        world.all_sockets_closed().await;
    });
}

/// An application may call from a thread that is none of the runtime's.
#[test]
fn handles_work_outside_of_the_runtime_that_the_client_lives_on() {
    let runtime = many_threads();
    let (world, client) = runtime.block_on(async {
        let world = World::<Tokio>::start(1).await;
        let client = world.connect().await;
        (world, client)
    });
    world.set(0, |faults| {
        faults.on(paths::ECHO_UNARY).answer = Some(Answer::Hang)
    });
    let mut request = Request::new(Payload::default());
    let timeout = Duration::from_millis(200);
    request.set_timeout(timeout);
    let mut echo = echo(client.channel());
    let error = block_on(echo.unary(request)).unwrap_err();
    assert_eq!(error.code(), Code::DeadlineExceeded, "{error}");
    block_on(client.connected()).unwrap();
    block_on(client.close());
    assert_eq!(client.state(), State::Stopped);
}

fn many_threads() -> Runtime {
    Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap()
}

/// Runs a future on this very thread, without any runtime.
fn block_on<T>(future: impl Future<Output = T>) -> T {
    struct Unpark(thread::Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Arc::new(Unpark(thread::current())).into();
    let mut cx = Context::from_waker(&waker);
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut cx) {
            Poll::Ready(output) => return output,
            Poll::Pending => thread::park(),
        }
    }
}
