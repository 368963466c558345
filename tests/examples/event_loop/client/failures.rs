//! Sorts the errors of sockets, TLS and HTTP/2 into the closed kinds of the machine.

use chronicle_connection::{Failure, FailureKind, TlsFailure};
use rustls::{AlertDescription as Alert, CertificateError as Certificate, Error as Tls};
use std::io::{self, ErrorKind};

pub(super) fn from_io(error: &io::Error) -> Failure {
    if let Some(tls) = error.get_ref().and_then(|inner| inner.downcast_ref()) {
        return Failure::new(FailureKind::Tls(tls_reason(tls)), error.to_string());
    }
    let kind = match error.kind() {
        ErrorKind::ConnectionRefused => FailureKind::Refused,
        ErrorKind::HostUnreachable
        | ErrorKind::NetworkUnreachable
        | ErrorKind::NetworkDown
        | ErrorKind::AddrNotAvailable => FailureKind::Unreachable,
        ErrorKind::TimedOut => FailureKind::TimedOut,
        ErrorKind::ConnectionReset | ErrorKind::BrokenPipe => FailureKind::Reset,
        _ => return Failure::new(FailureKind::Closed, error.to_string()),
    };
    // The kind says all that the platform's text does.
    Failure::new(kind, "")
}

pub(super) fn from_h2(error: &h2::Error) -> Failure {
    match error.get_io() {
        Some(io) => from_io(io),
        None if error.is_remote() => Failure::new(FailureKind::Reset, error.to_string()),
        None => Failure::new(FailureKind::Protocol, error.to_string()),
    }
}

pub(super) fn tls_reason(error: &Tls) -> TlsFailure {
    match error {
        Tls::InvalidCertificate(certificate) => match certificate {
            Certificate::Expired | Certificate::ExpiredContext { .. } => TlsFailure::Expired,
            Certificate::NotValidYet | Certificate::NotValidYetContext { .. } => {
                TlsFailure::NotYetValid
            }
            Certificate::NotValidForName | Certificate::NotValidForNameContext { .. } => {
                TlsFailure::WrongName
            }
            Certificate::UnknownIssuer | Certificate::BadSignature => TlsFailure::UnknownIssuer,
            _ => TlsFailure::Other,
        },
        Tls::InvalidMessage(_) => TlsFailure::NotTls,
        Tls::NoApplicationProtocol | Tls::AlertReceived(Alert::NoApplicationProtocol) => {
            TlsFailure::NoHttp2
        }
        Tls::AlertReceived(
            Alert::CertificateRequired
            | Alert::BadCertificate
            | Alert::CertificateUnknown
            | Alert::UnknownCA,
        ) => TlsFailure::ClientCertificate,
        _ => TlsFailure::Other,
    }
}
