//! Many clients in one process, on one thread: `crowd CONNECTION_STRING CLIENTS [--unread]
//! [--patient]`.
//!
//! Each has a subscriber that reads none of its events; with `--unread`, an application too that
//! reads nothing of an endless stream; with `--patient`, a minute for whatever has a deadline. Tells
//! `pid N`, and `connected` once all are. Then answers each line of its input: `up` by how many
//! clients have a session, `first` by how many have still their first one, `fewest` by the number of
//! attempts of the client that made the fewest. Ends with its input.

#![allow(
    clippy::disallowed_methods,
    reason = "a program on real sockets in real time"
)]

use chronicle_connection_tokio::{Backoff, Client, Event, Events, Notice, Timing};
use chronicle_reference_server::echo::{Payload, StreamRequest, echo_client::EchoClient};
use futures_util::{StreamExt as _, TryStreamExt as _, future::join_all, stream};
use std::{
    env,
    error::Error,
    io::{self, BufRead as _},
    process, thread,
    time::Duration,
};
use tokio::{runtime, sync::mpsc};
use tonic::Streaming;

type AnyError = Box<dyn Error>;

fn main() -> Result<(), AnyError> {
    let arguments: Vec<_> = env::args().skip(1).collect();
    let [string, clients, rest @ ..] = arguments.as_slice() else {
        return Err("usage: crowd CONNECTION_STRING CLIENTS [--unread] [--patient]".into());
    };
    let mut options = Options::default();
    for option in rest {
        match option.as_str() {
            "--unread" => options.has_unread = true,
            "--patient" => options.is_patient = true,
            _ => return Err(format!("know --unread and --patient, not {option:?}").into()),
        }
    }
    println!("pid {}", process::id());
    let runtime = runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(run(string, clients.parse()?, options))
}

#[derive(Clone, Copy, Default)]
struct Options {
    has_unread: bool,
    is_patient: bool,
}

async fn run(string: &str, clients: usize, options: Options) -> Result<(), AnyError> {
    let members = (0..clients).map(|_| Member::start(string, options));
    // All at once, they would share a processor until the deadlines of their handshakes were over.
    let mut members: Vec<_> = stream::iter(members)
        .buffer_unordered(AT_A_TIME)
        .try_collect()
        .await?;
    println!("connected");
    let mut lines = lines();
    while let Some(line) = lines.recv().await {
        let sessions = members.iter().filter_map(|member| member.client.session());
        let answer = match line.as_str() {
            "up" => sessions.count(),
            "first" => sessions.filter(|session| session.generation == 1).count(),
            "fewest" => {
                join_all(members.iter_mut().map(Member::count)).await;
                let attempts = members.iter().map(|member| member.attempts);
                attempts.min().unwrap_or_default()
            }
            _ => return Err(format!("know up, first and fewest, not {line:?}").into()),
        };
        println!("{answer}");
    }
    Ok(())
}

struct Member {
    client: Client,
    /// Read only to count.
    counted: Events,
    attempts: usize,
    _blocked: Events,
    _unread: Option<Streaming<Payload>>,
}

impl Member {
    async fn start(string: &str, options: Options) -> Result<Self, AnyError> {
        let short = Duration::from_millis(20);
        let mut timing = Timing {
            selection_wait: short,
            ..Timing::default()
        };
        if options.is_patient {
            let minute = Duration::from_secs(60);
            timing = Timing {
                open: minute,
                reserve: minute,
                check: minute,
                first_keep_alive: minute,
                keep_alive: minute,
                ..timing
            };
        }
        let client = Client::builder(string.parse()?)
            .timing(timing)
            .backoff(Backoff {
                base: short,
                ceiling: short,
                ..Backoff::default()
            })
            .connect_timeout(None)
            .connect()
            .await?;
        let endless = StreamRequest {
            size: 1024,
            ..StreamRequest::default()
        };
        let unread = match options.has_unread {
            true => Some(EchoClient::new(client.channel()).stream(endless).await?),
            false => None,
        };
        Ok(Self {
            counted: client.events(),
            _blocked: client.events(),
            _unread: unread.map(tonic::Response::into_inner),
            client,
            attempts: 0,
        })
    }

    /// Counts the attempts of which there is news.
    async fn count(&mut self) {
        // What is not there yet is not waited for.
        while let Ok(Some(notice)) = tokio::time::timeout(Duration::ZERO, self.counted.next()).await
        {
            self.attempts += match notice {
                Notice::Event(Event::Connecting { .. }) => 1,
                // An attempt has four events at most.
                Notice::Lagged(lost) => usize::try_from(lost / 4).unwrap_or(usize::MAX),
                Notice::Event(_) => 0,
            };
        }
    }
}

/// The lines of the input, from a thread that waits for them.
fn lines() -> mpsc::UnboundedReceiver<String> {
    let (sender, receiver) = mpsc::unbounded_channel();
    thread::spawn(move || {
        for line in io::stdin().lock().lines().map_while(Result::ok) {
            // Nobody may be listening any more.
            let _ = sender.send(line);
        }
    });
    receiver
}

/// How many connect at a time.
const AT_A_TIME: usize = 32;
