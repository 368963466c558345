//! Hosts and ports, as connection strings and `srvNameServer` write them.

use super::ConnectionStringErrorKind as Kind;
use crate::{DEFAULT_PORT, Endpoint, Host};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// What is wrong, and at which byte.
pub(super) type Misplaced = (usize, Kind);

/// Reads `host[:port]` as it stands in a server list.
pub(super) fn server(text: &str) -> Result<Endpoint, Misplaced> {
    endpoint(text, DEFAULT_PORT)
}

/// Reads `host[:port]`, or an IPv6 address without brackets and port.
pub(super) fn name_server(text: &str) -> Result<Endpoint, Kind> {
    if let Ok(address) = text.parse::<Ipv6Addr>() {
        return Ok(Endpoint::new(address.into(), DNS_PORT));
    }
    endpoint(text, DNS_PORT).map_err(|(_, kind)| kind)
}

/// Reads the one name of `chronicle+srv`.
pub(super) fn srv_name(text: &str) -> Result<String, Misplaced> {
    if let Some(comma) = text.find(',') {
        return Err((comma, Kind::SrvList));
    }
    if text.starts_with('[') || text.parse::<Ipv6Addr>().is_ok() {
        return Err((0, Kind::SrvAddress));
    }
    if let Some(colon) = text.find(':') {
        return Err((colon, Kind::SrvPort));
    }
    match host(text)? {
        Host::Ip(_) => Err((0, Kind::SrvAddress)),
        Host::Name(name) if name.len() > MAX_NAME - SRV_PREFIX.len() => Err((0, Kind::LongName)),
        Host::Name(name) => Ok(name),
    }
}

/// Reads a name that is no address, folded as every host is.
pub(crate) fn host_name(text: &str) -> Option<String> {
    match host(text) {
        Ok(Host::Name(name)) => Some(name),
        Ok(Host::Ip(_)) | Err(_) => None,
    }
}

fn endpoint(text: &str, default_port: u16) -> Result<Endpoint, Misplaced> {
    let (host, port_at) = if text.starts_with('[') {
        let Some(end) = text.find(']') else {
            return Err((0, Kind::InvalidIpv6));
        };
        let address: Ipv6Addr = text[1..end].parse().map_err(|_| (0, Kind::InvalidIpv6))?;
        (address.into(), end + 1)
    } else {
        let end = text.find(':').unwrap_or(text.len());
        if text[end..].matches(':').count() > 1 {
            return Err((0, Kind::BareIpv6));
        }
        (host(&text[..end])?, end)
    };
    let rest = &text[port_at..];
    if rest.is_empty() {
        return Ok(Endpoint::new(host, default_port));
    }
    let Some(digits) = rest.strip_prefix(':') else {
        return Err((port_at, Kind::TextAfterBracket));
    };
    let port = port(digits).map_err(|kind| (port_at + 1, kind))?;
    Ok(Endpoint::new(host, port))
}

fn port(digits: &str) -> Result<u16, Kind> {
    if digits.is_empty() {
        return Err(Kind::EmptyPort);
    }
    // u16's own parser would take a sign.
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(Kind::InvalidPort);
    }
    match digits.parse() {
        Ok(0) | Err(_) => Err(Kind::PortOutOfRange),
        Ok(port) => Ok(port),
    }
}

/// Reads a name or an IPv4 address (RFC 1123 section 2.1, and underscores).
fn host(text: &str) -> Result<Host, Misplaced> {
    let name = text.strip_suffix('.').unwrap_or(text);
    if name.is_empty() {
        return Err((0, Kind::EmptyHost));
    }
    if let Ok(address) = name.parse::<Ipv4Addr>() {
        return Ok(Host::Ip(IpAddr::V4(address)));
    }
    if let Some(index) = name.find(|c: char| !c.is_ascii()) {
        return Err((index, Kind::NonAsciiHost));
    }
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if let Some(index) = name.find(|c: char| !allowed(c)) {
        return Err((index, Kind::HostCharacter));
    }
    if name.len() > MAX_NAME {
        return Err((0, Kind::LongName));
    }
    let mut at = 0;
    for label in name.split('.') {
        if label.is_empty() || label.len() > MAX_LABEL {
            return Err((at, Kind::LabelLength));
        }
        if label.starts_with('-') || label.ends_with('-') {
            return Err((at, Kind::LabelHyphen));
        }
        at += label.len() + 1;
    }
    let name = name.to_ascii_lowercase();
    let last = name.rsplit('.').next().unwrap_or_default();
    if is_number(last) {
        return Err((0, Kind::NumericHost));
    }
    Ok(Host::Name(name))
}

/// Whether `inet_aton`, and with it the system's resolver, takes a last label for a number.
fn is_number(label: &str) -> bool {
    match label.strip_prefix("0x") {
        Some(hex) => hex.bytes().all(|byte| byte.is_ascii_hexdigit()),
        None => label.bytes().all(|byte| byte.is_ascii_digit()),
    }
}

const DNS_PORT: u16 = 53;
/// RFC 1035 section 2.3.4, in the textual form without the root's dot.
const MAX_NAME: usize = 253;
const MAX_LABEL: usize = 63;
/// What the lookup puts in front of the name.
pub(crate) const SRV_PREFIX: &str = "_chronicle._tcp.";
