//! The compatibility check of a handshake (S2, "The wire-compatibility handshake").

use super::{
    context::{Context, check_limit, wrong_kind},
    handshaking::CLIENT_TYPE,
};
use crate::{
    CallError, CandidateError, Code, Failure, FailureKind, Findings, Id, Incompatible, Output,
    Reply, Request, Status,
};
use bytes::Bytes;
use chronicle_connection_proto::{
    clients::{CompatibilityRequest, CompatibilityResponse},
    paths,
};
use prost::Message as _;
use rand_core::Rng;
use std::time::Instant;

/// A check under way, fallback included.
#[derive(Debug, Clone)]
pub(super) struct Checking {
    pub(super) id: Id,
    pub(super) deadline: Instant,
    method: Method,
    on: Id,
    /// Whether the call at hand carries the credentials.
    authenticated: bool,
    answer: Option<Bytes>,
}

#[derive(Debug, Clone, Copy)]
enum Method {
    /// The server compares.
    CheckCompatibility,
    /// The server is older than that: this side compares.
    GetDescriptorSet,
}

pub(super) enum Verdict {
    Pending,
    Compatible { server_version: String },
    Failed(CandidateError),
}

impl Checking {
    pub(super) fn begin<R: Rng>(on: Id, cx: &mut Context<R>) -> Self {
        Self {
            id: send(Method::CheckCompatibility, on, false, cx),
            method: Method::CheckCompatibility,
            deadline: cx.now + cx.config.timing.check,
            on,
            authenticated: false,
            answer: None,
        }
    }

    /// The request that is awaited.
    pub(super) fn request(&self) -> Request {
        match self.method {
            Method::CheckCompatibility => Request::CheckCompatibility,
            Method::GetDescriptorSet => Request::GetDescriptorSet,
        }
    }

    pub(super) fn on_reply<R: Rng>(&mut self, reply: &Reply, cx: &mut Context<R>) -> Verdict {
        let failure = match reply {
            Reply::Message(message) => match check_limit(message, self.method.limit()) {
                Ok(()) if self.answer.is_none() => {
                    self.answer = Some(message.clone());
                    return Verdict::Pending;
                }
                Ok(()) => Failure::new(FailureKind::Protocol, "two messages from a unary call"),
                Err(failure) => failure,
            },
            Reply::Finished(status) => return self.finished(status, cx),
            Reply::Failed(failure) => failure.clone(),
            Reply::NameServers(_)
            | Reply::Opened { .. }
            | Reply::GoingAway { .. }
            | Reply::Closed(_)
            | Reply::Http(_) => wrong_kind(),
        };
        self.failed(CallError::Failure(failure))
    }

    fn finished<R: Rng>(&mut self, status: &Status, cx: &mut Context<R>) -> Verdict {
        if status.is_unimplemented() {
            return match self.method {
                Method::GetDescriptorSet => self.cannot_verify(
                    "the server has neither CheckCompatibility nor GetDescriptorSet",
                    cx,
                ),
                Method::CheckCompatibility => {
                    self.method = Method::GetDescriptorSet;
                    self.call(false, cx);
                    Verdict::Pending
                }
            };
        }
        match status.code {
            Code::Ok => match (self.method, self.answer.take()) {
                (_, None) => self.failed(CallError::Malformed("no message".to_owned())),
                // The comparison on this side is not built yet; whatever the server sent, it
                // proves nothing until then.
                (Method::GetDescriptorSet, Some(_)) => self.cannot_verify(
                    "the server is older than CheckCompatibility, and this client cannot compare \
                     contracts itself yet",
                    cx,
                ),
                (Method::CheckCompatibility, Some(answer)) => self.judge(answer, cx),
            },
            Code::Unauthenticated if !self.authenticated && cx.config.api_key.is_some() => {
                self.call(true, cx);
                Verdict::Pending
            }
            Code::Unauthenticated => Verdict::Failed(CandidateError::Credentials {
                request: self.request(),
                status: status.clone(),
            }),
            _ => self.failed(CallError::Status(status.clone())),
        }
    }

    /// Any reported incompatibility refuses: a false flag, or a true one with findings.
    fn judge<R: Rng>(&self, answer: Bytes, cx: &Context<R>) -> Verdict {
        let answer = match CompatibilityResponse::decode(answer) {
            Ok(answer) => answer,
            Err(error) => return self.failed(CallError::Malformed(error.to_string())),
        };
        if answer.is_compatible && answer.incompatibilities.is_empty() {
            return Verdict::Compatible {
                server_version: answer.server_version,
            };
        }
        Verdict::Failed(CandidateError::Incompatible(Incompatible {
            client_version: cx.config.client.version.clone(),
            client_protocol_version: cx.contract.protocol_version().to_owned(),
            server_version: answer.server_version,
            server_protocol_version: answer.server_protocol_version,
            findings: Findings::Reported(answer.incompatibilities),
        }))
    }

    fn cannot_verify<R: Rng>(&self, why: &str, cx: &Context<R>) -> Verdict {
        Verdict::Failed(CandidateError::Incompatible(Incompatible {
            client_version: cx.config.client.version.clone(),
            client_protocol_version: cx.contract.protocol_version().to_owned(),
            server_version: String::new(),
            server_protocol_version: String::new(),
            findings: Findings::CannotVerify(why.to_owned()),
        }))
    }

    fn failed(&self, error: CallError) -> Verdict {
        Verdict::Failed(CandidateError::Call {
            request: self.request(),
            error,
        })
    }

    fn call<R: Rng>(&mut self, authenticated: bool, cx: &mut Context<R>) {
        self.authenticated = authenticated;
        self.answer = None;
        self.id = send(self.method, self.on, authenticated, cx);
    }
}

impl Method {
    fn limit(self) -> usize {
        match self {
            Self::CheckCompatibility => CHECK_LIMIT,
            Self::GetDescriptorSet => DESCRIPTOR_LIMIT,
        }
    }
}

fn send<R: Rng>(method: Method, on: Id, authenticated: bool, cx: &mut Context<R>) -> Id {
    let (path, message) = match method {
        Method::CheckCompatibility => (paths::CHECK_COMPATIBILITY, question(cx).encode_to_vec()),
        Method::GetDescriptorSet => (paths::GET_DESCRIPTOR_SET, Vec::new()),
    };
    cx.call(
        Output::Unary,
        on,
        path,
        authenticated,
        message.into(),
        method.limit(),
    )
}

fn question<R>(cx: &Context<R>) -> CompatibilityRequest {
    CompatibilityRequest {
        client_type: CLIENT_TYPE.to_owned(),
        client_version: cx.config.client.version.clone(),
        protocol_version: cx.contract.protocol_version().to_owned(),
        descriptor_set: cx.contract.descriptor_set().to_vec(),
    }
}

const CHECK_LIMIT: usize = 1024 * 1024;

/// Real descriptor texts are below 200 KiB.
const DESCRIPTOR_LIMIT: usize = 16 * 1024 * 1024;
