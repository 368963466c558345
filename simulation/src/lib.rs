//! A world in virtual time: connections, server models, a network between them, and checkers.
//!
//! - [`Machine`] is a [`Connection`](chronicle_connection::Connection) with every checker around
//!   it: whatever happens to a machine in this crate is checked, with nothing to switch on.
//! - [`Hand`] holds one machine and answers its outputs one by one, for tests that need exact
//!   control of each reply.
//! - [`World`] holds any number of machines and server models, a network with latency, and the
//!   switches of its faults. Nothing waits: time jumps to the next thing that happens.
//! - [`swarm`] draws whole lives of clusters from seeds, plays them, and makes small what breaks a
//!   rule.
//! - [`fleet`] fills a world with clients and servers, plays a scenario and gives a report, plain data
//!   that [`plot`] draws.
//! - [`Exploration`] gives one machine every order of inputs, breadth first, with states told apart
//!   by their [normal form](chronicle_connection::NormalForm): what it finds is a shortest way to
//!   break a rule. `cargo run --release -p chronicle-simulation --example explore` runs all of them.
//!
//! All that is random comes from a seed, so a seed replays a failure, and [`replay`] plays each
//! scenario twice to prove it.

mod explore;
pub mod fleet;
mod hand;
mod machine;
pub mod plot;
mod plural;
mod setup;
pub mod swarm;
mod trace;
mod wire;
mod world;

pub use explore::{
    Counterexample, Draws, Exploration, Path, Progress, Report, Start, explorations,
};
pub use hand::{DnsQuery, Hand};
pub use machine::{Checks, Machine, Violation};
pub use plural::plural;
pub use setup::Setup;
pub use trace::Trace;
pub use wire::{
    compatible, connection_id_of, endpoint, http, id_of, incompatible, keep_alive, ok, request_of,
    status, transport_of,
};
pub use world::{
    Arrival, Client, ClientId, Disorder, DnsAnswer, DnsFaults, Fault, Forgery, Host, Latency, Load,
    NameServerId, Network, PartitionId, Reachable, Recording, Server, ServerId, SessionChange,
    Told, World, replay,
};
