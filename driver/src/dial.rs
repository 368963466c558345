//! From a host to a connected socket: all addresses, staggered (RFC 8305).

use crate::{
    Runtime, failures,
    runtime::{Sleep, sleep_until},
};
use chronicle_connection::{Endpoint, Failure, FailureKind, Host};
use futures_util::{
    StreamExt,
    future::{BoxFuture, Either, select},
    stream::FuturesUnordered,
};
use std::{
    collections::VecDeque,
    io,
    net::SocketAddr,
    time::{Duration, Instant},
};

/// The addresses of a server, through the system's resolver.
pub(crate) async fn resolve<R: Runtime>(
    runtime: &R,
    to: &Endpoint,
) -> Result<Vec<SocketAddr>, Failure> {
    let name = match &to.host {
        Host::Ip(address) => return Ok(vec![SocketAddr::new(*address, to.port)]),
        Host::Name(name) => name,
    };
    let addresses = runtime
        .lookup(name, to.port)
        .await
        .map_err(|error| Failure::new(FailureKind::Dns, format!("{name}: {error}")))?;
    if addresses.is_empty() {
        return Err(Failure::new(
            FailureKind::Dns,
            format!("{name} has no address"),
        ));
    }
    Ok(addresses)
}

/// Connects to several addresses of one server, the next whenever one failed or took 250 ms.
pub(crate) struct Race<R: Runtime> {
    runtime: R,
    waiting: VecDeque<SocketAddr>,
    running: FuturesUnordered<BoxFuture<'static, Attempt<R>>>,
    failed: Vec<(SocketAddr, Failure)>,
    /// Whether the addresses are those of a name, and worth telling.
    is_resolved: bool,
}

type Attempt<R> = (SocketAddr, io::Result<<R as Runtime>::Tcp>);

impl<R: Runtime> Race<R> {
    pub(crate) fn new(runtime: &R, to: &Endpoint, addresses: Vec<SocketAddr>) -> Self {
        Self {
            runtime: runtime.clone(),
            waiting: interleave(addresses),
            running: FuturesUnordered::new(),
            failed: Vec::new(),
            is_resolved: matches!(to.host, Host::Name(_)),
        }
    }

    /// The next address that is connected. What connects slower goes on meanwhile; ask again after
    /// [`failed`](Self::failed).
    pub(crate) async fn next(&mut self) -> Result<(SocketAddr, R::Tcp), Failure> {
        loop {
            if self.running.is_empty() && !self.start_next() {
                return Err(self.failure());
            }
            let attempt = match self.stagger() {
                None => self.running.next().await,
                Some(sleep) => match select(self.running.next(), sleep).await {
                    Either::Left((attempt, _)) => attempt,
                    Either::Right(_) => None,
                },
            };
            match attempt {
                Some((address, Ok(socket))) => return Ok((address, socket)),
                Some((address, Err(error))) => {
                    self.failed(address, failures::from_io(&error, FailureKind::Unreachable));
                    self.start_next();
                }
                None => {
                    self.start_next();
                }
            }
        }
    }

    /// Remembers why an address is of no use.
    pub(crate) fn failed(&mut self, address: SocketAddr, failure: Failure) {
        self.failed.push((address, failure));
    }

    fn stagger(&self) -> Option<Sleep> {
        (!self.waiting.is_empty()).then(|| sleep_until(&self.runtime, Instant::now() + STAGGER))
    }

    fn start_next(&mut self) -> bool {
        let Some(address) = self.waiting.pop_front() else {
            return false;
        };
        let runtime = self.runtime.clone();
        self.running.push(Box::pin(async move {
            let socket = runtime.connect(address).await;
            (address, socket)
        }));
        true
    }

    /// One failure for all addresses: the kind of the one that got farthest, each named.
    fn failure(&self) -> Failure {
        let kind = |wanted: fn(&FailureKind) -> bool| {
            let mut kinds = self.failed.iter().map(|(_, failure)| failure.kind);
            kinds.find(wanted)
        };
        let got_far = |kind: &FailureKind| matches!(kind, FailureKind::Tls(_));
        let kind = kind(got_far)
            .or_else(|| kind(|_| true))
            .unwrap_or(FailureKind::Unreachable);
        let text = match self.failed.as_slice() {
            // The only address of a server that is named by it.
            [(_, failure)] if !self.is_resolved => failure.text.clone(),
            [(address, failure)] if failure.text.is_empty() => address.to_string(),
            [(address, failure)] => format!("{address}: {}", failure.text),
            several => several
                .iter()
                .map(|(address, failure)| format!("{address}: {failure}"))
                .collect::<Vec<_>>()
                .join("; "),
        };
        Failure::new(kind, text)
    }
}

/// Alternates between the families, beginning with that of the first (RFC 8305 section 4).
fn interleave(addresses: Vec<SocketAddr>) -> VecDeque<SocketAddr> {
    let first_is_v6 = addresses.first().is_some_and(SocketAddr::is_ipv6);
    let (first, second): (Vec<_>, Vec<_>) = addresses
        .into_iter()
        .partition(|address| address.is_ipv6() == first_is_v6);
    let mut mixed = VecDeque::new();
    let (mut first, mut second) = (first.into_iter(), second.into_iter());
    loop {
        let pair = [first.next(), second.next()];
        if pair == [None, None] {
            return mixed;
        }
        for address in pair.into_iter().flatten() {
            if !mixed.contains(&address) {
                mixed.push_back(address);
            }
        }
    }
}

/// RFC 8305 section 5, "Connection Attempt Delay".
const STAGGER: Duration = Duration::from_millis(250);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_alternate_and_begin_with_the_first() {
        let address = |text: &str| text.parse::<SocketAddr>().unwrap();
        let [a4, b4, a6, b6, c6] =
            ["1.1.1.1:1", "2.2.2.2:1", "[::1]:1", "[::2]:1", "[::3]:1"].map(address);
        assert_eq!(
            interleave(vec![a6, b6, c6, a4, b4, a6]),
            [a6, a4, b6, b4, c6]
        );
        assert_eq!(interleave(vec![a4, b4, a6]), [a4, a6, b4]);
        assert!(interleave(Vec::new()).is_empty());
    }
}
