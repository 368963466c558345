//! Clients end to end: every scenario on every runtime, against real servers on real sockets.
//!
//! What is measured is printed: `cargo test -p chronicle-connection-tests --test end_to_end --
//! --nocapture`. `CHRONICLE_LONG_TESTS=1` takes the full minute where a scenario says so.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "tests on real sockets in real time"
)]

#[macro_use]
mod scenarios;

mod matrix;
mod on_async_std;
mod on_event_loop;
mod on_tokio;
