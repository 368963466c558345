//! What can go wrong with a connection, told apart and told in words.

use crate::{
    Code, Endpoint, Failure, Incompatibility, LookupError, Status, TokenError, contract::is_newer,
    event::Seconds,
};
use std::{fmt, time::Duration};

/// A request of the connection itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Request {
    /// `GET /connections/count`
    Count,
    /// `POST /connections/reserve`
    Reserve,
    /// `POST /connect/token`
    Token,
    /// `ConnectionService/CheckCompatibility`
    CheckCompatibility,
    /// `ConnectionService/GetDescriptorSet`
    GetDescriptorSet,
    /// `Server/GetVersionInfo`
    GetVersionInfo,
    /// `ConnectionService/Connect`
    Connect,
    /// `ConnectionService/ConnectionKeepAlive`
    KeepAlive,
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Count => "GET /connections/count",
            Self::Reserve => "POST /connections/reserve",
            Self::Token => "POST /connect/token",
            Self::CheckCompatibility => "CheckCompatibility",
            Self::GetDescriptorSet => "GetDescriptorSet",
            Self::GetVersionInfo => "GetVersionInfo",
            Self::Connect => "Connect",
            Self::KeepAlive => "ConnectionKeepAlive",
        })
    }
}

/// How a request of the connection failed.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum CallError {
    /// Below HTTP.
    Failure(Failure),
    /// With an HTTP status that is no success.
    Http(u16),
    /// With a gRPC status.
    Status(Status),
    /// The answer came and makes no sense.
    Malformed(String),
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failure(failure) => failure.fmt(f),
            Self::Http(status) => write!(f, "HTTP {status}"),
            Self::Status(status) => status.fmt(f),
            Self::Malformed(text) => write!(f, "malformed answer: {text}"),
        }
    }
}

/// Why a candidate is out for an attempt.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum CandidateError {
    /// No transport could be opened.
    Unreachable(Failure),
    /// The transport ended before the session was up.
    Closed(Failure),
    /// The server sent GOAWAY before the session was up.
    GoingAway {
        /// The HTTP/2 error code.
        code: u32,
    },
    /// A request of the handshake failed.
    Call {
        /// The request.
        request: Request,
        /// How.
        error: CallError,
    },
    /// The server refuses the credentials, or asks for some where there are none.
    Credentials(CredentialsError),
    /// There is no token to be had, and not for want of the right credentials.
    Token(TokenError),
    /// The contracts of client and server do not match, or nobody can tell.
    Incompatible(Incompatible),
    /// The server took the session and sent no keep-alive in time.
    NoKeepAlive {
        /// How long it had.
        waited: Duration,
    },
}

impl fmt::Display for CandidateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreachable(failure) => failure.fmt(f),
            Self::Closed(failure) => write!(f, "transport ended during the handshake: {failure}"),
            Self::GoingAway { code } => {
                write!(f, "server is going away (GOAWAY code {code})")
            }
            Self::Call { request, error } => write!(f, "{request} failed: {error}"),
            Self::Credentials(error) => error.fmt(f),
            Self::Token(error) => write!(f, "no token: {error}"),
            Self::Incompatible(incompatible) => incompatible.fmt(f),
            Self::NoKeepAlive { waited } => {
                write!(f, "no keep-alive within {} of Connect", Seconds(*waited))
            }
        }
    }
}

/// How credentials were refused.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum CredentialsError {
    /// A request was refused as UNAUTHENTICATED.
    Refused {
        /// The request.
        request: Request,
        /// The server's words.
        status: Status,
        /// Whether the request carried any.
        had_credentials: bool,
    },
    /// The token endpoint refused the client id or the secret.
    Token(TokenError),
}

impl fmt::Display for CredentialsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused {
                request,
                status,
                had_credentials: true,
            } => write!(f, "credentials refused by {request}: {status}"),
            Self::Refused {
                request,
                status,
                had_credentials: false,
            } => write!(
                f,
                "{request} asks for credentials, and the connection string has none: {status}"
            ),
            Self::Token(error) => error.fmt(f),
        }
    }
}

