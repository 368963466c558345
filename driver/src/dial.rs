//! From a host to a connected socket: all addresses, staggered (RFC 8305).

use crate::{
    Runtime, failures,
    runtime::{Sleep, sleep_until},
    tls::Tls,
};
use chronicle_connection::{Endpoint, Failure, FailureKind, Host};
use futures_rustls::client::TlsStream;
use futures_util::{
    FutureExt, StreamExt,
    future::{BoxFuture, Either, select},
    stream::FuturesUnordered,
};
use std::{
    collections::VecDeque,
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

/// Connects to the addresses of a server, TLS included, the next whenever one failed or took 250 ms.
/// The first that is secure wins.
///
/// # Errors
/// What is wrong with each address, when none works.
pub(crate) async fn dial<R: Runtime>(
    runtime: &R,
    tls: &Tls,
    to: &Endpoint,
    addresses: Vec<SocketAddr>,
) -> Result<(SocketAddr, TlsStream<R::Tcp>), Failure> {
    let race = Race {
        runtime: runtime.clone(),
        tls: tls.clone(),
        to: to.clone(),
        waiting: interleave(addresses),
        running: FuturesUnordered::new(),
        failed: Vec::new(),
    };
    race.winner().await
}

struct Race<R: Runtime> {
    runtime: R,
    tls: Tls,
    to: Endpoint,
    waiting: VecDeque<SocketAddr>,
    running: FuturesUnordered<BoxFuture<'static, Attempt<R>>>,
    failed: Vec<(SocketAddr, Failure)>,
}

type Attempt<R> = (SocketAddr, Result<TlsStream<<R as Runtime>::Tcp>, Failure>);

impl<R: Runtime> Race<R> {
    async fn winner(mut self) -> Result<(SocketAddr, TlsStream<R::Tcp>), Failure> {
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
                Some((address, Ok(stream))) => return Ok((address, stream)),
                Some((address, Err(failure))) => {
                    self.failed.push((address, failure));
                    self.start_next();
                }
                None => {
                    self.start_next();
                }
            }
        }
    }

    fn stagger(&self) -> Option<Sleep> {
        (!self.waiting.is_empty()).then(|| sleep_until(&self.runtime, Instant::now() + STAGGER))
    }

    fn start_next(&mut self) -> bool {
        let Some(address) = self.waiting.pop_front() else {
            return false;
        };
        let (runtime, tls, to) = (self.runtime.clone(), self.tls.clone(), self.to.clone());
        let attempt = async move {
            let socket = runtime.connect(address).await;
            let socket =
                socket.map_err(|error| failures::from_io(&error, FailureKind::Unreachable))?;
            tls.handshake(&to, socket).await
        };
        let attempt = attempt.map(move |stream| (address, stream));
        self.running.push(attempt.boxed());
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
            [(_, failure)] if matches!(self.to.host, Host::Ip(_)) => failure.text.clone(),
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
