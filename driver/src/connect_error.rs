//! Why there is no connection.

use crate::{NoRuntime, TlsSetupError};
use chronicle_connection::{ConfigError, ConnectionString, ConnectionStringError, FatalError};
use std::fmt;

/// Why a client did not connect, or will not connect any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConnectError {
    /// The connection string cannot be read.
    ConnectionString(ConnectionStringError),
    /// The configuration contradicts itself, or asks for what there is not.
    Config(ConfigError),
    /// The roots or the client's certificate cannot be used.
    Tls(TlsSetupError),
    /// The system gives no random bytes.
    NoRandomness(String),
    /// The caller does not run on the runtime that is needed.
    NoRuntime(NoRuntime),
    /// The connection gave up.
    Failed(FatalError),
    /// The client is closed.
    Closed,
}

impl fmt::Display for ConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ConnectionString(error) => error.fmt(f),
            Self::Config(error) => error.fmt(f),
            Self::Tls(error) => error.fmt(f),
            Self::NoRandomness(error) => write!(f, "the system gives no random bytes: {error}"),
            Self::NoRuntime(error) => error.fmt(f),
            Self::Failed(error) => error.fmt(f),
            Self::Closed => f.write_str("the client is closed"),
        }
    }
}

impl std::error::Error for ConnectError {}

impl From<ConnectionStringError> for ConnectError {
    fn from(error: ConnectionStringError) -> Self {
        Self::ConnectionString(error)
    }
}

impl From<ConfigError> for ConnectError {
    fn from(error: ConfigError) -> Self {
        Self::Config(error)
    }
}

impl From<TlsSetupError> for ConnectError {
    fn from(error: TlsSetupError) -> Self {
        Self::Tls(error)
    }
}

impl From<NoRuntime> for ConnectError {
    fn from(error: NoRuntime) -> Self {
        Self::NoRuntime(error)
    }
}

/// A connection string, parsed or not.
pub trait IntoConnectionString {
    /// Parses what has to be parsed.
    ///
    /// # Errors
    /// [`ConnectionStringError`] with the place and the remedy.
    fn into_connection_string(self) -> Result<ConnectionString, ConnectionStringError>;
}

impl IntoConnectionString for ConnectionString {
    fn into_connection_string(self) -> Result<ConnectionString, ConnectionStringError> {
        Ok(self)
    }
}

impl IntoConnectionString for &str {
    fn into_connection_string(self) -> Result<ConnectionString, ConnectionStringError> {
        self.parse()
    }
}

impl IntoConnectionString for &String {
    fn into_connection_string(self) -> Result<ConnectionString, ConnectionStringError> {
        self.parse()
    }
}

impl IntoConnectionString for String {
    fn into_connection_string(self) -> Result<ConnectionString, ConnectionStringError> {
        self.parse()
    }
}