/// The verdict that client and server do not speak the same contract.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Incompatible {
    /// The version of this client.
    pub client_version: String,
    /// The version of this client's contract.
    pub client_protocol_version: String,
    /// The version of the server, where it told.
    pub server_version: String,
    /// The version of the server's contract, where it told.
    pub server_protocol_version: String,
    /// Every finding.
    pub findings: Findings,
}

/// What was found about two contracts.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Findings {
    /// The server's own list, in its words. Empty where it said no without a reason.
    Reported(Vec<String>),
    /// What this side found, against the text of a server that is too old to compare.
    Compared(Vec<Incompatibility>),
    /// The server has no way to compare that this client can use.
    CannotVerify(String),
}

impl fmt::Display for Incompatible {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let told = |version: &str| match version {
            "" => "unknown".to_owned(),
            version => version.to_owned(),
        };
        match &self.findings {
            Findings::Reported(_) | Findings::Compared(_) => {
                f.write_str("incompatible contracts")?;
            }
            Findings::CannotVerify(why) => write!(
                f,
                "cannot verify that the contracts are compatible, because {why}"
            )?,
        }
        write!(
            f,
            " (client {}, contract {}; server {}, contract {})",
            told(&self.client_version),
            told(&self.client_protocol_version),
            told(&self.server_version),
            told(&self.server_protocol_version),
        )?;
        match &self.findings {
            Findings::Reported(findings) => {
                findings
                    .iter()
                    .try_for_each(|finding| write!(f, "; {finding}"))?;
            }
            Findings::Compared(findings) => {
                findings
                    .iter()
                    .try_for_each(|finding| write!(f, "; {finding}"))?;
            }
            Findings::CannotVerify(_) => {}
        }
        self.remarks()
            .iter()
            .try_for_each(|remark| write!(f, "; {remark}"))
    }
}

impl Incompatible {
    /// What there is to say beside the versions and the findings: that there are none, and the way
    /// through where there is one.
    pub fn remarks(&self) -> Vec<String> {
        let mut remarks = Vec::new();
        match &self.findings {
            Findings::Reported(findings) => {
                if findings.is_empty() {
                    remarks.push("the server gave no reason".to_owned());
                }
                if self.is_client_newer() {
                    remarks.push(format!(
                        "this client is newer than the server, so what the server misses may be \
                         what the client gained: if it does without that on this server, set {SKIP}"
                    ));
                }
            }
            Findings::Compared(_) => {}
            Findings::CannotVerify(_) => {
                remarks.push(format!("if you know that they are, set {SKIP}"));
            }
        }
        remarks
    }

    /// Servers up to 18.4 take the client as the expected side, whatever the versions. What is
    /// compared on this side takes them into account already.
    fn is_client_newer(&self) -> bool {
        let server = match self.server_protocol_version.as_str() {
            "" => &self.server_version,
            told => told,
        };
        is_newer(&self.client_protocol_version, server)
    }
}

const SKIP: &str = "skipCompatibilityCheck=true in the connection string";

/// What became of every candidate of a failed attempt.
#[derive(Debug, Clone, PartialEq, Eq, Default, Hash)]
pub struct AttemptError {
    /// Why the servers could not be looked up, where they could not. The candidates, if there are
    /// any, are those of an earlier lookup then.
    pub lookup: Option<Box<LookupError>>,
    /// The candidates in the order of the list, each with its cause. A candidate that was never
    /// tried has none.
    pub candidates: Vec<(Endpoint, Option<CandidateError>)>,
}

impl AttemptError {
    /// Takes the causes of an earlier attempt where this one has none.
    pub(crate) fn fill_in(&mut self, earlier: Self) {
        if self.candidates.is_empty() && self.lookup.is_none() {
            self.lookup = earlier.lookup;
        }
        for (server, cause) in earlier.candidates {
            let known = self.candidates.iter_mut().find(|(mine, _)| *mine == server);
            match known {
                Some((_, known @ None)) => *known = cause,
                Some((_, Some(_))) => {}
                None => self.candidates.push((server, cause)),
            }
        }
    }
}

