//! From text to value. Nothing of the text gets into an error.

use super::{
    ConnectionString, ConnectionStringError as Error, ConnectionStringErrorKind as Kind,
    Credentials, MAX_HOSTS, MAX_LENGTH, Options, Servers, host, options::Name,
};
use crate::Secret;
use percent_encoding::percent_decode;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum UnknownOptions {
    Refuse,
    Keep,
}

pub(super) fn parse(text: &str, unknown: UnknownOptions) -> Result<ConnectionString, Error> {
    if text.len() > MAX_LENGTH {
        return Err(Error::at(MAX_LENGTH, Kind::TooLong));
    }
    if let Some(at) = text.find(|c: char| c.is_whitespace() || c.is_control()) {
        return Err(Error::at(at, Kind::WhiteSpace));
    }
    let (is_srv, rest) = scheme(Span { text, at: 0 })?;
    if let Some(index) = rest.text.find('#') {
        return Err(rest.error(index, Kind::Unencoded('#')));
    }
    let (authority, tail) = rest.split_before(&['/', '?']);
    let (path, query) = tail.split_before(&['?']);
    if path.text.len() > 1 {
        let kind = if path.text.contains('@') {
            Kind::Unencoded('/')
        } else {
            Kind::Path
        };
        return Err(path.error(0, kind));
    }
    let is_cut = is_cut_by_question_mark(authority, query);
    let (credentials, hosts) = split_credentials(authority)?;
    let servers = if is_srv { srv(hosts) } else { list(hosts) };
    let servers = match servers {
        Err(_) if is_cut => return Err(query.error(0, Kind::Unencoded('?'))),
        servers => servers?,
    };
    let (options, positions) = options(query, unknown, is_cut)?;
    let string = ConnectionString {
        servers,
        credentials,
        options,
    };
    string.check().map_err(|(blamed, kind)| {
        let position = positions.iter().find(|(name, _)| Some(*name) == blamed);
        Error::at(position.map_or(0, |(_, at)| *at), kind)
    })?;
    Ok(string)
}

/// A piece of the text, and where it begins.
#[derive(Clone, Copy)]
struct Span<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Span<'a> {
    fn error(self, index: usize, kind: Kind) -> Error {
        Error::at(self.at + index, kind)
    }

    fn split_at(self, index: usize) -> (Self, Self) {
        (self.to(index), self.from(index))
    }

    fn to(self, index: usize) -> Self {
        Self {
            text: &self.text[..index],
            at: self.at,
        }
    }

    fn from(self, index: usize) -> Self {
        Self {
            text: &self.text[index..],
            at: self.at + index,
        }
    }

    /// Splits before the first of some characters; the second half is empty without any.
    fn split_before(self, delimiters: &[char]) -> (Self, Self) {
        self.split_at(self.text.find(delimiters).unwrap_or(self.text.len()))
    }

    fn split(self, delimiter: char) -> impl Iterator<Item = Self> {
        let mut at = self.at;
        self.text.split(delimiter).map(move |text| {
            let span = Span { text, at };
            at += text.len() + delimiter.len_utf8();
            span
        })
    }
}

fn scheme(text: Span<'_>) -> Result<(bool, Span<'_>), Error> {
    let (scheme, rest) = text.split_before(&[':']);
    let is_srv = match scheme.text {
        name if name.eq_ignore_ascii_case("chronicle") => false,
        name if name.eq_ignore_ascii_case("chronicle+srv") => true,
        _ => return Err(text.error(0, Kind::UnknownScheme)),
    };
    if !rest.text.starts_with("://") {
        return Err(text.error(0, Kind::UnknownScheme));
    }
    Ok((is_srv, rest.from("://".len())))
}

/// Whether the `?` seems to belong to the secret: no `@` before it, one after it, and what follows
/// it is no option.
fn is_cut_by_question_mark(authority: Span<'_>, query: Span<'_>) -> bool {
    let first = query.text.trim_start_matches('?').split('=').next();
    !authority.text.contains('@')
        && query.text.contains('@')
        && first.and_then(Name::find).is_none()
}

