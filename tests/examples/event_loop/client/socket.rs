//! A TCP socket of mio with TLS of rustls on it, in the traits that h2 reads and writes through.
//!
//! Nothing here waits. What cannot go on says so, and the loop asks again when the socket is ready;
//! so no waker is kept.

use super::{Kit, failures};
use chronicle_connection::{Endpoint, Failure, FailureKind, Host, TlsFailure};
use mio::net::TcpStream;
use rustls::{ClientConnection, pki_types::ServerName};
use std::{
    io::{self, ErrorKind, Read as _, Write as _},
    net::SocketAddr,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

pub(super) struct Socket {
    tcp: TcpStream,
    tls: ClientConnection,
    is_connected: bool,
}

impl Socket {
    /// Begins to connect.
    pub(super) fn connect(kit: &Kit, to: &Endpoint, address: SocketAddr) -> io::Result<Self> {
        let name = match &to.host {
            Host::Name(name) => ServerName::try_from(name.clone()).map_err(io::Error::other)?,
            Host::Ip(address) => ServerName::from(*address),
        };
        let tls = ClientConnection::new(Arc::clone(&kit.tls), name).map_err(io::Error::other)?;
        let mut tcp = TcpStream::connect(address)?;
        tcp.set_nodelay(true)?;
        kit.register(&mut tcp)?;
        Ok(Self {
            tcp,
            tls,
            is_connected: false,
        })
    }

    /// Goes on until both sides can talk.
    pub(super) fn poll_handshake(&mut self) -> Poll<Result<(), Failure>> {
        let done = ready!(self.poll_secure());
        Poll::Ready(match done {
            Ok(()) if self.tls.alpn_protocol() == Some(b"h2") => Ok(()),
            Ok(()) => Err(Failure::new(FailureKind::Tls(TlsFailure::NoHttp2), "")),
            Err(error) => Err(failures::from_io(&error)),
        })
    }

    fn poll_secure(&mut self) -> Poll<io::Result<()>> {
        if !self.is_connected {
            if let Some(error) = self.tcp.take_error()? {
                return Poll::Ready(Err(error));
            }
            match self.tcp.peer_addr() {
                Ok(_) => self.is_connected = true,
                Err(error) if error.kind() == ErrorKind::NotConnected => return Poll::Pending,
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
        loop {
            ready!(self.poll_send())?;
            if !self.tls.is_handshaking() {
                return Poll::Ready(Ok(()));
            }
            if ready!(self.poll_receive())? == 0 {
                return Poll::Ready(Err(ErrorKind::UnexpectedEof.into()));
            }
        }
    }

    /// Reads what is there from the socket; 0 is its end.
    fn poll_receive(&mut self) -> Poll<io::Result<usize>> {
        let read = ready!(until_ready(|| self.tls.read_tls(&mut self.tcp)))?;
        if let Err(error) = self.tls.process_new_packets() {
            // An alert tells the other side why.
            let _ = self.tls.write_tls(&mut self.tcp);
            return Poll::Ready(Err(io::Error::new(ErrorKind::InvalidData, error)));
        }
        Poll::Ready(Ok(read))
    }

    /// Writes all that TLS has to send.
    fn poll_send(&mut self) -> Poll<io::Result<()>> {
        while self.tls.wants_write() {
            ready!(until_ready(|| self.tls.write_tls(&mut self.tcp)))?;
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        loop {
            match this.tls.reader().read(into.initialize_unfilled()) {
                Ok(read) => {
                    into.advance(read);
                    return Poll::Ready(Ok(()));
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                // Without a goodbye of TLS: an end all the same, as every message has its length.
                Err(error) if error.kind() == ErrorKind::UnexpectedEof => {
                    return Poll::Ready(Ok(()));
                }
                Err(error) => return Poll::Ready(Err(error)),
            }
            ready!(this.poll_receive())?;
            // TLS may want to answer, as to a change of keys.
            let _ = this.poll_send()?;
        }
    }
}

impl AsyncWrite for Socket {
    fn poll_write(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        // What was taken before goes first, so that TLS never has to hold more than one piece.
        ready!(this.poll_send())?;
        let written = this.tls.writer().write(bytes)?;
        let _ = this.poll_send()?;
        Poll::Ready(Ok(written))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.get_mut().poll_send()
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        this.tls.send_close_notify();
        this.poll_send()
    }
}

/// Says goodbye if the socket has room for it; nobody waits if not.
impl Drop for Socket {
    fn drop(&mut self) {
        if self.is_connected {
            self.tls.send_close_notify();
            let _ = self.poll_send();
        }
    }
}

/// Tries until it works, fails, or would have to wait.
pub(super) fn until_ready<T>(mut io: impl FnMut() -> io::Result<T>) -> Poll<io::Result<T>> {
    loop {
        match io() {
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Poll::Pending,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            result => return Poll::Ready(result),
        }
    }
}
