use chronicle_connection_driver::{NoRuntime, Runtime};
use std::{
    future::Future,
    io,
    net::{SocketAddr, ToSocketAddrs},
    time::Instant,
};
use tokio::{
    net::{TcpStream, UdpSocket},
    runtime::Handle,
};
use tokio_util::compat::{Compat, TokioAsyncReadCompatExt};

/// The tokio runtime that a connection runs on.
#[derive(Debug, Clone)]
pub struct Tokio(Handle);

impl Runtime for Tokio {
    type Tcp = Compat<TcpStream>;
    type Udp = UdpSocket;

    fn current() -> Result<Self, NoRuntime> {
        let handle = Handle::try_current().map_err(|_| NoRuntime { needed: "tokio" })?;
        Ok(Self(handle))
    }

    async fn connect(&self, to: SocketAddr) -> io::Result<Self::Tcp> {
        let socket = TcpStream::connect(to).await?;
        socket.set_nodelay(true)?;
        Ok(socket.compat())
    }

    async fn udp(&self, from: SocketAddr, to: SocketAddr) -> io::Result<Self::Udp> {
        let socket = UdpSocket::bind(from).await?;
        socket.connect(to).await?;
        Ok(socket)
    }

    async fn send(&self, socket: &Self::Udp, datagram: &[u8]) -> io::Result<()> {
        socket.send(datagram).await.map(drop)
    }

    async fn receive(&self, socket: &Self::Udp, buffer: &mut [u8]) -> io::Result<usize> {
        socket.recv(buffer).await
    }

    async fn lookup(&self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        let host = host.to_owned();
        let lookup = move || (host.as_str(), port).to_socket_addrs();
        let addresses = self
            .0
            .spawn_blocking(lookup)
            .await
            .map_err(io::Error::other)??;
        Ok(addresses.collect())
    }

    async fn sleep_until(&self, at: Instant) {
        // A call may be awaited outside of the runtime that its client lives on.
        let timer = {
            let _context = self.0.enter();
            tokio::time::sleep_until(at.into())
        };
        timer.await;
    }

    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.0.spawn(task);
    }
}
