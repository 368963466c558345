//! The other side: a model of a Chronicle server's connection handling, and a real server around it.
//!
//! [`model`] is the server without I/O. [`Server`] puts it on a TLS port, with faults to switch on
//! while it runs, and [`Cluster`] is several of them, with a [`DnsServer`] that knows them.
//!
//! ```
//! use chronicle_reference_server::{Answer, Cluster, paths};
//!
//! # tokio::runtime::Runtime::new()?.block_on(async {
//! let mut cluster = Cluster::start(3).await?;
//! println!("{}", cluster.connection_string());
//!
//! let first = &mut cluster.servers_mut()[0];
//! first.faults().set(|faults| faults.on(paths::COUNT).answer = Some(Answer::Hang));
//! first.kill().await;
//! first.restart().await?;
//! # std::io::Result::Ok(())
//! # })?;
//! # std::io::Result::Ok(())
//! ```

mod console;
mod dns;
pub mod model;
mod server;

pub use console::{Console, Said, version};
pub use dns::{DnsAnswer, DnsFaults, DnsServer, DnsStats};
pub use server::{
    Alpn, Answer, Cluster, Fault, Faults, FaultsHandle, Server, ServerOptions, Stats, TlsVersions,
};

/// What an application calls on a reference server: messages, client and server trait of the
/// package `chronicle.reference`.
#[allow(missing_docs, reason = "generated")]
pub mod echo {
    include!("generated/echo.rs");
}

/// Paths that a server knows; faults and statistics go by them.
pub mod paths {
    pub use chronicle_connection_proto::paths::*;

    /// `GET`: how many clients the server has.
    pub const COUNT: &str = "/connections/count";
    /// `POST`: a place among them.
    pub const RESERVE: &str = "/connections/reserve";
    /// `POST`: a token for client credentials.
    pub const TOKEN: &str = "/connect/token";
    /// Unary: sends a payload back.
    pub const ECHO_UNARY: &str = "/chronicle.reference.Echo/Unary";
    /// Server stream: sends payloads.
    pub const ECHO_STREAM: &str = "/chronicle.reference.Echo/Stream";
    /// Bidirectional stream: sends payloads back.
    pub const ECHO_DUPLEX: &str = "/chronicle.reference.Echo/Duplex";
}
