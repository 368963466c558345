//! The machine against the specification: each guarantee of its face and each rule of its
//! decisions, grouped along the life of a connection.
//!
//! Every test runs under the checkers of `chronicle_simulation::Machine`, on every step.

mod closing;
mod configuration;
mod fleet;
mod guarantees;
mod handshake;
mod help;
mod reconnecting;
mod selection;
mod staying_connected;
mod strategies;
