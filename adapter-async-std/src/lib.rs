//! A connection to a cluster of Chronicle servers, on async-std.
//!
//! ```no_run
//! use chronicle_connection_async_std::Client;
//!
//! # async fn application() -> Result<(), Box<dyn std::error::Error>> {
//! let client = Client::connect("chronicle://node1,node2,node3").await?;
//! let channel = client.channel(); // takes any stub that tonic generates: ThingsClient::new(channel)
//! let mut events = client.events();
//! while let Some(event) = events.next().await {
//!     println!("{event}"); // disconnected from node2:35000 after 61.0 s: ...; connected to ...
//! }
//! # drop(channel);
//! # Ok(())
//! # }
//! ```
//!
//! The words are those of `chronicle-connection-tokio`, and mean the same. No part of tokio runs: no
//! reactor, no timer, no task.
//!
//! async-std is discontinued; its authors point to smol. All that this crate has of it is in one
//! file, `runtime.rs`, and `examples/smol.rs` is that file for smol.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "this crate performs I/O"
)]

mod runtime;

pub use runtime::AsyncStd;

chronicle_connection_driver::adapter!(AsyncStd);
