//! The one retry there is: of a call that was refused for its token.

use crate::{Runtime, body::ResponseBody, calls, pool::Live};
use bytes::{Bytes, BytesMut};
use chronicle_connection::{Code, Command, Contract};
use futures_util::{FutureExt, StreamExt, stream};
use http::{Request, Response, request::Parts};
use http_body::Frame;
use http_body_util::{BodyExt, BodyStream, Full, StreamBody};
use tokio::sync::{mpsc, watch};
use tonic::{Status, body::Body};

/// Marks a call that may be sent twice if the server refuses it for its token, though its method is
/// not unary in the contract:
///
/// ```
/// # use chronicle_connection_driver::Retryable;
/// let mut request = tonic::Request::new(());
/// request.extensions_mut().insert(Retryable);
/// ```
///
/// Its request must be one message all the same, and the refusal must come in the headers of the
/// answer; see [`Channel`](crate::Channel).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retryable;

/// How refused calls come to a new token. All of them share one refresh.
#[derive(Clone)]
pub(crate) struct Refresh {
    contract: Contract,
    /// Changes at the end of each refresh.
    news: watch::Receiver<()>,
}

/// What is needed to send a request once more.
pub(crate) struct Copy {
    parts: Parts,
    message: Bytes,
    is_unary: bool,
}

impl Refresh {
    pub(crate) fn new(contract: Contract, news: watch::Receiver<()>) -> Self {
        Self { contract, news }
    }

    /// Takes a copy of a request that may be sent twice.
    pub(crate) fn keep(&self, request: Request<Body>) -> (Request<Body>, Option<Copy>) {
        let is_unary = self.contract.schema().is_unary(request.uri().path());
        if !is_unary && request.extensions().get::<Retryable>().is_none() {
            return (request, None);
        }
        let (parts, body) = request.into_parts();
        match one_message(body) {
            Ok(message) => {
                let copy = Copy {
                    parts: parts.clone(),
                    message: message.clone(),
                    is_unary,
                };
                (Request::from_parts(parts, full(message)), Some(copy))
            }
            Err(body) => (Request::from_parts(parts, body), None),
        }
    }

    /// Waits for a newer token than that of a generation; `false` where there is none to be had.
    pub(crate) async fn brings_newer<R: Runtime>(
        &self,
        generation: u64,
        live: &watch::Receiver<Option<Live<R>>>,
        commands: &mpsc::WeakUnboundedSender<Command>,
    ) -> bool {
        let is_there = || {
            let live = live.borrow();
            live.as_ref()
                .is_some_and(|live| live.metadata.generation > generation)
        };
        let mut news = self.news.clone();
        news.mark_unchanged();
        if is_there() {
            return true;
        }
        let refresh = Command::RefreshToken {
            rejected: generation,
        };
        // A client that is closed refreshes nothing.
        let asked = commands.upgrade().map(|commands| commands.send(refresh));
        matches!(asked, Some(Ok(()))) && news.changed().await.is_ok() && is_there()
    }
}

impl Copy {
    /// Looks at what comes first of an answer to a unary call, which may be its end.
    pub(crate) async fn first_of<R: Runtime>(
        &self,
        mut answer: Result<Response<ResponseBody<R>>, Status>,
    ) -> Result<Response<ResponseBody<R>>, Status> {
        if self.is_unary
            && let Ok(response) = &mut answer
        {
            response.body_mut().await_first().await;
        }
        answer
    }

    pub(crate) fn into_request(self) -> Request<Body> {
        Request::from_parts(self.parts, full(self.message))
    }
}

/// Whether an answer is a refusal for want of credentials, before any message.
pub(crate) fn is_unauthenticated<R: Runtime>(
    answer: &Result<Response<ResponseBody<R>>, Status>,
) -> bool {
    let response = match answer {
        Ok(response) => response,
        Err(status) => return status.code() == tonic::Code::Unauthenticated,
    };
    let trailers = response.body().first().and_then(Frame::trailers_ref);
    let status = calls::status(response.headers()).or_else(|| calls::status(trailers?));
    status.is_some_and(|status| status.code == Code::Unauthenticated)
}

/// The whole of a body, where it is there already and is one message of bearable size; else a body
/// that is like the one given.
fn one_message(mut body: Body) -> Result<Bytes, Body> {
    let mut read = BytesMut::new();
    loop {
        let rest = match body.frame().now_or_never() {
            Some(Some(Ok(frame))) => match frame.into_data() {
                Ok(data) => {
                    read.extend_from_slice(&data);
                    if read.len() <= PREFIX + LARGEST {
                        continue;
                    }
                    None
                }
                Err(trailers) => Some(Ok(trailers)),
            },
            Some(Some(Err(status))) => Some(Err(status)),
            Some(None) if is_one_message(&read) => return Ok(read.freeze()),
            Some(None) | None => None,
        };
        let read = (!read.is_empty()).then(|| Ok(Frame::data(read.freeze())));
        let read = stream::iter(read.into_iter().chain(rest));
        return Err(Body::new(StreamBody::new(
            read.chain(BodyStream::new(body)),
        )));
    }
}

fn is_one_message(read: &[u8]) -> bool {
    read.split_first_chunk::<PREFIX>()
        .is_some_and(|(&[_, a, b, c, d], message)| {
            u32::from_be_bytes([a, b, c, d]) as usize == message.len()
        })
}

fn full(message: Bytes) -> Body {
    Body::new(Full::new(message))
}

/// The length of what stands before a message.
const PREFIX: usize = 5;
/// The longest message that is kept.
const LARGEST: usize = 1024 * 1024;

#[cfg(test)]
mod tests {
    use super::*;

    fn message(length: usize) -> Vec<u8> {
        let mut message = vec![0];
        message.extend_from_slice(&u32::try_from(length).unwrap().to_be_bytes());
        message.resize(PREFIX + length, 7);
        message
    }

    async fn whole(body: Body) -> Vec<u8> {
        body.collect().await.unwrap().to_bytes().to_vec()
    }

    #[tokio::test]
    async fn only_one_complete_message_of_at_most_a_mebibyte_is_kept() {
        let two = [message(3), message(4)].concat();
        for (sent, is_kept) in [
            (message(0), true),
            (message(LARGEST), true),
            (message(LARGEST + 1), false),
            (message(9)[..8].to_vec(), false),
            (two, false),
            (vec![], false),
        ] {
            match one_message(full(sent.clone().into())) {
                Ok(kept) => assert!(is_kept && kept == sent),
                Err(body) => assert!(!is_kept && whole(body).await == sent),
            }
        }
    }

    #[tokio::test]
    async fn a_body_that_is_still_to_come_is_left_as_it_is() {
        let (sender, receiver) = tokio::sync::mpsc::unbounded_channel();
        let frames = tokio_stream::wrappers::UnboundedReceiverStream::new(receiver);
        let frame = |bytes: Vec<u8>| Ok::<_, Status>(Frame::data(Bytes::from(bytes)));
        sender.send(frame(message(3))).unwrap();
        let body = one_message(Body::new(StreamBody::new(frames))).unwrap_err();
        sender.send(frame(message(4))).unwrap();
        drop(sender);
        assert_eq!(whole(body).await, [message(3), message(4)].concat());
    }
}
