//! The task that owns a machine and performs what it asks for. It decides nothing.

use crate::{
    Runtime, calls,
    calls::Answer,
    dns,
    pool::{Live, Pool},
    runtime::{Sleep, sleep_until},
    socket::Health,
    suspend::SuspendWatch,
    tls::Tls,
    transport::{Lane, Transport},
};
use chronicle_connection::{
    Call, Command, Connection, Endpoint, Event, Failure, FailureKind, FatalError, Id, Input,
    NameServerError, Output, Reply, Session, State,
};
use futures_util::{
    FutureExt, Stream, StreamExt,
    future::poll_fn,
    stream::{self, BoxStream},
};
use rand_chacha::ChaCha12Rng;
use std::{
    collections::BTreeMap,
    future::Future,
    iter, mem,
    sync::Arc,
    task::{Context, Poll},
    time::{Duration, Instant},
};
use tokio::sync::{broadcast, mpsc, watch};
use tokio_stream::StreamMap;

/// Everything of one client that does I/O. Dropping it drops all of that.
pub(crate) struct Driver<R: Runtime> {
    pub(crate) runtime: R,
    pub(crate) tls: Tls,
    /// How long a transport for application calls may take to open.
    pub(crate) open_timeout: Duration,
    pub(crate) machine: Connection<ChaCha12Rng>,
    pub(crate) commands: mpsc::UnboundedReceiver<Command>,
    pub(crate) transports: Transports,
    pub(crate) requests: Requests,
    pub(crate) suspend: SuspendWatch,
    /// Inputs in a row that nobody had to wait for.
    pub(crate) in_a_row: u32,
    pub(crate) live: watch::Sender<Option<Live<R>>>,
    /// Tells calls that a refresh has ended, one way or the other.
    pub(crate) token_news: watch::Sender<()>,
    pub(crate) events: broadcast::Sender<Event>,
    pub(crate) view: watch::Sender<View>,
}

/// What the handles of a client can see.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct View {
    pub(crate) state: State,
    /// Whether there ever was a session.
    pub(crate) was_connected: bool,
    /// Why the machine gave up.
    pub(crate) failed: Option<FatalError>,
}

impl View {
    pub(crate) fn session(&self) -> Option<&Session> {
        session(&self.state)
    }
}

fn session(state: &State) -> Option<&Session> {
    match state {
        State::Connected(session) => Some(session),
        State::Idle
        | State::Resolving
        | State::Selecting
        | State::Handshaking { .. }
        | State::BackingOff
        | State::Stopped => None,
    }
}

/// The transports that are open, and the news of these and of those that are being opened.
#[derive(Default)]
pub(crate) struct Transports {
    pub(crate) open: BTreeMap<Id, Transport>,
    news: StreamMap<Id, BoxStream<'static, News>>,
}

enum News {
    Opened(Transport),
    Reply(Reply),
}

/// Requests under way.
pub(crate) type Requests = StreamMap<Id, BoxStream<'static, Reply>>;

impl<R: Runtime> Driver<R> {
    /// Connects, and runs until the machine stops or every handle is gone.
    pub(crate) async fn run(&mut self) {
        let mut input = Input::from(Command::Connect);
        loop {
            let now = Instant::now();
            if let Some(slept) = self.suspend.slept() {
                tracing::debug!(?slept, "the machine was suspended");
                self.machine.handle(now, Command::Slept(slept));
            }
            self.machine.handle(now, input);
            let outputs: Vec<_> = iter::from_fn(|| self.machine.poll_output()).collect();
            self.publish(&outputs);
            for output in outputs {
                self.perform(output);
            }
            if self.machine.state() == State::Stopped {
                return;
            }
            input = self.next_input().await;
        }
    }

