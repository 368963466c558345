//! A name server for one name: its SRV records over UDP and TCP, on loopback, with faults to switch
//! on while it runs.

use chronicle_connection::{Host, SrvRecord};
use hickory_proto::{
    op::{Message, ResponseCode},
    rr::{Name, RData, Record, RecordType, rdata::SRV},
};
use std::{
    io,
    net::{Ipv4Addr, SocketAddr},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream, UdpSocket},
    time::sleep,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// A name server that runs on the current tokio runtime until it is dropped.
#[derive(Debug)]
pub struct DnsServer {
    address: SocketAddr,
    shared: Arc<Shared>,
    cancel: CancellationToken,
}

/// How a name server misbehaves. Plain data: what is set here acts from the next question on.
#[derive(Debug, Clone, Default)]
pub struct DnsFaults {
    /// Wait for so long before each answer.
    pub delay: Duration,
    /// What comes in place of the right answer.
    pub answer: Option<DnsAnswer>,
    /// Answer questions with EDNS by a bare FORMERR, as servers from before EDNS do.
    pub no_edns: bool,
    /// Cut each answer over UDP short, even if it would fit.
    pub truncate: bool,
    /// Send answers over TCP byte by byte.
    pub split_tcp: bool,
}

/// What comes in place of the right answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DnsAnswer {
    /// Nothing.
    Nothing,
    /// The right answer to another id.
    WrongId,
    /// The right answer to another question.
    OtherQuestion,
    /// Bytes that are no message.
    Garbage,
    /// No records, and this code: 2 for SERVFAIL, 3 for NXDOMAIN, 5 for REFUSED, 0 for NODATA.
    Code(u16),
}

/// What a name server was asked so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DnsStats {
    /// Questions over UDP.
    pub udp: u64,
    /// Questions over TCP.
    pub tcp: u64,
}

#[derive(Debug)]
struct Shared {
    name: Name,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    records: Vec<SrvRecord>,
    faults: DnsFaults,
    stats: DnsStats,
}

impl DnsServer {
    /// Starts a name server that knows the servers of a name such as `cluster.test`.
    ///
    /// # Errors
    /// Where no port can be had, or the name is none.
    pub async fn start(name: &str, records: Vec<SrvRecord>) -> io::Result<Self> {
        let name = Name::from_ascii(format!("_chronicle._tcp.{name}.")).map_err(invalid)?;
        let (udp, tcp) = bind().await?;
        let server = Self {
            address: tcp.local_addr()?,
            shared: Arc::new(Shared {
                name,
                state: Mutex::default(),
            }),
            cancel: CancellationToken::new(),
        };
        server.set_records(records);
        let tasks = Tasks {
            shared: server.shared.clone(),
            cancel: server.cancel.clone(),
            tracker: TaskTracker::new(),
        };
        tasks.spawn(tasks.clone().serve_udp(Arc::new(udp)));
        tasks.spawn(tasks.clone().serve_tcp(tcp));
        Ok(server)
    }

    /// Where it listens, over UDP and TCP alike.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The records from the next question on. A target that is an address is written as a name, as
    /// DNS has nothing else.
    pub fn set_records(&self, records: Vec<SrvRecord>) {
        self.shared.state().records = records;
    }

    /// Changes what goes wrong.
    pub fn set_faults(&self, change: impl FnOnce(&mut DnsFaults)) {
        change(&mut self.shared.state().faults);
    }

    /// What it was asked so far.
    pub fn stats(&self) -> DnsStats {
        self.shared.state().stats
    }
}

impl Drop for DnsServer {
    fn drop(&mut self) {
        self.cancel.cancel();
    }
}

#[derive(Clone)]
struct Tasks {
    shared: Arc<Shared>,
    cancel: CancellationToken,
    tracker: TaskTracker,
}

impl Tasks {
    fn spawn(&self, task: impl Future<Output = io::Result<()>> + Send + 'static) {
        let cancel = self.cancel.clone();
        self.tracker.spawn(cancel.run_until_cancelled_owned(task));
    }

    async fn serve_udp(self, socket: Arc<UdpSocket>) -> io::Result<()> {
        let mut buffer = [0; 4096];
        loop {
            let (length, from) = socket.recv_from(&mut buffer).await?;
            let question = buffer[..length].to_vec();
            let (shared, socket) = (self.shared.clone(), socket.clone());
            self.spawn(async move {
                if let Some(answer) = shared.answer(&question, Transport::Udp).await {
                    socket.send_to(&answer, from).await?;
                }
                Ok(())
            });
        }
    }

