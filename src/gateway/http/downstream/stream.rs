//! Interface between a client connection and the service of its requests, for all HTTP versions.
//!
//! `http1` and `http2` implement [`ClientStream`]; `http::exchange` implements [`RequestService`].
//!
//! Some streams share a response: the *leader* of a collapse fetches it from the origin for other
//! clients, too.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};

use http::StatusCode;
use limit::{Cost, Moment};
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncWrite};

use super::context::ConnectionContext;
use super::socket::Wait;
use crate::http::message::{
    BadRequest, BodyLength, Buffer, Put, RequestHead, ResponseHead, Then, Trailers,
};
use crate::time::pacer::Priority;

/// Serves the requests of clients.
pub trait RequestService: 'static {
    /// Serves one request. `began`: instant at which its head arrived.
    ///
    /// If the client disconnects, the future is dropped before it completes.
    fn serve(
        &self,
        head: RequestHead,
        began: Moment,
        client: &mut dyn ClientStream,
        context: &ConnectionContext,
    ) -> impl Future<Output = Result<(), Aborted>>;

    /// Records a request that was rejected because it could not be parsed.
    fn record_refused(&self, status: u16, context: &ConnectionContext);

    /// Ready with the current time when this worker may start the next request.
    ///
    /// Due departures go first: requests that have waited, and whose instant to go to the origin
    /// has come.
    fn poll_admission(&self, task: &mut Priority, cx: &mut Context<'_>) -> Poll<Moment>;
}

/// Reason why a response did not complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aborted {
    /// The client disconnected.
    ClientDisconnected,
    /// The response is incomplete, and the client must be able to detect that.
    AnswerBroken,
}

/// Error that a client causes, and that ends its request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ClientError {
    /// The client closed or reset its connection or stream, or shut its sending side.
    #[error("the client disconnected")]
    Disconnected,
    /// No byte of the body arrived for `body_timeout`, or too few for `min_body_rate`.
    #[error("the client sent its body too slowly")]
    TooSlow,
    /// The body is longer than `max_body_size`.
    #[error("the client's body is too large")]
    TooLarge,
    /// The framing of the body is invalid.
    #[error("the client's body is malformed")]
    Malformed,
}

impl ClientError {
    /// Returns the status for the client, if it can still receive a response.
    pub fn status(self) -> u16 {
        match self {
            Self::Disconnected => 499,
            Self::TooSlow => 408,
            Self::TooLarge => 413,
            Self::Malformed => 400,
        }
    }
}

/// Progress of an operation on a client's connection or stream.
pub type Polled = Poll<Result<(), ClientError>>;

/// Function that calls its argument with the name and value of each field.
pub type EachField<'a> = &'a dyn Fn(Put<'_>);

/// Head of a response, independent of the client's protocol.
#[derive(Clone, Copy)]
pub struct Response<'a> {
    /// Status code, from 100 to 999.
    pub status: u16,
    /// Reason phrase; may be empty.
    pub reason: &'a [u8],
    /// Length of the body that follows.
    pub length: BodyLength,
    /// `Content-Length` of a body that is not sent, as with `HEAD` and a 304.
    pub announced_length: Option<u64>,
    /// Time for an added `Date` field; `None` if the fields already have one.
    pub date: Option<Moment>,
    /// Protocol that a 101 switches to.
    pub upgrade: Option<&'a [u8]>,
    /// All fields, except those for framing and for the connection, and the added `Date`.
    pub fields: EachField<'a>,
}

impl Response<'_> {
    /// Returns the value of `Content-Length`, if the response has this field.
    pub(super) fn content_length(&self) -> Option<u64> {
        match self.length {
            BodyLength::Length(length) => Some(length),
            _ => self.announced_length,
        }
    }
}

/// Head of an origin's response, before it is adapted to one client.
pub struct OriginHead<'a> {
    /// Head as received.
    pub head: &'a ResponseHead<'a>,
    /// Calls its argument with each field that is forwarded to every client.
    pub passing: EachField<'a>,
    /// Cost of the request as reported by the origin, if the route uses it.
    pub billed: Option<Cost>,
    /// Instant at which the request was sent.
    pub sent: Moment,
    /// Instant at which the head arrived.
    pub arrived: Moment,
}

