//! A server: a model, what is wrong with it, and what has arrived.

use super::{ClientId, TransportKey, queue::Happening};
use crate::endpoint;
use chronicle_connection::{DEFAULT_PORT, Endpoint, FailureKind, Id, Request, Status};
use chronicle_reference_server::model::{ModelConfig, ServerModel, StreamKey};
use std::{
    collections::BTreeMap,
    fmt,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    time::{Duration, Instant},
};

/// Names a server of a world.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ServerId(pub(super) usize);

impl fmt::Display for ServerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "s{}", self.0 + 1)
    }
}

/// What happens to those who dial a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reachable {
    /// They get through.
    Up,
    /// They are refused: nothing listens.
    Refuses,
    /// They get no answer.
    Hangs,
    /// TCP or TLS does not come about, for this reason.
    Fails(FailureKind),
}

/// What is wrong with one kind of request on a server.
#[derive(Debug, Clone, PartialEq)]
pub enum Fault {
    /// Never answered; the server's model does not see it.
    Hangs,
    /// Done at once, answered so much later.
    Slow(Duration),
    /// Its stream is reset, or whatever else can happen below HTTP.
    Fails(FailureKind),
    /// Answered with this HTTP status and body.
    Http(u16, String),
    /// Ended with this status.
    Status(Status),
}

/// A request that has arrived at a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Arrival {
    /// When.
    pub at: Duration,
    /// From whom.
    pub client: ClientId,
    /// What.
    pub request: Request,
}

/// A server of a world.
#[derive(Debug, Clone)]
pub struct Server {
    id: ServerId,
    endpoint: Endpoint,
    pub(super) model: ServerModel,
    pub(super) config: ModelConfig,
    pub(super) reachable: Reachable,
    pub(super) faults: Vec<(Request, Fault)>,
    pub(super) streams: BTreeMap<StreamKey, Stream>,
    pub(super) arrivals: Vec<Arrival>,
    pub(super) dials: Vec<(Duration, ClientId)>,
    /// By the second.
    loads: Vec<Load>,
    pub(super) crashes: u64,
    /// The earliest wake that is planned.
    pub(super) wake: Option<Instant>,
    /// What has arrived while its process is stopped.
    pub(super) paused: Option<Vec<Happening>>,
}

/// Crashes, and registrations that went in the life since.
pub(super) type Memory = (u64, u64);

/// An open `Connect` stream: where keep-alives go.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stream {
    pub(super) key: TransportKey,
    pub(super) id: Id,
    /// The most bytes that the client's adapter reads of a message.
    pub(super) limit: usize,
}

/// What has hit a server within one second.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Load {
    /// Transports dialled, whether they got through or not.
    pub dials: u32,
    /// `GET /connections/count`: the probes.
    pub counts: u32,
    /// `POST /connections/reserve`
    pub reserves: u32,
    /// `Connect`
    pub connects: u32,
}

impl Load {
    pub(super) fn count(&mut self, request: Request) {
        match request {
            Request::Count => self.counts += 1,
            Request::Reserve => self.reserves += 1,
            Request::Connect => self.connects += 1,
            Request::CheckCompatibility
            | Request::GetDescriptorSet
            | Request::GetVersionInfo
            | Request::Token
            | Request::KeepAlive => {}
        }
    }
}

impl Server {
    pub(super) fn new(id: ServerId, config: ModelConfig, now: Instant) -> Self {
        Self {
            id,
            endpoint: endpoint(&id.to_string()),
            model: ServerModel::new(config.clone(), now),
            config,
            reachable: Reachable::Up,
            faults: Vec::new(),
            streams: BTreeMap::new(),
            arrivals: Vec::new(),
            dials: Vec::new(),
            loads: Vec::new(),
            crashes: 0,
            wake: None,
            paused: None,
        }
    }

    /// Where it listens.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// The address of its end of a transport.
    pub fn peer(&self) -> SocketAddr {
        // 65 536 servers have an address of their own.
        let [.., high, low] = (self.id.0 + 1).to_be_bytes();
        SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 0, high, low)), DEFAULT_PORT)
    }

    /// How many clients are registered: evicted ones are not.
    pub fn registered(&self) -> usize {
        self.model.clients().count()
    }

    /// Whether a connection id is registered.
    pub fn knows(&self, connection_id: &str) -> bool {
        self.model.is_registered(connection_id)
    }

    /// What has hit it in each second since the start of the world, as far as anything has.
    pub fn loads(&self) -> &[Load] {
        &self.loads
    }

    pub(super) fn load(&mut self, at: Duration) -> &mut Load {
        let second = at.as_secs() as usize;
        if self.loads.len() <= second {
            self.loads.resize(second + 1, Load::default());
        }
        &mut self.loads[second]
    }

    /// What stands still for as long as nobody is forgotten.
    pub(super) fn memory(&self) -> Memory {
        (self.crashes, self.model.removals())
    }

    /// Who dialled, and when; whether they got through or not.
    pub fn dials(&self) -> &[(Duration, ClientId)] {
        &self.dials
    }

    /// All requests that have arrived, in order.
    pub fn arrivals(&self) -> &[Arrival] {
        &self.arrivals
    }

    /// How many requests of a kind have arrived.
    pub fn arrived(&self, request: Request) -> usize {
        let arrivals = self.arrivals.iter();
        arrivals.filter(|one| one.request == request).count()
    }
}
