use async_std::{
    net::{TcpStream, ToSocketAddrs},
    task,
};
use chronicle_connection_driver::{NoRuntime, Runtime};
use std::{future::Future, io, net::SocketAddr, time::Instant};

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
        let addresses = (host, port).to_socket_addrs().await?;
        Ok(addresses.collect())
    }

    async fn sleep_until(&self, at: Instant) {
        task::sleep(at.saturating_duration_since(Instant::now())).await;
    }

    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        task::spawn(task);
    }
}
