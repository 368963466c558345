//! Questions to name servers, and who these are.

use crate::{Runtime, dial::resolve, failures};
use bytes::Bytes;
use chronicle_connection::{DnsTransport, Endpoint, Failure, FailureKind, Id, Output, Reply};
use futures_util::{
    AsyncReadExt as _, AsyncWriteExt as _, Stream, StreamExt, TryFutureExt as _, TryStreamExt as _,
    stream::{self, BoxStream},
};
use std::{
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
};

/// Performs a request of a lookup, and gives its replies; `None` for any other output.
pub(crate) fn perform<R: Runtime>(
    runtime: &R,
    output: Output,
) -> Option<(Id, BoxStream<'static, Reply>)> {
    match output {
        Output::NameServers { id } => Some((id, stream::once(async { name_servers() }).boxed())),
        Output::Dns {
            id,
            server,
            transport,
            message,
            limit,
        } => {
            let answers = ask(runtime.clone(), server, transport, message, limit);
            Some((id, answers.boxed()))
        }
        Output::Open { .. }
        | Output::Http { .. }
        | Output::Unary(_)
        | Output::ServerStream(_)
        | Output::Cancel(_)
        | Output::Close(_)
        | Output::Event(_) => None,
    }
}

/// Sends a message to a name server, and gives all that comes back for as long as it is polled; its
/// failure, once no address of the server is left.
fn ask<R: Runtime>(
    runtime: R,
    server: Endpoint,
    transport: DnsTransport,
    message: Bytes,
    limit: usize,
) -> impl Stream<Item = Reply> {
    let asked = async move {
        let addresses = resolve(&runtime, &server).await?;
        let answers = addresses.into_iter().map(move |address| {
            let (runtime, message) = (runtime.clone(), message.clone());
            let answers = match transport {
                DnsTransport::Udp => udp(runtime, address, message, limit).left_stream(),
                DnsTransport::Tcp => tcp(runtime, address, message, limit).right_stream(),
            };
            let failure = move |error: io::Error| {
                let failure = failures::from_io(&error, FailureKind::Unreachable);
                let kind = match error.kind() {
                    io::ErrorKind::FileTooLarge => FailureKind::TooLarge,
                    _ => failure.kind,
                };
                Failure::new(kind, format!("{address}: {}", failure.text))
            };
            answers.map_err(failure).boxed()
        });
        Ok(stream::select_all(answers))
    };
    replies(asked.try_flatten_stream())
}

/// The name servers that the platform is configured to use, as they are now.
fn name_servers() -> Reply {
    match configured() {
        Ok(servers) => Reply::NameServers(servers),
        Err(failure) => Reply::Failed(failure),
    }
}

/// Holds failures back until there is nothing but failures, and gives the first then.
fn replies(answers: impl Stream<Item = Result<Bytes, Failure>>) -> impl Stream<Item = Reply> {
    let state = Some((Box::pin(answers), None));
    stream::unfold(state, |state| async {
        let (mut answers, mut first) = state?;
        loop {
            match answers.next().await {
                Some(Ok(message)) => {
                    return Some((Reply::Message(message), Some((answers, first))));
                }
                Some(Err(failure)) => {
                    first.get_or_insert(failure);
                }
                None => return first.map(|failure| (Reply::Failed(failure), None)),
            }
        }
    })
}

/// A socket of its own, and so a fresh random port, for each question.
fn udp<R: Runtime>(
    runtime: R,
    server: SocketAddr,
    message: Bytes,
    limit: usize,
) -> impl Stream<Item = io::Result<Bytes>> {
    let sent = async move {
        let any: IpAddr = match server {
            SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        let socket = runtime.udp((any, 0).into(), server).await?;
        runtime.send(&socket, &message).await?;
        io::Result::Ok((runtime, socket, vec![0; limit]))
    };
    sent.map_ok(|state| {
        stream::try_unfold(state, |(runtime, socket, mut buffer)| async move {
            let length = runtime.receive(&socket, &mut buffer).await?;
            let datagram = Bytes::copy_from_slice(&buffer[..length]);
            Ok(Some((datagram, (runtime, socket, buffer))))
        })
    })
    .try_flatten_stream()
}

fn tcp<R: Runtime>(
    runtime: R,
    server: SocketAddr,
    message: Bytes,
    limit: usize,
) -> impl Stream<Item = io::Result<Bytes>> {
    let sent = async move {
        let mut socket = runtime.connect(server).await?;
        let length = u16::try_from(message.len()).map_err(io::Error::other)?;
        // In one piece: some servers do not wait for a second one.
        let prefixed = [&length.to_be_bytes()[..], &message].concat();
        socket.write_all(&prefixed).await?;
        socket.flush().await?;
        io::Result::Ok(socket)
    };
    sent.map_ok(move |socket| {
        stream::try_unfold(socket, move |mut socket| async move {
            let mut length = [0; 2];
            socket.read_exact(&mut length).await?;
            let length = usize::from(u16::from_be_bytes(length));
            if length > limit {
                return Err(io::ErrorKind::FileTooLarge.into());
            }
            let mut message = vec![0; length];
            socket.read_exact(&mut message).await?;
            Ok(Some((Bytes::from(message), socket)))
        })
    })
    .try_flatten_stream()
}

#[cfg(unix)]
fn configured() -> Result<Vec<Endpoint>, Failure> {
    match std::fs::read(RESOLV_CONF) {
        Ok(text) => Ok(parse(&text)),
        // resolv.conf(5): then it is the one on this machine.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(parse(b"")),
        Err(error) => Err(Failure::new(
            FailureKind::Dns,
            format!("{RESOLV_CONF}: {error}"),
        )),
    }
}

#[cfg(not(unix))]
fn configured() -> Result<Vec<Endpoint>, Failure> {
    Err(Failure::new(
        FailureKind::Dns,
        "the name servers of this platform cannot be read by this version",
    ))
}

/// Lines that make no sense are passed over, as the system's resolver does.
#[cfg(unix)]
pub(crate) fn parse(text: &[u8]) -> Vec<Endpoint> {
    use chronicle_connection::Host;
    use resolv_conf::ScopedIp;

    let (config, _) = resolv_conf::Config::parse_with_errors(text);
    let servers = config.get_nameservers_or_local().into_iter();
    let hosts = servers.map(|server| match server {
        ScopedIp::V4(address) => address.into(),
        ScopedIp::V6(address, None) => address.into(),
        // The system's resolver reads the scope.
        scoped @ ScopedIp::V6(_, Some(_)) => Host::Name(scoped.to_string()),
    });
    hosts.map(|host| Endpoint::new(host, 53)).collect()
}

#[cfg(unix)]
const RESOLV_CONF: &str = "/etc/resolv.conf";