    async fn serve_tcp(self, listener: TcpListener) -> io::Result<()> {
        loop {
            let (stream, _) = listener.accept().await?;
            self.spawn(self.clone().connection(stream));
        }
    }

    async fn connection(self, mut stream: TcpStream) -> io::Result<()> {
        stream.set_nodelay(true)?;
        loop {
            let mut question = vec![0; usize::from(stream.read_u16().await?)];
            stream.read_exact(&mut question).await?;
            let Some(answer) = self.shared.answer(&question, Transport::Tcp).await else {
                continue;
            };
            let length = u16::try_from(answer.len()).map_err(invalid)?;
            let prefixed = [&length.to_be_bytes()[..], &answer].concat();
            let piece = if self.shared.state().faults.split_tcp {
                1
            } else {
                prefixed.len()
            };
            for piece in prefixed.chunks(piece) {
                stream.write_all(piece).await?;
                tokio::task::yield_now().await;
            }
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Transport {
    Udp,
    Tcp,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn answer(&self, question: &[u8], transport: Transport) -> Option<Vec<u8>> {
        let question = Message::from_vec(question).ok()?;
        let (answer, delay) = {
            let mut state = self.state();
            match transport {
                Transport::Udp => state.stats.udp += 1,
                Transport::Tcp => state.stats.tcp += 1,
            }
            let answer = self.answer_now(question, transport, &state);
            (answer, state.faults.delay)
        };
        sleep(delay).await;
        answer
    }

    fn answer_now(
        &self,
        question: Message,
        transport: Transport,
        state: &State,
    ) -> Option<Vec<u8>> {
        let faults = &state.faults;
        let limit = usize::from(question.max_payload());
        let mut answer = question.into_response();
        answer.metadata.recursion_available = true;
        if faults.no_edns && answer.edns.is_some() {
            answer.queries.clear();
            answer.edns = None;
            answer.metadata.response_code = ResponseCode::FormErr;
            return answer.to_vec().ok();
        }
        let asked = answer.queries.first()?.clone();
        if asked.name() != &self.name {
            answer.metadata.response_code = ResponseCode::NXDomain;
        } else if asked.query_type() == RecordType::SRV {
            let records = state.records.iter().map(|record| self.srv(record));
            answer.answers = records.collect::<Option<_>>()?;
        }
        match faults.answer {
            None => {}
            Some(DnsAnswer::Nothing) => return None,
            Some(DnsAnswer::WrongId) => answer.metadata.id = !answer.metadata.id,
            Some(DnsAnswer::OtherQuestion) => {
                for query in &mut answer.queries {
                    query.set_name(Name::root());
                }
            }
            Some(DnsAnswer::Garbage) => return Some(b"this is no message".to_vec()),
            Some(DnsAnswer::Code(code)) => {
                answer.answers.clear();
                answer.metadata.response_code = code.into();
            }
        }
        let bytes = answer.to_vec().ok()?;
        if transport == Transport::Udp && (faults.truncate || bytes.len() > limit) {
            answer.metadata.truncation = true;
            // Something is left, as with real servers; whoever uses it is wrong.
            answer.answers.truncate(1);
            return answer.to_vec().ok();
        }
        Some(bytes)
    }

    fn srv(&self, record: &SrvRecord) -> Option<Record> {
        let host = match &record.server.host {
            Host::Name(name) => name.clone(),
            Host::Ip(address) => address.to_string(),
        };
        let target = Name::from_ascii(format!("{host}.")).ok()?;
        let port = record.server.port;
        let srv = SRV::new(record.priority, record.weight, port, target);
        Some(Record::from_rdata(self.name.clone(), TTL, RData::SRV(srv)))
    }
}

/// Both sockets on one port of loopback.
async fn bind() -> io::Result<(UdpSocket, TcpListener)> {
    let mut tries = 0;
    loop {
        let udp = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        match TcpListener::bind(udp.local_addr()?).await {
            Ok(tcp) => return Ok((udp, tcp)),
            // Somebody else has that port over TCP.
            Err(error) if tries == MOST_TRIES => return Err(error),
            Err(_) => tries += 1,
        }
    }
}

fn invalid(error: impl std::error::Error + Send + Sync + 'static) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, error)
}

const MOST_TRIES: u32 = 20;

/// Seconds. Nobody may care.
const TTL: u32 = 3600;
