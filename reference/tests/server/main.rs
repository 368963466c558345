//! A server on real sockets, as a plain client sees it.

#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "tests in real time"
)]

mod client;
mod endpoints;
mod faults;
mod identity;

use chronicle_reference_server::{Server, ServerOptions, model::ModelConfig};
use std::time::Duration;

async fn start() -> Server {
    Server::start(ServerOptions::default()).await.unwrap()
}

/// A server with keep-alives twenty times as fast, and no eviction for as long as a test takes.
async fn quick() -> Server {
    with_eviction_after(Duration::from_secs(60)).await
}

/// The same, but with eviction.
async fn with_eviction_after(evict_after: Duration) -> Server {
    let model = ModelConfig {
        keep_alive_interval: INTERVAL,
        evict_check: 2 * INTERVAL,
        evict_after,
        ..ModelConfig::default()
    };
    let options = ServerOptions {
        model,
        ..ServerOptions::default()
    };
    Server::start(options).await.unwrap()
}

const INTERVAL: Duration = Duration::from_millis(50);
