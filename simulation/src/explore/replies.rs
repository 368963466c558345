//! What can come back for what is asked: the table of the vocabulary, each row with what a good
//! server says and with every other way.

use crate::{compatible, http, incompatible, keep_alive, ok, status, wire};
use bytes::Bytes;
use chronicle_connection::{
    Code, DEFAULT_PORT, Endpoint, Failure, FailureKind, Id, Reply, Request,
};
use chronicle_connection_proto::{clients::DescriptorSetResponse, host::ServerVersionInfo};
use chronicle_reference_server::model::ModelConfig;
use hickory_proto::{
    op::{Message, ResponseCode},
    rr::{Name, RData, Record, rdata::SRV},
};
use std::net::{Ipv4Addr, SocketAddr};

/// Something that a machine has asked for and that may still be answered.
#[derive(Debug, Clone)]
pub(super) struct Asked {
    pub(super) id: Id,
    /// The transport it is on.
    pub(super) on: Option<Id>,
    pub(super) what: What,
}

/// What it has asked for.
#[derive(Debug, Clone)]
pub(super) enum What {
    NameServers,
    Dns {
        question: Bytes,
    },
    /// A transport that is not open yet.
    Dialled,
    /// A transport that is open.
    Open {
        /// Whether its server has said something that makes it, rightly, unfit for a session.
        is_spoilt: bool,
    },
    Call {
        request: Request,
        /// Whether a message of the answer has come.
        has_message: bool,
        /// Of `Connect`: the id that it registers.
        connection_id: Option<String>,
    },
}

/// A reply, and what it means, for people.
#[derive(Debug, Clone)]
pub(super) struct Answer {
    pub(super) reply: Reply,
    pub(super) meaning: &'static str,
}

/// How the servers of an exploration are.
#[derive(Debug, Clone, Copy)]
pub(super) struct Servers {
    /// Whether a good one lacks `CheckCompatibility`.
    pub(super) are_old: bool,
}

impl Servers {
    /// Which of the answers a good server gives next; `None` where it need not say anything. (What
    /// is good of a server that has turned out unfit is that it goes.)
    pub(super) fn good(self, asked: &What) -> Option<usize> {
        match asked {
            What::NameServers | What::Dns { .. } | What::Dialled => Some(0),
            What::Open { is_spoilt } => is_spoilt.then_some(0),
            What::Call {
                request,
                has_message,
                ..
            } => match request {
                Request::Count
                | Request::Reserve
                | Request::Token
                | Request::Connect
                | Request::KeepAlive => Some(0),
                Request::CheckCompatibility if self.are_old => Some(2),
                Request::CheckCompatibility
                | Request::GetDescriptorSet
                | Request::GetVersionInfo => Some(usize::from(*has_message)),
            },
        }
    }
}

/// Everything that can come back: one reply of each kind that makes a difference, what is not
/// allowed included.
pub(super) fn answers(asked: &What) -> Vec<Answer> {
    let all = match asked {
        What::NameServers => vec![
            ("two name servers", name_servers(&[1, 2])),
            ("no name servers", name_servers(&[])),
            ("cannot be read", failed(FailureKind::Unreachable)),
            ("of the wrong kind", opened()),
        ],
        What::Dns { question } => dns_answers(question),
        What::Dialled => vec![
            ("open", opened()),
            ("refused", failed(FailureKind::Refused)),
            ("of the wrong kind", Reply::GoingAway { code: 0 }),
        ],
        What::Open { .. } => vec![
            ("closed", Reply::Closed(failure(FailureKind::Reset))),
            ("GOAWAY without error", Reply::GoingAway { code: 0 }),
            ("GOAWAY with an error", Reply::GoingAway { code: 2 }),
            ("open once more", opened()),
        ],
        What::Call {
            request,
            connection_id,
            ..
        } => call_answers(*request, connection_id.as_deref().unwrap_or_default()),
    };
    let answers = all.into_iter();
    answers
        .map(|(meaning, reply)| Answer { meaning, reply })
        .collect()
}

/// Whether a reply to a check is one after which the server is unfit, or may be.
pub(super) fn spoils(asked: &What, reply: &Reply) -> bool {
    let What::Call {
        request: Request::CheckCompatibility | Request::GetDescriptorSet | Request::GetVersionInfo,
        has_message,
        ..
    } = asked
    else {
        return false;
    };
    let Reply::Message(message) = reply else {
        return false;
    };
    let good = answers(asked).into_iter().next().map(|good| good.reply);
    let is_good = matches!(good, Some(Reply::Message(good)) if good == *message);
    *has_message || !is_good
}

