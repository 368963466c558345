//! How a server model behaves.

use super::Authentication;
use chronicle_connection::Schema;
use std::{sync::Arc, time::Duration};

/// How a server behaves; `Default` is a current server with the defaults of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelConfig {
    /// Between two keep-alives on a stream: 1 s.
    pub keep_alive_interval: Duration,
    /// When the first one is sent: at once.
    pub first_keep_alive: FirstKeepAlive,
    /// Keep-alives are due and not sent, while streams stay open: false.
    pub silent: bool,
    /// A client that was not seen for this long is evicted at the next look: 5 s.
    pub evict_after: Duration,
    /// Between two looks for clients to evict: 2 s.
    pub evict_check: Duration,
    /// How long a reservation counts: 30 s.
    pub reservation_life: Duration,
    /// Whether reservations count: yes. A server that only counts clients takes them all the same.
    pub counts_reservations: bool,
    /// Which methods the server knows: all.
    pub age: Age,
    /// What a compatibility check finds: nothing.
    pub verdict: Verdict,
    /// Whom the server knows: `None` asks nobody, which is the default.
    pub authentication: Option<Authentication>,
    /// The version that the server tells.
    pub version: String,
    /// Whether `GetVersionInfo` is there: yes.
    pub tells_version: bool,
    /// What `GetDescriptorSet` returns: the connection service as proto source text, the way
    /// servers print it.
    pub schema: String,
    /// The version of its contract that the server tells.
    pub protocol_version: String,
}

impl Default for ModelConfig {
    fn default() -> Self {
        Self {
            keep_alive_interval: Duration::from_secs(1),
            first_keep_alive: FirstKeepAlive::AtOnce,
            silent: false,
            evict_after: Duration::from_secs(5),
            evict_check: Duration::from_secs(2),
            reservation_life: Duration::from_secs(30),
            counts_reservations: true,
            age: Age::Current,
            verdict: Verdict::Compatible,
            authentication: None,
            version: "18.5.0".to_owned(),
            tells_version: true,
            schema: include_str!("schema.txt").to_owned(),
            protocol_version: "18.5.0".to_owned(),
        }
    }
}

/// When the first keep-alive of a stream is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FirstKeepAlive {
    /// As newer servers do.
    AtOnce,
    /// As older servers do.
    AfterInterval,
}

/// Which methods a server knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Age {
    /// 17.x and later.
    Current,
    /// Lacks `CheckCompatibility`.
    WithoutCheck,
    /// Lacks `CheckCompatibility` and `GetDescriptorSet`.
    WithoutCheckAndDescriptors,
}

/// What a compatibility check finds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing.
    Compatible,
    /// The flag says yes, and there is a list nevertheless.
    CompatibleBut(Vec<String>),
    /// The flag says no. An empty list is a no without a reason.
    Incompatible(Vec<String>),
    /// The flag says no, because the client's descriptor set cannot be read.
    Unreadable,
    /// What there is to find between the client's contract and this one of the server.
    Computed(Arc<Schema>),
}
