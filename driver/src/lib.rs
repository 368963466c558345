//! Performs the requests of a [`Connection`](chronicle_connection::Connection) on any async runtime.
//!
//! The connection decides what happens; this crate makes it happen, and decides nothing. An adapter
//! brings a runtime by implementing [`Runtime`], a few small functions, and has its words from
//! [`adapter!`]. Everything else is here, once:
//!
//! - one task for each client, which owns the machine, one timer and every request under way;
//! - names, addresses and sockets (RFC 8305), TLS, HTTP/2, and gRPC read off its frames;
//! - the transports of application calls, apart from that of the session.
//!
//! tokio is used for its channels, and for the traits that h2 wants of a socket: for none of its
//! sockets, timers or tasks.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "this crate performs I/O"
)]

mod adapter;
mod body;
mod builder;
mod calls;
mod channel;
mod client;
mod client_certificate;
mod connect_error;
mod deadline;
mod dial;
mod dns;
mod driver;
mod events;
mod failures;
mod frames;
mod http2;
mod pool;
mod resolve;
mod retry;
mod runtime;
mod socket;
mod suspend;
mod tls;
mod transport;

pub use builder::Builder;
pub use channel::Channel;
pub use chronicle_connection as core;
pub use client::Client;
pub use connect_error::{ConnectError, IntoConnectionString};
pub use events::{Events, Notice};
pub use retry::Retryable;
pub use runtime::{NoRuntime, Runtime};
pub use tls::TlsSetupError;

#[cfg(test)]
mod calls_tests;
#[cfg(test)]
mod channel_tests;
#[cfg(test)]
mod dns_tests;
#[cfg(test)]
mod driver_tests;
#[cfg(test)]
mod pool_tests;
#[cfg(test)]
mod testing;
// The adapter's runtime is the one that the tests run on; a dependency on the adapter would bring a
// second copy of this crate.
#[cfg(test)]
extern crate self as chronicle_connection_driver;
#[cfg(test)]
#[path = "../../adapter-tokio/src/runtime.rs"]
#[allow(unreachable_pub, reason = "public where it belongs")]
mod tokio_runtime;
#[cfg(test)]
mod transport_tests;
