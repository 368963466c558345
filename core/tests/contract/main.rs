//! Contracts: read, compared, and handed in by applications.

#![allow(
    clippy::disallowed_methods,
    reason = "these tests read files that the environment names"
)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a failure is a failed test"
)]

mod application;
mod compilers;
#[path = "../../../fuzz/src/contract.rs"]
mod fuzzed;
mod judging;
mod malformed;
mod older_server;
mod properties;
mod published;
mod text;
mod written;
mod written_properties;
