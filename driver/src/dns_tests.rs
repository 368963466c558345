//! Questions on real sockets, and what the platform's configuration says.

use crate::{dns::perform, testing::soon, tokio_runtime::Tokio};
use bytes::Bytes;
use chronicle_connection::{
    Command, Config, Connection, Contract, DnsTransport, Endpoint, FailureKind, Host, Id, Output,
    Reply,
};
use futures_util::{StreamExt, stream::BoxStream};
use rand_chacha::ChaCha12Rng;
use rand_core::SeedableRng;
use std::{
    net::{Ipv4Addr, SocketAddr},
    time::Instant,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, UdpSocket},
};

#[tokio::test]
async fn whatever_the_server_sends_is_passed_on_and_nothing_of_others() {
    let server = UdpSocket::bind(loopback(0)).await.unwrap();
    let stranger = UdpSocket::bind(loopback(0)).await.unwrap();
    let address = server.local_addr().unwrap();
    let mut replies = ask(address, DnsTransport::Udp, b"question", 100);
    let mut buffer = [0; 100];
    let (first, (length, _)) = soon(async {
        // The question is sent once somebody waits for its answer.
        tokio::join!(
            async {
                let reply = replies.next().await;
                (reply, replies.next().await)
            },
            async {
                let asked = server.recv_from(&mut buffer).await.unwrap();
                stranger.send_to(b"forged", asked.1).await.unwrap();
                server.send_to(b"one", asked.1).await.unwrap();
                stranger.send_to(b"forged", asked.1).await.unwrap();
                server.send_to(b"", asked.1).await.unwrap();
                asked
            }
        )
    })
    .await;
    assert_eq!(&buffer[..length], b"question");
    assert_eq!(message(first.0), "one");
    assert_eq!(message(first.1), "");
}

#[tokio::test]
async fn every_question_has_a_port_of_its_own() {
    let server = UdpSocket::bind(loopback(0)).await.unwrap();
    let address = server.local_addr().unwrap();
    let mut open = Vec::new();
    let mut ports = Vec::new();
    for _ in 0..8 {
        let mut replies = ask(address, DnsTransport::Udp, b"question", 100);
        let (reply, port) = soon(async {
            tokio::join!(replies.next(), async {
                let (_, client) = server.recv_from(&mut [0; 100]).await.unwrap();
                server.send_to(b"answer", client).await.unwrap();
                client.port()
            })
        })
        .await;
        assert_eq!(message(reply), "answer");
        open.push(replies);
        ports.push(port);
    }
    ports.sort_unstable();
    ports.dedup();
    assert_eq!(ports.len(), 8, "{ports:?}");
}

#[tokio::test]
async fn a_question_that_is_dropped_leaves_no_socket() {
    let server = TcpListener::bind(loopback(0)).await.unwrap();
    let address = server.local_addr().unwrap();
    let mut replies = ask(address, DnsTransport::Tcp, b"question", 100);
    soon(async {
        let (mut stream, _) = tokio::select! {
            reply = replies.next() => panic!("{reply:?}"),
            accepted = server.accept() => accepted.unwrap(),
        };
        drop(replies);
        let mut rest = Vec::new();
        // What was on its way may still come; then the end.
        let _ = stream.read_to_end(&mut rest).await;
        assert!(rest.is_empty() || rest == b"\x00\x08question", "{rest:?}");
    })
    .await;
}

#[tokio::test]
async fn answers_over_tcp_come_in_any_number_of_pieces() {
    let server = TcpListener::bind(loopback(0)).await.unwrap();
    let address = server.local_addr().unwrap();
    let mut replies = ask(address, DnsTransport::Tcp, b"question", 100);
    let serve = async {
        let (mut stream, _) = server.accept().await.unwrap();
        stream.set_nodelay(true).unwrap();
        let mut question = [0; 10];
        stream.read_exact(&mut question).await.unwrap();
        assert_eq!(&question, b"\x00\x08question");
        for byte in b"\x00\x03one" {
            stream.write_all(&[*byte]).await.unwrap();
            tokio::task::yield_now().await;
        }
        stream
            .write_all(b"\x00\x00\x00\x03two\x00\x09never")
            .await
            .unwrap();
    };
    let (replies, ()) =
        soon(async { tokio::join!(replies.by_ref().collect::<Vec<_>>(), serve) }).await;
    let [one, empty, two, Reply::Failed(failure)] = replies.as_slice() else {
        panic!("{replies:?}");
    };
    assert_eq!(
        [one, empty, two].map(|reply| message(Some(reply.clone()))),
        ["one", "", "two"]
    );
    assert_eq!(failure.kind, FailureKind::Closed, "{failure}");
}

#[tokio::test]
async fn a_message_over_the_limit_is_not_read() {
    let server = TcpListener::bind(loopback(0)).await.unwrap();
    let address = server.local_addr().unwrap();
    let mut replies = ask(address, DnsTransport::Tcp, b"question", 100);
    let serve = async {
        let (mut stream, _) = server.accept().await.unwrap();
        stream.write_all(&101_u16.to_be_bytes()).await.unwrap();
        stream
    };
    let (reply, _stream) = soon(async { tokio::join!(replies.next(), serve) }).await;
    let Some(Reply::Failed(failure)) = reply else {
        panic!("{reply:?}");
    };
    assert_eq!(failure.kind, FailureKind::TooLarge, "{failure}");
}

