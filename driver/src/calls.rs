//! Requests on a transport: plain HTTP, and gRPC read frame by frame.
//!
//! The HTTP status is read before gRPC is believed: what a proxy or an older server answers to an
//! unknown path must not pass for a word of a gRPC server.

use crate::transport::Lane;
use bytes::{Buf, Bytes, BytesMut};
use chronicle_connection::{Call, Code, Failure, FailureKind, Origin, Reply, Status};
use futures_util::{Stream, StreamExt, stream};
use http::{
    HeaderMap, HeaderValue, Request, Response, StatusCode,
    header::{CONTENT_TYPE, TE, USER_AGENT},
};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use tonic::body::Body;

/// Sends one HTTP request and reads the whole answer.
pub(crate) async fn http(
    lane: Lane,
    request: Request<Bytes>,
    limit: usize,
) -> Result<Response<Bytes>, Failure> {
    let request = request.map(full);
    let (parts, mut body) = lane.clone().send(request).await?.into_parts();
    let mut read = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| lane.failure(&error))?;
        if let Ok(data) = frame.into_data() {
            if data.len() > limit - read.len() {
                return Err(too_large(limit));
            }
            read.extend_from_slice(&data);
        }
    }
    Ok(Response::from_parts(parts, read.freeze()))
}

/// Whether an answer may have more than one message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    One,
    Many,
}

/// Calls a gRPC method: [`Reply::Message`]s, then [`Reply::Finished`] or [`Reply::Failed`].
pub(crate) fn grpc(lane: Lane, call: Call, answer: Answer) -> impl Stream<Item = Reply> {
    let start = Reading::Start(lane, call, answer);
    stream::unfold(start, |reading| async move {
        match reading.next().await {
            Ok((reply, next)) => Some((reply, next)),
            Err(None) => None,
            Err(Some(failure)) => Some((Reply::Failed(failure), Reading::Done)),
        }
    })
    .boxed()
}

enum Reading {
    Start(Lane, Call, Answer),
    Messages(Messages),
    Done,
}

impl Reading {
    async fn next(self) -> Result<(Reply, Self), Option<Failure>> {
        let mut messages = match self {
            Self::Done => return Err(None),
            Self::Messages(messages) => messages,
            Self::Start(lane, call, answer) => {
                let limit = call.limit;
                let response = lane.clone().send(request(call)).await?;
                let status = refusal(response.status(), response.headers())
                    .or_else(|| status(response.headers()));
                if let Some(status) = status {
                    return Ok((Reply::Finished(status), Self::Done));
                }
                Messages {
                    lane,
                    body: response.into_body(),
                    read: BytesMut::new(),
                    limit,
                    left: match answer {
                        Answer::One => Some(1),
                        Answer::Many => None,
                    },
                }
            }
        };
        Ok(match messages.next().await? {
            Ok(message) => (Reply::Message(message), Self::Messages(messages)),
            Err(status) => (Reply::Finished(status), Self::Done),
        })
    }
}

/// The messages of an answer, each after its five-byte prefix.
struct Messages {
    lane: Lane,
    body: Incoming,
    read: BytesMut,
    limit: usize,
    left: Option<u32>,
}

impl Messages {
    async fn next(&mut self) -> Result<Result<Bytes, Status>, Failure> {
        loop {
            if let Some(message) = self.take()? {
                return Ok(Ok(message));
            }
            let frame = match self.body.frame().await {
                Some(frame) => frame.map_err(|error| self.lane.failure(&error))?,
                None => return Err(protocol("the answer ended without grpc-status")),
            };
            match frame.into_data() {
                Ok(data) => self.read.extend_from_slice(&data),
                Err(frame) => {
                    let trailers = frame.into_trailers().unwrap_or_default();
                    return match status(&trailers) {
                        Some(Status { code: Code::Ok, .. }) if !self.read.is_empty() => {
                            Err(protocol("the answer ended within a message"))
                        }
                        Some(status) => Ok(Err(status)),
                        None => Err(protocol("the answer ended without grpc-status")),
                    };
                }
            }
        }
    }

    /// The next message, if all of it was read.
    fn take(&mut self) -> Result<Option<Bytes>, Failure> {
        let Some((&[compressed, a, b, c, d], rest)) = self.read.split_first_chunk() else {
            return Ok(None);
        };
        if compressed != 0 {
            return Err(protocol("a compressed message, but none was asked for"));
        }
        let length = u32::from_be_bytes([a, b, c, d]) as usize;
        if length > self.limit {
            return Err(too_large(self.limit));
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
}

fn request(call: Call) -> Request<Body> {
    let mut body = BytesMut::with_capacity(PREFIX + call.message.len());
    body.extend_from_slice(&[0]);
    // A message of 4 GiB cannot be sent by gRPC at all; the machine's have a few hundred bytes.
    let length = u32::try_from(call.message.len()).unwrap_or(u32::MAX);
    body.extend_from_slice(&length.to_be_bytes());
    body.extend_from_slice(&call.message);
    let mut request = Request::post(call.path)
        .body(full(body.freeze()))
        .unwrap_or_default();
    *request.headers_mut() = call.metadata;
    let headers = request.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
    headers.insert(TE, HeaderValue::from_static("trailers"));
    headers.insert(USER_AGENT, HeaderValue::from_static(AGENT));
    request
}

fn full(bytes: Bytes) -> Body {
    Body::new(Full::new(bytes))
}

/// The status of an answer that is not gRPC, by gRPC's mapping of HTTP statuses.
pub(crate) fn refusal(http: StatusCode, headers: &HeaderMap) -> Option<Status> {
    let content_type = headers.get(CONTENT_TYPE).map(HeaderValue::as_bytes);
    let is_grpc = content_type.is_some_and(|value| value.starts_with(b"application/grpc"));
    if http == StatusCode::OK && is_grpc {
        return None;
    }
    let code = match http.as_u16() {
        400 => Code::Internal,
        401 => Code::Unauthenticated,
        403 => Code::PermissionDenied,
        404 => Code::Unimplemented,
        429 | 502 | 503 | 504 => Code::Unavailable,
        _ => Code::Unknown,
    };
    let message = match content_type {
        Some(value) if !is_grpc => format!("content type {}", String::from_utf8_lossy(value)),
        Some(_) | None => String::new(),
    };
    Some(Status {
        code,
        message,
        origin: Origin::Http(http.as_u16()),
    })
}

/// The status in trailers, or in headers that have no body behind them.
pub(crate) fn status(headers: &HeaderMap) -> Option<Status> {
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

fn too_large(limit: usize) -> Failure {
    Failure::new(FailureKind::TooLarge, format!("more than {limit} bytes"))
}

const PREFIX: usize = 5;
const AGENT: &str = concat!("chronicle-connection/", env!("CARGO_PKG_VERSION"));
