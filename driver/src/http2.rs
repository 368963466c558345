//! Requests on an HTTP/2 connection: what is sent, and what comes back.
//!
//! A stream of HTTP/2 lives until both of its sides are over. Here the one of the request ends with
//! the other, even where the peer reads nothing of it: h2 resets what nobody holds any more.

use bytes::Bytes;
use futures_util::future::select;
use h2::{
    Reason, RecvStream, SendStream,
    client::{Builder, SendRequest},
};
use http::{HeaderName, Method, Request, Response, header};
use http_body::{Body as _, Frame};
use std::{
    convert::Infallible,
    future::{Future, poll_fn},
    pin::{Pin, pin},
    task::{Context, Poll, ready},
};
use tokio::sync::oneshot;
use tonic::body::Body;

pub(crate) fn builder() -> Builder {
    let mut builder = Builder::new();
    builder
        .enable_push(false)
        .initial_window_size(STREAM_WINDOW)
        .initial_connection_window_size(STREAM_WINDOW * MAX_STREAMS)
        .max_header_list_size(16 * 1024)
        .max_send_buffer_size(1024 * 1024)
        // Until the peer tells its own.
        .initial_max_send_streams(MAX_STREAMS as usize)
        // Calls that were cancelled while an answer was under way must not end the connection, as
        // they would once these defaults are used up.
        .max_concurrent_reset_streams(1024)
        .max_local_error_reset_streams(None);
    builder
}

/// Begins a request, and gives what is left to do: the sending of its body, which somebody must poll,
/// and the wait for its answer. Who drops the latter, or the answer, ends the former.
pub(crate) fn begin(
    mut requests: SendRequest<Bytes>,
    request: Request<Body>,
) -> Result<
    (
        impl Future<Output = ()> + Send,
        impl Future<Output = Answered> + Send,
    ),
    h2::Error,
> {
    let (mut parts, body) = request.into_parts();
    for header in OF_HTTP_1 {
        parts.headers.remove(header);
    }
    if let Some(length) = body.size_hint().exact()
        && (length > 0 || parts.method == Method::POST)
    {
        parts.headers.insert(header::CONTENT_LENGTH, length.into());
    }
    let has_no_body = body.is_end_stream();
    let request = Request::from_parts(parts, ());
    let (response, stream) = requests.send_request(request, has_no_body)?;
    let (wanted, unwanted) = oneshot::channel();
    let sending = async move {
        if !has_no_body {
            select(pin!(send(body, stream)), unwanted).await;
        }
    };
    let response = async move {
        let response = response.await?;
        Ok(response.map(|stream| Incoming {
            stream,
            _wanted: wanted,
        }))
    };
    Ok((sending, response))
}

/// A response, or why there is none.
pub(crate) type Answered = Result<Response<Incoming>, h2::Error>;

/// Sends a body at the pace of the peer. `None` where the stream ends before.
async fn send(mut body: Body, mut stream: SendStream<Bytes>) -> Option<()> {
    loop {
        let frame = poll_fn(|cx| match stream.poll_reset(cx) {
            Poll::Ready(_) => Poll::Ready(None),
            Poll::Pending => Pin::new(&mut body).poll_frame(cx).map(Some),
        });
        let frame = match frame.await? {
            Some(Ok(frame)) => frame,
            Some(Err(_)) => {
                stream.send_reset(Reason::INTERNAL_ERROR);
                return None;
            }
            None => return stream.send_data(Bytes::new(), true).ok(),
        };
        let data = match frame.into_data() {
            Ok(data) => data,
            Err(frame) => return stream.send_trailers(frame.into_trailers().ok()?).ok(),
        };
        let is_last = body.is_end_stream();
        if !data.is_empty() {
            // The least, lest it takes from the window of the connection what others could send; h2
            // asks for the rest once it has the data.
            stream.reserve_capacity(1);
            while stream.capacity() == 0 {
                poll_fn(|cx| stream.poll_capacity(cx)).await?.ok()?;
            }
        }
        stream.send_data(data, is_last).ok()?;
        if is_last {
            return Some(());
        }
    }
}

/// The body of an answer.
#[derive(Debug)]
pub(crate) struct Incoming {
    stream: RecvStream,
    _wanted: oneshot::Sender<Infallible>,
}

impl http_body::Body for Incoming {
    type Data = Bytes;
    type Error = h2::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, h2::Error>>> {
        match ready!(self.stream.poll_data(cx)) {
            Some(Ok(data)) => {
                // Cannot fail: so much was received.
                let _ = self.stream.flow_control().release_capacity(data.len());
                Poll::Ready(Some(Ok(Frame::data(data))))
            }
            // After a complete answer it is no error (RFC 9113 section 8.1).
            Some(Err(error)) if error.reason() == Some(Reason::NO_ERROR) => Poll::Ready(None),
            Some(Err(error)) => Poll::Ready(Some(Err(error))),
            None => {
                let trailers = ready!(self.stream.poll_trailers(cx));
                Poll::Ready(trailers.transpose().map(|all| all.map(Frame::trailers)))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.stream.is_end_stream()
    }
}

/// What HTTP/2 has no use for (RFC 9113 section 8.2.2): h2 would send nothing that carries them, and
/// who hands on the headers of another request has not put them there.
const OF_HTTP_1: [HeaderName; 5] = [
    header::CONNECTION,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    header::TRANSFER_ENCODING,
    header::UPGRADE,
];

/// The most streams that are put on one transport: unread, they fill its window and no more.
pub(crate) const MAX_STREAMS: u32 = 100;
const STREAM_WINDOW: u32 = 256 * 1024;
