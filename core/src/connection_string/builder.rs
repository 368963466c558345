//! Connection strings from typed parts.

use super::{
    ConnectionString, ConnectionStringError as Error, ConnectionStringErrorKind as Kind,
    Credentials, LoadBalancer, MAX_HOSTS, Options, Servers, host,
    options::{self, Name},
};
use crate::{Endpoint, Secret};
use std::fmt;

/// Collects a [`ConnectionString`]. Nothing is checked before [`build`](Self::build); what is set
/// twice has the later value.
///
/// ```
/// use chronicle_connection::{ConnectionString, LoadBalancer, Secret};
///
/// let string = ConnectionString::builder()
///     .server("node1")
///     .server("[2001:db8::7]:35001")
///     .credentials("app", Secret::new("a:b@c"))
///     .load_balancer(LoadBalancer::RoundRobin)
///     .build()?;
/// assert_eq!(
///     string.to_string(),
///     "chronicle://app:REDACTED@node1:35000,[2001:db8::7]:35001?loadBalancer=round-robin"
/// );
/// # Ok::<(), chronicle_connection::ConnectionStringError>(())
/// ```
#[derive(Clone, Default)]
pub struct ConnectionStringBuilder {
    servers: Vec<String>,
    srv: Option<String>,
    srv_name_server: Option<String>,
    credentials: Option<Credentials>,
    options: Options,
}

/// Shows nothing: what stands where a host should may be anything before it is checked.
impl fmt::Debug for ConnectionStringBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ConnectionStringBuilder(..)")
    }
}

impl ConnectionStringBuilder {
    /// Adds a server, written `host` or `host:port`, IPv6 in brackets.
    pub fn server(mut self, server: impl Into<String>) -> Self {
        self.servers.push(server.into());
        self
    }

    /// Adds a server.
    pub fn endpoint(self, endpoint: &Endpoint) -> Self {
        self.server(endpoint.to_string())
    }

    /// Takes the servers from the SRV records of this name instead.
    pub fn srv(mut self, name: impl Into<String>) -> Self {
        self.srv = Some(name.into());
        self
    }

    /// Authenticates by client credentials.
    pub fn credentials(mut self, id: impl Into<String>, secret: Secret) -> Self {
        self.credentials = Some(Credentials {
            id: id.into(),
            secret,
        });
        self
    }

    /// `apiKey`
    pub fn api_key(mut self, key: Secret) -> Self {
        self.options.api_key = Some(key);
        self
    }

    /// `auth=none`
    pub fn no_authentication(mut self) -> Self {
        self.options.no_authentication = true;
        self
    }

    /// `skipTlsValidation`
    pub fn skip_tls_validation(mut self, skip: bool) -> Self {
        self.options.skip_tls_validation = Some(skip);
        self
    }

    /// `loadBalancer`
    pub fn load_balancer(mut self, load_balancer: LoadBalancer) -> Self {
        self.options.load_balancer = Some(load_balancer);
        self
    }

    /// `srvNameServer`, written as in a connection string.
    pub fn srv_name_server(mut self, server: impl Into<String>) -> Self {
        self.srv_name_server = Some(server.into());
        self
    }

    /// `certificatePath`
    pub fn certificate_path(mut self, path: impl Into<String>) -> Self {
        self.options.certificate_path = Some(path.into());
        self
    }

    /// `certificatePassword`
    pub fn certificate_password(mut self, password: Secret) -> Self {
        self.options.certificate_password = Some(password);
        self
    }

    /// `skipCompatibilityCheck`
    pub fn skip_compatibility_check(mut self, skip: bool) -> Self {
        self.options.skip_compatibility_check = Some(skip);
        self
    }

    /// Checks everything.
    ///
    /// # Errors
    /// [`ConnectionStringError`](Error) as from parsing, without a position.
    pub fn build(self) -> Result<ConnectionString, Error> {
        let mut options = self.options;
        if let Some(server) = &self.srv_name_server {
            options.srv_name_server = Some(host::name_server(server)?);
        }
        if let Some(key) = &options.api_key {
            check_text(key.expose(), Kind::MissingValue(Name::ApiKey.as_str()))?;
            options::check_api_key(key)?;
        }
        if let Some(path) = &options.certificate_path {
            check_text(path, Kind::MissingValue(Name::CertificatePath.as_str()))?;
        }
        if let Some(password) = &options.certificate_password {
            let empty = Kind::MissingValue(Name::CertificatePassword.as_str());
            check_text(password.expose(), empty)?;
        }
        if let Some(Credentials { id, secret }) = &self.credentials {
            check_text(id, Kind::IncompleteCredentials)?;
            check_text(secret.expose(), Kind::IncompleteCredentials)?;
        }
        let string = ConnectionString {
            servers: servers(&self.servers, self.srv.as_deref())?,
            credentials: self.credentials,
            options,
        };
        string.check().map_err(|(_, kind)| kind)?;
        Ok(string)
    }
}

fn servers(list: &[String], srv: Option<&str>) -> Result<Servers, Kind> {
    if let Some(name) = srv {
        if !list.is_empty() {
            return Err(Kind::ServersAndSrv);
        }
        return host::srv_name(name)
            .map(Servers::Srv)
            .map_err(|(_, kind)| kind);
    }
    if list.is_empty() {
        return Err(Kind::EmptyHost);
    }
    if list.len() > MAX_HOSTS {
        return Err(Kind::TooManyHosts);
    }
    let mut servers = Vec::new();
    for text in list {
        let server = host::server(text).map_err(|(_, kind)| kind)?;
        if !servers.contains(&server) {
            servers.push(server);
        }
    }
    Ok(Servers::List(servers))
}

fn check_text(text: &str, empty: Kind) -> Result<(), Kind> {
    if text.is_empty() {
        return Err(empty);
    }
    if text.contains(char::is_control) {
        return Err(Kind::ControlCharacter);
    }
    Ok(())
}
