//! A client whose request body is received before the request joins its limits: `request_buffer`.
//!
//! So a slow client holds no permit (the right to run at the origin) while it sends its body.

use std::future::poll_fn;
use std::num::NonZeroU64;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use super::heads;
use crate::http::downstream::{ClientError, ClientStream, EachField, Polled, Response, Wait};
use crate::http::message::{BodyMemory, BodyQueue, Buffer, RequestHead, Then, Trailers};

/// Returns the number of body bytes to receive before the request continues; `None`: no byte.
///
/// The body of a gRPC call, or of an upgraded connection, may end after the response: it is not
/// buffered.
pub(super) fn size_to_receive(
    head: &RequestHead,
    request_buffer: Option<NonZeroU64>,
) -> Option<NonZeroU64> {
    let size = request_buffer?;
    // The body may depend on the response.
    let is_two_way = head.is_grpc() || heads::requested_upgrade(head).is_some();
    (!head.length().is_empty() && !is_two_way).then_some(size)
}

/// A client of any protocol, with the part of the request's body that was received ahead.
pub(super) struct BufferedClient<'c> {
    client: &'c mut dyn ClientStream,
    /// Blocks that were received ahead.
    body: BodyQueue,
    /// Number of blocks in `body` that were read; `None`: blocks are dropped once read.
    ///
    /// Blocks are kept if the request can be sent again: its body is complete, and its method is
    /// idempotent.
    kept_read: Option<usize>,
    /// Whether the gateway has sent the interim response that the client waits for.
    has_sent_continue: bool,
}

impl<'c> BufferedClient<'c> {
    pub(super) fn new(
        client: &'c mut dyn ClientStream,
        memory: &Arc<BodyMemory>,
        size: NonZeroU64,
    ) -> Self {
        Self {
            client,
            body: BodyQueue::new(memory, size.get()),
            kept_read: None,
            has_sent_continue: false,
        }
    }

    /// Receives the body until it is complete or the buffer is full.
    ///
    /// `max_size`: maximum size of a body in bytes.
    pub(super) async fn receive(
        &mut self,
        head: &RequestHead,
        max_size: Option<NonZeroU64>,
    ) -> Result<(), ClientError> {
        if head.expects_continue() && self.body.has_room() {
            self.client.send_interim(100, b"Continue", &|_| {});
            self.has_sent_continue = true;
            poll_fn(|cx| self.client.poll_flush(cx)).await?;
        }
        let mut bytes_left = max_size.map(NonZeroU64::get);
        poll_fn(|cx| {
            while !self.client.body_is_over() && self.body.has_room() {
                let mut piece = Buffer::take();
                ready!(self.client.poll_body(cx, &mut piece))?;
                if let Some(bytes_left) = &mut bytes_left {
                    let rest = bytes_left.checked_sub(piece.len() as u64);
                    *bytes_left = rest.ok_or(ClientError::TooLarge)?;
                }
                self.body.push(piece.filled());
            }
            self.body.shrink();
            Poll::Ready(Ok(()))
        })
        .await?;
        if head.is_idempotent() && self.client.body_is_over() {
            self.kept_read = Some(0);
        }
        Ok(())
    }

    /// Takes the next block that was received ahead.
    fn next_block(&mut self) -> Option<Buffer> {
        let Some(read) = &mut self.kept_read else {
            return self.body.pop();
        };
        let block = self.body.copy(*read)?;
        *read += 1;
        Some(block)
    }
}

impl ClientStream for BufferedClient<'_> {
    fn poll_disconnected<'s>(&'s self, wait: &mut Wait<'s>, cx: &mut Context<'_>) -> Poll<()> {
        self.client.poll_disconnected(wait, cx)
    }

    fn is_disconnected(&self, cx: &mut Context<'_>) -> bool {
        self.client.is_disconnected(cx)
    }

    fn poll_body(&mut self, cx: &mut Context<'_>, piece: &mut Buffer) -> Polled {
        if let Some(received) = self.next_block() {
            *piece = received;
            return Poll::Ready(Ok(()));
        }
        self.client.poll_body(cx, piece)
    }

    fn let_body_pause(&mut self, may_pause: bool) {
        self.client.let_body_pause(may_pause);
    }

    fn body_is_over(&self) -> bool {
        self.body.count_blocks() <= self.kept_read.unwrap_or(0) && self.client.body_is_over()
    }

    fn rewind(&mut self) -> bool {
        self.kept_read.as_mut().map(|read| *read = 0).is_some()
    }

    fn trailers(&self) -> Option<&Trailers> {
        self.client.trailers()
    }

    fn drain_body(&mut self, cx: &mut Context<'_>) {
        self.client.drain_body(cx);
    }

    fn send_interim(&mut self, status: u16, reason: &[u8], fields: EachField<'_>) {
        if status != 100 || !self.has_sent_continue {
            self.client.send_interim(status, reason, fields);
        }
    }

    /// Begins the response. The request is not sent again any more, so its read blocks are dropped.
    fn begin(&mut self, response: &Response<'_>) {
        for _ in 0..self.kept_read.take().unwrap_or(0) {
            self.body.pop();
        }
        self.client.begin(response);
    }

    fn has_begun(&self) -> bool {
        self.client.has_begun()
    }

    fn poll_send(&mut self, cx: &mut Context<'_>, piece: &mut Buffer, then: Then<'_>) -> Polled {
        self.client.poll_send(cx, piece, then)
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Polled {
        self.client.poll_flush(cx)
    }
}
