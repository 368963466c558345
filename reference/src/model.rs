//! What a Chronicle server keeps about its clients, without I/O.
//!
//! [`ServerModel`] counts clients and reservations, pushes keep-alives, and evicts clients that do
//! not answer. Whoever drives it calls a method for each request, and then, as with the client's
//! machine: calls [`poll_push`](ServerModel::poll_push) until it gives nothing, and again at
//! [`poll_timeout`](ServerModel::poll_timeout).

mod config;
mod identity;
mod serving;
#[cfg(test)]
mod tests;

pub use config::{Age, FirstKeepAlive, ModelConfig, Verdict};
pub use identity::Authentication;

use crate::paths;
use chronicle_connection::{Code, Status};
use chronicle_connection_proto::{
    clients::{
        CompatibilityRequest, CompatibilityResponse, ConnectRequest, ConnectionKeepAlive,
        DescriptorSetResponse,
    },
    host::ServerVersionInfo,
};
use http::{HeaderMap, Response};
use identity::Tokens;
use prost::Message as _;
use prost_types::FileDescriptorSet;
use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    time::{Duration, Instant},
};

/// Names one `Connect` stream of a server. Keys rise and are never used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamKey(u64);

/// One server, as its clients can tell.
///
/// `now` must not run backwards from one call to the next.
#[derive(Debug, Clone)]
pub struct ServerModel {
    config: ModelConfig,
    /// By connection id.
    clients: BTreeMap<String, Client>,
    streams: BTreeMap<StreamKey, Stream>,
    /// When each stream is due; one entry for each of `streams`.
    due: BTreeSet<(Instant, StreamKey)>,
    /// When each reservation was made, oldest first.
    reservations: VecDeque<Instant>,
    next_check: Instant,
    next_key: u64,
    tokens: Tokens,
}

/// A registration.
#[derive(Debug, Clone)]
struct Client {
    /// The stream that registered it last.
    stream: StreamKey,
    last_seen: Instant,
    has_debugger: bool,
}

/// An open `Connect` stream. It outlives the eviction and the replacement of its registration.
#[derive(Debug, Clone)]
struct Stream {
    connection_id: String,
    next_push: Instant,
}

impl ServerModel {
    /// A server without clients that starts now.
    pub fn new(config: ModelConfig, now: Instant) -> Self {
        Self {
            next_check: now + at_least_a_millisecond(config.evict_check),
            config,
            clients: BTreeMap::new(),
            streams: BTreeMap::new(),
            due: BTreeSet::new(),
            reservations: VecDeque::new(),
            next_key: 0,
            tokens: Tokens::default(),
        }
    }

    /// How the server behaves. What is changed here counts from the next use on.
    pub fn config_mut(&mut self) -> &mut ModelConfig {
        &mut self.config
    }

    /// `GET /connections/count`: clients that are not evicted, and unexpired reservations, unless
    /// [`ModelConfig::counts_reservations`] says otherwise.
    pub fn count(&mut self, now: Instant) -> u64 {
        self.advance(now);
        let reserved = match self.config.counts_reservations {
            true => self.reservations.len(),
            false => 0,
        };
        (self.clients.len() + reserved) as u64
    }

    /// `POST /connections/reserve`
    pub fn reserve(&mut self, now: Instant) {
        self.advance(now);
        self.reservations.push_back(now);
    }

    /// `POST /connect/token` with this form.
    pub fn token(&mut self, now: Instant, form: &[u8]) -> Response<String> {
        let known = self.config.authentication.as_ref();
        self.tokens.answer(now, known, form)
    }

    /// Forgets every token that was given out.
    pub fn reset_tokens(&mut self) {
        self.tokens.reset();
    }

    /// Whether a request with these headers may go to this path. One that may not is answered with
    /// HTTP 401.
    pub fn admits(&self, now: Instant, path: &str, headers: &HeaderMap) -> bool {
        let Some(known) = &self.config.authentication else {
            return true;
        };
        let is_anonymous = match path {
            paths::COUNT | paths::RESERVE | paths::TOKEN => true,
            paths::CHECK_COMPATIBILITY | paths::GET_DESCRIPTOR_SET => known.anonymous_check,
            _ => false,
        };
        is_anonymous || self.tokens.admit(now, known, headers)
    }

    /// `Connect`: registers a client in place of one with the same id, and clears the oldest
    /// reservation, whoever made it. From here on keep-alives are pushed on the new stream.
    pub fn connect(&mut self, now: Instant, request: &ConnectRequest) -> StreamKey {
        self.advance(now);
        self.reservations.pop_front();
        let stream = StreamKey(self.next_key);
        self.next_key += 1;
        let connection_id = &request.connection_id;
        self.clients.insert(
            connection_id.clone(),
            Client {
                stream,
                last_seen: now,
                has_debugger: request.is_running_with_debugger,
            },
        );
        let next_push = match self.config.first_keep_alive {
            FirstKeepAlive::AtOnce => now,
            FirstKeepAlive::AfterInterval => now + self.interval(),
        };
        self.due.insert((next_push, stream));
        self.streams.insert(
            stream,
            Stream {
                connection_id: connection_id.clone(),
                next_push,
            },
        );
        stream
    }

    /// A `Connect` stream has ended: its registration goes, unless a later one took its place.
    pub fn disconnect(&mut self, now: Instant, stream: StreamKey) {
        self.advance(now);
        let Some(ended) = self.streams.remove(&stream) else {
            return;
        };
        self.due.remove(&(ended.next_push, stream));
        let registered = self.clients.get(&ended.connection_id);
        if registered.is_some_and(|client| client.stream == stream) {
            self.clients.remove(&ended.connection_id);
        }
    }

