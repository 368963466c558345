//! What all connections of a server share: the model, the faults and the statistics.

use super::faults::{Answer, Faults};
use crate::model::{ServerModel, StreamKey};
use chronicle_connection::Code;
use chronicle_connection_proto::clients::{ConnectRequest, ConnectionKeepAlive};
use futures_util::Stream;
use std::{
    collections::BTreeMap,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll},
    time::{Duration, Instant},
};
use tokio::{
    sync::{Notify, mpsc, watch},
    time::{sleep, timeout_at},
};

/// The faults of a server, to be switched while it runs. A handle: clones switch the same server.
#[derive(Debug, Clone)]
pub struct FaultsHandle(pub(super) Arc<Shared>);

impl FaultsHandle {
    /// Changes what is wrong. Requests that come in after the return see all of it. `change` must
    /// not ask the server for anything.
    pub fn set(&self, change: impl FnOnce(&mut Faults)) {
        let mut state = self.0.lock();
        self.0.faults.send_modify(change);
        *state.model.config_mut() = self.0.faults.borrow().model.clone();
        self.0.wake.notify_one();
    }

    /// What is wrong now.
    pub fn get(&self) -> Faults {
        self.0.faults.borrow().clone()
    }

    /// Ends all `Connect` streams; `OK` ends them in good order.
    pub fn end_streams(&self, code: Code, message: &str) {
        let now = now();
        let mut state = self.0.lock();
        for (key, stream) in std::mem::take(&mut state.streams) {
            state.model.disconnect(now, key);
            if code != Code::Ok {
                // A client that reads so little that its queue is full misses the status.
                let _ = stream.try_send(Err(status(code, message)));
            }
        }
    }

    /// Forgets every token that was given out.
    pub fn reset_tokens(&self) {
        self.0.model(|model, _| model.reset_tokens());
    }

    /// Sends GOAWAY with NO_ERROR on all connections. Streams are left to run, and new
    /// connections are taken.
    pub fn go_away(&self) {
        self.0.go_away.send_replace(());
    }
}

/// What happened at a server since it was first started, restarts included, and how it stands now.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Stats {
    /// TCP connections accepted in all.
    pub accepted: u64,
    /// TCP connections open now.
    pub open: u64,
    /// TLS handshakes that came about.
    pub handshakes: u64,
    /// `Connect` streams open now.
    pub streams: usize,
    /// Connection ids of the clients now, evicted ones left out.
    pub clients: Vec<String>,
    /// What `/connections/count` says now.
    pub count: u64,
    /// Requests that carried a token, a key or a client's secret.
    pub credentials: u64,
    requests: BTreeMap<String, u64>,
}

impl Stats {
    /// How many requests came in on a path; see [`paths`](crate::paths).
    pub fn requests(&self, path: &str) -> u64 {
        self.requests.get(path).copied().unwrap_or_default()
    }
}

#[derive(Debug)]
pub(super) struct Shared {
    pub(super) port: u16,
    pub(super) faults: watch::Sender<Faults>,
    pub(super) go_away: watch::Sender<()>,
    state: Mutex<State>,
    /// The keep-alive that is due next may have changed.
    wake: Notify,
}

#[derive(Debug)]
struct State {
    model: ServerModel,
    streams: BTreeMap<StreamKey, mpsc::Sender<KeepAlive>>,
    /// Without what the other fields tell.
    stats: Stats,
}

type KeepAlive = Result<ConnectionKeepAlive, tonic::Status>;

impl Shared {
    pub(super) fn new(port: u16, faults: Faults) -> Self {
        Self {
            port,
            go_away: watch::Sender::new(()),
            state: Mutex::new(State {
                model: ServerModel::new(faults.model.clone(), now()),
                streams: BTreeMap::new(),
                stats: Stats::default(),
            }),
            faults: watch::Sender::new(faults),
            wake: Notify::new(),
        }
    }

    /// Forgets all clients, as a fresh process has none.
    pub(super) fn forget(&self) {
        let mut state = self.lock();
        state.model = ServerModel::new(self.faults.borrow().model.clone(), now());
        state.streams.clear();
    }

    /// Calls the model.
    pub(super) fn model<T>(&self, call: impl FnOnce(&mut ServerModel, Instant) -> T) -> T {
        call(&mut self.lock().model, now())
    }

    pub(super) fn count(&self, change: impl FnOnce(&mut Stats)) {
        change(&mut self.lock().stats);
    }

    pub(super) fn stats(&self) -> Stats {
        let mut state = self.lock();
        let count = state.model.count(now());
        Stats {
            count,
            streams: state.streams.len(),
            clients: state.model.clients().map(str::to_owned).collect(),
            ..state.stats.clone()
        }
    }

    /// Counts a request, and holds it for as long as a fault says. What is returned is the answer
    /// in place of the model's.
    pub(super) async fn intercept(&self, path: &str) -> Option<Answer> {
        self.count(|stats| *stats.requests.entry(path.to_owned()).or_default() += 1);
        let delay = self.faults.borrow().of(path).map(|fault| fault.delay);
        if let Some(delay) = delay.filter(|delay| *delay > Duration::ZERO) {
            sleep(delay).await;
        }
        let answer = |faults: &Faults| faults.of(path).and_then(|fault| fault.answer.clone());
        let mut faults = self.faults.subscribe();
        let settled = faults
            .wait_for(|faults| answer(faults) != Some(Answer::Hang))
            .await;
        // The sender is ours, so it is there.
        settled.ok().and_then(|faults| answer(&faults))
    }

    /// `Connect`
    pub(super) fn connect(self: &Arc<Self>, request: &ConnectRequest) -> ConnectStream {
        let (sender, keep_alives) = mpsc::channel(QUEUE);
        let mut state = self.lock();
        let key = state.model.connect(now(), request);
        state.streams.insert(key, sender);
        self.wake.notify_one();
        ConnectStream {
            shared: self.clone(),
            key,
            keep_alives,
        }
    }

    /// Sends each keep-alive when it is due, for ever.
    pub(super) async fn push_keep_alives(self: Arc<Self>) {
        loop {
            match self.push_due() {
                Some(due) => drop(timeout_at(due.into(), self.wake.notified()).await),
                None => self.wake.notified().await,
            }
        }
    }

    fn push_due(&self) -> Option<Instant> {
        let mut state = self.lock();
        while let Some((key, keep_alive)) = state.model.poll_push(now()) {
            if let Some(stream) = state.streams.get(&key) {
                // What a client does not read is not kept for it without end.
                let _ = stream.try_send(Ok(keep_alive));
            }
        }
        state.model.poll_timeout()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The server's end of a `Connect` stream. The client is registered for as long as this lives.
#[derive(Debug)]
pub(super) struct ConnectStream {
    shared: Arc<Shared>,
    key: StreamKey,
    keep_alives: mpsc::Receiver<KeepAlive>,
}

impl Stream for ConnectStream {
    type Item = KeepAlive;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<KeepAlive>> {
        self.keep_alives.poll_recv(cx)
    }
}

impl Drop for ConnectStream {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        state.model.disconnect(now(), self.key);
        state.streams.remove(&self.key);
    }
}

pub(super) fn status(code: Code, message: &str) -> tonic::Status {
    tonic::Status::new(tonic::Code::from_i32(code as i32), message)
}

fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}

const QUEUE: usize = 64;
