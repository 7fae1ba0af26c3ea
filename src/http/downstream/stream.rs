use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};

use thiserror::Error;
use tokio::io::{AsyncRead, AsyncWrite};

use super::context::ConnectionContext;
use crate::http::message::sender::Then;
use crate::http::message::{BodyLength, Buffer, RequestHead, Trailers};
use crate::limit::Moment;
use crate::pacer::Priority;

/// Answers the requests of clients.
pub trait RequestService: 'static {
    /// Answers one request that `began` when its head came. Dropped before it is done where the client has left.
    fn serve<C: ClientStream>(
        &self,
        head: &RequestHead,
        began: Moment,
        client: &mut C,
        context: &ConnectionContext,
    ) -> impl Future<Output = Result<(), Aborted>>;

    /// Takes note of a request that was refused before it could be read.
    fn refused(&self, status: u16, context: &ConnectionContext);

    /// Ready with the present moment when this worker may take on the next request: departures that are due go first.
    fn poll_admission(&self, task: &mut Priority, cx: &mut Context<'_>) -> Poll<Moment>;
}

/// A request that did not come to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aborted {
    /// Its client has left.
    ClientGone,
    /// Its answer broke off: the client must see that it is not whole.
    AnswerBroken,
}

/// What a client does that ends its request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ClientError {
    /// It has left: closed or reset its connection or stream, or shut its sending side.
    #[error("the client has left")]
    Gone,
    /// Nothing of its body came for `body_timeout`.
    #[error("the client's body came too slowly")]
    TooSlow,
    /// Its body is longer than `max_body_size`.
    #[error("the client's body is too large")]
    TooLarge,
    /// Its body is not framed as its head says.
    #[error("the client's body is malformed")]
    Malformed,
}

impl ClientError {
    /// The status that tells the client, where it can still be told.
    #[must_use]
    pub fn status(self) -> u16 {
        match self {
            Self::Gone => 499,
            Self::TooSlow => 408,
            Self::TooLarge => 413,
            Self::Malformed => 400,
        }
    }
}

/// Calls its argument with each field: name, value.
pub type EachField<'a> = &'a dyn Fn(&mut dyn FnMut(&[u8], &[u8]));

/// An answer's head, as the protocol of the client is to write it.
#[derive(Clone, Copy)]
pub struct Response<'a> {
    /// From 100 to 999.
    pub status: u16,
    /// The words behind it; may be empty.
    pub reason: &'a [u8],
    /// How long the body is that follows.
    pub length: BodyLength,
    /// The length that is told of a body that does not follow, as after `HEAD` and with a 304.
    pub told_length: Option<u64>,
    /// The `Date` that is added; `None` where there is one among the fields.
    pub date: Option<Moment>,
    /// The protocol that a 101 changes to.
    pub upgrade: Option<&'a [u8]>,
    /// All fields but those of framing, connection and missing date.
    pub fields: EachField<'a>,
}

/// The client's side of one request: its body, and the answer to it, over any version of HTTP.
pub trait ClientStream {
    /// Ready once the client has left. To be waited for while nothing is read from it.
    fn gone(&self) -> impl Future<Output = ()>;

    /// Whether the client has left, as far as can be seen without reading. Over HTTP/1 nobody is woken for it: it must be
    /// asked again.
    fn has_left(&self, cx: &mut Context<'_>) -> bool;

    /// Reads the next piece of the request's body into the empty `piece`. Ready with nothing only at its end.
    ///
    /// # Errors
    ///
    /// Where the client has left, is too slow, or sends what is no body.
    fn poll_body(
        &mut self,
        cx: &mut Context<'_>,
        piece: &mut Buffer,
    ) -> Poll<Result<(), ClientError>>;

    /// Whether all of the request's body was read.
    fn body_is_over(&self) -> bool;

    /// The fields behind the request's body.
    fn trailers(&self) -> Option<&Trailers>;

    /// Reads and drops what has come of a body that nobody wants. Where that is not all of it, nothing else can follow on
    /// its connection.
    fn drain_body(&mut self, cx: &mut Context<'_>);

    /// Sends an interim answer, at the latest with the next call that sends.
    fn interim(&mut self, status: u16, reason: &[u8], fields: EachField<'_>);

    /// Begins the answer. Its head is sent with the first piece, or when it is flushed.
    fn begin(&mut self, response: &Response<'_>);

    /// Whether the answer has begun.
    fn has_begun(&self) -> bool;

    /// Sends a piece of the answer's body. Ready once there is room for the next one; `piece` is empty then.
    ///
    /// # Errors
    ///
    /// Where the client has left, or takes nothing for `body_timeout`.
    fn poll_send(
        &mut self,
        cx: &mut Context<'_>,
        piece: &mut Buffer,
        then: Then<'_>,
    ) -> Poll<Result<(), ClientError>>;

    /// Sends what is still to be sent.
    ///
    /// # Errors
    ///
    /// As [`Self::poll_send`].
    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), ClientError>>;

    /// Takes the bytes that came behind the request.
    fn take_ahead(&mut self) -> Buffer;

    /// The connection itself, once it has changed protocols; `None` where it cannot.
    fn tunnel(&mut self) -> Option<impl AsyncRead + AsyncWrite + Unpin>;
}

/// What comes of `future`, unless the client leaves before. It stays where it is pinned: taken by value it would have
/// room here once more.
///
/// # Errors
///
/// Where the client leaves.
pub async fn unless_gone<C: ClientStream, F: Future>(
    client: &C,
    mut future: Pin<&mut F>,
) -> Result<F::Output, ClientError> {
    let mut gone = pin!(client.gone());
    poll_fn(|cx| {
        if let Poll::Ready(done) = future.as_mut().poll(cx) {
            return Poll::Ready(Ok(done));
        }
        gone.as_mut().poll(cx).map(|()| Err(ClientError::Gone))
    })
    .await
}