    /// The unary `ConnectionKeepAlive`. It succeeds for evicted and unknown ids as well, and does
    /// not bring them back.
    pub fn keep_alive(&mut self, now: Instant, answer: &ConnectionKeepAlive) {
        self.advance(now);
        if let Some(client) = self.clients.get_mut(&answer.connection_id) {
            client.last_seen = now;
        }
    }

    /// `CheckCompatibility`: what [`ModelConfig::verdict`] says or finds, for a descriptor set that can
    /// be read.
    ///
    /// # Errors
    /// UNIMPLEMENTED where the server is older than the method.
    pub fn check_compatibility(
        &self,
        request: &CompatibilityRequest,
    ) -> Result<CompatibilityResponse, Status> {
        match self.config.age {
            Age::Current => {}
            Age::WithoutCheck | Age::WithoutCheckAndDescriptors => return Err(unimplemented()),
        }
        let is_readable = FileDescriptorSet::decode(request.descriptor_set.as_slice()).is_ok();
        let verdict = match is_readable {
            true => &self.config.verdict,
            false => &Verdict::Unreadable,
        };
        let (is_compatible, incompatibilities) = match verdict {
            Verdict::Compatible => (true, vec![]),
            Verdict::CompatibleBut(findings) => (true, findings.clone()),
            Verdict::Incompatible(findings) => (false, findings.clone()),
            Verdict::Unreadable => (false, vec![UNREADABLE.to_owned()]),
            Verdict::Computed(own) => {
                let findings = serving::judge(request, own, &self.config);
                (findings.is_empty(), findings)
            }
        };
        Ok(CompatibilityResponse {
            is_compatible,
            incompatibilities,
            server_version: self.config.version.clone(),
            server_protocol_version: self.config.protocol_version.clone(),
            capabilities: vec![],
        })
    }

    /// `GetDescriptorSet`: what [`ModelConfig::schema`] says.
    ///
    /// # Errors
    /// UNIMPLEMENTED where the server is older than the method.
    pub fn descriptor_set(&self) -> Result<DescriptorSetResponse, Status> {
        match self.config.age {
            Age::Current | Age::WithoutCheck => Ok(DescriptorSetResponse {
                schema_definition: self.config.schema.clone(),
            }),
            Age::WithoutCheckAndDescriptors => Err(unimplemented()),
        }
    }

    /// `GetVersionInfo`: what [`ModelConfig::version`] says.
    ///
    /// # Errors
    /// UNIMPLEMENTED where the server does not tell its version.
    pub fn version_info(&self) -> Result<ServerVersionInfo, Status> {
        if !self.config.tells_version {
            return Err(unimplemented());
        }
        Ok(ServerVersionInfo {
            version: self.config.version.clone(),
            commit_sha: String::new(),
        })
    }

    /// The next keep-alive to send, if one is due. A server that was not polled for a while sends
    /// one for each stream, not one for each interval.
    pub fn poll_push(&mut self, now: Instant) -> Option<(StreamKey, ConnectionKeepAlive)> {
        self.advance(now);
        let interval = self.interval();
        while let Some(&(due, key)) = self.due.first()
            && due <= now
        {
            self.due.pop_first();
            let Some(stream) = self.streams.get_mut(&key) else {
                continue;
            };
            stream.next_push = match due + interval {
                next if next <= now => now + interval,
                next => next,
            };
            self.due.insert((stream.next_push, key));
            if !self.config.silent {
                let connection_id = stream.connection_id.clone();
                return Some((key, ConnectionKeepAlive { connection_id }));
            }
        }
        None
    }

    /// When to call [`poll_push`](Self::poll_push) at the latest: for the next keep-alive, or for
    /// the next look at who has not been seen.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let push = self.due.first().map(|&(due, _)| due);
        let check = (!self.clients.is_empty()).then_some(self.next_check);
        push.into_iter().chain(check).min()
    }

    /// The connection ids of registered clients. Evicted ones are not among them.
    pub fn clients(&self) -> impl Iterator<Item = &str> {
        self.clients.keys().map(String::as_str)
    }

    /// Whether a connection id is registered, and not evicted.
    pub fn is_registered(&self, connection_id: &str) -> bool {
        self.clients.contains_key(connection_id)
    }

    /// Does what time alone does. Each look for unseen clients is taken as of its own instant, so
    /// that a late call evicts nobody early.
    fn advance(&mut self, now: Instant) {
        while self.next_check <= now {
            let (check, evict_after) = (self.next_check, self.config.evict_after);
            self.clients.retain(|_, client| {
                client.has_debugger || check.duration_since(client.last_seen) < evict_after
            });
            self.next_check += at_least_a_millisecond(self.config.evict_check);
        }
        let life = self.config.reservation_life;
        while let Some(&made) = self.reservations.front()
            && now.duration_since(made) >= life
        {
            self.reservations.pop_front();
        }
    }

    fn interval(&self) -> Duration {
        at_least_a_millisecond(self.config.keep_alive_interval)
    }
}

/// A period of zero would have no end.
fn at_least_a_millisecond(period: Duration) -> Duration {
    period.max(Duration::from_millis(1))
}

fn unimplemented() -> Status {
    Status::grpc(Code::Unimplemented, "Method is unimplemented.")
}

const UNREADABLE: &str = "The descriptor set of the client could not be read.";
