//! Forwards the body of a response to the client, and the bytes after a 101 in both directions.
//!
//! `response_buffer` does the same with a buffer; `tunnel` moves the bytes after a 101. In this
//! file, `keeps` says whether the connection to the origin may be kept after the response.
//! `Connection::moved` records that bytes have moved, so the timeout for a stalled origin begins
//! anew.

use std::future::poll_fn;
use std::io;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use super::failure::Failure;
use super::forward::{AtOrigin, Forward};
use super::{grpc, tunnel};
use crate::http::downstream::{ClientError, unless_disconnected};
use crate::http::message::{Buffer, Then, Trailers};
use crate::origin::{Connection, InFlight};
use crate::time::clock;
use crate::time::deadline::Deadline;

/// Maximum number of pieces that are read before the worker's other tasks run.
pub(super) const MAX_AT_ONCE: usize = 32;

/// Receives and discards the rest of a response's body. Returns whether all of it was received.
///
/// Stops after `max_bytes` or after `max_time`.
pub(super) async fn drop_body(
    connection: &mut Connection,
    max_bytes: usize,
    max_time: Duration,
) -> bool {
    let (mut deadline, mut dropped_bytes) = (Deadline::default(), 0_usize);
    deadline.start(max_time);
    poll_fn(|cx| {
        for _ in 0..MAX_AT_ONCE {
            if connection.body_is_over() {
                return Poll::Ready(true);
            }
            match connection.poll_body(cx) {
                Poll::Ready(Ok(piece)) => {
                    connection.moved();
                    dropped_bytes = dropped_bytes.saturating_add(piece.len());
                    if dropped_bytes > max_bytes {
                        return Poll::Ready(false);
                    }
                }
                Poll::Ready(Err(_)) => return Poll::Ready(false),
                Poll::Pending => return deadline.poll(cx).map(|()| false),
            }
        }
        if deadline.poll(cx).is_ready() {
            return Poll::Ready(false);
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await
}

impl<'r> Forward<'_, 'r> {
    /// Forwards the body of the response.
    ///
    /// The request counts as in flight until the last byte has arrived from the origin. Then the
    /// connection serves other requests, even if the client is slow.
    pub(super) async fn carry_body(
        &mut self,
        at_origin: &mut AtOrigin<'r>,
        keeps: bool,
    ) -> Result<(), Failure> {
        while let Some((connection, in_flight)) = at_origin {
            let mut piece = self.next_piece(connection, in_flight).await?;
            self.record.add_sent(piece.len() as u64);
            if !connection.body_is_over() {
                self.send_piece(connection, in_flight, &mut piece).await?;
                continue;
            }
            let trailers = self.trailers(connection);
            self.leave_origin(at_origin, keeps);
            let end = Then::End(trailers.as_ref());
            poll_fn(|cx| self.client.poll_send(cx, &mut piece, end)).await?;
        }
        Ok(())
    }

    /// Frees the permits and the connection of a request whose response has arrived in full.
    #[inline]
    pub(super) fn leave_origin(&mut self, at_origin: &mut AtOrigin<'r>, keeps: bool) {
        let Some((connection, in_flight)) = at_origin.take() else {
            return;
        };
        // The time in which the origin waits for the client's upload is not the origin's.
        (self.origin_time).uploaded(self.upload.last_piece(), self.upload.awaits_client());
        in_flight.note_time_at_gate(self.origin_time);
        // `true`: the origin answered.
        self.end_work(&in_flight, true);
        self.in_flight_permits.clear();
        in_flight.ended();
        if keeps && self.upload.is_complete() {
            self.give_back(connection, &in_flight);
        }
    }

    /// Returns the trailers of the response that are forwarded to the client.
    pub(super) fn trailers(&self, connection: &Connection) -> Option<Trailers> {
        let trailers = connection.trailers()?;
        let request = self.record.info.head;
        if !request.takes_trailers() {
            return None;
        }
        let is_listed_in_connection = |name: &[u8]| {
            let mut options = self.connection_options.iter();
            options.any(|option| option.eq_ignore_ascii_case(name))
        };
        let edits = &self.route.response_fields;
        let is_grpc = request.is_grpc();
        // The route must not change the status of a gRPC call.
        let is_edited = |name: &[u8]| edits.has(name) && !(is_grpc && grpc::is_of_protocol(name));
        Some(trailers.filtered(|name| !is_listed_in_connection(name) && !is_edited(name)))
    }

    /// Returns the maximum pause of the origin in the response's body.
    pub(super) fn body_limit(&self) -> Duration {
        if self.is_grpc_call {
            self.settings().tunnel_timeout
        } else {
            self.settings().body_timeout
        }
    }

    /// Returns the next piece of the response's body, which is empty at the end.
    pub(super) async fn next_piece(
        &mut self,
        connection: &mut Connection,
        in_flight: &InFlight<'r>,
    ) -> Result<Buffer, Failure> {
        let limit = self.body_limit();
        let fields = self.record.info.fields();
        let route = self.route;
        let Self { client, upload, .. } = self;
        // Fast path: the next piece has already arrived, so no timeout is needed.
        if let Poll::Ready(piece) = poll_fn(|cx| Poll::Ready(connection.poll_body(cx))).await {
            connection.moved();
            return piece.map_err(|_| Failure::Broken);
        }
        in_flight.note_begun();
        // The client gets all bytes so far while the gateway waits for more.
        let flushing = poll_fn(|cx| {
            let uploaded = upload.poll(cx, *client, connection, fields, route)?;
            let flushed = client.poll_flush(cx)?;
            if let Poll::Ready(piece) = connection.poll_body(cx) {
                return Poll::Ready(Ok::<_, ClientError>(Some(piece)));
            }
            if uploaded.is_ready() && flushed.is_ready() {
                return Poll::Ready(Ok(None));
            }
            let stalled = connection.poll_stall(cx, limit);
            stalled.map(|()| Ok(Some(Err(io::ErrorKind::TimedOut.into()))))
        });
        let piece = if let Some(piece) = flushing.await? {
            piece
        } else {
            // Nothing is left to send to either side: only waits for the origin.
            let receiving = poll_fn(|cx| {
                if let Poll::Ready(piece) = connection.poll_body(cx) {
                    return Poll::Ready(piece);
                }
                let stalled = connection.poll_stall(cx, limit);
                stalled.map(|()| Err(io::ErrorKind::TimedOut.into()))
            });
            unless_disconnected(*client, pin!(receiving)).await?
        };
        connection.moved();
        self.last_byte = clock::coarse_now();
        piece.map_err(|_| Failure::Broken)
    }

    /// Sends a piece of the response's body. Meanwhile continues to send the request's body.
    async fn send_piece(
        &mut self,
        connection: &mut Connection,
        in_flight: &InFlight<'r>,
        piece: &mut Buffer,
    ) -> Result<(), Failure> {
        let (fields, route) = (self.record.info.fields(), self.route);
        // Whether the stopwatch of the time at the origin stands still, because the client does not
        // read.
        let mut has_stopped = false;
        poll_fn(|cx| {
            let client = &mut *self.client;
            let _uploaded = self.upload.poll(cx, client, connection, fields, route)?;
            let sent = self.client.poll_send(cx, piece, Then::More)?;
            if sent.is_pending() {
                // Reads ahead, so that the origin can go on while the client does not read.
                connection.poll_ahead(cx);
                if !self.origin_time.is_stopped() {
                    has_stopped = true;
                    self.origin_time.stop(clock::coarse_now());
                    in_flight.note_time(self.origin_time);
                }
            }
            sent.map(Ok::<_, ClientError>)
        })
        .await?;
        if has_stopped {
            self.origin_time.go_on(clock::coarse_now());
            in_flight.note_time(self.origin_time);
        }
        Ok(())
    }

    /// Forwards bytes in both directions after a 101.
    ///
    /// The request counts as in flight until both sides have ended.
    pub(super) async fn carry_tunnel(&mut self, at_origin: AtOrigin<'r>) -> Result<(), Failure> {
        let Some((connection, _in_flight)) = at_origin else {
            return Err(Failure::Broken);
        };
        let silence = self.settings().tunnel_timeout;
        poll_fn(|cx| self.client.poll_flush(cx)).await?;
        let Some((received, mut origin)) = connection.into_tunnel() else {
            return Err(Failure::Broken);
        };
        if let Some((mut client, ahead)) = self.client.tunnel() {
            let sent =
                tunnel::carry(&mut *client, &mut origin, received, Some(ahead), silence).await;
            self.record.add_sent(sent);
        }
        Ok(())
    }
}
