use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};

use limit::{Cost, Moment};
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncWrite};

use super::context::ConnectionContext;
use super::socket::Wait;
use crate::http::message::sender::Then;
use crate::http::message::{BodyLength, Buffer, Put, RequestHead, ResponseHead, Trailers};
use crate::time::pacer::Priority;

/// Serves the requests of clients.
pub trait RequestService: 'static {
    /// Serves one request, whose head arrived at `began`.
    ///
    /// If the client leaves, the future is dropped before it is done.
    fn serve(
        &self,
        head: RequestHead,
        began: Moment,
        client: &mut dyn ClientStream,
        context: &ConnectionContext,
    ) -> impl Future<Output = Result<(), Aborted>>;

    /// Records a request that was refused before it could be read.
    fn refused(&self, status: u16, context: &ConnectionContext);

    /// Ready with the present time when this worker may start the next request.
    ///
    /// Departures that are due go first.
    fn poll_admission(&self, task: &mut Priority, cx: &mut Context<'_>) -> Poll<Moment>;
}

/// A request that did not complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aborted {
    /// The client has left.
    ClientGone,
    /// The response broke off: the client must see that it is incomplete.
    AnswerBroken,
}

/// What a client does that ends its request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ClientError {
    /// The client has left: it closed or reset its connection or stream, or shut its sending side.
    #[error("the client disconnected")]
    Gone,
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
            Self::Gone => 499,
            Self::TooSlow => 408,
            Self::TooLarge => 413,
            Self::Malformed => 400,
        }
    }
}

/// Calls its argument with the name and value of each field.
pub type EachField<'a> = &'a dyn Fn(Put<'_>);

/// The head of a response, independent of the client's protocol.
#[derive(Clone, Copy)]
pub struct Response<'a> {
    /// The status, from 100 to 999.
    pub status: u16,
    /// The reason phrase, which may be empty.
    pub reason: &'a [u8],
    /// The length of the body that follows.
    pub length: BodyLength,
    /// The `Content-Length` of a body that does not follow, as after `HEAD` and with a 304.
    pub announced_length: Option<u64>,
    /// The time for an added `Date`; `None` if the fields already have one.
    pub date: Option<Moment>,
    /// The protocol that a 101 switches to.
    pub upgrade: Option<&'a [u8]>,
    /// All fields, except those for framing, for the connection, and the added `Date`.
    pub fields: EachField<'a>,
}

/// The head of an origin's response, before what it becomes for one client.
pub struct OriginHead<'a> {
    /// The head as it arrived.
    pub head: &'a ResponseHead<'a>,
    /// The fields that pass to every client.
    pub passing: EachField<'a>,
    /// What the origin says that the request costs, if the route wants to know.
    pub billed: Option<Cost>,
    /// When the request was sent.
    pub asked: Moment,
    /// When the head arrived.
    pub arrived: Moment,
}

/// The client's side of one request: the request's body and the response, over any HTTP version.
pub trait ClientStream {
    /// Ready when the client has left.
    ///
    /// For use while nothing is read from the client. `wait`: `None` at first, and then what the
    /// stream waits with.
    fn poll_gone<'s>(&'s self, wait: &mut Wait<'s>, cx: &mut Context<'_>) -> Poll<()>;

    /// Returns whether the client has left, as far as this can be seen without reading.
    ///
    /// Over HTTP/1 the task is not woken when this changes: the caller must ask again.
    fn has_left(&self, cx: &mut Context<'_>) -> bool;

    /// Reads the next piece of the request's body into the empty `piece`.
    ///
    /// Ready with an empty piece only at the end of the body.
    ///
    /// # Errors
    ///
    /// Returns an error if the client has left, is too slow, or sends an invalid body.
    fn poll_body(
        &mut self,
        cx: &mut Context<'_>,
        piece: &mut Buffer,
    ) -> Poll<Result<(), ClientError>>;

    /// Says whether the body may pause for as long as the response does: the messages of a call of
    /// gRPC may. Only over HTTP/2.
    fn let_body_pause(&mut self, _may_pause: bool) {}

    /// Returns whether the whole body of the request was read.
    fn body_is_over(&self) -> bool;

    /// Goes back to the beginning of the body, so that the request can be sent again.
    ///
    /// Returns whether it can, because all of the body is kept.
    fn rewind(&mut self) -> bool {
        false
    }

    /// Returns the trailer fields of the request.
    fn trailers(&self) -> Option<&Trailers>;

    /// Reads and drops the part of an unwanted body that has arrived.
    ///
    /// If that is not the whole body, the connection cannot carry another request.
    fn drain_body(&mut self, cx: &mut Context<'_>);

    /// Sends an interim response, no later than with the next call that sends.
    fn interim(&mut self, status: u16, reason: &[u8], fields: EachField<'_>);

    /// Tells the head of the origin's response, just before it [begins](Self::begin), to a stream
    /// that shares the response with others.
    ///
    /// Returns whether it does.
    fn offer(&mut self, _origin: &OriginHead<'_>) -> bool {
        false
    }

    /// Whether the client gets another response in place of that which has begun.
    fn is_superseded(&self) -> bool {
        false
    }

    /// Tells that the origin gives no response, or only a part of one, to a stream that shares it
    /// with others.
    fn unanswered(&mut self) {}

    /// Tells that the origin cannot be reached, and the request is to wait for it, to a stream that
    /// shares the response with others.
    ///
    /// Returns whether the client gets another response instead of waiting.
    fn held(&mut self) -> bool {
        false
    }

    /// Tells the same stream that the request was [held](Self::held) and is sent now.
    fn resumed(&mut self) {}

    /// Begins the response. Its head is sent with the first piece of the body, or with a flush.
    fn begin(&mut self, response: &Response<'_>);

    /// Returns whether the response has begun.
    fn has_begun(&self) -> bool;

    /// Sends a piece of the response's body.
    ///
    /// Ready when there is room for the next piece; `piece` is empty then.
    ///
    /// # Errors
    ///
    /// Returns an error if the client has left, accepts no bytes for `body_timeout`, or too few
    /// for `min_body_rate`.
    fn poll_send(
        &mut self,
        cx: &mut Context<'_>,
        piece: &mut Buffer,
        then: Then<'_>,
    ) -> Poll<Result<(), ClientError>>;

    /// Sends all bytes that wait to be sent.
    ///
    /// # Errors
    ///
    /// The same as for [`Self::poll_send`].
    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), ClientError>>;

    /// Returns the connection itself after it has switched protocols, and the bytes that arrived
    /// after the request; `None` if it cannot.
    fn tunnel(&mut self) -> Option<(Box<dyn Tunnel + '_>, Buffer)> {
        None
    }
}

/// A connection that carries bytes both ways.
pub trait Tunnel: AsyncRead + AsyncWrite + Unpin {}

impl<T: AsyncRead + AsyncWrite + Unpin> Tunnel for T {}

/// Waits for `future`, unless the client leaves first.
///
/// The future is passed pinned: passed by value, it would need room here a second time.
///
/// # Errors
///
/// Returns an error if the client leaves.
pub fn unless_gone<F: Future>(
    client: &dyn ClientStream,
    mut future: Pin<&mut F>,
) -> impl Future<Output = Result<F::Output, ClientError>> {
    let mut wait = None;
    poll_fn(move |cx| match future.as_mut().poll(cx) {
        Poll::Ready(done) => Poll::Ready(Ok(done)),
        Poll::Pending => { client.poll_gone(&mut wait, cx) }.map(|()| Err(ClientError::Gone)),
    })
}
