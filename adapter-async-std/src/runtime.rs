use async_std::{
    net::{TcpStream, UdpSocket},
    task,
};
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
    type Udp = UdpSocket;

    fn current() -> Result<Self, NoRuntime> {
        Ok(Self(()))
    }

    async fn connect(&self, to: SocketAddr) -> io::Result<Self::Tcp> {
        let socket = TcpStream::connect(to).await?;
        socket.set_nodelay(true)?;
        Ok(socket)
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
        Ok(task::spawn_blocking(lookup).await?.collect())
    }

    async fn sleep_until(&self, at: Instant) {
        task::sleep(at.saturating_duration_since(Instant::now())).await;
    }

    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        task::spawn(task);
    }
}
