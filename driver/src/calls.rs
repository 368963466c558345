//! Requests on a transport: plain HTTP, and gRPC read frame by frame.
//!
//! The HTTP status is read before gRPC is believed: what a proxy or an older server answers to an
//! unknown path must not pass for a word of a gRPC server.

use crate::{http2::Incoming, transport::Lane};
use bytes::{Buf, BufMut, Bytes, BytesMut};
use chronicle_connection::{Code, Failure, FailureKind, Reply, Status};
use futures_util::{Stream, StreamExt, stream};
use http::{
    HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Uri,
    header::{CONTENT_TYPE, TE, USER_AGENT},
};
use http_body_util::{BodyExt, Full};
use std::future::Future;
use tonic::body::Body;

/// Sends one HTTP request and reads the whole answer.
pub(crate) fn http(
    lane: Lane,
    request: Request<Bytes>,
    limit: usize,
) -> impl Future<Output = Result<Response<Bytes>, Failure>> {
    let response = lane.clone().send(request.map(full), ());
    async move { whole(&lane, response.await?, limit).await }
}

async fn whole(
    lane: &Lane,
    response: Response<Incoming>,
    limit: usize,
) -> Result<Response<Bytes>, Failure> {
    let (parts, mut body) = response.into_parts();
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
pub(crate) fn grpc(
    lane: Lane,
    request: Request<Body>,
    limit: usize,
    answer: Answer,
) -> impl Stream<Item = Reply> {
    let response = lane.clone().send(request, ());
    stream::once(async move {
        let began = response
            .await
            .map(|response| begin(lane, response, limit, answer));
        match began {
            Ok(Ok(messages)) => messages.replies().left_stream(),
            Ok(Err(status)) => stream::iter([Reply::Finished(status)]).right_stream(),
            Err(failure) => stream::iter([Reply::Failed(failure)]).right_stream(),
        }
    })
    .flatten()
}

fn begin(
    lane: Lane,
    response: Response<Incoming>,
    limit: usize,
    answer: Answer,
) -> Result<Messages, Status> {
    let headers = response.headers();
    if let Some(status) = refusal(response.status(), headers).or_else(|| status(headers)) {
        return Err(status);
    }
    Ok(Messages {
        lane,
        body: response.into_body(),
        read: BytesMut::new(),
        limit,
        left: match answer {
            Answer::One => Some(1),
            Answer::Many => None,
        },
    })
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
    fn replies(self) -> impl Stream<Item = Reply> {
        stream::unfold(Some(self), |messages| async {
            let mut messages = messages?;
            Some(match messages.next().await {
                Ok(Ok(message)) => (Reply::Message(message), Some(messages)),
                Ok(Err(status)) => (Reply::Finished(status), None),
                Err(failure) => (Reply::Failed(failure), None),
            })
        })
    }

    /// The next message, or how the call ended.
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

/// The request of a gRPC call with one message.
pub(crate) fn request(path: &'static str, metadata: HeaderMap, message: &[u8]) -> Request<Body> {
    let mut body = BytesMut::with_capacity(PREFIX + message.len());
    body.put_u8(0);
    // gRPC has no messages of 4 GiB; those of the machine are contracts at most.
    body.put_u32(u32::try_from(message.len()).unwrap_or(u32::MAX));
    body.put_slice(message);
    let mut request = Request::new(full(body.freeze()));
    *request.method_mut() = Method::POST;
    *request.uri_mut() = Uri::from_static(path);
    *request.headers_mut() = metadata;
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
    let message = match content_type {
        Some(value) if !is_grpc => format!("content type {}", String::from_utf8_lossy(value)),
        Some(_) | None => String::new(),
    };
    Some(Status::http(http.as_u16(), message))
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
