//! Connection to a server as one request uses it, over HTTP/1 or HTTP/2.
//!
//! The two kinds are in `http1` and `http2`. `pool` keeps them between requests. A connection is
//! *tied* if only one client may use it, because the client may be logged in on it (`tied`).

use std::io;
use std::task::{Context, Poll};
use std::time::Duration;

use config::Origin;
use limit::Moment;

use super::http1::Http1Connection;
use super::http2::Http2Exchange;
use super::in_flight::InFlight;
use super::stream::OriginStream;
use super::tied::TiedConnections;
use crate::http::message::sender::Then;
use crate::http::message::{
    BodyLength, Buffer, FieldTable, InvalidResponse, ResponseHead, Trailers,
};
use crate::time::deadline::Deadline;

/// Connection in use by one request: a connection of its own over HTTP/1, a stream over HTTP/2.
///
/// Dropping it closes the connection, or resets the stream. [Giving it back](Connection::give_back)
/// lets the connection serve another request.
pub enum Connection {
    /// HTTP/1 connection. Boxed, as its pool keeps it boxed.
    Http1(Box<Http1Connection>),
    /// Stream of an HTTP/2 connection. Boxed, because most origins speak HTTP/1.
    Http2(Box<Http2Exchange>),
}

/// Evaluates the same expression for both kinds of connections.
macro_rules! of_both {
    ($connection:expr, $it:ident => $does:expr) => {
        match $connection {
            Self::Http1($it) => $does,
            Self::Http2($it) => $does,
        }
    };
}

impl Connection {
    /// Reserves the connection for its client, which may be logged in on it.
    ///
    /// No effect over HTTP/2, where the requests of such a client have a connection of their own.
    pub fn tie(&mut self) {
        if let Self::Http1(connection) = self {
            connection.is_tied = true;
        }
    }

