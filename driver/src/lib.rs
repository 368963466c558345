//! Performs the requests of a [`Connection`](chronicle_connection::Connection) on any async runtime.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "this crate performs I/O"
)]

mod calls;
mod dial;
mod failures;
mod frames;
mod runtime;
mod socket;
mod tls;
mod transport;

pub use chronicle_connection as core;
pub use runtime::{NoRuntime, Runtime};
pub use tls::TlsSetupError;

#[cfg(test)]
mod calls_tests;
#[cfg(test)]
mod testing;
// The adapter's runtime is the one that the tests run on; a dependency on the adapter would bring a
// second copy of this crate.
#[cfg(test)]
extern crate self as chronicle_connection_driver;
#[cfg(test)]
#[path = "../../adapter-tokio/src/runtime.rs"]
mod tokio_runtime;
#[cfg(test)]
mod transport_tests;
