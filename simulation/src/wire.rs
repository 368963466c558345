//! What outputs ask for, and the replies that a server would give.

use bytes::Bytes;
use chronicle_connection::{
    Code, DEFAULT_PORT, Endpoint, Host, Id, Output, Reply, Request, Status,
};
use chronicle_connection_proto::{
    clients::{CompatibilityResponse, ConnectRequest, ConnectionKeepAlive},
    paths,
};
use http::{Method, Response};
use prost::Message as _;

/// The id that an output opens; nothing for a [`Cancel`](Output::Cancel), a
/// [`Close`](Output::Close) and an event.
pub fn id_of(output: &Output) -> Option<Id> {
    match output {
        Output::NameServers { id }
        | Output::Dns { id, .. }
        | Output::Open { id, .. }
        | Output::Http { id, .. } => Some(*id),
        Output::Unary(call) | Output::ServerStream(call) => Some(call.id),
        Output::Cancel(_) | Output::Close(_) | Output::Event(_) => None,
    }
}

/// The transport that a request is on; nothing for whatever is no request on a transport.
pub fn transport_of(output: &Output) -> Option<Id> {
    match output {
        Output::Http { on, .. } => Some(*on),
        Output::Unary(call) | Output::ServerStream(call) => Some(call.on),
        Output::NameServers { .. }
        | Output::Dns { .. }
        | Output::Open { .. }
        | Output::Cancel(_)
        | Output::Close(_)
        | Output::Event(_) => None,
    }
}

/// The server of a name, on the default port.
pub fn endpoint(name: &str) -> Endpoint {
    Endpoint::new(Host::Name(name.to_owned()), DEFAULT_PORT)
}

/// Which request of the protocol an output makes.
pub fn request_of(output: &Output) -> Option<Request> {
    match output {
        Output::Http { request, .. } => match (request.method(), request.uri().path()) {
            (&Method::GET, "/connections/count") => Some(Request::Count),
            (&Method::POST, "/connections/reserve") => Some(Request::Reserve),
            (&Method::POST, "/connect/token") => Some(Request::Token),
            (_, _) => None,
        },
        Output::Unary(call) => match call.path {
            paths::CHECK_COMPATIBILITY => Some(Request::CheckCompatibility),
            paths::GET_DESCRIPTOR_SET => Some(Request::GetDescriptorSet),
            paths::GET_VERSION_INFO => Some(Request::GetVersionInfo),
            paths::CONNECTION_KEEP_ALIVE => Some(Request::KeepAlive),
            _ => None,
        },
        Output::ServerStream(call) => (call.path == paths::CONNECT).then_some(Request::Connect),
        Output::NameServers { .. }
        | Output::Dns { .. }
        | Output::Open { .. }
        | Output::Cancel(_)
        | Output::Close(_)
        | Output::Event(_) => None,
    }
}

/// The connection id in the message of a `Connect` or of a keep-alive's answer.
pub fn connection_id_of(output: &Output) -> Option<String> {
    match output {
        Output::ServerStream(call) if call.path == paths::CONNECT => {
            let request = ConnectRequest::decode(call.message.clone()).ok()?;
            Some(request.connection_id)
        }
        Output::Unary(call) if call.path == paths::CONNECTION_KEEP_ALIVE => {
            let answer = ConnectionKeepAlive::decode(call.message.clone()).ok()?;
            Some(answer.connection_id)
        }
        Output::NameServers { .. }
        | Output::Dns { .. }
        | Output::Open { .. }
        | Output::Http { .. }
        | Output::Unary(_)
        | Output::ServerStream(_)
        | Output::Cancel(_)
        | Output::Close(_)
        | Output::Event(_) => None,
    }
}

/// A whole HTTP response.
///
/// # Panics
/// Where HTTP has no such status.
pub fn http(status: u16, body: impl Into<Bytes>) -> Reply {
    let mut response = Response::new(body.into());
    match http::StatusCode::from_u16(status) {
        Ok(status) => *response.status_mut() = status,
        Err(error) => panic!("{status}: {error}"),
    }
    Reply::Http(response)
}

/// The good end of a call.
pub fn ok() -> Reply {
    status(Code::Ok)
}

/// The end of a call, as a gRPC server says it.
pub fn status(code: Code) -> Reply {
    let text = if code == Code::Ok {
        ""
    } else {
        "so says the server"
    };
    Reply::Finished(Status::grpc(code, text))
}

/// A keep-alive.
pub fn keep_alive(connection_id: &str) -> Reply {
    message(&ConnectionKeepAlive {
        connection_id: connection_id.to_owned(),
    })
}

/// The answer of a check that passes.
pub fn compatible() -> Reply {
    message(&verdict(true, &[]))
}

/// The answer of a check that finds something.
pub fn incompatible(is_compatible: bool, findings: &[&str]) -> Reply {
    message(&verdict(is_compatible, findings))
}

pub(crate) fn message(message: &impl prost::Message) -> Reply {
    Reply::Message(message.encode_to_vec().into())
}

fn verdict(is_compatible: bool, findings: &[&str]) -> CompatibilityResponse {
    CompatibilityResponse {
        is_compatible,
        incompatibilities: findings.iter().map(|&finding| finding.to_owned()).collect(),
        server_version: "18.5.0".to_owned(),
        server_protocol_version: "18.5.1".to_owned(),
        capabilities: vec![],
    }
}