    /// Shows where the machine stands, and sends its events. Both at once, as far as anybody can see:
    /// who hears of a session finds it, and who finds it hears no more of its coming.
    fn publish(&self, outputs: &[Output]) {
        let events = || {
            outputs.iter().filter_map(|output| match output {
                Output::Event(event) => Some(event),
                _ => None,
            })
        };
        let state = self.machine.state();
        let failed = events().find_map(|event| match event {
            Event::Failed(error) => Some(error.clone()),
            _ => None,
        });
        // Whoever sees the session may call at once.
        self.follow(session(&state));
        if events().any(|event| matches!(event, Event::Token { .. })) {
            self.token_news.send_replace(());
        }
        let connected = events().any(|event| matches!(event, Event::Connected(_)));
        self.view.send_if_modified(|view| {
            for event in events() {
                // Nobody may be listening.
                let _ = self.events.send(event.clone());
            }
            let next = View {
                was_connected: view.was_connected || connected,
                failed: failed.or(view.failed.take()),
                state,
            };
            mem::replace(view, next) != *view
        });
    }

    /// Keeps the transports of application calls in step with the session.
    fn follow(&self, session: Option<&Session>) {
        let metadata = self.machine.call_metadata();
        self.live
            .send_if_modified(|live| match (&mut *live, session) {
                (None, None) => false,
                (Some(live), Some(session)) if live.pool.session() == session => {
                    mem::replace(&mut live.metadata, metadata) != live.metadata
                }
                (_, session) => {
                    if let Some(live) = live.take() {
                        live.pool.end();
                    }
                    *live = session.cloned().map(|session| Live {
                        pool: Arc::new(Pool::new(
                            self.runtime.clone(),
                            self.tls.clone(),
                            session,
                            self.open_timeout,
                        )),
                        metadata,
                    });
                    true
                }
            });
    }

    fn perform(&mut self, output: Output) {
        match output {
            output @ (Output::NameServers { .. } | Output::Dns { .. }) => {
                self.requests.extend(dns::perform(&self.runtime, output));
            }
            Output::Open { id, to } => {
                let opening = open(self.runtime.clone(), self.tls.clone(), to);
                self.transports.news.insert(id, opening.boxed());
            }
            Output::Http {
                id,
                on,
                request,
                limit,
            } => self.request(id, on, |lane| {
                let answer = calls::http(lane, request, limit);
                let reply = answer.map(|answer| answer.map_or_else(Reply::Failed, Reply::Http));
                reply.into_stream().boxed()
            }),
            Output::Unary(call) => self.call(call, Answer::One),
            Output::ServerStream(call) => self.call(call, Answer::Many),
            Output::Cancel(id) => drop(self.requests.remove(&id)),
            Output::Close(id) => {
                self.transports.news.remove(&id);
                // Requests on it end by that.
                self.transports.open.remove(&id);
            }
            Output::Event(event) => log(&event),
        }
    }

    fn call(&mut self, call: Call, answer: Answer) {
        self.request(call.id, call.on, |lane| {
            let request = calls::request(call.path, call.metadata, &call.message);
            calls::grpc(lane, request, call.limit, answer).boxed()
        });
    }

    fn request(&mut self, id: Id, on: Id, begin: impl FnOnce(Lane) -> BoxStream<'static, Reply>) {
        let replies = match self.transports.open.get(&on) {
            Some(transport) => begin(transport.lane().clone()),
            None => {
                let failure = Failure::new(FailureKind::Closed, "the transport is gone");
                stream::iter([Reply::Failed(failure)]).boxed()
            }
        };
        self.requests.insert(id, replies);
    }

    async fn next_input(&mut self) -> Input {
        if self.in_a_row == TURN {
            self.in_a_row = 0;
            yield_now().await;
        }
        let deadline = self.machine.poll_timeout();
        let mut timer = deadline.map(|at| sleep_until(&self.runtime, at));
        self.in_a_row += 1;
        poll_fn(|cx| {
            let input = self.poll_input(cx, timer.as_mut());
            if input.is_pending() {
                self.in_a_row = 0;
            }
            input
        })
        .await
    }