fn split_credentials(authority: Span<'_>) -> Result<(Option<Credentials>, Span<'_>), Error> {
    let Some(end) = authority.text.rfind('@') else {
        return Ok((None, authority));
    };
    let (user_info, hosts) = (authority.to(end), authority.from(end + 1));
    for delimiter in ['@', ','] {
        if let Some(index) = user_info.text.find(delimiter) {
            return Err(user_info.error(index, Kind::Unencoded(delimiter)));
        }
    }
    let Some(colon) = user_info.text.find(':') else {
        return Err(user_info.error(0, Kind::IncompleteCredentials));
    };
    let (id, secret) = (user_info.to(colon), user_info.from(colon + 1));
    for half in [id, secret] {
        if half.text.is_empty() {
            return Err(half.error(0, Kind::IncompleteCredentials));
        }
    }
    let credentials = Credentials {
        id: decode(id)?,
        secret: Secret::new(decode(secret)?),
    };
    Ok((Some(credentials), hosts))
}

fn list(hosts: Span<'_>) -> Result<Servers, Error> {
    let mut servers = Vec::new();
    for (index, host) in hosts.split(',').enumerate() {
        if index == MAX_HOSTS {
            return Err(host.error(0, Kind::TooManyHosts));
        }
        let server = host::server(host.text).map_err(|(index, kind)| host.error(index, kind))?;
        if !servers.contains(&server) {
            servers.push(server);
        }
    }
    Ok(Servers::List(servers))
}

fn srv(name: Span<'_>) -> Result<Servers, Error> {
    host::srv_name(name.text)
        .map(Servers::Srv)
        .map_err(|(index, kind)| name.error(index, kind))
}

/// Reads `?name=value&...`, and tells where each known option stands.
fn options(
    query: Span<'_>,
    unknown: UnknownOptions,
    is_cut: bool,
) -> Result<(Options, Vec<(Name, usize)>), Error> {
    let mut options = Options::default();
    let mut positions: Vec<(Name, usize)> = Vec::new();
    if query.text.len() <= 1 {
        return Ok((options, positions));
    }
    for pair in query.from(1).split('&') {
        let (raw_name, value) = match pair.text.find('=') {
            Some(index) => (pair.to(index), Some(pair.from(index + 1))),
            None if is_cut => return Err(query.error(0, Kind::Unencoded('?'))),
            None => (pair, None),
        };
        if raw_name.text.is_empty() {
            return Err(pair.error(0, Kind::EmptyOption));
        }
        let name = decode(raw_name)?;
        let Some(known) = Name::find(&name) else {
            if unknown == UnknownOptions::Refuse {
                let nearest = Name::nearest(&name).map(Name::as_str);
                return Err(pair.error(0, Kind::UnknownOption { nearest }));
            }
            let value = value.map(decode).transpose()?.unwrap_or_default();
            options.unknown.push((name, Secret::new(value)));
            continue;
        };
        if positions.iter().any(|(name, _)| *name == known) {
            return Err(pair.error(0, Kind::DuplicateOption(known.as_str())));
        }
        positions.push((known, pair.at));
        let Some(value) = value.filter(|value| !value.text.is_empty()) else {
            return Err(pair.error(0, Kind::MissingValue(known.as_str())));
        };
        options
            .set(known, decode(value)?)
            .map_err(|kind| value.error(0, kind))?;
    }
    Ok((options, positions))
}

/// Decodes a part once; strictly, where the library is lenient.
fn decode(part: Span<'_>) -> Result<String, Error> {
    let bytes = part.text.as_bytes();
    for (index, _) in part.text.match_indices('%') {
        let digits = bytes.get(index + 1..index + 3).unwrap_or_default();
        if digits.len() != 2 || !digits.iter().all(u8::is_ascii_hexdigit) {
            return Err(part.error(index, Kind::BrokenEscape));
        }
    }
    // Room for all of it from the start: a buffer that grows leaves copies of secrets behind.
    let mut decoded = Vec::with_capacity(bytes.len());
    decoded.extend(percent_decode(bytes));
    let decoded = String::from_utf8(decoded).map_err(|_| part.error(0, Kind::NotUtf8))?;
    if decoded.contains(char::is_control) {
        return Err(part.error(0, Kind::ControlCharacter));
    }
    Ok(decoded)
}
