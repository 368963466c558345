//! From a host to a secure socket: all addresses, staggered (RFC 8305).

use super::{Kit, failures, socket::Socket};
use chronicle_connection::{Endpoint, Failure, FailureKind, Host};
use std::{
    io,
    net::{SocketAddr, ToSocketAddrs as _},
    sync::{
        Arc,
        mpsc::{Receiver, TryRecvError, channel},
    },
    task::Poll,
    thread,
    time::{Duration, Instant},
};

/// The addresses of a host. The system's resolver blocks, so a thread waits for it.
pub(super) struct Lookup {
    answer: Receiver<io::Result<Vec<SocketAddr>>>,
    host: Host,
}

impl Lookup {
    pub(super) fn new(kit: &Kit, of: &Endpoint) -> Self {
        let (found, answer) = channel();
        let port = of.port;
        match &of.host {
            Host::Ip(address) => {
                // Cannot fail: the other end is here.
                let _ = found.send(Ok(vec![SocketAddr::new(*address, port)]));
            }
            Host::Name(name) => {
                let (name, waker) = (name.clone(), Arc::clone(&kit.waker));
                thread::spawn(move || {
                    let addresses = (name.as_str(), port).to_socket_addrs();
                    // Nobody may be waiting any more.
                    let _ = found.send(addresses.map(Iterator::collect));
                    let _ = waker.wake();
                });
            }
        }
        Self {
            answer,
            host: of.host.clone(),
        }
    }

    pub(super) fn poll(&self) -> Poll<Result<Vec<SocketAddr>, Failure>> {
        let error = match self.answer.try_recv() {
            Ok(Ok(addresses)) if !addresses.is_empty() => return Poll::Ready(Ok(addresses)),
            Ok(Ok(_)) => "no address".to_owned(),
            Ok(Err(error)) => error.to_string(),
            Err(TryRecvError::Empty) => return Poll::Pending,
            Err(TryRecvError::Disconnected) => "the lookup ended without an answer".to_owned(),
        };
        let text = format!("{}: {error}", self.host);
        Poll::Ready(Err(Failure::new(FailureKind::Dns, text)))
    }
}

/// A race of the addresses of one server. The first that is secure wins.
pub(super) struct Dial {
    to: Endpoint,
    waiting: std::vec::IntoIter<SocketAddr>,
    running: Vec<(SocketAddr, Socket)>,
    failed: Vec<(SocketAddr, Failure)>,
    /// When the next address has its turn, whatever became of the last.
    next_at: Instant,
}

impl Dial {
    pub(super) fn new(to: Endpoint, addresses: Vec<SocketAddr>) -> Self {
        Self {
            to,
            waiting: addresses.into_iter(),
            running: vec![],
            failed: vec![],
            next_at: Instant::now(),
        }
    }

    /// When this must be polled at the latest.
    pub(super) fn timeout(&self) -> Option<Instant> {
        (self.waiting.len() > 0).then_some(self.next_at)
    }

    pub(super) fn poll(&mut self, kit: &Kit) -> Poll<Result<(SocketAddr, Socket), Failure>> {
        loop {
            let mut index = 0;
            while let Some((address, socket)) = self.running.get_mut(index) {
                match socket.poll_handshake() {
                    Poll::Pending => index += 1,
                    Poll::Ready(result) => {
                        let address = *address;
                        let (_, socket) = self.running.swap_remove(index);
                        match result {
                            Ok(()) => return Poll::Ready(Ok((address, socket))),
                            Err(failure) => {
                                self.failed.push((address, failure));
                                self.next_at = Instant::now();
                            }
                        }
                    }
                }
            }
            if self.next_at > Instant::now() {
                return Poll::Pending;
            }
            let Some(address) = self.waiting.next() else {
                return match self.running.is_empty() {
                    true => Poll::Ready(Err(self.failure())),
                    false => Poll::Pending,
                };
            };
            self.next_at = Instant::now() + STAGGER;
            match Socket::connect(kit, &self.to, address) {
                Ok(socket) => self.running.push((address, socket)),
                Err(error) => {
                    let failure = failures::from_io(&error);
                    self.failed.push((address, failure));
                    self.next_at = Instant::now();
                }
            }
        }
    }

    /// One failure for all addresses: the kind of the one that got farthest, each named.
    fn failure(&self) -> Failure {
        let got_far = |failure: &&Failure| matches!(failure.kind, FailureKind::Tls(_));
        let failures = || self.failed.iter().map(|(_, failure)| failure);
        let worst = failures().find(got_far).or_else(|| failures().next());
        let kind = worst.map_or(FailureKind::Unreachable, |failure| failure.kind);
        let texts: Vec<_> = self
            .failed
            .iter()
            .map(|(address, failure)| format!("{address}: {failure}"))
            .collect();
        Failure::new(kind, texts.join("; "))
    }
}

/// RFC 8305 section 5, "Connection Attempt Delay".
const STAGGER: Duration = Duration::from_millis(250);