#[tokio::test]
async fn a_server_that_is_not_there_is_a_failure_with_its_address() {
    let (udp, tcp) = {
        let udp = UdpSocket::bind(loopback(0)).await.unwrap();
        let tcp = TcpListener::bind(loopback(0)).await.unwrap();
        (udp.local_addr().unwrap(), tcp.local_addr().unwrap())
    };
    for (address, transport) in [(udp, DnsTransport::Udp), (tcp, DnsTransport::Tcp)] {
        let mut replies = ask(address, transport, b"question", 100);
        let reply = soon(replies.next()).await;
        let Some(Reply::Failed(failure)) = reply else {
            panic!("{reply:?}");
        };
        assert_eq!(failure.kind, FailureKind::Refused, "{failure}");
        assert!(failure.text.starts_with(&address.to_string()), "{failure}");
        assert!(soon(replies.next()).await.is_none());
    }
}

#[tokio::test]
async fn all_addresses_of_a_named_server_are_asked() {
    // `localhost` is `::1` as well on most machines, where nobody listens.
    let server = UdpSocket::bind(loopback(0)).await.unwrap();
    let port = server.local_addr().unwrap().port();
    let named = Endpoint::new(Host::Name("localhost".to_owned()), port);
    let mut replies = ask_endpoint(named, DnsTransport::Udp, b"question", 100);
    let serve = async {
        let (_, client) = server.recv_from(&mut [0; 100]).await.unwrap();
        server.send_to(b"answer", client).await.unwrap();
    };
    let (reply, ()) = soon(async { tokio::join!(replies.next(), serve) }).await;
    assert_eq!(message(reply), "answer");
}

#[tokio::test]
async fn a_server_whose_name_does_not_resolve_is_a_failure_with_its_name() {
    let named = Endpoint::new(Host::Name("ns.invalid".to_owned()), 53);
    let mut replies = ask_endpoint(named, DnsTransport::Udp, b"question", 100);
    let reply = soon(replies.next()).await;
    let Some(Reply::Failed(failure)) = reply else {
        panic!("{reply:?}");
    };
    assert_eq!(failure.kind, FailureKind::Dns, "{failure}");
    assert!(failure.text.contains("ns.invalid"), "{failure}");
}

#[cfg(unix)]
#[test]
fn name_servers_are_read_as_resolv_conf_has_them() {
    let servers = |text: &str| {
        let servers = crate::dns::parse(text.as_bytes()).into_iter();
        servers.map(|server| server.to_string()).collect::<Vec<_>>()
    };
    let text = "# of the network\nsearch corp.test\noptions ndots:5 rotate edns0\n\
        nameserver 10.0.0.53\nnameserver 2001:db8::53\nnameserver fe80::1%eth0\n\
        nameserver nonsense\nno such line\nnameserver 10.0.0.54 # the second\n";
    let expected = [
        "10.0.0.53:53",
        "[2001:db8::53]:53",
        "fe80::1%eth0:53",
        "10.0.0.54:53",
    ];
    assert_eq!(servers(text), expected);
    // resolv.conf(5): without any, that of this machine.
    assert_eq!(servers("")[0], "127.0.0.1:53");
}

fn ask(
    server: SocketAddr,
    transport: DnsTransport,
    message: &'static [u8],
    limit: usize,
) -> BoxStream<'static, Reply> {
    let server = Endpoint::new(Host::Ip(server.ip()), server.port());
    ask_endpoint(server, transport, message, limit)
}

fn ask_endpoint(
    server: Endpoint,
    transport: DnsTransport,
    message: &'static [u8],
    limit: usize,
) -> BoxStream<'static, Reply> {
    let output = Output::Dns {
        id: an_id(),
        server,
        transport,
        message: Bytes::from_static(message),
        limit,
    };
    let runtime = <Tokio as crate::Runtime>::current().unwrap();
    perform(&runtime, output).unwrap().1
}

/// Ids are minted by machines alone.
fn an_id() -> Id {
    let string = "chronicle+srv://cluster.test".parse().unwrap();
    let config = Config::builder(string).build().unwrap();
    let rng = ChaCha12Rng::from_seed([0; 32]);
    let mut machine = Connection::new(config, Contract::default(), rng, Instant::now());
    machine.handle(Instant::now(), Command::Connect);
    loop {
        match machine.poll_output() {
            Some(Output::NameServers { id }) => return id,
            Some(_) => {}
            None => panic!("no request"),
        }
    }
}

fn message(reply: Option<Reply>) -> String {
    match reply {
        Some(Reply::Message(message)) => String::from_utf8(message.to_vec()).unwrap(),
        other => panic!("{other:?}"),
    }
}

fn loopback(port: u16) -> SocketAddr {
    (Ipv4Addr::LOCALHOST, port).into()
}