/// Client side of one request: the request's body and the response, over any HTTP version.
pub trait ClientStream {
    /// Ready when the client has disconnected.
    ///
    /// Call it only while nothing is read from the client. `wait`: `None` in the first call; the
    /// stream keeps its state there.
    fn poll_disconnected<'s>(&'s self, wait: &mut Wait<'s>, cx: &mut Context<'_>) -> Poll<()>;

    /// Returns whether the client has disconnected, as far as can be detected without reading.
    ///
    /// Over HTTP/1 the task is not woken when this changes: the caller must call it again.
    fn is_disconnected(&self, cx: &mut Context<'_>) -> bool;

    /// Reads the next piece of the request's body into the empty `piece`.
    ///
    /// The piece is empty only at the end of the body.
    ///
    /// # Errors
    ///
    /// Returns an error if the client has disconnected, is too slow, or sends an invalid body.
    fn poll_body(&mut self, cx: &mut Context<'_>, piece: &mut Buffer) -> Polled;

    /// Sets whether the request's body may pause without limit while the response continues.
    ///
    /// Used for gRPC, where messages may be far apart. Applies only over HTTP/2.
    fn let_body_pause(&mut self, _may_pause: bool) {}

    /// Returns whether the whole body of the request was read.
    fn body_is_over(&self) -> bool;

    /// Goes back to the start of the body, so that the request can be sent again.
    ///
    /// Returns whether this is possible: all of the body must still be buffered.
    fn rewind(&mut self) -> bool {
        false
    }

    /// Returns the trailer fields of the request.
    fn trailers(&self) -> Option<&Trailers>;

    /// Reads and discards the part of an unwanted body that has arrived, over HTTP/1.
    ///
    /// If that is not the whole body, the connection cannot carry another request. Over HTTP/2 an
    /// unread body does not block other requests.
    fn drain_body(&mut self, _cx: &mut Context<'_>) {}

    /// Sends an interim response, no later than with the next call that sends.
    fn send_interim(&mut self, status: u16, reason: &[u8], fields: EachField<'_>);

    /// Offers the head of the origin's response to waiting clients, before [`Self::begin`].
    ///
    /// Only a stream that shares its response implements this. Returns whether the response is
    /// shared.
    fn offer(&mut self, _origin: &OriginHead<'_>) -> bool {
        false
    }

    /// Returns whether the client gets another response in place of the one that has begun.
    fn is_superseded(&self) -> bool {
        false
    }

    /// Reports that the origin gave no response, or only a part of one.
    ///
    /// Only a stream that shares its response implements this.
    fn report_unanswered(&mut self) {}

    /// Reports that the origin cannot be reached, and that the request waits for it.
    ///
    /// Only a stream that shares its response implements this. Returns whether the client gets
    /// another response instead of waiting.
    fn report_held(&mut self) -> bool {
        false
    }

    /// Reports that a [held](Self::report_held) request is sent now.
    fn report_resumed(&mut self) {}

    /// Begins the response. Its head is sent with the first piece of the body, or with a flush.
    fn begin(&mut self, response: &Response<'_>);

    /// Returns whether the response has begun.
    fn has_begun(&self) -> bool;

    /// Sends a piece of the response's body. `then`: whether more follows, or the end.
    ///
    /// Ready when there is room for the next piece; `piece` is empty then. Until then the caller
    /// must pass the same piece.
    ///
    /// # Errors
    ///
    /// Returns an error if the client has disconnected, accepts no bytes for `body_timeout`, or too
    /// few for `min_body_rate`.
    fn poll_send(&mut self, cx: &mut Context<'_>, piece: &mut Buffer, then: Then<'_>) -> Polled;

    /// Sends all buffered bytes.
    ///
    /// # Errors
    ///
    /// The same as for [`Self::poll_send`].
    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Polled;

    /// Returns the connection after it has switched protocols, and the bytes after the request.
    ///
    /// Returns `None` if this stream cannot switch.
    fn tunnel(&mut self) -> Option<(Box<dyn Tunnel + '_>, Buffer)> {
        None
    }
}

/// A connection that carries bytes in both directions.
pub trait Tunnel: AsyncRead + AsyncWrite + Unpin {}

impl<T: AsyncRead + AsyncWrite + Unpin> Tunnel for T {}

/// Waits for `future`, unless the client disconnects first.
///
/// The future is passed pinned: passed by value, it would be stored here a second time.
///
/// # Errors
///
/// Returns an error if the client disconnects.
pub fn unless_disconnected<F: Future>(
    client: &dyn ClientStream,
    mut future: Pin<&mut F>,
) -> impl Future<Output = Result<F::Output, ClientError>> {
    let mut wait = None;
    poll_fn(move |cx| match future.as_mut().poll(cx) {
        Poll::Ready(done) => Poll::Ready(Ok(done)),
        Poll::Pending => {
            { client.poll_disconnected(&mut wait, cx) }.map(|()| Err(ClientError::Disconnected))
        }
    })
}

/// Sends the error response to a malformed request.
///
/// # Errors
///
/// Returns an error if the client disconnects, or is too slow.
pub(super) async fn refuse(
    client: &mut dyn ClientStream,
    refusal: BadRequest,
    now: Moment,
) -> Result<(), ClientError> {
    let status = StatusCode::from_u16(refusal.status()).unwrap_or(StatusCode::BAD_REQUEST);
    let reason = status.canonical_reason().unwrap_or_default();
    let text = format!("{reason}: {refusal}\n");
    client.begin(&Response {
        status: status.as_u16(),
        reason: reason.as_bytes(),
        length: BodyLength::Length(text.len() as u64),
        announced_length: None,
        date: Some(now),
        upgrade: None,
        fields: &|put: Put<'_>| put(b"Content-Type", b"text/plain; charset=utf-8"),
    });
    let mut piece = Buffer::take();
    piece.put(text.as_bytes());
    poll_fn(|cx| client.poll_send(cx, &mut piece, Then::End(None))).await
}
