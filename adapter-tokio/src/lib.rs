//! A connection to a cluster of Chronicle servers, on tokio.
//!
//! ```no_run
//! use chronicle_connection_tokio::Client;
//!
//! # async fn application() -> Result<(), Box<dyn std::error::Error>> {
//! let client = Client::connect("chronicle://node1,node2,node3").await?;
//! let mut events = client.events();
//! while let Some(event) = events.next().await {
//!     println!("{event}");
//! }
//! # Ok(())
//! # }
//! ```
//!
//! [`Client::connect`] completes with the first session, or with the error that ends the attempts.
//! [`Client::builder`] sets everything that can be set; its `start` returns at once and tries for
//! ever. From then on the connection stays up: it answers keep-alives, notices within seconds when
//! its session is gone, and comes back.
//!
//! This crate brings sockets, timers and tasks of tokio, and nothing else. What is connected, when
//! and how is decided by [`chronicle_connection`](core) and performed by
//! [`chronicle_connection_driver`].
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "this crate performs I/O"
)]

mod runtime;

pub use runtime::Tokio;

chronicle_connection_driver::adapter!(Tokio);

/// Compiles what the README shows.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;