    fn poll_input(&mut self, cx: &mut Context<'_>, timer: Option<&mut Sleep>) -> Poll<Input> {
        if let Poll::Ready(command) = self.commands.poll_recv(cx) {
            // No command ever again: all handles are gone.
            return Poll::Ready(command.unwrap_or(Command::Close).into());
        }
        // Before the requests: that they fail is what came of it, not the news.
        if let Poll::Ready(Some((id, news))) = self.transports.news.poll_next_unpin(cx) {
            let reply = match news {
                News::Reply(reply) => {
                    if let Reply::Closed(_) = reply {
                        // The machine does not close what is closed.
                        self.transports.open.remove(&id);
                    }
                    reply
                }
                News::Opened(transport) => {
                    let peer = transport.peer();
                    self.transports.open.insert(id, transport);
                    Reply::Opened { peer }
                }
            };
            return Poll::Ready(Input::Reply { id, reply });
        }
        if let Poll::Ready(Some((id, reply))) = self.requests.poll_next_unpin(cx) {
            return Poll::Ready(Input::Reply { id, reply });
        }
        match timer {
            Some(timer) => timer.poll_unpin(cx).map(|()| Command::Tick.into()),
            None => Poll::Pending,
        }
    }
}

/// Whatever ends the task, be it a panic or the end of its runtime, ends all I/O. Only then do the
/// handles see the end of `view`, which is the last field.
impl<R: Runtime> Drop for Driver<R> {
    fn drop(&mut self) {
        if let Some(live) = self.live.send_replace(None) {
            live.pool.end();
        }
        self.view.send_modify(|view| view.state = State::Stopped);
    }
}

fn open<R: Runtime>(runtime: R, tls: Tls, to: Endpoint) -> impl Stream<Item = News> {
    let opened = async move { Transport::open(&runtime, &tls, &to, None).await };
    opened.into_stream().flat_map(|opened| match opened {
        Ok(transport) => {
            let ending = ending(transport.health().clone()).map(News::Reply);
            let opened = News::Opened(transport);
            stream::iter([opened]).chain(ending).left_stream()
        }
        Err(failure) => stream::iter([News::Reply(Reply::Failed(failure))]).right_stream(),
    })
}

/// How an open transport ends: first GOAWAY if there was one, then the end itself.
pub(crate) fn ending(health: watch::Receiver<Health>) -> impl Stream<Item = Reply> {
    stream::unfold(Some((health, false)), |state| async {
        let (mut health, told) = state?;
        let news = |health: &Health| {
            let going_away = health.going_away.filter(|_| !told);
            going_away
                .map(|code| Reply::GoingAway { code })
                .or_else(|| health.ended.clone().map(Reply::Closed))
        };
        let reply = news(
            &*health
                .wait_for(|health| news(health).is_some())
                .await
                .ok()?,
        )?;
        let next = matches!(reply, Reply::GoingAway { .. }).then_some((health, true));
        Some((reply, next))
    })
}

fn log(event: &Event) {
    match event {
        Event::Resolving { .. }
        | Event::Connecting { .. }
        | Event::Selected { .. }
        | Event::Compatible { .. }
        | Event::Token { error: None, .. } => {
            tracing::debug!("{event}");
        }
        Event::Connected(_) | Event::Closed => tracing::info!("{event}"),
        Event::LookupTryFailed {
            error: NameServerError::Truncated | NameServerError::NoEdns,
            ..
        } => tracing::debug!("{event}"),
        Event::Resolved { warnings, .. } if warnings.is_empty() => tracing::debug!("{event}"),
        Event::LookupTryFailed { .. }
        | Event::Resolved { .. }
        | Event::LastGoodListUsed { .. }
        | Event::ReserveFailed { .. }
        | Event::CandidateFailed { .. }
        | Event::BackingOff { .. }
        | Event::Token { error: Some(_), .. }
        | Event::Disconnected { .. } => tracing::warn!("{event}"),
        Event::Failed(_) => tracing::error!("{event}"),
    }
}

/// Lets the other tasks of this executor have a turn.
fn yield_now() -> impl Future<Output = ()> {
    let mut yielded = false;
    poll_fn(move |cx| {
        if mem::replace(&mut yielded, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
}

const TURN: u32 = 256;
