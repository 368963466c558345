//! What can be wrong with a connection string.

use super::{MAX_HOSTS, options::Name};
use std::fmt;

/// Why a text is no connection string, or parts make none.
///
/// It never repeats anything of the text: a misplaced delimiter can turn any part of it into a
/// piece of a secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConnectionStringError {
    position: Option<usize>,
    kind: ConnectionStringErrorKind,
}

impl ConnectionStringError {
    pub(super) fn at(position: usize, kind: ConnectionStringErrorKind) -> Self {
        Self {
            position: Some(position),
            kind,
        }
    }

    /// The offset in bytes at which the offending part of the text begins, 0 where it is the text
    /// as a whole; `None` from the builder, where there is no text.
    pub fn position(&self) -> Option<usize> {
        self.position
    }

    /// What is wrong.
    pub fn kind(&self) -> ConnectionStringErrorKind {
        self.kind
    }
}

impl From<ConnectionStringErrorKind> for ConnectionStringError {
    fn from(kind: ConnectionStringErrorKind) -> Self {
        Self {
            position: None,
            kind,
        }
    }
}

impl fmt::Display for ConnectionStringError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.position {
            Some(position) => write!(f, "connection string, byte {position}: {}", self.kind),
            None => write!(f, "connection string: {}", self.kind),
        }
    }
}

impl std::error::Error for ConnectionStringError {}

