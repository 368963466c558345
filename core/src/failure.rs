//! How requests fail below gRPC, and how gRPC calls end.

use std::fmt;

/// Why a request failed below HTTP.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Failure {
    /// What kind of failure it was.
    pub kind: FailureKind,
    /// What the platform said of it, for people.
    pub text: String,
}

impl Failure {
    /// A failure of a kind, with a text for people.
    pub fn new(kind: FailureKind, text: impl Into<String>) -> Self {
        Self {
            kind,
            text: text.into(),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.text.is_empty() {
            self.kind.fmt(f)
        } else {
            write!(f, "{}: {}", self.kind, self.text)
        }
    }
}

impl std::error::Error for Failure {}

/// The closed list of failures, told apart where they happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FailureKind {
    /// The host answered that nothing listens on the port.
    Refused,
    /// No route, or the network is down.
    Unreachable,
    /// The time ran out.
    TimedOut,
    /// The peer reset the connection or the stream.
    Reset,
    /// The peer closed the connection.
    Closed,
    /// The host name could not be resolved.
    Dns,
    /// TLS did not come about.
    Tls(TlsFailure),
    /// The peer broke the rules of HTTP/2, gRPC or of this library's requests.
    Protocol,
    /// The answer is longer than the limit of its request.
    TooLarge,
}

impl fmt::Display for FailureKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Refused => "connection refused",
            Self::Unreachable => "network unreachable",
            Self::TimedOut => "timed out",
            Self::Reset => "connection reset",
            Self::Closed => "connection closed",
            Self::Dns => "host name not resolved",
            Self::Tls(reason) => return reason.fmt(f),
            Self::Protocol => "protocol error",
            Self::TooLarge => "answer too large",
        })
    }
}

/// Why TLS did not come about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TlsFailure {
    /// The certificate is past its validity.
    Expired,
    /// The certificate is not valid yet.
    NotYetValid,
    /// The certificate is for another name or address.
    WrongName,
    /// No trusted root vouches for the certificate.
    UnknownIssuer,
    /// The peer does not speak TLS on this port.
    NotTls,
    /// The peer does not speak HTTP/2 (ALPN `h2`).
    NoHttp2,
    /// The server wants a certificate of the client, or does not take the one it was shown.
    ClientCertificate,
    /// Anything else.
    Other,
}

impl fmt::Display for TlsFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Expired => "server certificate has expired",
            Self::NotYetValid => "server certificate is not yet valid",
            Self::WrongName => "server certificate is for another name",
            Self::UnknownIssuer => "server certificate is from an unknown issuer",
            Self::NotTls => "server does not speak TLS on this port",
            Self::NoHttp2 => "server does not speak HTTP/2 over TLS",
            Self::ClientCertificate => {
                "server asks for a client certificate (certificatePath) that it trusts"
            }
            Self::Other => "TLS handshake failed",
        })
    }
}

/// How a gRPC call ended.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Status {
    /// The status code.
    pub code: Code,
    /// The server's text.
    pub message: String,
    /// Whether a gRPC server said so.
    pub origin: Origin,
}

impl Status {
    /// A status as a gRPC server sends it.
    pub fn grpc(code: Code, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            origin: Origin::Grpc,
        }
    }

    /// A status made up from an HTTP answer that is not gRPC, by gRPC's "HTTP to gRPC Status Code
    /// Mapping".
    pub fn http(status: u16, message: impl Into<String>) -> Self {
        let code = match status {
            400 => Code::Internal,
            401 => Code::Unauthenticated,
            403 => Code::PermissionDenied,
            404 => Code::Unimplemented,
            429 | 502 | 503 | 504 => Code::Unavailable,
            _ => Code::Unknown,
        };
        Self {
            code,
            message: message.into(),
            origin: Origin::Http(status),
        }
    }

    /// Whether a gRPC server itself, not something in front of it, said that it lacks the method.
    pub fn is_unimplemented(&self) -> bool {
        self.code == Code::Unimplemented && self.origin == Origin::Grpc
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.code.fmt(f)?;
        if let Origin::Http(status) = self.origin {
            write!(f, " (HTTP {status}, no grpc-status)")?;
        }
        if !self.message.is_empty() {
            write!(f, ": {}", self.message)?;
        }
        Ok(())
    }
}

/// Where a [`Status`] comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Origin {
    /// From `grpc-status`.
    Grpc,
    /// Made up from the status of an HTTP answer that is not gRPC.
    Http(u16),
}

/// The status codes of gRPC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "gRPC's own names")]
pub enum Code {
    Ok = 0,
    Cancelled = 1,
    Unknown = 2,
    InvalidArgument = 3,
    DeadlineExceeded = 4,
    NotFound = 5,
    AlreadyExists = 6,
    PermissionDenied = 7,
    ResourceExhausted = 8,
    FailedPrecondition = 9,
    Aborted = 10,
    OutOfRange = 11,
    Unimplemented = 12,
    Internal = 13,
    Unavailable = 14,
    DataLoss = 15,
    Unauthenticated = 16,
}

impl Code {
    /// The code of a number; numbers that gRPC does not know are `Unknown`, as gRPC asks.
    pub fn from_number(number: i32) -> Self {
        match number {
            0 => Self::Ok,
            1 => Self::Cancelled,
            3 => Self::InvalidArgument,
            4 => Self::DeadlineExceeded,
            5 => Self::NotFound,
            6 => Self::AlreadyExists,
            7 => Self::PermissionDenied,
            8 => Self::ResourceExhausted,
            9 => Self::FailedPrecondition,
            10 => Self::Aborted,
            11 => Self::OutOfRange,
            12 => Self::Unimplemented,
            13 => Self::Internal,
            14 => Self::Unavailable,
            15 => Self::DataLoss,
            16 => Self::Unauthenticated,
            _ => Self::Unknown,
        }
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ok => "OK",
            Self::Cancelled => "CANCELLED",
            Self::Unknown => "UNKNOWN",
            Self::InvalidArgument => "INVALID_ARGUMENT",
            Self::DeadlineExceeded => "DEADLINE_EXCEEDED",
            Self::NotFound => "NOT_FOUND",
            Self::AlreadyExists => "ALREADY_EXISTS",
            Self::PermissionDenied => "PERMISSION_DENIED",
            Self::ResourceExhausted => "RESOURCE_EXHAUSTED",
            Self::FailedPrecondition => "FAILED_PRECONDITION",
            Self::Aborted => "ABORTED",
            Self::OutOfRange => "OUT_OF_RANGE",
            Self::Unimplemented => "UNIMPLEMENTED",
            Self::Internal => "INTERNAL",
            Self::Unavailable => "UNAVAILABLE",
            Self::DataLoss => "DATA_LOSS",
            Self::Unauthenticated => "UNAUTHENTICATED",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn http_statuses_become_the_codes_of_grpcs_table() {
        for (http, code) in [
            (400, Code::Internal),
            (401, Code::Unauthenticated),
            (403, Code::PermissionDenied),
            (404, Code::Unimplemented),
            (429, Code::Unavailable),
            (502, Code::Unavailable),
            (503, Code::Unavailable),
            (504, Code::Unavailable),
            (200, Code::Unknown),
            (302, Code::Unknown),
            (500, Code::Unknown),
        ] {
            let status = Status::http(http, "text");
            assert_eq!(status.code, code, "{http}");
            assert!(!status.is_unimplemented(), "{http}: no gRPC server said so");
        }
    }
}
