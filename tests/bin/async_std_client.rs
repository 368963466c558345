//! A program on async-std, for a test in another process: `async_std_client CONNECTION_STRING`.
//!
//! Connects, and tells of each session `session GENERATION at SERVER`; calls its server; closes
//! after the second. Then tells what it saw of the process meanwhile, `looks N` and `threads NAME,
//! NAME...`. Fails if it ever finds itself on a tokio runtime.

#![allow(
    clippy::disallowed_methods,
    reason = "a program on real sockets in real time"
)]

use async_std::{future::timeout, task};
use chronicle_connection_async_std::{Client, Event, Notice};
use chronicle_reference_server::echo::{Payload, echo_client::EchoClient};
use std::{
    collections::BTreeSet,
    env,
    error::Error,
    fs, io,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::runtime::Handle;
use tracing::{Metadata, Subscriber, span};

fn main() -> Result<(), Box<dyn Error>> {
    let lookout = Lookout::default();
    tracing::subscriber::set_global_default(lookout.clone())?;
    let string = env::args().nth(1).ok_or("give a connection string")?;
    task::block_on(timeout(PATIENCE, stay_connected(&string)))??;
    lookout.look();
    println!("looks {}", lookout.looks.load(Ordering::Relaxed));
    let threads = lookout.threads.lock();
    let threads = threads.unwrap_or_else(PoisonError::into_inner);
    let names: Vec<_> = threads.iter().map(String::as_str).collect();
    println!("threads {}", names.join(","));
    Ok(())
}

async fn stay_connected(string: &str) -> Result<(), Box<dyn Error>> {
    let client = Client::connect(string).await?;
    let mut echo = EchoClient::new(client.channel());
    let mut events = client.events();
    while let Some(notice) = events.next().await {
        let Notice::Event(Event::Connected(session)) = notice else {
            continue;
        };
        echo.unary(Payload::default()).await?;
        println!("session {} at {}", session.generation, session.server);
        if session.generation == 2 {
            client.close().await;
        }
    }
    Ok(())
}

/// Looks around wherever anything is traced: in the driver at every poll, in HTTP/2 at every frame.
#[derive(Debug, Clone, Default)]
struct Lookout {
    looks: Arc<AtomicU64>,
    /// The names of all threads that the process ever had.
    threads: Arc<Mutex<BTreeSet<String>>>,
}

impl Lookout {
    fn look(&self) {
        self.looks.fetch_add(1, Ordering::Relaxed);
        if Handle::try_current().is_ok() {
            eprintln!("on a tokio runtime");
            std::process::abort();
        }
        let threads = self.threads.lock();
        let mut threads = threads.unwrap_or_else(PoisonError::into_inner);
        threads.extend(thread_names().into_iter().flatten());
    }
}

/// As Linux tells them, cut to 15 bytes.
fn thread_names() -> io::Result<impl Iterator<Item = String>> {
    let threads = fs::read_dir("/proc/self/task")?.flatten();
    // A thread may end meanwhile.
    let names = threads.filter_map(|thread| fs::read_to_string(thread.path().join("comm")).ok());
    Ok(names.map(|name| name.trim_end().to_owned()))
}

impl Subscriber for Lookout {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        self.look();
        true
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn event(&self, _: &tracing::Event<'_>) {
        self.look();
    }

    fn enter(&self, _: &span::Id) {
        self.look();
    }

    fn exit(&self, _: &span::Id) {}
}

/// What must come has this long on any machine.
const PATIENCE: Duration = Duration::from_secs(60);
