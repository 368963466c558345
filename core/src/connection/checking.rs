//! The compatibility check of a handshake (S2, "The wire-compatibility handshake").

use super::{
    context::{Context, check_limit, timed_out, wrong_kind},
    handshaking::CLIENT_TYPE,
};
use crate::{
    CallError, CandidateError, Code, ContractError, Failure, FailureKind, Findings, Id,
    Incompatibility, Incompatible, Output, Reply, Request, Schema, Status, compare,
};
use bytes::Bytes;
use chronicle_connection_proto::{
    clients::{CompatibilityRequest, CompatibilityResponse, DescriptorSetResponse},
    host::ServerVersionInfo,
    paths,
};
use prost::Message as _;
use rand_core::Rng;
use std::time::Instant;

/// A check under way, fallback included.
///
/// ```text
/// CheckCompatibility ── answer ──────────────────────────► verdict of the server
///        │ UNIMPLEMENTED
/// GetDescriptorSet ── UNIMPLEMENTED ─────────────────────► cannot verify
///        │ source text
/// GetVersionInfo ── version, failure or deadline ────────► verdict of this side
/// ```
#[derive(Debug, Clone)]
pub(super) struct Checking {
    pub(super) id: Id,
    pub(super) deadline: Instant,
    step: Step,
    on: Id,
    authenticated: bool,
    answer: Option<Bytes>,
}

#[derive(Debug, Clone)]
enum Step {
    /// The server compares.
    CheckCompatibility,
    /// The server is older than that: this side compares.
    GetDescriptorSet,
    /// Which of the two sides is the newer one decides what the comparison means.
    GetVersionInfo { server: Box<Schema> },
}

pub(super) enum Verdict {
    Pending,
    Compatible {
        server_version: String,
        missing_on_server: Vec<Incompatibility>,
    },
    Failed(CandidateError),
    /// The server wants to know who asks.
    Unauthenticated(Status),
    /// The next call needs a token, and there is none.
    NeedsToken,
}

impl Checking {
    pub(super) fn begin<R: Rng>(on: Id, cx: &mut Context<R>) -> Self {
        let step = Step::CheckCompatibility;
        Self {
            id: send(&step, on, false, cx),
            deadline: cx.now + cx.config.timing.check,
            step,
            on,
            authenticated: false,
            answer: None,
        }
    }

    /// Whether the call at hand carries the credentials.
    pub(super) fn is_authenticated(&self) -> bool {
        self.authenticated
    }

    /// Makes the call that is due, once more if it was made, with the credentials.
    pub(super) fn authenticate<R: Rng>(&mut self, cx: &mut Context<R>) {
        self.call(true, cx);
    }

    /// Goes on without what an unauthenticated call cannot tell; `None` where that is all.
    pub(super) fn go_without<R: Rng>(&self, cx: &Context<R>) -> Option<Verdict> {
        match self.step {
            Step::GetVersionInfo { .. } => Some(self.compare("", cx)),
            Step::CheckCompatibility | Step::GetDescriptorSet => None,
        }
    }

    /// The request that is awaited.
    pub(super) fn request(&self) -> Request {
        self.step.request()
    }

    /// The time is up; the call at hand is open unless a token is awaited for the next one.
    pub(super) fn expire<R: Rng>(&self, is_open: bool, cx: &mut Context<R>) -> Verdict {
        let error = CallError::Failure(timed_out(cx.config.timing.check));
        self.failed(error, is_open, cx)
    }

    pub(super) fn on_reply<R: Rng>(&mut self, reply: &Reply, cx: &mut Context<R>) -> Verdict {
        match reply {
            Reply::Message(message) => match check_limit(message, self.step.limit()) {
                Ok(()) if self.answer.is_none() => {
                    self.answer = Some(message.clone());
                    Verdict::Pending
                }
                Ok(()) => {
                    let text = "two messages from a unary call";
                    let failure = Failure::new(FailureKind::Protocol, text);
                    self.failed(CallError::Failure(failure), true, cx)
                }
                Err(failure) => self.failed(CallError::Failure(failure), true, cx),
            },
            Reply::Finished(status) => self.finished(status, cx),
            Reply::Failed(failure) => self.failed(CallError::Failure(failure.clone()), false, cx),
            Reply::NameServers(_)
            | Reply::Opened { .. }
            | Reply::GoingAway { .. }
            | Reply::Closed(_)
            | Reply::Http(_) => self.failed(CallError::Failure(wrong_kind()), true, cx),
        }
    }

