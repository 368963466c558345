//! The text that names servers, credentials and options (S1, "Server support").

mod builder;
mod error;
mod host;
mod options;
mod parse;
mod print;

pub use builder::ConnectionStringBuilder;
pub use error::{ConnectionStringError, ConnectionStringErrorKind};
pub(crate) use host::{SRV_PREFIX, host_name};

use crate::{Endpoint, Host, Secret, endpoint::DEFAULT_PORT};
use options::{Name, Options};
use std::str::FromStr;
use zeroize::Zeroizing;

/// A parsed connection string: which servers, which credentials, which options.
///
/// ```text
/// chronicle://[id:secret@]host[:port][,host[:port]...][/][?option=value[&option=value...]]
/// chronicle+srv://[id:secret@]name[/][?option=value[&option=value...]]
/// ```
///
/// ```
/// use chronicle_connection::{ConnectionString, Servers};
///
/// let string: ConnectionString = "chronicle://node1,node2:35001?loadBalancer=random".parse()?;
/// assert!(matches!(string.servers(), Servers::List(list) if list.len() == 2));
/// assert_eq!(
///     string.to_string(),
///     "chronicle://node1:35000,node2:35001?loadBalancer=random"
/// );
/// # Ok::<(), chronicle_connection::ConnectionStringError>(())
/// ```
///
/// # Grammar
/// - Scheme and option names are taken in any ASCII case, and so are `true`, `false` and `none`;
///   the names of strategies are written as below.
/// - A host is a DNS name, an IPv4 address or an IPv6 address in brackets. A name is folded to
///   lower case and loses one trailing dot; `192.0.2.1.` is the address without the dot. A name
///   outside ASCII is written in its A-label form (`xn--...`). A name whose last label is a number
///   (`256.0.0.1`, `10.1`) is refused, because resolvers take it for an address.
/// - The port is 35000 unless given. The same server written twice counts once; at most 64 are
///   taken.
/// - `chronicle+srv` takes exactly one DNS name, without a port.
/// - The authority ends at the first `/` or `?`. A path other than `/` and a fragment are refused.
/// - Percent-encoding is decoded once, after splitting; a `+` is a plus. In id and secret `/`,
///   `?`, `#`, `@` and `,` must be percent-encoded; a raw `:` in the secret is fine. In values `&`
///   and `#` must be.
/// - White space and control characters are refused, and so are encoded control characters.
/// - The whole has at most 64 KiB.
///
/// # Options
/// | Name | Value |
/// |---|---|
/// | `apiKey` | authenticates by this key: visible ASCII, as it travels in a header |
/// | `auth` | `none`: no authentication, said explicitly; excludes credentials and `apiKey` |
/// | `skipTlsValidation` | `true` accepts any server certificate; `false` by default |
/// | `loadBalancer` | `least-connections` (default), `round-robin` or `random` |
/// | `srvNameServer` | `host[:port]` of the name server for `chronicle+srv`, port 53 by default; IPv6 alone needs no brackets; refused with `chronicle` |
/// | `certificatePath` | the file of the client's certificate |
/// | `certificatePassword` | the password of that file |
/// | `skipCompatibilityCheck` | `true` connects without proof of a common contract |
///
/// An option without a value, one that is given twice and one that is not in the table are errors;
/// [`parse_lenient`](Self::parse_lenient) keeps the last kind.
///
/// # Secrets
/// `Display` and `Debug` show the client id but neither secrets nor unknown options.
/// [`to_string_with_secrets`](Self::to_string_with_secrets) shows all and parses back to the same
/// value.
#[derive(Clone, PartialEq, Eq)]
pub struct ConnectionString {
    servers: Servers,
    credentials: Option<Credentials>,
    options: Options,
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
    /// By a key in the metadata of each call. It is never empty and consists of visible ASCII.
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
    /// Parses a connection string; the same as `text.parse()`.
    ///
    /// # Errors
    /// [`ConnectionStringError`], which tells what is wrong, where, and what to do.
    pub fn parse(text: &str) -> Result<Self, ConnectionStringError> {
        parse::parse(text, parse::UnknownOptions::Refuse)
    }

    /// Parses a connection string that may have options which this version does not know. They
    /// end up in [`unknown_options`](Self::unknown_options).
    ///
    /// # Errors
    /// As [`parse`](Self::parse), but for unknown options.
    pub fn parse_lenient(text: &str) -> Result<Self, ConnectionStringError> {
        parse::parse(text, parse::UnknownOptions::Keep)
    }

