use async_std::{net::TcpStream, task};
use chronicle_connection_driver::{NoRuntime, Runtime};
use std::{
    future::Future,
    io,
    net::{SocketAddr, ToSocketAddrs},
    time::Instant,
};

/// The runtime of async-std: one for the whole process, which starts when it is first used.
#[derive(Debug, Clone)]
pub struct AsyncStd(());

impl Runtime for AsyncStd {
    type Tcp = TcpStream;

    fn current() -> Result<Self, NoRuntime> {
        Ok(Self(()))
    }

    async fn connect(&self, to: SocketAddr) -> io::Result<Self::Tcp> {
        let socket = TcpStream::connect(to).await?;
        socket.set_nodelay(true)?;
        Ok(socket)
    }

    async fn lookup(&self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        let host = host.to_owned();
        let lookup = move || (host.as_str(), port).to_socket_addrs();
        Ok(task::spawn_blocking(lookup).await?.collect())
    }

    async fn sleep_until(&self, at: Instant) {
        task::sleep(at.saturating_duration_since(Instant::now())).await;
    }

    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        task::spawn(task);
    }
}
