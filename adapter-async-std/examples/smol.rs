//! The adapter, moved to smol: everything that the adapter has of async-std stands here for smol, and
//! nothing else has to change.
//!
//! `cargo run -p chronicle-connection-async-std --example smol` connects, loses its server and comes
//! back.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "an example on real sockets in real time"
)]
#![allow(unreachable_pub, reason = "public where it would belong")]

use chronicle_reference_server::Cluster;
use std::error::Error;

/// What would be `src/runtime.rs`.
mod runtime {
    use chronicle_connection_driver::{NoRuntime, Runtime};
    use smol::{
        Timer,
        net::{TcpStream, UdpSocket, resolve},
    };
    use std::{future::Future, io, net::SocketAddr, time::Instant};

    /// The runtime of smol: one for the whole process, which starts when it is first used.
    #[derive(Debug, Clone)]
    pub struct Smol(());

    impl Runtime for Smol {
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
            resolve((host, port)).await
        }

        async fn sleep_until(&self, at: Instant) {
            Timer::at(at).await;
        }

        fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
            smol::spawn(task).detach();
        }
    }
}

/// What would be `src/lib.rs`.
mod adapter {
    pub use super::runtime::Smol;

    chronicle_connection_driver::adapter!(Smol);
}

use adapter::{Client, Event, Notice};

fn main() -> Result<(), Box<dyn Error>> {
    // The servers have threads of their own.
    let servers = tokio::runtime::Runtime::new()?;
    let mut cluster = servers.block_on(Cluster::start(2))?;
    smol::block_on(async {
        let client = Client::connect(cluster.connection_string()).await?;
        let mut events = client.events();
        while let Some(notice) = events.next().await {
            println!("{notice}");
            let Notice::Event(Event::Connected(session)) = notice else {
                continue;
            };
            if session.generation == 2 {
                client.close().await;
            }
            for server in cluster.servers_mut() {
                if server.port() == session.server.port {
                    servers.block_on(server.kill());
                }
            }
        }
        Ok(())
    })
}

#[test]
fn a_client_on_smol_survives_its_server() {
    main().unwrap();
}
