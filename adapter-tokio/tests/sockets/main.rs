//! A client against reference servers, on real sockets.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "tests on real sockets"
)]

mod abandoned;
mod channel;
mod client;
mod support;