type Meant = (&'static str, Reply);

fn call_answers(request: Request, connection_id: &str) -> Vec<Meant> {
    let mut all = match request {
        Request::Count => vec![
            ("1 client", http(200, "1")),
            ("2 clients", http(200, "2")),
            ("no number", http(200, "many")),
        ],
        Request::Reserve => vec![("reserved", http(200, "")), ("refused", http(500, ""))],
        Request::Token => vec![
            ("a token for 4 s", http(200, TOKEN)),
            ("wrong secret", http(401, WRONG_SECRET)),
            ("refused", http(500, "")),
        ],
        Request::CheckCompatibility => vec![
            ("compatible", compatible()),
            ("OK", ok()),
            ("unknown method", status(Code::Unimplemented)),
            ("incompatible", incompatible(false, &["A is gone"])),
            ("no verdict", Reply::Message(Bytes::from_static(&[0xff]))),
        ],
        Request::GetDescriptorSet => vec![
            ("its text", text(&good_text())),
            ("OK", ok()),
            ("unknown method", status(Code::Unimplemented)),
            ("a text without the session", text(APPLICATION)),
            ("no text", text("")),
        ],
        Request::GetVersionInfo => vec![
            ("an older version", version("16.0.0")),
            ("OK", ok()),
            ("unknown method", status(Code::Unimplemented)),
            ("a newer version", version("99.0.0")),
        ],
        Request::Connect => vec![
            ("a keep-alive", keep_alive(connection_id)),
            ("a foreign keep-alive", keep_alive("another")),
            ("the end", ok()),
            ("unknown method", status(Code::Unimplemented)),
        ],
        Request::KeepAlive => vec![
            ("OK", ok()),
            ("the empty message", Reply::Message(Bytes::new())),
            ("unknown method", status(Code::Unimplemented)),
        ],
    };
    let is_http = matches!(request, Request::Count | Request::Reserve | Request::Token);
    if is_http {
        all.push(("of the wrong kind", Reply::Message(Bytes::new())));
    } else {
        all.push(("not now", status(Code::Unavailable)));
        all.push(("unauthenticated", status(Code::Unauthenticated)));
        all.push(("of the wrong kind", http(200, "")));
    }
    all.push(("failed", failed(FailureKind::Reset)));
    all
}

fn dns_answers(question: &Bytes) -> Vec<Meant> {
    let answer = |change: &dyn Fn(&mut Message)| {
        // What the machine asks can be read; an answer that cannot be made is of no use to it.
        let mut answer = Message::from_vec(question).map_or_else(
            |_| Message::response(0, hickory_proto::op::OpCode::Query),
            Message::into_response,
        );
        change(&mut answer);
        Bytes::from(answer.to_vec().unwrap_or_default())
    };
    let records = |targets: &'static [&'static str]| answer(&|all| add_records(all, targets));
    let code = |code| answer(&|all: &mut Message| all.metadata.response_code = code);
    let good = records(&["s1", "s2"]);
    let unreadable = good.slice(..good.len() - 1);
    let messages = [
        ("two servers", good),
        ("one server", records(&["s2"])),
        ("no such name", code(ResponseCode::NXDomain)),
        ("no records", records(&[])),
        ("not offered", records(&[""])),
        ("server failure", code(ResponseCode::ServFail)),
        (
            "EDNS is unknown",
            answer(&|all| {
                all.metadata.response_code = ResponseCode::FormErr;
                all.edns = None;
            }),
        ),
        ("truncated", answer(&|all| all.metadata.truncation = true)),
        (
            "forged",
            answer(&|all| all.metadata.id = all.metadata.id.wrapping_add(1)),
        ),
        ("cannot be read", unreadable),
    ];
    let messages = messages.into_iter();
    messages
        .map(|(meaning, message)| (meaning, Reply::Message(message)))
        .chain([
            ("failed", failed(FailureKind::Unreachable)),
            ("of the wrong kind", ok()),
        ])
        .collect()
}

fn add_records(answer: &mut Message, targets: &[&str]) {
    let Some(query) = answer.queries.first() else {
        return;
    };
    let owner = query.name.clone();
    for target in targets {
        // The targets are names.
        let target = Name::from_ascii(format!("{target}.")).unwrap_or_default();
        let srv = RData::SRV(SRV::new(0, 0, DEFAULT_PORT, target));
        answer.add_answer(Record::from_rdata(owner.clone(), 60, srv));
    }
}

fn name_servers(hosts: &[u8]) -> Reply {
    let endpoint = |host: &u8| Endpoint::new(Ipv4Addr::new(10, 0, 0, *host).into(), 53);
    Reply::NameServers(hosts.iter().map(endpoint).collect())
}

pub(super) fn opened() -> Reply {
    Reply::Opened {
        peer: SocketAddr::from(([10, 0, 0, 1], DEFAULT_PORT)),
    }
}

fn failed(kind: FailureKind) -> Reply {
    Reply::Failed(failure(kind))
}

fn failure(kind: FailureKind) -> Failure {
    Failure::new(kind, "")
}

fn good_text() -> String {
    format!("{}\n{APPLICATION}", ModelConfig::default().schema)
}

fn text(text: &str) -> Reply {
    wire::message(&DescriptorSetResponse {
        schema_definition: text.to_owned(),
    })
}

fn version(version: &str) -> Reply {
    wire::message(&ServerVersionInfo {
        version: version.to_owned(),
        ..ServerVersionInfo::default()
    })
}

/// Its refresh is due after 3 s, within the time that a session may be silent.
const TOKEN: &str = r#"{"access_token":"t","expires_in":4}"#;

const WRONG_SECRET: &str = r#"{"error":"invalid_client"}"#;

/// What an application adds to the contract of its server.
const APPLICATION: &str = "syntax = \"proto3\";\npackage a;\nmessage M {}\n\
    service S { rpc Call (M) returns (M); }\n";
