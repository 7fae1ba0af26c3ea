//! HTTP/1 connections to a server: each sends a request, receives the response, then the next one.
//!
//! Also the idle connections to a server, between requests. A connection is *tied* if only one
//! client may use it, because the client may be logged in on it (`tied`).

use std::cell::RefCell;
use std::io;
use std::rc::{Rc, Weak};
use std::task::{Context, Poll, ready};

use limit::{Moment, ReuseLimits, Usage};

use super::addresses::{Compared, KnownAddresses};
use super::shortage;
use super::stream::OriginStream;
use crate::http::message::framing::end_of_head;
use crate::http::message::sender::Then;
use crate::http::message::{
    BodyDecoder, BodyError, BodyLength, Buffer, FieldTable, InvalidResponse, ResponseHead, Sender,
    Trailers,
};
use crate::time::deadline::Deadline;

/// HTTP/1 connection in use.
///
/// Dropping it closes the connection. A connection that is given back serves another request.
pub struct Http1Connection {
    stream: OriginStream,
    /// Sender of the request.
    pub(crate) sender: Sender,
    /// Received bytes that are not used yet; `None`: there are none.
    pub(super) received: Option<Buffer>,
    /// Number of received bytes that were searched for the end of a head.
    searched: usize,
    /// Whether the last poll of a head found no input, and so did not read.
    ///
    /// The runtime then wakes the task when input arrives, so the next poll reads at once.
    awaits_input: bool,
    /// Decoder of the response's body.
    decoder: BodyDecoder,
    /// Deadline for the server to send something.
    ///
    /// It outlives each request, because arming a timer is expensive.
    pub(super) silence: Deadline,
    /// Whether the client may be logged in on the connection, so that no other client may use it.
    pub(crate) is_tied: bool,
    /// Age and number of requests, which limit the reuse.
    pub(super) usage: Usage,
    /// Instant until which the idle connection may be used.
    usable_until: Moment,
    /// Addresses of the server's name with which the connection was last compared.
    compared: Compared,
    /// Whether the rest of the response's body is invalid. The valid part was returned before.
    is_rest_invalid: bool,
    /// Idle connections to the same server, where this one goes after its request.
    pool: Weak<IdleConnections>,
}

impl Http1Connection {
    pub(super) fn new(stream: OriginStream, pool: &Rc<IdleConnections>, usage: Usage) -> Self {
        Self {
            stream,
            sender: Sender::default(),
            received: None,
            awaits_input: false,
            searched: 0,
            decoder: BodyDecoder::new(BodyLength::None),
            silence: Deadline::default(),
            is_tied: false,
            usage,
            usable_until: Moment::default(),
            compared: Compared::default(),
            is_rest_invalid: false,
            pool: Rc::downgrade(pool),
        }
    }

    /// Makes the connection ready for its next request. Returns its pool if it may carry one.
    ///
    /// It may carry none if bytes arrived after its last response, or if the server's name has
    /// dropped its address. `now`: instant at which the last bytes of the response arrived.
    pub(super) fn prepare_reuse(
        &mut self,
        limits: &ReuseLimits,
        now: Moment,
    ) -> Option<Rc<IdleConnections>> {
        let pool = self.pool.upgrade().filter(|_| self.received.is_none())?;
        self.sender = Sender::default();
        self.decoder = BodyDecoder::new(BodyLength::None);
        self.silence.stop();
        self.usage.count();
        // The login of a client lasts as long as the connection, so only idle time ends it.
        let until = if self.is_tied {
            self.usage.idle_end(limits, now)
        } else {
            self.usage.idle_until(limits, now)
        };
        self.usable_until = until?;
        (!self.is_outdated(&pool.addresses)).then_some(pool)
    }

    /// Returns whether the server's name has dropped the connection's address.
    pub(super) fn is_outdated(&mut self, known: &KnownAddresses) -> bool {
        let address = || self.stream.peer();
        known.goes_to_outdated(&mut self.compared, address)
    }

    /// Returns whether the connection has carried a request before.
    pub(super) fn is_reused(&self) -> bool {
        self.usage.has_carried()
    }

    /// Takes over a request of which another connection has written nothing.
    pub(super) fn take_over(&mut self, other: &mut Self) {
        self.sender = std::mem::take(&mut other.sender);
        self.is_tied |= other.is_tied;
    }

