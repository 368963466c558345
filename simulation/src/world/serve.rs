//! Requests of clients, served from a server's model.

use super::{Arrival, Fault, ServerId, TransportKey, World, queue::Happening, server::Stream};
use crate::{
    id_of, request_of,
    wire::{http, message, ok},
};
use bytes::Bytes;
use chronicle_connection::{Code, Failure, FailureKind, Id, Output, Reply, Request, Status};
use chronicle_connection_proto::clients::{
    CompatibilityRequest, ConnectRequest, ConnectionKeepAlive,
};
use chronicle_reference_server::model::{ServerModel, StreamKey};
use http::HeaderMap;
use prost::Message as _;
use std::time::{Duration, Instant};

/// A request on its way, with what its answer needs.
#[derive(Debug, Clone)]
pub(super) struct Ask {
    pub(super) key: TransportKey,
    pub(super) id: Id,
    request: Request,
    path: String,
    metadata: HeaderMap,
    message: Bytes,
    /// The most bytes that the client's adapter reads of the answer.
    limit: usize,
}

impl Ask {
    pub(super) fn new(key: TransportKey, output: Output) -> Option<Self> {
        let (id, request) = (id_of(&output)?, request_of(&output)?);
        let (path, metadata, message, limit) = match output {
            Output::Http { request, limit, .. } => {
                let path = request.uri().path().to_owned();
                (path, request.headers().clone(), request.into_body(), limit)
            }
            Output::Unary(call) | Output::ServerStream(call) => (
                call.path.to_owned(),
                call.metadata,
                call.message,
                call.limit,
            ),
            Output::NameServers { .. }
            | Output::Dns { .. }
            | Output::Open { .. }
            | Output::Cancel(_)
            | Output::Close(_)
            | Output::Event(_) => return None,
        };
        Some(Self {
            key,
            id,
            request,
            path,
            metadata,
            message,
            limit,
        })
    }
}

impl World {
    /// A request arrives at its server.
    pub(super) fn arrive(&mut self, ask: Ask) {
        let Some(transport) = self.transport(ask.key) else {
            return;
        };
        if transport.is_black_hole {
            return;
        }
        let (server, at) = (transport.server, self.elapsed());
        let slot = &mut self.servers[server.0];
        slot.load(at).count(ask.request);
        if self.recording.arrivals {
            slot.arrivals.push(Arrival {
                at,
                client: ask.key.0,
                request: ask.request,
            });
        }
        let faults = slot.faults.iter();
        let fault = faults.rev().find(|(what, _)| *what == ask.request);
        let fault = fault.map(|(_, fault)| fault.clone());
        let mut delay = Duration::ZERO;
        let replies = match fault {
            Some(Fault::Hangs) => return,
            Some(Fault::Fails(kind)) => vec![Reply::Failed(Failure::new(kind, "as told"))],
            Some(Fault::Http(status, body)) => vec![turned_down(ask.request, status, body)],
            Some(Fault::Status(status)) => vec![Reply::Finished(status)],
            Some(Fault::Slow(duration)) => {
                delay = duration;
                self.serve(server, &ask)
            }
            None => self.serve(server, &ask),
        };
        if delay.is_zero() {
            self.answer(&ask, replies);
        } else {
            let answers = Happening::ServerAnswers { call: ask, replies };
            self.queue.push(self.now + delay, answers);
        }
        self.pump(server);
    }

    /// Sends replies to a request.
    pub(super) fn answer(&mut self, ask: &Ask, replies: Vec<Reply>) {
        self.send_replies(ask.key, ask.id, ask.limit, replies);
    }

    /// Sends replies, as far as the client's adapter reads them.
    fn send_replies(&mut self, key: TransportKey, id: Id, limit: usize, replies: Vec<Reply>) {
        for reply in replies {
            let length = match &reply {
                Reply::Http(response) => response.body().len(),
                Reply::Message(message) => message.len(),
                Reply::NameServers(_)
                | Reply::Opened { .. }
                | Reply::GoingAway { .. }
                | Reply::Closed(_)
                | Reply::Finished(_)
                | Reply::Failed(_) => 0,
            };
            if length > limit {
                let failure = Failure::new(FailureKind::TooLarge, "");
                return self.send_down(key, id, Reply::Failed(failure));
            }
            self.send_down(key, id, reply);
        }
    }