    /// Builds a connection string from typed parts.
    pub fn builder() -> ConnectionStringBuilder {
        ConnectionStringBuilder::default()
    }

    /// The development server on this machine, with its built-in credentials and without
    /// validation of its self-signed certificate (S1, "TLS"). Nothing falls back to it.
    pub fn development() -> Self {
        Self {
            servers: Servers::List(vec![Endpoint::new(
                Host::Name("localhost".to_owned()),
                DEFAULT_PORT,
            )]),
            credentials: Some(Credentials {
                id: "chronicle-dev-client".to_owned(),
                secret: Secret::new("chronicle-dev-secret"),
            }),
            options: Options {
                skip_tls_validation: Some(true),
                ..Options::default()
            },
        }
    }

    /// Where the servers come from.
    pub fn servers(&self) -> &Servers {
        &self.servers
    }

    /// How the client proves who it is.
    pub fn authentication(&self) -> Authentication<'_> {
        match (&self.credentials, &self.options.api_key) {
            (Some(Credentials { id, secret }), _) => {
                Authentication::ClientCredentials { id, secret }
            }
            (None, Some(key)) => Authentication::ApiKey(key),
            (None, None) => Authentication::None,
        }
    }

    /// `loadBalancer`, where given.
    pub fn load_balancer(&self) -> Option<LoadBalancer> {
        self.options.load_balancer
    }

    /// `skipTlsValidation`, where given.
    pub fn skip_tls_validation(&self) -> Option<bool> {
        self.options.skip_tls_validation
    }

    /// `skipCompatibilityCheck`, where given.
    pub fn skip_compatibility_check(&self) -> Option<bool> {
        self.options.skip_compatibility_check
    }

    /// `srvNameServer`, where given. Its port is 53 unless given.
    pub fn srv_name_server(&self) -> Option<&Endpoint> {
        self.options.srv_name_server.as_ref()
    }

    /// `certificatePath`, where given.
    pub fn certificate_path(&self) -> Option<&str> {
        self.options.certificate_path.as_deref()
    }

    /// `certificatePassword`, where given.
    pub fn certificate_password(&self) -> Option<&Secret> {
        self.options.certificate_password.as_ref()
    }

    /// The options that [`parse_lenient`](Self::parse_lenient) did not know, decoded and in order.
    /// Their values may be secret for all we know.
    pub fn unknown_options(&self) -> impl Iterator<Item = (&str, &Secret)> {
        let unknown = self.options.unknown.iter();
        unknown.map(|(name, value)| (name.as_str(), value))
    }

    /// The whole connection string, **secrets included**, which parses to this very value (with
    /// [`parse_lenient`](Self::parse_lenient) where there are unknown options).
    pub fn to_string_with_secrets(&self) -> Zeroizing<String> {
        print::with_secrets(self)
    }

    /// What no part can tell alone; the option to blame, if it is one, comes with the error.
    fn check(&self) -> Result<(), (Option<Name>, ConnectionStringErrorKind)> {
        let options = &self.options;
        if self.credentials.is_some() && options.api_key.is_some() {
            return Err((
                Some(Name::ApiKey),
                ConnectionStringErrorKind::CredentialsAndApiKey,
            ));
        }
        if options.no_authentication && (self.credentials.is_some() || options.api_key.is_some()) {
            return Err((
                Some(Name::Auth),
                ConnectionStringErrorKind::AuthenticationAndNone,
            ));
        }
        if options.srv_name_server.is_some() && matches!(self.servers, Servers::List(_)) {
            return Err((
                Some(Name::SrvNameServer),
                ConnectionStringErrorKind::NameServerWithoutSrv,
            ));
        }
        // Or it would not parse again: printing adds ports and escapes.
        if print::length(self) > MAX_LENGTH {
            return Err((None, ConnectionStringErrorKind::TooLong));
        }
        Ok(())
    }
}

impl FromStr for ConnectionString {
    type Err = ConnectionStringError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::parse(text)
    }
}

#[derive(Clone, PartialEq, Eq)]
struct Credentials {
    id: String,
    secret: Secret,
}

const MAX_HOSTS: usize = 64;
const MAX_LENGTH: usize = 64 * 1024;
