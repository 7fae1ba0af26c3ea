//! A client of any protocol, behind one pointer.

use std::pin::Pin;
use std::task::{Context, Poll};

use crate::http::downstream::{ClientError, ClientStream, EachField, Response};
use crate::http::message::sender::Then;
use crate::http::message::{Buffer, Trailers};

/// [`ClientStream`] for code that is the same for all protocols.
pub(in super::super) trait AnyClient {
    fn gone(&self) -> Pin<Box<dyn Future<Output = ()> + '_>>;
    fn has_left(&self, cx: &mut Context<'_>) -> bool;
    fn poll_body(
        &mut self,
        cx: &mut Context<'_>,
        piece: &mut Buffer,
    ) -> Poll<Result<(), ClientError>>;
    fn let_body_pause(&mut self, may_pause: bool);
    fn body_is_over(&self) -> bool;
    fn trailers(&self) -> Option<&Trailers>;
    fn drain_body(&mut self, cx: &mut Context<'_>);
    fn interim(&mut self, status: u16, reason: &[u8], fields: EachField<'_>);
    fn begin(&mut self, response: &Response<'_>);
    fn has_begun(&self) -> bool;
    fn poll_send(
        &mut self,
        cx: &mut Context<'_>,
        piece: &mut Buffer,
        then: Then<'_>,
    ) -> Poll<Result<(), ClientError>>;
    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), ClientError>>;
}

impl<C: ClientStream> AnyClient for C {
    fn gone(&self) -> Pin<Box<dyn Future<Output = ()> + '_>> {
        Box::pin(ClientStream::gone(self))
    }

    fn has_left(&self, cx: &mut Context<'_>) -> bool {
        ClientStream::has_left(self, cx)
    }

    fn poll_body(
        &mut self,
        cx: &mut Context<'_>,
        piece: &mut Buffer,
    ) -> Poll<Result<(), ClientError>> {
        ClientStream::poll_body(self, cx, piece)
    }

    fn let_body_pause(&mut self, may_pause: bool) {
        ClientStream::let_body_pause(self, may_pause);
    }

    fn body_is_over(&self) -> bool {
        ClientStream::body_is_over(self)
    }

    fn trailers(&self) -> Option<&Trailers> {
        ClientStream::trailers(self)
    }

    fn drain_body(&mut self, cx: &mut Context<'_>) {
        ClientStream::drain_body(self, cx);
    }

    fn interim(&mut self, status: u16, reason: &[u8], fields: EachField<'_>) {
        ClientStream::interim(self, status, reason, fields);
    }

    fn begin(&mut self, response: &Response<'_>) {
        ClientStream::begin(self, response);
    }

    fn has_begun(&self) -> bool {
        ClientStream::has_begun(self)
    }

    fn poll_send(
        &mut self,
        cx: &mut Context<'_>,
        piece: &mut Buffer,
        then: Then<'_>,
    ) -> Poll<Result<(), ClientError>> {
        ClientStream::poll_send(self, cx, piece, then)
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), ClientError>> {
        ClientStream::poll_flush(self, cx)
    }
}
