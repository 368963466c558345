//! A network between client and server that can stop to carry anything, without a word.

use std::{
    io::{ErrorKind, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, sleep},
    time::Duration,
};

/// Carries bytes to a port of loopback. Its threads end with the process.
pub(crate) struct Proxy {
    pub(crate) port: u16,
    frozen: Arc<AtomicBool>,
}

impl Proxy {
    pub(crate) fn to(port: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let proxy = Self {
            port: listener.local_addr().unwrap().port(),
            frozen: Arc::default(),
        };
        let frozen = Arc::clone(&proxy.frozen);
        thread::spawn(move || {
            for near in listener.incoming() {
                let near = near.unwrap();
                let far = TcpStream::connect(("127.0.0.1", port)).unwrap();
                for (from, to) in [(&near, &far), (&far, &near)] {
                    let (from, to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
                    let frozen = Arc::clone(&frozen);
                    thread::spawn(move || carry(from, to, &frozen));
                }
            }
        });
        proxy
    }

    /// Stops everything: neither bytes nor ends of connections get through.
    pub(crate) fn freeze(&self) {
        self.frozen.store(true, Ordering::Relaxed);
    }

    pub(crate) fn thaw(&self) {
        self.frozen.store(false, Ordering::Relaxed);
    }
}

/// Carries bytes one way until the end, and then the end.
fn carry(mut from: TcpStream, mut to: TcpStream, frozen: &AtomicBool) {
    let _ = from.set_read_timeout(Some(MOMENT));
    let mut bytes = vec![0; 16 * 1024];
    loop {
        if frozen.load(Ordering::Relaxed) {
            sleep(MOMENT);
            continue;
        }
        match from.read(&mut bytes) {
            Ok(read @ 1..) if to.write_all(&bytes[..read]).is_ok() => {}
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            Ok(_) | Err(_) => break,
        }
    }
    let _ = to.shutdown(std::net::Shutdown::Both);
}

const MOMENT: Duration = Duration::from_millis(5);