impl fmt::Display for AttemptError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(lookup) = &self.lookup {
            write!(f, "the servers could not be looked up ({lookup})")?;
            if self.candidates.is_empty() {
                return Ok(());
            }
            f.write_str(", and of those known before ")?;
        } else if self.candidates.is_empty() {
            return f.write_str("the servers were still being looked up");
        }
        f.write_str("no server could be connected")?;
        for (index, (server, cause)) in self.candidates.iter().enumerate() {
            let separator = if index == 0 { ": " } else { "; " };
            match cause {
                Some(cause) => write!(f, "{separator}{server}: {cause}")?,
                None => write!(f, "{separator}{server}: not tried")?,
            }
        }
        Ok(())
    }
}

impl std::error::Error for AttemptError {}

/// Why a session ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DropCause {
    /// No keep-alive for longer than the threshold.
    Silence {
        /// Since the last keep-alive.
        silent: Duration,
    },
    /// The server acknowledged no answer for longer than the threshold: it has evicted, or will
    /// evict, this client without a word.
    Unacknowledged {
        /// Since the sending of the newest acknowledged answer.
        unacknowledged: Duration,
    },
    /// The stream of keep-alives ended with a status, OK included.
    StreamEnded(Status),
    /// The stream of keep-alives broke.
    StreamFailed(Failure),
    /// The transport ended.
    TransportClosed(Failure),
    /// The server sent GOAWAY.
    GoingAway {
        /// The HTTP/2 error code, 0 being NO_ERROR.
        code: u32,
    },
    /// A keep-alive bore the id of another connection.
    ForeignKeepAlive {
        /// That id.
        connection_id: String,
    },
    /// A keep-alive could not be read.
    MalformedKeepAlive(String),
    /// The server refuses the credentials of an answer.
    Credentials(Status),
}

impl fmt::Display for DropCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Silence { silent } => {
                write!(f, "no keep-alive for {}", Seconds(*silent))
            }
            Self::Unacknowledged { unacknowledged } => write!(
                f,
                "no keep-alive answer acknowledged for {}",
                Seconds(*unacknowledged)
            ),
            Self::StreamEnded(status) if status.code == Code::Ok => {
                f.write_str("server ended the keep-alive stream")
            }
            Self::StreamEnded(status) => write!(f, "keep-alive stream ended: {status}"),
            Self::StreamFailed(failure) => write!(f, "keep-alive stream failed: {failure}"),
            Self::TransportClosed(failure) => write!(f, "transport ended: {failure}"),
            Self::GoingAway { code } => {
                write!(f, "server is going away (GOAWAY code {code})")
            }
            Self::ForeignKeepAlive { connection_id } => {
                write!(f, "keep-alive for another connection, {connection_id:?}")
            }
            Self::MalformedKeepAlive(text) => write!(f, "malformed keep-alive: {text}"),
            Self::Credentials(status) => {
                write!(f, "credentials of a keep-alive answer refused: {status}")
            }
        }
    }
}

/// Why a connection gave up for good.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FatalError {
    /// Every candidate refused the contract in one attempt.
    Incompatible(AttemptError),
    /// The first connect failed for its credentials.
    Credentials {
        /// The server that refused.
        server: Endpoint,
        /// How.
        error: CredentialsError,
    },
    /// The first connect did not succeed in time.
    ConnectTimeout {
        /// The time it had.
        timeout: Duration,
        /// What is known of every candidate of the last attempt.
        last: AttemptError,
    },
}

impl fmt::Display for FatalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Incompatible(error) => write!(f, "every server refused: {error}"),
            Self::Credentials { server, error } => write!(f, "{server}: {error}"),
            Self::ConnectTimeout { timeout, last } => {
                write!(f, "not connected within {}: {last}", Seconds(*timeout))
            }
        }
    }
}

impl std::error::Error for FatalError {}
