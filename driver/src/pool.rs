//! Transports for application calls, apart from that of the session.
//!
//! They are opened on demand to the peer of the session, filled one after the other up to the peer's
//! limit of streams, and end with the session. Nobody knows which streams ever end, so a call that
//! finds all of them full has another one opened, and takes the first stream that comes free.

use crate::{
    Runtime,
    http2::MAX_STREAMS,
    runtime::sleep_until,
    tls::Tls,
    transport::{Lane, Transport},
};
use chronicle_connection::{CallMetadata, Failure, FailureKind, Session};
use futures_util::{
    FutureExt,
    future::{AbortHandle, Either, abortable, select},
};
use std::{
    collections::VecDeque,
    mem,
    pin::pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};
use tokio::sync::oneshot;

/// What application calls need to know of the session that is up.
pub(crate) struct Live<R: Runtime> {
    pub(crate) pool: Arc<Pool<R>>,
    /// What each call must carry.
    pub(crate) metadata: CallMetadata,
}

/// The transports of one session.
pub(crate) struct Pool<R: Runtime> {
    runtime: R,
    tls: Tls,
    session: Session,
    open_timeout: Duration,
    state: Mutex<State<R>>,
}

struct State<R: Runtime> {
    members: Vec<Member>,
    waiting: VecDeque<oneshot::Sender<Result<Lease<R>, Failure>>>,
    opening: Option<AbortHandle>,
    opened: u64,
    ended: bool,
}

struct Member {
    number: u64,
    transport: Transport,
    streams: u32,
}

/// The right to one stream on a transport.
pub(crate) struct Lease<R: Runtime> {
    pool: Arc<Pool<R>>,
    member: u64,
    lane: Lane,
}

impl<R: Runtime> Pool<R> {
    pub(crate) fn new(runtime: R, tls: Tls, session: Session, open_timeout: Duration) -> Self {
        Self {
            runtime,
            tls,
            session,
            open_timeout,
            state: Mutex::new(State {
                members: Vec::new(),
                waiting: VecDeque::new(),
                opening: None,
                opened: 0,
                ended: false,
            }),
        }
    }

    pub(crate) fn session(&self) -> &Session {
        &self.session
    }

    /// A stream, as soon as there is one. `None` once the session has ended.
    pub(crate) async fn lease(self: &Arc<Self>) -> Option<Result<Lease<R>, Failure>> {
        let promise = {
            let mut state = self.lock();
            if state.ended {
                return None;
            }
            if state.waiting.is_empty()
                && let Some(lease) = self.take(&mut state)
            {
                return Some(Ok(lease));
            }
            let (waiter, promise) = oneshot::channel();
            state.waiting.push_back(waiter);
            self.open_another(&mut state);
            promise
        };
        promise.await.ok()
    }

    /// The session is over: closes every transport, whatever runs on it.
    pub(crate) fn end(&self) {
        let mut state = self.lock();
        state.ended = true;
        let members = mem::take(&mut state.members);
        let waiting = mem::take(&mut state.waiting);
        let opening = state.opening.take();
        drop(state);
        if let Some(opening) = opening {
            opening.abort();
        }
        drop((members, waiting));
    }

    /// A stream on the first transport that has room.
    fn take(self: &Arc<Self>, state: &mut State<R>) -> Option<Lease<R>> {
        let member = state.members.iter_mut().find(|member| member.has_room())?;
        member.streams += 1;
        Some(Lease {
            pool: Arc::clone(self),
            member: member.number,
            lane: member.transport.lane().clone(),
        })
    }

    /// Gives what is free to those who wait, in order. Asks for more if it does not suffice.
    fn serve(self: &Arc<Self>) {
        loop {
            let mut state = self.lock();
            while state
                .waiting
                .front()
                .is_some_and(oneshot::Sender::is_closed)
            {
                state.waiting.pop_front();
            }
            if state.waiting.is_empty() {
                return;
            }
            let Some(lease) = self.take(&mut state) else {
                return self.open_another(&mut state);
            };
            let waiter = state.waiting.pop_front();
            // A lease that nobody takes any more comes back, and needs the lock for it.
            drop(state);
            if let Some(waiter) = waiter {
                let _ = waiter.send(Ok(lease));
            }
        }
    }

    fn open_another(self: &Arc<Self>, state: &mut State<R>) {
        if state.opening.is_some() || state.ended {
            return;
        }
        let pool = Arc::clone(self);
        let (task, abort) = abortable(async move {
            let opened = pool.open().await;
            pool.opened(opened);
        });
        state.opening = Some(abort);
        self.runtime.spawn(task.map(drop));
    }

    async fn open(&self) -> Result<Transport, Failure> {
        let Session { server, peer, .. } = &self.session;
        let open = async {
            let transport = Transport::open(&self.runtime, &self.tls, server, Some(*peer)).await?;
            let mut health = transport.health().clone();
            // The limit of streams stands in the peer's first frame.
            let is_known = health.wait_for(|health| health.settled || health.ended.is_some());
            match is_known.await.ok().and_then(|health| health.ended.clone()) {
                Some(ended) => Err(ended),
                None => Ok(transport),
            }
        };
        let timeout = sleep_until(&self.runtime, Instant::now() + self.open_timeout);
        match select(pin!(open), timeout).await {
            Either::Left((opened, _)) => opened,
            Either::Right(_) => Err(Failure::new(FailureKind::TimedOut, peer.to_string())),
        }
    }

    fn opened(self: &Arc<Self>, opened: Result<Transport, Failure>) {
        let mut state = self.lock();
        state.opening = None;
        if state.ended {
            return;
        }
        let opened = opened.map(|transport| Member {
            number: state.opened,
            transport,
            streams: 0,
        });
        let failure = match opened {
            Ok(member) if member.has_room() => {
                state.opened += 1;
                state.members.push(member);
                drop(state);
                return self.serve();
            }
            Ok(_) => Failure::new(FailureKind::Protocol, "the server takes no streams now"),
            Err(failure) => failure,
        };
        let waiting = mem::take(&mut state.waiting);
        drop(state);
        for waiter in waiting {
            let _ = waiter.send(Err(failure.clone()));
        }
    }

    fn give_back(self: &Arc<Self>, number: u64) {
        let mut state = self.lock();
        if let Some(member) = state
            .members
            .iter_mut()
            .find(|member| member.number == number)
        {
            member.streams -= 1;
        }
        state
            .members
            .retain(|member| member.streams > 0 || member.is_usable());
        drop(state);
        self.serve();
    }

    fn lock(&self) -> MutexGuard<'_, State<R>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Member {
    fn is_usable(&self) -> bool {
        let health = self.transport.health().borrow();
        health.ended.is_none() && health.going_away.is_none()
    }

    fn has_room(&self) -> bool {
        let told = self.transport.health().borrow().max_streams;
        self.is_usable() && self.streams < told.unwrap_or(MAX_STREAMS).min(MAX_STREAMS)
    }
}

impl<R: Runtime> Lease<R> {
    pub(crate) fn lane(&self) -> &Lane {
        &self.lane
    }
}

impl<R: Runtime> Drop for Lease<R> {
    fn drop(&mut self) {
        self.pool.give_back(self.member);
    }
}

impl<R: Runtime> Clone for Live<R> {
    fn clone(&self) -> Self {
        Self {
            pool: Arc::clone(&self.pool),
            metadata: self.metadata.clone(),
        }
    }
}
