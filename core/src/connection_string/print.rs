//! The text of a connection string, with and without its secrets.

use super::{ConnectionString, Credentials, Options, Servers, options::Name};
use crate::Secret;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use std::{borrow::Cow, fmt};
use zeroize::Zeroizing;

/// Shows everything but secrets and unknown options.
impl fmt::Display for ConnectionString {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write(self, f, Secrets::Redacted)
    }
}

/// Shows what `Display` shows.
impl fmt::Debug for ConnectionString {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ConnectionString({self})")
    }
}

/// The whole text. It is measured first, because a text that grows leaves copies of secrets behind.
pub(super) fn with_secrets(string: &ConnectionString) -> Zeroizing<String> {
    let mut text = Zeroizing::new(String::with_capacity(length(string)));
    // Writing into a string never fails.
    let _ = write(string, &mut *text, Secrets::Shown);
    text
}

/// The length of the whole text in bytes.
pub(super) fn length(string: &ConnectionString) -> usize {
    let mut length = Length(0);
    // Neither does counting.
    let _ = write(string, &mut length, Secrets::Shown);
    length.0
}

#[derive(Clone, Copy)]
enum Secrets {
    Shown,
    Redacted,
}

fn write(string: &ConnectionString, out: &mut impl fmt::Write, secrets: Secrets) -> fmt::Result {
    out.write_str(match string.servers {
        Servers::List(_) => "chronicle://",
        Servers::Srv(_) => "chronicle+srv://",
    })?;
    if let Some(Credentials { id, secret }) = &string.credentials {
        encode(out, id)?;
        out.write_char(':')?;
        write_secret(out, secret, secrets)?;
        out.write_char('@')?;
    }
    match &string.servers {
        Servers::List(servers) => {
            for (index, server) in servers.iter().enumerate() {
                let comma = if index == 0 { "" } else { "," };
                write!(out, "{comma}{server}")?;
            }
        }
        Servers::Srv(name) => out.write_str(name)?,
    }
    write_options(&string.options, out, secrets)
}

fn write_options(options: &Options, out: &mut impl fmt::Write, secrets: Secrets) -> fmt::Result {
    let mut separator = '?';
    for name in Name::ALL {
        let Some(value) = value(options, name) else {
            continue;
        };
        write!(out, "{separator}{}=", name.as_str())?;
        separator = '&';
        match value {
            Value::Plain(text) => encode(out, &text)?,
            Value::Secret(secret) => write_secret(out, secret, secrets)?,
        }
    }
    for (name, value) in &options.unknown {
        out.write_char(separator)?;
        separator = '&';
        match secrets {
            // The name as well: it may be the tail of a value with a raw `&` in it.
            Secrets::Redacted => out.write_str(REDACTED)?,
            Secrets::Shown => {
                encode(out, name)?;
                out.write_char('=')?;
                encode(out, value.expose())?;
            }
        }
    }
    Ok(())
}

enum Value<'a> {
    Plain(Cow<'a, str>),
    Secret(&'a Secret),
}

fn value(options: &Options, name: Name) -> Option<Value<'_>> {
    let boolean = |value: bool| Value::Plain(if value { "true" } else { "false" }.into());
    match name {
        Name::Auth => options
            .no_authentication
            .then(|| Value::Plain("none".into())),
        Name::ApiKey => options.api_key.as_ref().map(Value::Secret),
        Name::SkipTlsValidation => options.skip_tls_validation.map(boolean),
        Name::LoadBalancer => options
            .load_balancer
            .map(|strategy| Value::Plain(strategy.as_str().into())),
        Name::SrvNameServer => options
            .srv_name_server
            .as_ref()
            .map(|server| Value::Plain(server.to_string().into())),
        Name::CertificatePath => options
            .certificate_path
            .as_deref()
            .map(|path| Value::Plain(path.into())),
        Name::CertificatePassword => options.certificate_password.as_ref().map(Value::Secret),
        Name::SkipCompatibilityCheck => options.skip_compatibility_check.map(boolean),
    }
}

fn write_secret(out: &mut impl fmt::Write, secret: &Secret, secrets: Secrets) -> fmt::Result {
    match secrets {
        Secrets::Shown => encode(out, secret.expose()),
        Secrets::Redacted => out.write_str(REDACTED),
    }
}

fn encode(out: &mut impl fmt::Write, text: &str) -> fmt::Result {
    write!(out, "{}", utf8_percent_encode(text, RESERVED))
}

struct Length(usize);

impl fmt::Write for Length {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0 += text.len();
        Ok(())
    }
}

const REDACTED: &str = "REDACTED";
/// All but RFC 3986's unreserved characters.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');
