//! Name servers as others build them, from Debian's packages.

use super::proxy::Proxy;
use crate::matrix;
use std::{
    env, fs,
    net::{TcpListener, TcpStream, UdpSocket},
    path::PathBuf,
    process::{Child, Command, Stdio},
    sync::atomic::{AtomicU32, Ordering},
    thread,
};

/// What serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Software {
    Dnsmasq,
    Knot,
}

impl Software {
    /// Whether it can be started here; where not, says aloud what is skipped.
    pub(crate) fn is_installed(self) -> bool {
        let (program, package) = match self {
            Self::Dnsmasq => ("dnsmasq", "dnsmasq-base"),
            Self::Knot => ("knotd", "knot"),
        };
        let found = Command::new(program).arg("--version").output().is_ok();
        if !found {
            matrix::skip(&format!(
                "{program} is not installed (apt-get install {package})"
            ));
        }
        found
    }
}

/// A process that serves `cluster.test` on loopback. It ends with this value.
pub(crate) struct NameServer {
    pub(crate) port: u16,
    count: usize,
    process: Child,
    directory: PathBuf,
}

impl NameServer {
    /// Starts one with so many records.
    pub(crate) fn start(software: Software, count: usize) -> Self {
        static STARTED: AtomicU32 = AtomicU32::new(0);
        let number = STARTED.fetch_add(1, Ordering::Relaxed);
        let name = format!("chronicle-tests-{}-{number}", std::process::id());
        let directory = env::temp_dir().join(name);
        fs::create_dir_all(&directory).unwrap();
        let port = free_port();
        let mut command = match software {
            Software::Dnsmasq => dnsmasq(port, count),
            Software::Knot => knot(port, count, &directory),
        };
        let log = fs::File::create(directory.join("log")).unwrap();
        let process = command
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap();
        Self {
            port,
            count,
            process,
            directory,
        }
    }

    /// Whether it listens, which it does over UDP by then.
    pub(crate) fn is_ready(&self) -> bool {
        TcpStream::connect(("127.0.0.1", self.port)).is_ok()
    }

    /// What it serves, in the order that records are to be used in.
    pub(crate) fn servers(&self) -> Vec<String> {
        let all = 0..self.count;
        all.map(|index| format!("n{index}.cluster.test:{}", 35000 + index))
            .collect()
    }
}

impl Drop for NameServer {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        if thread::panicking() {
            let log = fs::read_to_string(self.directory.join("log"));
            eprintln!("the name server says: {}", log.unwrap_or_default());
        }
        let _ = fs::remove_dir_all(&self.directory);
    }
}

/// A port that tells over UDP to come over TCP, and carries TCP on to another port.
pub(crate) fn truncating(port: u16) -> u16 {
    loop {
        let proxy = Proxy::to(port);
        // Somebody else may have that port over UDP.
        let Ok(socket) = UdpSocket::bind(("127.0.0.1", proxy.port)) else {
            continue;
        };
        thread::spawn(move || {
            let mut message = [0; 512];
            while let Ok((length, client)) = socket.recv_from(&mut message) {
                // An answer, cut off. Nothing else about it changes.
                message[2] |= 0b1000_0010;
                let _ = socket.send_to(&message[..length], client);
            }
        });
        return proxy.port;
    }
}

fn dnsmasq(port: u16, count: usize) -> Command {
    let mut command = Command::new("dnsmasq");
    command
        .args(["-k", "--no-daemon", "--conf-file=/dev/null", "--pid-file="])
        .args(["--no-resolv", "--no-hosts", "--bind-interfaces"])
        .args(["--listen-address=127.0.0.1", "--local=/test/"])
        .arg(format!("--port={port}"));
    for (index, priority, weight) in records(count) {
        let (target, port) = (format!("n{index}.cluster.test"), 35000 + index);
        command.arg(format!(
            "--srv-host=_chronicle._tcp.cluster.test,{target},{port},{priority},{weight}"
        ));
    }
    command
}

fn knot(port: u16, count: usize, directory: &std::path::Path) -> Command {
    let at = directory.display();
    let mut zone = "$ORIGIN cluster.test.\n$TTL 3600\n\
        @ SOA ns hostmaster 1 3600 600 86400 60\n@ NS ns\nns A 127.0.0.1\n"
        .to_owned();
    for (index, priority, weight) in records(count) {
        let port = 35000 + index;
        zone.push_str(&format!(
            "_chronicle._tcp SRV {priority} {weight} {port} n{index}\n"
        ));
    }
    fs::write(directory.join("cluster.test.zone"), zone).unwrap();
    let config = format!(
        "server:\n    rundir: \"{at}\"\n    listen: 127.0.0.1@{port}\n\
         database:\n    storage: \"{at}\"\n\
         zone:\n  - domain: cluster.test\n    storage: \"{at}\"\n    file: cluster.test.zone\n\
         \x20   zonefile-sync: -1\n    journal-content: none\n"
    );
    let file = directory.join("knot.conf");
    fs::write(&file, config).unwrap();
    let mut command = Command::new("knotd");
    command.arg("-c").arg(file);
    command
}

/// Index, priority and weight of records, in an order that is not the one to use them in: three
/// priorities, and weights that fall within each.
fn records(count: usize) -> impl Iterator<Item = (usize, usize, usize)> {
    let third = count.div_ceil(3);
    (0..count)
        .rev()
        .map(move |index| (index, 10 * (index / third), 1000 - index))
}

/// A port that nobody has over UDP or TCP, below those that systems give to whoever wants any. Each
/// is given once: its taker does not listen yet when the next is wanted.
pub(crate) fn free_port() -> u16 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let first = std::process::id().wrapping_mul(50);
    let mut ports = (0..10_000).map(|_| {
        let next = first.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed));
        20_000 + (next % 10_000) as u16
    });
    let is_free = |port: &u16| {
        let address = ("127.0.0.1", *port);
        TcpListener::bind(address).is_ok() && UdpSocket::bind(address).is_ok()
    };
    ports.find(is_free).unwrap()
}
