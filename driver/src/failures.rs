//! Sorts the errors of sockets, TLS and HTTP/2 into the closed kinds of the core, where they happen.

use chronicle_connection::{Failure, FailureKind, TlsFailure};
use rustls::{AlertDescription, CertificateError};
use std::io;

/// An error of a socket, or of the TLS on it. `otherwise` is the kind of what has none of its own.
pub(crate) fn from_io(error: &io::Error, otherwise: FailureKind) -> Failure {
    if error.kind() == io::ErrorKind::UnexpectedEof {
        return closed_by_server();
    }
    if let Some(tls) = error.get_ref().and_then(|inner| inner.downcast_ref()) {
        return Failure::new(FailureKind::Tls(tls_reason(tls)), error.to_string());
    }
    match io_kind(error.kind()) {
        // The kind says all that the platform's text does.
        Some(kind) => Failure::new(kind, ""),
        None => Failure::new(otherwise, error.to_string()),
    }
}

/// The end of what a socket brings, with or without a goodbye of TLS.
pub(crate) fn closed_by_server() -> Failure {
    Failure::new(FailureKind::Closed, "closed by the server")
}

/// An error of HTTP/2 on a connection that is still alive.
pub(crate) fn from_h2(error: &h2::Error) -> Failure {
    let kind = match error.get_io() {
        Some(io) => io_kind(io.kind()).unwrap_or(FailureKind::Closed),
        None if error.is_remote() => FailureKind::Reset,
        None => FailureKind::Protocol,
    };
    Failure::new(kind, error.to_string())
}

fn io_kind(kind: io::ErrorKind) -> Option<FailureKind> {
    Some(match kind {
        io::ErrorKind::ConnectionRefused => FailureKind::Refused,
        io::ErrorKind::HostUnreachable
        | io::ErrorKind::NetworkUnreachable
        | io::ErrorKind::NetworkDown
        | io::ErrorKind::AddrNotAvailable => FailureKind::Unreachable,
        io::ErrorKind::TimedOut => FailureKind::TimedOut,
        io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe => FailureKind::Reset,
        io::ErrorKind::ConnectionAborted | io::ErrorKind::NotConnected => FailureKind::Closed,
        _ => return None,
    })
}

fn tls_reason(error: &rustls::Error) -> TlsFailure {
    use rustls::Error as Tls;
    match error {
        Tls::InvalidCertificate(certificate) => certificate_reason(certificate),
        // What is no TLS record at all: an answer of HTTP, a greeting of SSH.
        Tls::InvalidMessage(_) => TlsFailure::NotTls,
        Tls::NoApplicationProtocol
        | Tls::AlertReceived(AlertDescription::NoApplicationProtocol) => TlsFailure::NoHttp2,
        Tls::AlertReceived(
            AlertDescription::CertificateRequired
            | AlertDescription::NoCertificate
            | AlertDescription::BadCertificate
            | AlertDescription::UnsupportedCertificate
            | AlertDescription::CertificateRevoked
            | AlertDescription::CertificateExpired
            | AlertDescription::CertificateUnknown
            | AlertDescription::UnknownCA
            | AlertDescription::AccessDenied,
        ) => TlsFailure::ClientCertificate,
        _ => TlsFailure::Other,
    }
}

fn certificate_reason(error: &CertificateError) -> TlsFailure {
    match error {
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => TlsFailure::Expired,
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            TlsFailure::NotYetValid
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            TlsFailure::WrongName
        }
        // The latter two: the platform knows another certificate under the issuer's name.
        CertificateError::UnknownIssuer
        | CertificateError::BadSignature
        | CertificateError::UnsupportedSignatureAlgorithmForPublicKeyContext { .. } => {
            TlsFailure::UnknownIssuer
        }
        _ => TlsFailure::Other,
    }
}
