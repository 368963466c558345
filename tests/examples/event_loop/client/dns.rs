//! Questions to name servers, and who these are. The machine writes the questions and reads the
//! answers; here they only travel.

use super::{Kit, dial::Lookup, failures, socket::until_ready};
use bytes::Bytes;
use chronicle_connection::{DnsTransport, Endpoint, Failure, FailureKind, Host, Reply};
use mio::net::{TcpStream, UdpSocket};
use std::{
    fs,
    io::{self, ErrorKind, Read as _, Write as _},
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    task::{Poll, ready},
};

/// One question, to all addresses of a name server. Dropping it closes its sockets.
pub(super) struct Query {
    lookup: Option<Lookup>,
    transport: DnsTransport,
    message: Bytes,
    limit: usize,
    asked: Vec<Asked>,
    /// The first failure, which counts once nobody is left to answer.
    failed: Option<Failure>,
}

impl Query {
    pub(super) fn new(
        kit: &Kit,
        server: &Endpoint,
        transport: DnsTransport,
        message: Bytes,
        limit: usize,
    ) -> Self {
        Self {
            lookup: Some(Lookup::new(kit, server)),
            transport,
            message,
            limit,
            asked: vec![],
            failed: None,
        }
    }

    /// The next message that came back; or a failure, after which there are none.
    pub(super) fn poll(&mut self, kit: &Kit) -> Poll<Reply> {
        if let Some(lookup) = &self.lookup {
            let found = ready!(lookup.poll());
            self.lookup = None;
            match found {
                Ok(addresses) => self.ask(kit, addresses),
                Err(failure) => self.failed = Some(failure),
            }
        }
        let mut index = 0;
        while let Some(asked) = self.asked.get_mut(index) {
            match asked.poll(self.limit) {
                Poll::Pending => index += 1,
                Poll::Ready(Ok(message)) => return Poll::Ready(Reply::Message(message)),
                Poll::Ready(Err(error)) => {
                    self.asked.swap_remove(index);
                    self.fail(&error);
                }
            }
        }
        match &self.failed {
            Some(failure) if self.asked.is_empty() => Poll::Ready(Reply::Failed(failure.clone())),
            Some(_) | None => Poll::Pending,
        }
    }

    fn ask(&mut self, kit: &Kit, addresses: Vec<SocketAddr>) {
        for address in addresses {
            match Asked::new(kit, address, self.transport, &self.message) {
                Ok(asked) => self.asked.push(asked),
                Err(error) => self.fail(&error),
            }
        }
    }

    fn fail(&mut self, error: &io::Error) {
        let failure = match error.kind() {
            ErrorKind::FileTooLarge => Failure::new(FailureKind::TooLarge, error.to_string()),
            _ => failures::from_io(error),
        };
        self.failed.get_or_insert(failure);
    }
}

enum Asked {
    Udp(UdpSocket),
    Tcp {
        socket: TcpStream,
        /// What is still to be sent.
        question: Vec<u8>,
        read: Vec<u8>,
    },
}

impl Asked {
    fn new(
        kit: &Kit,
        server: SocketAddr,
        transport: DnsTransport,
        message: &[u8],
    ) -> io::Result<Self> {
        Ok(match transport {
            DnsTransport::Udp => {
                let any: IpAddr = match server {
                    SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
                    SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
                };
                // A socket of its own, and so a fresh random port, for each question.
                let mut socket = UdpSocket::bind((any, 0).into())?;
                socket.connect(server)?;
                kit.register(&mut socket)?;
                socket.send(message)?;
                Self::Udp(socket)
            }
            DnsTransport::Tcp => {
                let length = u16::try_from(message.len()).map_err(io::Error::other)?;
                let mut socket = TcpStream::connect(server)?;
                kit.register(&mut socket)?;
                Self::Tcp {
                    socket,
                    question: [&length.to_be_bytes(), message].concat(),
                    read: vec![],
                }
            }
        })
    }

    fn poll(&mut self, limit: usize) -> Poll<io::Result<Bytes>> {
        match self {
            Self::Udp(socket) => {
                let mut datagram = vec![0; limit];
                let length = ready!(until_ready(|| socket.recv(&mut datagram)))?;
                datagram.truncate(length);
                Poll::Ready(Ok(datagram.into()))
            }
            Self::Tcp {
                socket,
                question,
                read,
            } => {
                while !question.is_empty() {
                    let written = match until_ready(|| socket.write(question)) {
                        // Where the system says so of a socket that is still connecting.
                        Poll::Ready(Err(error)) if error.kind() == ErrorKind::NotConnected => {
                            return Poll::Pending;
                        }
                        written => ready!(written)?,
                    };
                    question.drain(..written);
                }
                loop {
                    if let Some((&[high, low], rest)) = read.split_first_chunk() {
                        let length = usize::from(u16::from_be_bytes([high, low]));
                        if length > limit {
                            return Poll::Ready(Err(ErrorKind::FileTooLarge.into()));
                        }
                        if rest.len() >= length {
                            let message = Bytes::copy_from_slice(&rest[..length]);
                            read.drain(..2 + length);
                            return Poll::Ready(Ok(message));
                        }
                    }
                    let mut piece = [0; 4096];
                    let got = ready!(until_ready(|| socket.read(&mut piece)))?;
                    if got == 0 {
                        return Poll::Ready(Err(ErrorKind::UnexpectedEof.into()));
                    }
                    read.extend_from_slice(&piece[..got]);
                }
            }
        }
    }
}

/// The name servers that the platform is configured to use, as they are now.
pub(super) fn name_servers() -> Reply {
    let text = match fs::read_to_string(RESOLV_CONF) {
        Ok(text) => text,
        // resolv.conf(5): then it is the one on this machine.
        Err(error) if error.kind() == ErrorKind::NotFound => "nameserver 127.0.0.1".to_owned(),
        Err(error) => {
            let text = format!("{RESOLV_CONF}: {error}");
            return Reply::Failed(Failure::new(FailureKind::Dns, text));
        }
    };
    let servers = text.lines().filter_map(|line| {
        let address: IpAddr = line.strip_prefix("nameserver")?.trim().parse().ok()?;
        Some(Endpoint::new(Host::Ip(address), 53))
    });
    Reply::NameServers(servers.collect())
}

const RESOLV_CONF: &str = "/etc/resolv.conf";