    fn finished<R: Rng>(&mut self, status: &Status, cx: &mut Context<R>) -> Verdict {
        if status.is_unimplemented() {
            return match self.step {
                Step::CheckCompatibility => {
                    self.step = Step::GetDescriptorSet;
                    self.call(false, cx)
                }
                Step::GetDescriptorSet => Verdict::Failed(incompatible(
                    cx,
                    Versions::default(),
                    Findings::CannotVerify(NO_WAY.to_owned()),
                )),
                Step::GetVersionInfo { .. } => self.compare("", cx),
            };
        }
        if status.code == Code::Ok {
            let Some(answer) = self.answer.take() else {
                return self.failed(CallError::Malformed("no message".to_owned()), false, cx);
            };
            return match self.step {
                Step::CheckCompatibility => self.on_verdict(answer, cx),
                Step::GetDescriptorSet => self.on_descriptor_set(answer, cx),
                Step::GetVersionInfo { .. } => match ServerVersionInfo::decode(answer) {
                    Ok(info) => self.compare(&info.version, cx),
                    Err(_) => self.compare("", cx),
                },
            };
        }
        if status.code == Code::Unauthenticated {
            return Verdict::Unauthenticated(status.clone());
        }
        self.failed(CallError::Status(status.clone()), false, cx)
    }

    /// Any reported incompatibility refuses: a false flag, or a true one with findings.
    fn on_verdict<R: Rng>(&self, answer: Bytes, cx: &mut Context<R>) -> Verdict {
        let answer = match CompatibilityResponse::decode(answer) {
            Ok(answer) => answer,
            Err(error) => {
                return self.failed(CallError::Malformed(error.to_string()), false, cx);
            }
        };
        if answer.is_compatible && answer.incompatibilities.is_empty() {
            return Verdict::Compatible {
                server_version: answer.server_version,
                missing_on_server: Vec::new(),
            };
        }
        let versions = Versions {
            server: answer.server_version,
            protocol: answer.server_protocol_version,
        };
        let findings = Findings::Reported(answer.incompatibilities);
        Verdict::Failed(incompatible(cx, versions, findings))
    }

    fn on_descriptor_set<R: Rng>(&mut self, answer: Bytes, cx: &mut Context<R>) -> Verdict {
        let schema = DescriptorSetResponse::decode(answer)
            .map_err(|error| error.to_string())
            .and_then(|answer| read_text(&answer.schema_definition).map_err(|e| e.to_string()));
        match schema {
            Ok(server) => {
                let server = Box::new(server);
                self.step = Step::GetVersionInfo { server };
                if cx.lacks_token() {
                    return Verdict::NeedsToken;
                }
                self.call(true, cx)
            }
            Err(text) => self.failed(CallError::Malformed(text), false, cx),
        }
    }

    /// Judges the contracts here. A version that the server did not tell is empty.
    fn compare<R: Rng>(&self, server_version: &str, cx: &Context<R>) -> Verdict {
        let Step::GetVersionInfo { server } = &self.step else {
            return Verdict::Pending;
        };
        let contract = &cx.contract;
        let comparison = compare(
            contract.schema(),
            contract.protocol_version(),
            server,
            server_version,
        );
        if comparison.is_compatible() {
            return Verdict::Compatible {
                server_version: server_version.to_owned(),
                missing_on_server: comparison.missing_on_server,
            };
        }
        let versions = Versions {
            server: server_version.to_owned(),
            protocol: String::new(),
        };
        let findings = Findings::Compared(comparison.incompatibilities);
        Verdict::Failed(incompatible(cx, versions, findings))
    }

