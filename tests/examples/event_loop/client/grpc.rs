//! gRPC over HTTP/2: five bytes before each message, and a status in the trailers.

use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};
use chronicle_connection::{Call, Code, Failure, FailureKind, Status};
use http::{HeaderMap, HeaderValue, Method, Request, Uri, header, response::Parts};

/// The request of a call with one message.
pub(super) fn request(call: Call) -> Request<Bytes> {
    let mut body = BytesMut::with_capacity(PREFIX + call.message.len());
    body.put_u8(0);
    // The machine sends contracts at most, which are far from 4 GiB.
    body.put_u32(u32::try_from(call.message.len()).unwrap_or(u32::MAX));
    body.put_slice(&call.message);
    let mut request = Request::new(body.freeze());
    *request.method_mut() = Method::POST;
    *request.uri_mut() = Uri::from_static(call.path);
    *request.headers_mut() = call.metadata;
    let headers = request.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(GRPC));
    headers.insert(header::TE, HeaderValue::from_static("trailers"));
    request
}

/// The status of an answer that has no messages: one of gRPC alone, or one that is not gRPC.
///
/// The HTTP status comes before gRPC is believed: what a proxy answers to an unknown path must not
/// pass for a word of a gRPC server.
pub(super) fn early_end(head: &Parts) -> Option<Status> {
    let content_type = head.headers.get(header::CONTENT_TYPE);
    let is_grpc = content_type.is_some_and(|value| value.as_bytes().starts_with(GRPC.as_bytes()));
    let http = head.status.as_u16();
    if http == 200 && is_grpc {
        return status(&head.headers);
    }
    Some(Status::http(http, ""))
}

/// The messages of an answer, from bytes in pieces of any size.
pub(super) struct Messages {
    read: BytesMut,
    limit: usize,
    /// How many may still come; `None` is any number.
    left: Option<u32>,
}

impl Messages {
    pub(super) fn new(limit: usize, left: Option<u32>) -> Self {
        Self {
            read: BytesMut::new(),
            limit,
            left,
        }
    }

    pub(super) fn feed(&mut self, data: &[u8]) {
        self.read.extend_from_slice(data);
    }

    /// The next message, if all of it was read.
    pub(super) fn next(&mut self) -> Result<Option<Bytes>, Failure> {
        let Some((&[compressed, a, b, c, d], rest)) = self.read.split_first_chunk() else {
            return Ok(None);
        };
        if compressed != 0 {
            return Err(protocol("a compressed message, but none was asked for"));
        }
        let length = u32::from_be_bytes([a, b, c, d]) as usize;
        if length > self.limit {
            let text = format!("more than {} bytes", self.limit);
            return Err(Failure::new(FailureKind::TooLarge, text));
        }
        if rest.len() < length {
            return Ok(None);
        }
        match &mut self.left {
            Some(0) => return Err(protocol("more than one message to a unary call")),
            Some(left) => *left -= 1,
            None => {}
        }
        self.read.advance(PREFIX);
        Ok(Some(self.read.split_to(length).freeze()))
    }

    /// How the call ended, by its trailers.
    pub(super) fn end(&self, trailers: &HeaderMap) -> Result<Status, Failure> {
        match status(trailers) {
            Some(status) if status.code == Code::Ok && !self.read.is_empty() => {
                Err(protocol("the answer ended within a message"))
            }
            Some(status) => Ok(status),
            None => Err(protocol("the answer ended without grpc-status")),
        }
    }
}

fn status(headers: &HeaderMap) -> Option<Status> {
    let number = headers.get("grpc-status")?;
    let number = number.to_str().ok().and_then(|text| text.parse().ok());
    let message = headers.get("grpc-message").map(|message| {
        percent_encoding::percent_decode(message.as_bytes())
            .decode_utf8_lossy()
            .into_owned()
    });
    Some(Status::grpc(
        number.map_or(Code::Unknown, Code::from_number),
        message.unwrap_or_default(),
    ))
}

fn protocol(text: &str) -> Failure {
    Failure::new(FailureKind::Protocol, text)
}

const PREFIX: usize = 5;
const GRPC: &str = "application/grpc";