    /// Gives the connection back to its pool or to its client, if it can carry another request.
    ///
    /// `now`: instant at which the last bytes of the response arrived. `client`: the connections
    /// [tied](Self::tie) to the client.
    pub fn give_back<'c>(
        self,
        settings: &Origin,
        now: Moment,
        in_flight: &InFlight<'_>,
        client: impl FnOnce() -> &'c TiedConnections,
    ) {
        match self {
            Self::Http1(mut connection) => {
                let Some(pool) = connection.prepare_reuse(&settings.reuse_limits(), now) else {
                    return;
                };
                if connection.is_tied {
                    client().keep(in_flight.at_server(), connection);
                } else {
                    pool.keep(connection, settings.keep_alive);
                }
            }
            // Ends the stream. The connection stays open for other requests.
            Self::Http2(exchange) => drop(exchange),
        }
    }

    /// Records the server's limit for idle connections, in seconds.
    pub fn note_server_idle(&mut self, seconds: u32) {
        if let Self::Http1(connection) = self {
            connection.usage.note_server_idle(seconds);
        }
    }

    /// Returns whether the connection has carried a request before.
    ///
    /// If so, the server may be closing it at this moment.
    pub fn is_reused(&self) -> bool {
        match self {
            Self::Http1(connection) => connection.is_reused(),
            Self::Http2(exchange) => exchange.is_reused(),
        }
    }

    /// Returns whether the server has reported that it did not process the request.
    pub fn is_refused(&self) -> bool {
        match self {
            Self::Http1(_) => false,
            Self::Http2(exchange) => exchange.is_refused,
        }
    }

    /// Returns whether a failure is that of the whole connection, and not of one stream alone.
    pub fn is_down(&self) -> bool {
        match self {
            Self::Http1(_) => true,
            Self::Http2(exchange) => !exchange.is_reset,
        }
    }

    /// Returns whether the server has certainly not seen the request.
    pub fn is_unseen(&mut self) -> bool {
        match self {
            Self::Http1(connection) => connection.sender.is_untouched(),
            Self::Http2(exchange) => exchange.is_unseen(),
        }
    }

    /// Takes over the part of a body that another connection has sent to a server which refused it.
    ///
    /// The caller must write the head again. Returns whether this was possible: only over HTTP/2,
    /// and only if the sent part was small.
    pub fn take_over_body(&mut self, other: &mut Self) -> bool {
        match (self, other) {
            (Self::Http2(exchange), Self::Http2(other)) => exchange.take_over(other),
            _ => false,
        }
    }

    /// Takes over a request of which another connection has written nothing.
    ///
    /// Returns whether that was possible: only over HTTP/1.
    pub fn take_over(&mut self, other: &mut Self) -> bool {
        match (self, other) {
            (Self::Http1(connection), Self::Http1(other)) => {
                connection.take_over(other);
                true
            }
            _ => false,
        }
    }

    /// Stops using the connection for further requests, as its server has been silent for too long.
    pub fn distrust(&mut self) {
        if let Self::Http2(exchange) = self {
            exchange.distrust();
        }
    }

    /// Sends all buffered bytes.
    ///
    /// # Errors
    ///
    /// Returns an error if the connection fails.
    pub fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        of_both!(self, it => it.poll_flush(cx))
    }

    /// Sends a piece of the request's body.
    ///
    /// Ready when all bytes are written; the piece is empty then. Until then the caller must pass
    /// the same piece.
    ///
    /// # Errors
    ///
    /// Returns an error if the connection fails.
    pub fn poll_send(
        &mut self,
        cx: &mut Context<'_>,
        piece: &mut Buffer,
        then: Then<'_>,
    ) -> Poll<io::Result<()>> {
        of_both!(self, it => it.poll_send(cx, piece, then))
    }

    /// Returns whether a part of a response, or of its next head, has arrived.
    pub fn has_received(&self) -> bool {
        match self {
            Self::Http1(connection) => connection.received.is_some(),
            Self::Http2(exchange) => exchange.has_head(),
        }
    }

    /// Returns the received head and its size; `None` while it is not complete.
    ///
    /// `table`: space for the fields of the head. `to_head`: whether it answers a `HEAD` request.
    /// `limit`: maximum number of bytes of a head.
    ///
    /// # Errors
    ///
    /// Returns an error if the head is malformed or larger than `limit`.
    pub fn head<'a>(
        &'a mut self,
        table: &'a mut FieldTable,
        to_head: bool,
        limit: usize,
    ) -> Result<Option<(ResponseHead<'a>, usize)>, InvalidResponse> {
        match self {
            Self::Http1(connection) => connection.head(table, to_head, limit),
            Self::Http2(exchange) => exchange.head(table, to_head),
        }
    }

    /// Removes the head of this size. A body of this length follows.
    pub fn take_head(&mut self, size: usize, length: BodyLength) {
        match self {
            Self::Http1(connection) => connection.take_head(size, length),
            Self::Http2(exchange) => exchange.take_head(length),
        }
    }

    /// Receives more of a head. Zero means that the server has closed the connection.
    ///
    /// # Errors
    ///
    /// Returns an error if the connection fails.
    pub fn poll_receive(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        match self {
            Self::Http1(connection) => connection.poll_receive(cx),
            // The number has no meaning but that it is not zero.
            Self::Http2(exchange) => exchange.poll_receive(cx).map_ok(|()| 1),
        }
    }

    /// Returns the next piece of the response's body. Only the end is an empty piece.
    ///
    /// # Errors
    ///
    /// Returns an error if the connection fails, or if the body is invalid:
    /// [`io::ErrorKind::InvalidData`].
    pub fn poll_body(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Buffer>> {
        of_both!(self, it => it.poll_body(cx))
    }

    /// Reads ahead: receives what has arrived of the response while the client reads nothing.
    ///
    /// Only over HTTP/2, where unread frames would block other requests. Over HTTP/1 the bytes stay
    /// in the kernel. Wakes the task when more arrives.
    pub fn poll_ahead(&mut self, cx: &mut Context<'_>) {
        if let Self::Http2(exchange) = self {
            exchange.read_ahead(cx);
        }
    }

    /// Returns whether the whole body of the response was taken.
    pub fn body_is_over(&self) -> bool {
        of_both!(self, it => it.body_is_over())
    }

    /// Returns the trailer fields of the response.
    pub fn trailers(&self) -> Option<&Trailers> {
        of_both!(self, it => it.trailers())
    }

    /// Ready when the server has sent nothing for `limit`, counted from `since`.
    pub fn poll_silence(
        &mut self,
        cx: &mut Context<'_>,
        since: Moment,
        limit: Duration,
    ) -> Poll<()> {
        let silence = self.silence();
        silence.set(since + limit);
        silence.poll(cx)
    }

    /// Ready when no bytes have moved for `limit`.
    ///
    /// The time counts from the first call after [`Self::moved`].
    pub fn poll_stall(&mut self, cx: &mut Context<'_>, limit: Duration) -> Poll<()> {
        let silence = self.silence();
        silence.start(limit);
        silence.poll(cx)
    }

    /// Records that bytes have moved.
    pub fn moved(&mut self) {
        self.silence().stop();
    }

    /// Returns the deadline for the server to send something.
    fn silence(&mut self) -> &mut Deadline {
        of_both!(self, it => &mut it.silence)
    }

    /// Returns the received bytes and the stream of a connection that has switched protocols.
    ///
    /// Returns `None` over HTTP/2, which does not switch.
    pub fn into_tunnel(self) -> Option<(Option<Buffer>, OriginStream)> {
        match self {
            Self::Http1(connection) => Some(connection.into_tunnel()),
            Self::Http2(_) => None,
        }
    }
}