    /// Sends the keep-alives that are due, and plans the next.
    pub(super) fn pump(&mut self, id: ServerId) {
        let now = self.now;
        if self.servers[id.0].paused.is_some() {
            return;
        }
        while let Some((stream, keep_alive)) = self.servers[id.0].model.poll_push(now) {
            if let Some(&Stream { key, id, limit }) = self.servers[id.0].streams.get(&stream) {
                self.send_replies(key, id, limit, vec![message(&keep_alive)]);
            }
        }
        let server = &mut self.servers[id.0];
        // A wake that comes too early finds nothing to do, and plans the next.
        if let Some(due) = server.model.poll_timeout()
            && server.wake.is_none_or(|planned| planned > due)
        {
            server.wake = Some(due);
            self.queue.push(due, Happening::ServerWakes(id));
        }
    }

    pub(super) fn wake_server(&mut self, id: ServerId) {
        let server = &mut self.servers[id.0];
        if server.wake == Some(self.now) {
            server.wake = None;
            self.pump(id);
        }
    }

    /// The client has dropped a request.
    pub(super) fn cancelled(&mut self, key: TransportKey, id: Id) {
        if let Some(transport) = self.transport_mut(key)
            && !transport.is_black_hole
            && let Some(at) = transport.streams.iter().position(|(ask, _)| *ask == id)
        {
            let (_, stream) = transport.streams.remove(at);
            let server = transport.server;
            self.end_streams(server, [stream]);
        }
    }

    /// The client has dropped a transport.
    pub(super) fn closed_by_client(&mut self, key: TransportKey) {
        if self.is_black_holed(key) {
            return;
        }
        if let Some(transport) = self.clients[key.0.0].transports.remove(key.1) {
            let streams = transport.streams.iter().map(|(_, stream)| *stream);
            self.end_streams(transport.server, streams);
        }
    }

    /// Ends `Connect` streams on the side of the server.
    pub(super) fn end_streams(
        &mut self,
        id: ServerId,
        streams: impl IntoIterator<Item = StreamKey>,
    ) {
        let (now, server) = (self.now, &mut self.servers[id.0]);
        for stream in streams {
            server.streams.remove(&stream);
            server.model.disconnect(now, stream);
        }
        self.pump(id);
    }

    fn serve(&mut self, id: ServerId, ask: &Ask) -> Vec<Reply> {
        let (now, server) = (self.now, &mut self.servers[id.0]);
        if !server.model.admits(now, &ask.path, &ask.metadata) {
            return vec![turned_down(ask.request, 401, String::new())];
        }
        if ask.request == Request::Connect {
            let Ok(request) = ConnectRequest::decode(ask.message.clone()) else {
                return vec![malformed()];
            };
            let stream = server.model.connect(now, &request);
            let (key, id, limit) = (ask.key, ask.id, ask.limit);
            server.streams.insert(stream, Stream { key, id, limit });
            if let Some(transport) = self.transport_mut(key) {
                transport.streams.push((id, stream));
            }
            return vec![];
        }
        reply_to(&mut server.model, now, ask)
    }
}

fn reply_to(model: &mut ServerModel, now: Instant, ask: &Ask) -> Vec<Reply> {
    let response = match ask.request {
        Request::Count => return vec![http(200, model.count(now).to_string())],
        Request::Reserve => {
            model.reserve(now);
            return vec![http(200, "")];
        }
        Request::Token => {
            let answer = model.token(now, &ask.message);
            return vec![http(answer.status().as_u16(), answer.into_body())];
        }
        Request::Connect => return vec![],
        Request::KeepAlive => match ConnectionKeepAlive::decode(ask.message.clone()) {
            Ok(answer) => {
                model.keep_alive(now, &answer);
                Ok(message(&()))
            }
            Err(_) => return vec![malformed()],
        },
        Request::CheckCompatibility => match CompatibilityRequest::decode(ask.message.clone()) {
            Ok(request) => model
                .check_compatibility(&request)
                .map(|response| message(&response)),
            Err(_) => return vec![malformed()],
        },
        Request::GetDescriptorSet => model.descriptor_set().map(|response| message(&response)),
        Request::GetVersionInfo => model.version_info().map(|response| message(&response)),
    };
    match response {
        Ok(response) => vec![response, ok()],
        Err(status) => vec![Reply::Finished(status)],
    }
}

/// What an adapter makes of an HTTP answer: itself for a plain request, a status for a call.
fn turned_down(request: Request, status: u16, body: String) -> Reply {
    match request {
        Request::Count | Request::Reserve | Request::Token => http(status, body),
        Request::CheckCompatibility
        | Request::GetDescriptorSet
        | Request::GetVersionInfo
        | Request::Connect
        | Request::KeepAlive => Reply::Finished(Status::http(status, body)),
    }
}

fn malformed() -> Reply {
    Reply::Finished(Status::grpc(Code::Internal, "cannot be decoded"))
}
