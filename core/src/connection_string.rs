//! The text that names servers, credentials and options (S1, "Server support").

use crate::Endpoint;

/// A parsed connection string.
#[derive(Clone, PartialEq, Eq)]
pub struct ConnectionString {
    servers: Servers,
}

impl std::fmt::Debug for ConnectionString {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ConnectionString")
    }
}

/// Where the servers come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Servers {
    /// `chronicle://`: this list, without duplicates.
    List(Vec<Endpoint>),
    /// `chronicle+srv://`: the SRV records of this name.
    Srv(String),
}

/// How a client proves who it is; computed from what the string holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Authentication<'a> {
    /// Not at all.
    None,
    /// By a token that is had for an id and a secret.
    ClientCredentials {
        /// The client id.
        id: &'a str,
        /// The client secret.
        secret: &'a Secret,
    },
    /// By a key in the metadata of each call.
    ApiKey(&'a Secret),
}

/// The strategies that a connection string can name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoadBalancer {
    /// `least-connections`
    LeastConnections,
    /// `round-robin`
    RoundRobin,
    /// `random`
    Random,
}

impl ConnectionString {
    /// Where the servers come from.
    pub fn servers(&self) -> &Servers {
        &self.servers
    }
    /// How the client proves who it is.
    pub fn authentication(&self) -> Authentication<'_> {
        Authentication::None
    }
    /// `loadBalancer`
    pub fn load_balancer(&self) -> Option<LoadBalancer> {
        None
    }
    /// `skipTlsValidation`
    pub fn skip_tls_validation(&self) -> Option<bool> {
        None
    }
    /// `skipCompatibilityCheck`
    pub fn skip_compatibility_check(&self) -> Option<bool> {
        None
    }
    /// `certificatePath`
    pub fn certificate_path(&self) -> Option<&str> {
        None
    }
}

impl std::str::FromStr for ConnectionString {
    type Err = std::convert::Infallible;

    fn from_str(_text: &str) -> Result<Self, Self::Err> {
        Ok(Self {
            servers: Servers::List(Vec::new()),
        })
    }
}

/// A secret: zeroized when dropped, never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(zeroize::Zeroizing<String>);

impl Secret {
    /// The secret itself.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret(..)")
    }
}
