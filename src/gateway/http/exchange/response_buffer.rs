//! Reads a response's body as fast as the origin sends it, ahead of the client: `response_buffer`.
//!
//! So a slow client does not hold the permits (rights to run at the origin) and the connection of
//! its request. `keeps`: whether the connection may be kept after the response.

use std::future::poll_fn;
use std::num::NonZeroU64;
use std::task::{Context, Poll, ready};

use super::download::MAX_AT_ONCE;
use super::failure::Failure;
use super::forward::{AtOrigin, Forward};
use crate::http::downstream::{ClientStream, Polled};
use crate::http::message::{BodyQueue, Buffer, Then};
use crate::origin::{Connection, InFlight};
use crate::time::clock;

/// Part of a body that the client has not accepted yet.
struct Ahead {
    /// Piece that is sent next. Its memory is not counted as buffered.
    piece: Buffer,
    /// Whether the piece was offered to the client's connection, which has not accepted all of it.
    is_sending: bool,
    /// Whether the piece was offered as the last one.
    is_last: bool,
    /// Number of bytes offered to the client's connection that are not recorded yet.
    unrecorded: u64,
    queue: BodyQueue,
}

impl Ahead {
    /// Returns whether no byte waits for the client.
    fn is_empty(&self) -> bool {
        !self.is_sending && self.piece.is_empty() && self.queue.is_empty()
    }

    /// Sends buffered bytes until the client accepts no more.
    ///
    /// `end`: sent with the last piece, if the body is complete.
    fn poll_send(
        &mut self,
        cx: &mut Context<'_>,
        client: &mut dyn ClientStream,
        end: Option<Then<'_>>,
    ) -> Polled {
        loop {
            if !self.is_sending {
                if self.piece.is_empty()
                    && let Some(next) = self.queue.pop()
                {
                    self.piece = next;
                }
                if self.piece.is_empty() && end.is_none() {
                    return Poll::Ready(Ok(()));
                }
                // Whether a piece is the last one must not change between two offers of it.
                self.is_last = end.is_some() && self.queue.is_empty();
                self.is_sending = true;
                self.unrecorded += self.piece.len() as u64;
            }
            let then = end.filter(|_| self.is_last).unwrap_or(Then::More);
            ready!(client.poll_send(cx, &mut self.piece, then))?;
            self.is_sending = false;
            if self.is_last {
                return Poll::Ready(Ok(()));
            }
        }
    }
}

impl<'r> Forward<'_, 'r> {
    /// Forwards the body of the response, and buffers up to `size` bytes ahead of the client.
    ///
    /// So a slow client holds the permits and the connection only until the origin has sent
    /// everything. The client gets bytes at once as long as it accepts them.
    pub(super) async fn read_ahead(
        &mut self,
        at_origin: &mut AtOrigin<'r>,
        keeps: bool,
        size: NonZeroU64,
    ) -> Result<(), Failure> {
        let mut ahead = Ahead {
            piece: Buffer::take(),
            is_sending: false,
            is_last: false,
            unrecorded: 0,
            queue: BodyQueue::new(self.record.gateway.body_memory(), size.get()),
        };
        let mut trailers = None;
        let mut received = Ok(());
        // As long as the origin sends: reads and sends at the same time.
        while let Some((connection, in_flight)) = at_origin {
            received = if ahead.is_empty() {
                let next = self.next_piece(connection, in_flight).await;
                next.map(|piece| ahead.piece = piece)
            } else {
                self.send_and_read(connection, in_flight, &mut ahead).await
            };
            self.record.add_sent(std::mem::take(&mut ahead.unrecorded));
            if received.is_err() {
                break;
            }
            if connection.body_is_over() {
                trailers = self.trailers(connection);
                self.leave_origin(at_origin, keeps);
            }
        }
        // Now the connection is free. The client gets the buffered rest.
        ahead.queue.shrink();
        let end = match &received {
            Ok(()) => Some(Then::End(trailers.as_ref())),
            // The client gets the bytes that came before the response failed.
            Err(Failure::Broken) => {
                *at_origin = None;
                self.in_flight_permits.clear();
                None
            }
            Err(_) => return received,
        };
        let sent = poll_fn(|cx| ahead.poll_send(cx, self.client, end)).await;
        self.record.add_sent(ahead.unrecorded);
        sent?;
        received
    }

    /// Sends buffered bytes, and reads more meanwhile.
    ///
    /// Ready when the client has accepted everything, or the origin has sent everything.
    async fn send_and_read(
        &mut self,
        connection: &mut Connection,
        in_flight: &InFlight<'r>,
        ahead: &mut Ahead,
    ) -> Result<(), Failure> {
        let limit = self.body_limit();
        let (fields, route) = (self.record.info.fields(), self.route);
        // Whether the stopwatch of the time at the origin stands still, because the buffer is full.
        let mut has_stopped = false;
        let done = poll_fn(|cx| {
            let client = &mut *self.client;
            let _uploaded = self.upload.poll(cx, client, connection, fields, route)?;
            // The client first: bytes that it can accept are not delayed. `None`: the body is not
            // complete.
            if ahead.poll_send(cx, self.client, None)?.is_ready() {
                return Poll::Ready(Ok(()));
            }
            for _ in 0..MAX_AT_ONCE {
                if !ahead.queue.has_room() {
                    // The buffer is full: the origin waits for the client, as without a buffer.
                    connection.moved();
                    connection.poll_ahead(cx);
                    if !self.origin_time.is_stopped() {
                        has_stopped = true;
                        self.origin_time.stop(clock::coarse_now());
                        in_flight.note_time(self.origin_time);
                    }
                    return Poll::Pending;
                }
                if has_stopped {
                    has_stopped = false;
                    self.origin_time.go_on(clock::coarse_now());
                    in_flight.note_time(self.origin_time);
                }
                match connection.poll_body(cx) {
                    Poll::Ready(Ok(piece)) => {
                        connection.moved();
                        self.last_byte = clock::coarse_now();
                        ahead.queue.push(piece.filled());
                    }
                    Poll::Ready(Err(_)) => return Poll::Ready(Err(Failure::Broken)),
                    Poll::Pending => {
                        let stalled = connection.poll_stall(cx, limit);
                        return stalled.map(|()| Err(Failure::Broken));
                    }
                }
                if connection.body_is_over() {
                    return Poll::Ready(Ok(()));
                }
            }
            cx.waker().wake_by_ref();
            Poll::Pending
        })
        .await;
        if has_stopped {
            self.origin_time.go_on(clock::coarse_now());
            in_flight.note_time(self.origin_time);
        }
        done
    }
}