/// The closed list of what can be wrong with a connection string.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConnectionStringErrorKind {
    /// The text, given or percent-encoded throughout, has more than 64 KiB.
    TooLong,
    /// White space or a control character stands in the text.
    WhiteSpace,
    /// The text starts with neither `chronicle://` nor `chronicle+srv://`.
    UnknownScheme,
    /// A character that must be percent-encoded stands in the id, in the secret or, for `#`,
    /// anywhere.
    Unencoded(char),
    /// There is a path other than `/`.
    Path,
    /// A `%` is not followed by two hexadecimal digits.
    BrokenEscape,
    /// The decoded part is not UTF-8.
    NotUtf8,
    /// The id, the secret or an option holds a control character, once decoded.
    ControlCharacter,
    /// One of id and secret is missing or empty, or both are.
    IncompleteCredentials,
    /// There is no host where one must be.
    EmptyHost,
    /// There are more than 64 hosts.
    TooManyHosts,
    /// A name has a character that host names do not have.
    HostCharacter,
    /// A name has a character outside ASCII.
    NonAsciiHost,
    /// A label of a name is empty or has more than 63 bytes.
    LabelLength,
    /// A label of a name starts or ends with a hyphen.
    LabelHyphen,
    /// A name is longer than DNS allows.
    LongName,
    /// A name ends in a number, but is no IPv4 address.
    NumericHost,
    /// More than one colon without brackets.
    BareIpv6,
    /// What starts with a bracket is no IPv6 address in brackets.
    InvalidIpv6,
    /// Something other than a port follows a closing bracket.
    TextAfterBracket,
    /// A colon without a port.
    EmptyPort,
    /// A port is not written in digits alone.
    InvalidPort,
    /// A port is 0 or above 65535.
    PortOutOfRange,
    /// `chronicle+srv` with several names.
    SrvList,
    /// `chronicle+srv` with a port.
    SrvPort,
    /// `chronicle+srv` with an address instead of a name.
    SrvAddress,
    /// The builder was given both servers and a name for SRV lookups.
    ServersAndSrv,
    /// An option without a name.
    EmptyOption,
    /// An option that is not known.
    UnknownOption {
        /// The known option that looks most like it, if any does.
        nearest: Option<&'static str>,
    },
    /// The option is given twice.
    DuplicateOption(&'static str),
    /// The option has no value.
    MissingValue(&'static str),
    /// The option's value is neither `true` nor `false`.
    InvalidBoolean(&'static str),
    /// The value of `loadBalancer` names no strategy.
    InvalidLoadBalancer,
    /// The value of `auth` is not `none`.
    InvalidAuth,
    /// The value of `apiKey` is not visible ASCII throughout.
    InvalidApiKey,
    /// `srvNameServer` in a string with explicit hosts.
    NameServerWithoutSrv,
    /// Both credentials and `apiKey`.
    CredentialsAndApiKey,
    /// `auth=none` beside credentials or `apiKey`.
    AuthenticationAndNone,
}

impl fmt::Display for ConnectionStringErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TooLong => "longer than 64 KiB when percent-encoded; shorten it",
            Self::WhiteSpace => {
                "white space or a control character; remove it, or percent-encode a space in a \
                 value (%20)"
            }
            Self::UnknownScheme => "unknown scheme; start with chronicle:// or chronicle+srv://",
            Self::Unencoded('#') => "a '#' must be written %23; there is no fragment",
            Self::Unencoded(character) => {
                return write!(
                    f,
                    "a '{character}' in the client id or secret must be written %{:02X}",
                    u32::from(*character)
                );
            }
            Self::Path => {
                "there is no path; put options behind '?', and write a '/' in the client id or \
                 secret as %2F"
            }
            Self::BrokenEscape => "'%' without two hexadecimal digits; write a percent sign as %25",
            Self::NotUtf8 => "the percent-encoding is not UTF-8; encode the text as UTF-8",
            Self::ControlCharacter => {
                "a control character, raw or encoded, in credentials or in an option; remove it"
            }
            Self::IncompleteCredentials => {
                "incomplete credentials; give both as id:secret@, or leave out the '@'"
            }
            Self::EmptyHost => "a host is missing; write a name or an address",
            Self::TooManyHosts => {
                return write!(
                    f,
                    "more than {MAX_HOSTS} hosts; list fewer, or use chronicle+srv://"
                );
            }
            Self::HostCharacter => {
                "a host has letters, digits, '-', '_' and '.' only; correct the name"
            }
            Self::NonAsciiHost => "a host name outside ASCII; write its A-label form (xn--...)",
            Self::LabelLength => {
                "the part of a host name between two dots has 1 to 63 bytes; correct the name"
            }
            Self::LabelHyphen => "no part of a host name starts or ends with '-'; correct the name",
            Self::LongName => {
                "a host name has at most 253 bytes, with _chronicle._tcp. in front for \
                 chronicle+srv; shorten it"
            }
            Self::NumericHost => {
                "a host that ends in a number must be an IPv4 address (four numbers of 0 to 255 \
                 without leading zeros); correct it"
            }
            Self::BareIpv6 => {
                "more than one ':' in a host; write an IPv6 address in brackets, as in [::1]:35000"
            }
            Self::InvalidIpv6 => {
                "no IPv6 address in brackets; write it as in [2001:db8::1], without a zone"
            }
            Self::TextAfterBracket => "only a port may follow ']'; write ]:port, or nothing",
            Self::EmptyPort => "a ':' without a port; add the port or leave out the ':'",
            Self::InvalidPort => {
                "a port has digits only; correct it (a ':' that belongs to credentials needs a \
                 later '@')"
            }
            Self::PortOutOfRange => "a port is 1 to 65535; correct it",
            Self::SrvList => "chronicle+srv takes one name; use chronicle:// for a list",
            Self::SrvPort => {
                "chronicle+srv takes no port, as the SRV records have it; leave it out, or use \
                 chronicle://"
            }
            Self::SrvAddress => "chronicle+srv takes a DNS name; use chronicle:// for an address",
            Self::ServersAndSrv => "both servers and an SRV name; give one of them",
            Self::EmptyOption => "an option without a name; remove the stray '&' or '='",
            Self::UnknownOption { nearest } => return unknown_option(f, *nearest),
            Self::DuplicateOption(name) => {
                return write!(f, "{name} is given twice; keep one");
            }
            Self::MissingValue(name) => {
                return write!(f, "{name} has no value; add one or remove the option");
            }
            Self::InvalidBoolean(name) => return write!(f, "{name} is true or false; write one"),
            Self::InvalidLoadBalancer => {
                "loadBalancer is least-connections, round-robin or random; write one"
            }
            Self::InvalidAuth => {
                "auth is none, or left out; credentials and apiKey need no auth option"
            }
            Self::InvalidApiKey => {
                "apiKey has visible ASCII characters only, as it travels in a header; correct it"
            }
            Self::NameServerWithoutSrv => {
                "srvNameServer goes with chronicle+srv:// only; remove it or change the scheme"
            }
            Self::CredentialsAndApiKey => "both credentials and apiKey; keep one",
            Self::AuthenticationAndNone => "auth=none beside credentials or apiKey; keep one",
        })
    }
}

fn unknown_option(f: &mut fmt::Formatter<'_>, nearest: Option<&'static str>) -> fmt::Result {
    if let Some(nearest) = nearest {
        return write!(
            f,
            "unknown option, did you mean {nearest}? (in a value, write '&' as %26)"
        );
    }
    f.write_str("unknown option; known are ")?;
    for (index, name) in Name::ALL.into_iter().enumerate() {
        let comma = if index == 0 { "" } else { ", " };
        write!(f, "{comma}{}", name.as_str())?;
    }
    f.write_str(" (in a value, write '&' as %26)")
}
