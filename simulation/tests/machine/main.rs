//! The machine against the specification: each guarantee of its face and each rule of its
//! decisions, grouped along the life of a connection.
//!
//! Every test runs under the checkers of `chronicle_simulation::Machine`, on every step.

#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot go on has found a fault"
)]
#![allow(clippy::type_complexity, reason = "tables of cases")]

mod answers;
mod clocks;
mod closing;
mod compatibility;
mod configuration;
mod counts;
mod drops;
mod first_connect;
mod fleet;
mod guarantees;
mod handshake;
mod help;
mod ladder;
mod next_best;
mod older_servers;
mod reconnecting;
mod replies;
mod reservation;
mod resolving;
mod selection;
mod staying_connected;
mod strategies;
mod tokens;
mod waits;
mod world;
