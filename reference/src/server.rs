//! A real server: gRPC and HTTP on one TLS port of loopback, around a
//! [`ServerModel`](crate::model::ServerModel).

mod cluster;
mod faults;
mod service;
mod shared;
mod tls;

pub use cluster::Cluster;
pub use faults::{Alpn, Answer, Fault, Faults};
pub use shared::{FaultsHandle, Stats};
pub use tls::TlsVersions;

use crate::model::ModelConfig;
use axum::Router;
use hyper_util::{rt::TokioIo, server::conn::auto, service::TowerToHyperService};
use shared::Shared;
use std::{
    future::Future,
    io,
    net::{Ipv4Addr, SocketAddr},
    pin::pin,
    sync::Arc,
    time::Duration,
};
use tls::Tls;
use tokio::{
    net::{TcpListener, TcpSocket, TcpStream},
    select,
    time::{sleep, timeout},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tonic::service::Routes;

/// What a server is started with.
#[derive(Debug, Clone)]
pub struct ServerOptions {
    /// The port on 127.0.0.1; 0 for any that is free.
    pub port: u16,
    /// How the server behaves at first.
    pub model: ModelConfig,
    /// DNS names and addresses that the certificate is for.
    pub names: Vec<String>,
    /// The certificate has expired.
    pub expired: bool,
    /// The certificate is for years to come.
    pub not_yet_valid: bool,
    /// Clients need a certificate that one of these roots (PEM) vouches for; `None` asks for none.
    pub client_roots: Option<String>,
    /// Which versions of TLS the server speaks.
    pub tls: TlsVersions,
    /// The services of an application, which are asked like those of a server. None at first.
    pub services: Routes,
}

impl Default for ServerOptions {
    fn default() -> Self {
        Self {
            port: 0,
            model: ModelConfig::default(),
            names: ["localhost", "chronicle", "127.0.0.1", "::1"]
                .map(String::from)
                .into(),
            expired: false,
            not_yet_valid: false,
            client_roots: None,
            tls: TlsVersions::default(),
            services: Routes::default(),
        }
    }
}

/// A server that runs on the current tokio runtime until it is killed or dropped.
#[derive(Debug)]
pub struct Server {
    options: ServerOptions,
    /// Bound and never listening: keeps the port while the server is down.
    _reserved: TcpSocket,
    shared: Arc<Shared>,
    certificate_pem: String,
    running: Option<Tasks>,
}

impl Server {
    /// Starts a server.
    ///
    /// # Errors
    /// Where the port cannot be had.
    pub async fn start(mut options: ServerOptions) -> io::Result<Self> {
        let reserved = bind(options.port)?;
        if let Some(known) = &mut options.model.authentication {
            // Servers that were started with the same options have issuers of their own.
            let port = reserved.local_addr()?.port();
            known.issuer = format!("{}{port}", known.issuer);
        }
        let faults = Faults {
            model: options.model.clone(),
            ..Faults::default()
        };
        let mut server = Self {
            shared: Arc::new(Shared::new(reserved.local_addr()?.port(), faults)),
            options,
            _reserved: reserved,
            certificate_pem: String::new(),
            running: None,
        };
        server.restart().await?;
        Ok(server)
    }

    /// Whether it runs.
    pub fn is_up(&self) -> bool {
        self.running.is_some()
    }

    /// The port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.shared.port
    }

    /// `127.0.0.1:port`
    pub fn endpoint(&self) -> String {
        format!("127.0.0.1:{}", self.port())
    }

    /// The certificate since the last start; it vouches for itself.
    pub fn certificate_pem(&self) -> &str {
        &self.certificate_pem
    }

    /// What can be made to go wrong.
    pub fn faults(&self) -> FaultsHandle {
        FaultsHandle(self.shared.clone())
    }

    /// What happened so far.
    pub fn stats(&self) -> Stats {
        self.shared.stats()
    }

    /// Waits until the server stands as asked. Set a time limit around it.
    pub async fn wait_for(&self, condition: impl Fn(&Stats) -> bool) -> Stats {
        loop {
            let stats = self.stats();
            if condition(&stats) {
                return stats;
            }
            sleep(Duration::from_millis(2)).await;
        }
    }

    /// Takes the server down at once: the port refuses, and every connection is reset.
    pub async fn kill(&mut self) {
        if let Some(tasks) = &self.running {
            tasks.cancel.cancel();
            tasks.tracker.close();
            tasks.tracker.wait().await;
        }
        // Only now: where a caller gave up waiting, the next restart waits for the rest.
        self.running = None;
    }

    /// Kills the server and starts it afresh on the same port, without clients and with a new
    /// certificate. Faults stay as they are set.
    ///
    /// # Errors
    /// Where the port cannot be had.
    pub async fn restart(&mut self) -> io::Result<()> {
        self.kill().await;
        self.shared.forget();
        let (tls, certificate_pem) = Tls::new(&self.options)?;
        let port = self.port();
        let listening = bind(port)?.listen(BACKLOG);
        let listener = listening.map_err(|error| unavailable(port, &error))?;
        self.certificate_pem = certificate_pem;
        let tasks = Tasks::default();
        let host = Host {
            router: service::router(self.options.services.clone(), self.shared.clone()),
            shared: self.shared.clone(),
            tls,
            tasks: tasks.clone(),
        };
        tasks.spawn(self.shared.clone().push_keep_alives());
        tasks.spawn(host.accept(listener));
        self.running = Some(tasks);
        Ok(())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(tasks) = &self.running {
            tasks.cancel.cancel();
        }
    }
}