    /// A call failed. Without a version the check goes on, unless that would have decided it.
    fn failed<R: Rng>(&self, error: CallError, is_open: bool, cx: &mut Context<R>) -> Verdict {
        match &self.step {
            Step::CheckCompatibility | Step::GetDescriptorSet => {}
            Step::GetVersionInfo { server } => {
                if is_open {
                    cx.cancel(self.id);
                }
                let schema = cx.contract.schema();
                if !compare(schema, "", server, "").hinges_on_versions() {
                    return self.compare("", cx);
                }
            }
        }
        Verdict::Failed(CandidateError::Call {
            request: self.step.request(),
            error,
        })
    }

    fn call<R: Rng>(&mut self, authenticated: bool, cx: &mut Context<R>) -> Verdict {
        self.id = send(&self.step, self.on, authenticated, cx);
        self.authenticated = authenticated;
        self.answer = None;
        Verdict::Pending
    }
}

impl Step {
    fn request(&self) -> Request {
        match self {
            Self::CheckCompatibility => Request::CheckCompatibility,
            Self::GetDescriptorSet => Request::GetDescriptorSet,
            Self::GetVersionInfo { .. } => Request::GetVersionInfo,
        }
    }

    fn limit(&self) -> usize {
        match self {
            Self::CheckCompatibility => CHECK_LIMIT,
            Self::GetDescriptorSet => DESCRIPTOR_LIMIT,
            Self::GetVersionInfo { .. } => VERSION_LIMIT,
        }
    }
}

/// A text without a single service says nothing that could be compared.
fn read_text(text: &str) -> Result<Schema, ContractError> {
    let schema = Schema::from_source_text(text)?;
    match schema.has_services() {
        true => Ok(schema),
        false => Err(ContractError::NoService),
    }
}

fn send<R: Rng>(step: &Step, on: Id, authenticated: bool, cx: &mut Context<R>) -> Id {
    let (path, message) = match step {
        Step::CheckCompatibility => (paths::CHECK_COMPATIBILITY, question(cx).encode_to_vec()),
        Step::GetDescriptorSet => (paths::GET_DESCRIPTOR_SET, Vec::new()),
        Step::GetVersionInfo { .. } => (paths::GET_VERSION_INFO, Vec::new()),
    };
    let limit = step.limit();
    cx.call(
        Output::Unary,
        on,
        path,
        authenticated,
        message.into(),
        limit,
    )
}

fn question<R>(cx: &Context<R>) -> CompatibilityRequest {
    CompatibilityRequest {
        client_type: CLIENT_TYPE.to_owned(),
        client_version: cx.config.client.version.clone(),
        protocol_version: cx.contract.claimed_version().to_owned(),
        descriptor_set: cx.contract.descriptor_set().to_vec(),
    }
}

/// What a server told of its versions; empty where it did not.
#[derive(Default)]
struct Versions {
    server: String,
    protocol: String,
}

fn incompatible<R>(cx: &Context<R>, versions: Versions, findings: Findings) -> CandidateError {
    CandidateError::Incompatible(Incompatible {
        client_version: cx.config.client.version.clone(),
        client_protocol_version: cx.contract.protocol_version().to_owned(),
        server_version: versions.server,
        server_protocol_version: versions.protocol,
        findings,
    })
}

const NO_WAY: &str = "the server has neither CheckCompatibility nor GetDescriptorSet";

const CHECK_LIMIT: usize = 1024 * 1024;

/// Real descriptor texts are below 200 KiB.
const DESCRIPTOR_LIMIT: usize = 16 * 1024 * 1024;
const VERSION_LIMIT: usize = 4 * 1024;

#[cfg(feature = "model-checking")]
impl Checking {
    pub(super) fn normal_form<H: std::hash::Hasher>(&self, form: &mut crate::NormalForm<H>) {
        let Self {
            id,
            deadline,
            step,
            on,
            authenticated,
            answer,
        } = self;
        form.id(*id);
        form.instant(*deadline);
        match step {
            Step::CheckCompatibility => form.value(0),
            Step::GetDescriptorSet => form.value(1),
            Step::GetVersionInfo { server } => form.value((2, server.descriptor_set())),
        }
        form.id(*on);
        form.value((authenticated, answer));
    }
}
