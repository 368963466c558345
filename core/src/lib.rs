//! The connection of a client to a cluster of Chronicle servers, as a state machine without I/O.

mod config;
mod connection;
mod connection_string;
mod contract;
mod dns;
mod endpoint;
mod error;
mod event;
mod failure;
mod io;
#[cfg(feature = "model-checking")]
mod normal_form;
mod secret;
mod strategy;
mod token;

pub use config::{Backoff, ClientInfo, Config, ConfigBuilder, ConfigError, Jitter, Timing};
pub use connection::{CallMetadata, Connection, State, Stats, WaitReason};
pub use connection_string::{
    Authentication, ConnectionString, ConnectionStringBuilder, ConnectionStringError,
    ConnectionStringErrorKind, LoadBalancer, Servers,
};
pub use contract::{
    Comparison, Contract, ContractError, Incompatibility, IncompatibilityKind, ProtoFile, Schema,
    as_source_text, compare, diff, is_newer, is_version,
};
pub use dns::{DnsTransport, LookupError, LookupErrorKind, NameServerError, SrvRecord, SrvWarning};
pub use endpoint::{DEFAULT_PORT, Endpoint, Host};
pub use error::{
    AttemptError, CallError, CandidateError, CredentialsError, DropCause, FatalError, Findings,
    Incompatible, Request,
};
pub use event::{Event, Session};
pub use failure::{Code, Failure, FailureKind, Origin, Status, TlsFailure};
pub use io::{Call, Command, Id, Input, Output, Reply};
#[cfg(feature = "model-checking")]
pub use normal_form::NormalForm;
pub use secret::Secret;
pub use strategy::{Selector, Strategy};
pub use token::{Token, TokenError, TokenMachine};