/// Sockets that may be bound again share a port for as long as only one of them listens.
fn bind(port: u16) -> io::Result<TcpSocket> {
    let socket = TcpSocket::new_v4()?;
    socket.set_reuseaddr(true)?;
    let bound = socket.bind(SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
    bound.map_err(|error| unavailable(port, &error))?;
    Ok(socket)
}

fn unavailable(port: u16, error: &io::Error) -> io::Error {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let text = format!("no server can listen on {address}: {error}; free it, or take another port");
    io::Error::new(error.kind(), text)
}

/// What a running server consists of.
#[derive(Debug, Clone, Default)]
struct Tasks {
    cancel: CancellationToken,
    tracker: TaskTracker,
}

impl Tasks {
    fn spawn<F>(&self, task: F)
    where
        F: Future<Output: Send> + Send + 'static,
    {
        let cancel = self.cancel.clone();
        self.tracker.spawn(cancel.run_until_cancelled_owned(task));
    }
}

impl<F> hyper::rt::Executor<F> for Tasks
where
    F: Future<Output: Send> + Send + 'static,
{
    fn execute(&self, task: F) {
        self.spawn(task);
    }
}

/// What each connection is served with.
#[derive(Clone)]
struct Host {
    router: Router,
    shared: Arc<Shared>,
    tls: Tls,
    tasks: Tasks,
}

impl Host {
    async fn accept(self, listener: TcpListener) {
        loop {
            match listener.accept().await {
                Ok((stream, _)) => {
                    let tracker = self.tasks.tracker.clone();
                    tracker.spawn(self.clone().connection(stream));
                }
                // Out of descriptors, most likely: some will be free again.
                Err(_) => sleep(Duration::from_millis(10)).await,
            }
        }
    }

    /// Serves a connection to its end, or resets it when the server is taken down.
    async fn connection(self, stream: TcpStream) {
        let shared = self.shared.clone();
        shared.count(|stats| (stats.accepted, stats.open) = (stats.accepted + 1, stats.open + 1));
        let cancel = self.tasks.cancel.clone();
        if let Ok((stream, handle)) = with_handle(stream)
            && cancel
                .run_until_cancelled(self.serve(stream))
                .await
                .is_none()
        {
            // The other handle is closed by now, so dropping this one resets the connection.
            let _ = handle.set_zero_linger();
        }
        shared.count(|stats| stats.open -= 1);
    }

    async fn serve(self, stream: TcpStream) {
        let mut go_away = self.shared.go_away.subscribe();
        let mut faults = self.shared.faults.subscribe();
        let Ok(alpn) = faults
            .wait_for(|faults| !faults.hang_tls)
            .await
            .map(|faults| faults.alpn)
        else {
            return;
        };
        let accepting = self.tls.acceptor(alpn).accept(stream).into_fallible();
        let stream = match accepting.await {
            Ok(stream) => stream,
            Err((_, stream)) => return part(&stream).await,
        };
        self.shared.count(|stats| stats.handshakes += 1);
        let mut http = auto::Builder::new(self.tasks);
        http.http2().max_concurrent_streams(MAX_STREAMS);
        let service = TowerToHyperService::new(self.router);
        let mut connection = pin!(http.serve_connection(TokioIo::new(stream), service));
        loop {
            select! {
                _ = connection.as_mut() => return,
                Ok(()) = go_away.changed() => connection.as_mut().graceful_shutdown(),
            }
        }
    }
}

/// Leaves a client the time to read why it is refused: what it sends meanwhile would otherwise reset
/// the connection, and the reason with it.
async fn part(stream: &TcpStream) {
    let read = async {
        let mut ignored = [0; 1024];
        while stream.readable().await.is_ok() {
            match stream.try_read(&mut ignored) {
                Ok(0) => return,
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(_) => return,
            }
        }
    };
    let _ = timeout(PARTING, read).await;
}

/// A second handle of a socket, to set options while the first is in use elsewhere.
fn with_handle(stream: TcpStream) -> io::Result<(TcpStream, TcpSocket)> {
    stream.set_nodelay(true)?;
    let stream = stream.into_std()?;
    let handle = TcpSocket::from_std_stream(stream.try_clone()?);
    Ok((TcpStream::from_std(stream)?, handle))
}

const PARTING: Duration = Duration::from_secs(1);
const BACKLOG: u32 = 1024;
/// As real servers have it (Kestrel's default).
const MAX_STREAMS: u32 = 100;
