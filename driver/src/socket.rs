//! The socket under HTTP/2: can be shut from outside, and tells what passes through it.
//!
//! A connection of h2 is a task that lives for as long as streams do, so dropping what sends requests
//! closes nothing. [`Control::shut`] does: it drops the socket there and then, and fails
//! the I/O of the connection, which ends every stream.

use crate::{
    failures,
    frames::{FrameWatch, Seen},
};
use chronicle_connection::{Failure, FailureKind};
use futures_io::{AsyncRead, AsyncWrite};
use std::{
    io,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
};
use tokio::{io::ReadBuf, sync::watch};

/// What is known of the other side.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Health {
    /// The code of the first GOAWAY.
    pub(crate) going_away: Option<u32>,
    /// Why the connection ended.
    pub(crate) ended: Option<Failure>,
    /// Whether the first SETTINGS came.
    pub(crate) settled: bool,
    /// The most streams that the peer allows; none told is no limit.
    pub(crate) max_streams: Option<u32>,
}

/// What is left to hold of a socket once h2 owns it.
pub(crate) trait Control: Send + Sync {
    /// Closes the socket now. Everything on it fails.
    fn shut(&self);
    /// What passed through it so far, and news of it.
    fn health(&self) -> watch::Receiver<Health>;
}

/// The socket for h2.
pub(crate) struct Socket<S>(Arc<Mutex<Shared<S>>>);

struct Shared<S> {
    io: Option<S>,
    reader: Option<Waker>,
    writer: Option<Waker>,
    frames: FrameWatch,
    health: watch::Sender<Health>,
}

impl<S: AsyncRead + AsyncWrite + Send + Unpin + 'static> Socket<S> {
    pub(crate) fn new(io: S) -> (Self, Arc<dyn Control>) {
        let shared = Arc::new(Mutex::new(Shared {
            io: Some(io),
            reader: None,
            writer: None,
            frames: FrameWatch::new(),
            health: watch::Sender::default(),
        }));
        (Self(Arc::clone(&shared)), shared)
    }
}

impl<S: AsyncWrite + Send + Unpin> Control for Mutex<Shared<S>> {
    fn shut(&self) {
        let mut shared = lock(self);
        shared.end(Failure::new(FailureKind::Closed, "closed by this client"));
        let io = shared.io.take();
        let wakers = [shared.reader.take(), shared.writer.take()];
        drop(shared);
        if let Some(mut io) = io {
            // TLS says goodbye if the socket has room for it; nobody waits if not.
            let _ = Pin::new(&mut io).poll_close(&mut Context::from_waker(Waker::noop()));
        }
        wakers.into_iter().flatten().for_each(Waker::wake);
    }

    fn health(&self) -> watch::Receiver<Health> {
        lock(self).health.subscribe()
    }
}

impl<S> Shared<S> {
    fn end(&self, cause: Failure) {
        self.health.send_if_modified(|health| {
            let first = health.ended.is_none();
            if first {
                health.ended = Some(cause);
            }
            first
        });
    }

    /// Ends the connection if `result` is an error.
    fn checked<T>(&self, result: io::Result<T>) -> io::Result<T> {
        result.inspect_err(|error| self.end(failures::from_io(error, FailureKind::Closed)))
    }

    fn passed(&mut self, bytes: &[u8]) {
        let health = &self.health;
        self.frames.feed(bytes, |seen| {
            health.send_if_modified(|health| match seen {
                Seen::GoAway(code) => {
                    let is_first = health.going_away.is_none();
                    health.going_away.get_or_insert(code);
                    is_first
                }
                Seen::MaxStreams(max) => health.max_streams.replace(max) != Some(max),
                Seen::Settings => !std::mem::replace(&mut health.settled, true),
            });
        });
    }
}

impl<S: AsyncRead + Unpin> tokio::io::AsyncRead for Socket<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let mut shared = lock(&self.0);
        let Some(io) = &mut shared.io else {
            return Poll::Ready(Err(shut()));
        };
        let buffer = into.initialize_unfilled();
        let room = buffer.len();
        let Poll::Ready(read) = Pin::new(io).poll_read(cx, buffer) else {
            shared.reader = Some(cx.waker().clone());
            return Poll::Pending;
        };
        let read = shared.checked(read)?;
        if read == 0 && room > 0 {
            shared.end(failures::closed_by_server());
        }
        shared.passed(&buffer[..read]);
        into.advance(read);
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> Socket<S> {
    fn write<T>(
        &self,
        cx: &mut Context<'_>,
        write: impl FnOnce(Pin<&mut S>, &mut Context<'_>) -> Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        let mut shared = lock(&self.0);
        let Some(io) = &mut shared.io else {
            return Poll::Ready(Err(shut()));
        };
        let Poll::Ready(written) = write(Pin::new(io), cx) else {
            shared.writer = Some(cx.waker().clone());
            return Poll::Pending;
        };
        Poll::Ready(shared.checked(written))
    }
}

impl<S: AsyncWrite + Unpin> tokio::io::AsyncWrite for Socket<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.write(cx, |io, cx| io.poll_write(cx, bytes))
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.write(cx, |io, cx| io.poll_flush(cx))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.write(cx, |io, cx| io.poll_close(cx))
    }
}

/// h2 drops its socket when the connection is over, for whatever reason.
impl<S> Drop for Socket<S> {
    fn drop(&mut self) {
        let mut shared = lock(&self.0);
        shared.end(Failure::new(FailureKind::Closed, "the connection is over"));
        shared.io = None;
    }
}

fn lock<S>(shared: &Mutex<Shared<S>>) -> MutexGuard<'_, Shared<S>> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

fn shut() -> io::Error {
    io::Error::new(io::ErrorKind::ConnectionAborted, "closed by this client")
}
