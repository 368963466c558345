//! What a driver needs of an async runtime.

use futures_io::{AsyncRead, AsyncWrite};
use std::{fmt, future::Future, io, net::SocketAddr, pin::Pin, time::Instant};

/// An async runtime: sockets, names, a timer and tasks. Everything else is written once, on top.
///
/// An implementation holds no policy: it waits as long as it takes, and dropping one of its futures
/// drops the work.
pub trait Runtime: Clone + Send + Sync + Unpin + 'static {
    /// A connected TCP socket.
    type Tcp: AsyncRead + AsyncWrite + Send + Unpin + 'static;

    /// A UDP socket that is connected to one address.
    type Udp: Send + Sync + 'static;

    /// The runtime that the caller runs on.
    ///
    /// # Errors
    /// [`NoRuntime`] where the caller runs on none and one is needed.
    fn current() -> Result<Self, NoRuntime>;

    /// Connects to an address, with `TCP_NODELAY` set.
    fn connect(&self, to: SocketAddr) -> impl Future<Output = io::Result<Self::Tcp>> + Send;

    /// Binds a UDP socket to one address and connects it to another: what others send is dropped.
    fn udp(
        &self,
        from: SocketAddr,
        to: SocketAddr,
    ) -> impl Future<Output = io::Result<Self::Udp>> + Send;

    /// Sends a datagram.
    fn send(
        &self,
        socket: &Self::Udp,
        datagram: &[u8],
    ) -> impl Future<Output = io::Result<()>> + Send;

    /// Receives a datagram, and tells its length; what does not fit is lost.
    fn receive(
        &self,
        socket: &Self::Udp,
        buffer: &mut [u8],
    ) -> impl Future<Output = io::Result<usize>> + Send;

    /// Resolves a name through the system's resolver without blocking the executor.
    fn lookup(
        &self,
        host: &str,
        port: u16,
    ) -> impl Future<Output = io::Result<Vec<SocketAddr>>> + Send;

    /// Completes at an instant, or soon after.
    fn sleep_until(&self, at: Instant) -> impl Future<Output = ()> + Send;

    /// Runs a task until it completes, detached.
    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static);
}

/// The caller does not run on the runtime that the adapter is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoRuntime {
    /// The name of the runtime.
    pub needed: &'static str,
}

impl fmt::Display for NoRuntime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "no {needed} runtime here; call this from within a {needed} runtime",
            needed = self.needed
        )
    }
}

impl std::error::Error for NoRuntime {}

/// A boxed timer.
pub(crate) type Sleep = Pin<Box<dyn Future<Output = ()> + Send>>;

pub(crate) fn sleep_until<R: Runtime>(runtime: &R, at: Instant) -> Sleep {
    let runtime = runtime.clone();
    Box::pin(async move { runtime.sleep_until(at).await })
}