    /// Sends all buffered bytes.
    pub(super) fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.sender.poll_flush(cx, &mut self.stream)
    }

    /// Sends a piece of the request's body, as [`Sender::poll_send`] does.
    pub(super) fn poll_send(
        &mut self,
        cx: &mut Context<'_>,
        piece: &mut Buffer,
        then: Then<'_>,
    ) -> Poll<io::Result<()>> {
        self.sender.poll_send(cx, &mut self.stream, piece, then)
    }

    /// Returns the head at the start of the received bytes and its size, if it is complete.
    ///
    /// A head that arrives in pieces is parsed when it is complete, and each time its length has
    /// doubled. So an invalid head is found early, and the total time is proportional to the bytes.
    pub(super) fn head<'a>(
        &'a mut self,
        table: &'a mut FieldTable,
        to_head: bool,
        limit: usize,
    ) -> Result<Option<(ResponseHead<'a>, usize)>, InvalidResponse> {
        let received = self.received.as_ref().map_or(&[][..], Buffer::filled);
        // Whether the length has passed a power of two since the last search.
        let has_doubled = received.len().checked_ilog2() > self.searched.checked_ilog2();
        let parsed = if has_doubled || end_of_head(received, self.searched).is_some() {
            ResponseHead::parse(received, table, to_head)?
        } else {
            None
        };
        if parsed.is_none() {
            self.searched = received.len();
        }
        let size = parsed.as_ref().map_or(received.len(), |(_, end)| *end);
        if size > limit {
            return Err(InvalidResponse::HeadTooLarge);
        }
        Ok(parsed)
    }

    /// Removes the head of a response from the received bytes.
    ///
    /// `length`: length of the body that follows.
    pub(super) fn take_head(&mut self, size: usize, length: BodyLength) {
        self.decoder = BodyDecoder::new(length);
        self.searched = 0;
        if let Some(received) = &mut self.received {
            received.consume(size);
            if received.is_empty() {
                self.received = None;
            }
        }
    }

    /// Receives more of a head. Zero means that the server has closed the connection.
    pub(super) fn poll_receive(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let is_woken = std::mem::take(&mut self.awaits_input);
        // Without input, a buffer would be taken from its pool and stay empty while the task waits.
        if !is_woken && self.stream.has_no_input(cx) {
            self.awaits_input = true;
            return Poll::Pending;
        }
        let mut buffer = self.received.take().unwrap_or_else(Buffer::take);
        let read = buffer.poll_fill(cx, &mut self.stream, usize::MAX);
        if !buffer.is_empty() {
            self.received = Some(buffer);
        }
        read
    }

    /// Returns the next piece of the response's body. Only the end is an empty piece.
    pub(super) fn poll_body(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Buffer>> {
        if self.is_rest_invalid {
            return Poll::Ready(Err(into_io(BodyError::Chunks)));
        }
        if self.decoder.is_over() {
            // Received bytes after the response belong to no response, and are not returned.
            return Poll::Ready(Ok(Buffer::take()));
        }
        let mut piece = self.received.take().unwrap_or_else(|| {
            let mut fresh = Buffer::take();
            fresh.clear_for_body();
            fresh
        });
        loop {
            if self.decoder.is_over() {
                return Poll::Ready(Ok(piece));
            }
            if piece.is_empty() {
                let limit = self.decoder.read_limit();
                if ready!(piece.poll_fill(cx, &mut self.stream, limit))? == 0 {
                    self.decoder.end_of_connection().map_err(into_io)?;
                    continue;
                }
            }
            let (data, used) = match self.decoder.decode(piece.filled_mut()) {
                Ok(decoded) => decoded,
                // The data before the error is forwarded first.
                Err(_) if self.decoder.salvaged() > 0 => {
                    self.is_rest_invalid = true;
                    (self.decoder.salvaged(), piece.len())
                }
                Err(error) => return Poll::Ready(Err(into_io(error))),
            };
            if used < piece.len() {
                // Bytes after the response. They prevent the reuse of the connection.
                let mut rest = Buffer::take();
                rest.put(&piece.filled()[used..]);
                self.received = Some(rest);
            }
            piece.truncate(data);
            if !piece.is_empty() {
                return Poll::Ready(Ok(piece));
            }
            piece.clear_for_body();
        }
    }

    /// Returns whether the whole body of the response was taken.
    pub(super) fn body_is_over(&self) -> bool {
        self.decoder.is_over()
    }

    /// Returns the trailer fields of the response.
    pub(super) fn trailers(&self) -> Option<&Trailers> {
        self.decoder.trailers()
    }

    /// Returns the received bytes and the stream of a connection that has switched protocols.
    pub(super) fn into_tunnel(self) -> (Option<Buffer>, OriginStream) {
        (self.received, self.stream)
    }

    /// Returns whether the idle connection can be used again.
    ///
    /// It must not have expired. The server must not have closed it, nor sent bytes that belong to
    /// no response. Checks what the runtime has noticed, and with `asks_kernel` also the kernel.
    pub(super) fn is_usable(&mut self, now: Moment, asks_kernel: bool) -> bool {
        now < self.usable_until
            && !(asks_kernel && self.stream.has_input_in_kernel())
            && self.stream.is_quiet()
    }
}

/// Idle connections to one server. The one used last is on top.
///
/// They are boxed, so that little memory moves when a request takes one and gives it back.
#[derive(Default)]
pub(super) struct IdleConnections {
    #[expect(clippy::vec_box, reason = "requests keep them boxed")]
    idle: RefCell<Vec<Box<Http1Connection>>>,
    /// Addresses of the server's name.
    pub(super) addresses: KnownAddresses,
}

impl IdleConnections {
    /// Takes the connection used last that is still [usable](Http1Connection::is_usable).
    pub(super) fn take(&self, now: Moment, asks_kernel: bool) -> Option<Box<Http1Connection>> {
        let mut idle = self.idle.borrow_mut();
        loop {
            let mut last = idle.pop()?;
            if last.is_usable(now, asks_kernel) {
                return Some(last);
            }
        }
    }

    /// Keeps a connection, unless there are already `max_idle`, or a request needs its descriptor.
    pub(super) fn keep(&self, connection: Box<Http1Connection>, max_idle: usize) {
        let mut idle = self.idle.borrow_mut();
        if idle.len() < max_idle && !shortage::is_short() {
            idle.push(connection);
        }
    }

    /// Closes connections that are no longer usable, and those to dropped addresses.
    ///
    /// Closes all connections if a request needs a descriptor.
    pub(super) fn sweep(&self, now: Moment) {
        let is_short = shortage::is_short();
        self.idle.borrow_mut().retain_mut(|it| {
            !is_short && !it.is_outdated(&self.addresses) && it.is_usable(now, false)
        });
    }
}

/// Converts an error of a body. A cut body is [`io::ErrorKind::UnexpectedEof`].
fn into_io(error: BodyError) -> io::Error {
    let kind = match error {
        BodyError::Chunks => io::ErrorKind::InvalidData,
        BodyError::CutShort => io::ErrorKind::UnexpectedEof,
    };
    io::Error::new(kind, error)
}

#[cfg(test)]
mod tests;
