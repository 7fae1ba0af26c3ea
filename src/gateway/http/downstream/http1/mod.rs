//! One client connection over HTTP/1, in one task.
//!
//! ```text
//!             ┌──────────────────────────────────────────────────────────────┐
//!             ▼                                                              │
//!   Idle ──▶ ReadingHead ──▶ Waiting ──▶ Forwarding ──▶ Answered ── keeps ───┘
//!    │            │             │             │             │
//!    │            │ refused     │ client left │ incomplete  ├─ closes ─▶ Lingering ─▶ Closed
//!    │            ▼             ▼             ▼             │
//!    └─────▶ Lingering ─▶    Closed      Lingering          └─ 101 ───▶ Tunnel ─────▶ Closed
//! ```
//!
//! | phase | event | memory | timeout |
//! |---|---|---|---|
//! | Idle | no byte of the next request has arrived | the socket | `keep_alive` |
//! | `ReadingHead` | a head is arriving | its first part | `header_timeout` |
//! | Waiting | the request waits to be admitted | its head, up to 4 KB after it | its limits |
//! | Forwarding | bodies are forwarded | buffers with bytes | `body_timeout`, `min_body_rate` |
//! | Tunnel | bytes are forwarded | buffers with bytes | `tunnel_timeout` |
//! | Lingering | the client's bytes are discarded | one buffer per read | 5 s silence, 30 s total |
//!
//! Lingering lets a client that is still sending receive its response.
//!
//! | phases | file | types |
//! |---|---|---|
//! | Idle, `ReadingHead` | `mod.rs` | `Next`: a head, or the reason why there is none |
//! | Waiting, Forwarding, Tunnel | `stream.rs` | `Progress` of the response |
//! | Answered | `mod.rs` | `End`: reason why the connection ends; else it is Idle again |
//! | Lingering | `closing.rs` | |
//!
//! From Waiting to Tunnel, the [`RequestService`] uses the connection as its
//! [`ClientStream`](super::ClientStream).
//!
//! A *due departure* is a request that has waited and whose instant to go to its origin has come.
//! Due departures go before new requests.

mod closing;
mod stream;

use std::borrow::Cow;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use limit::Moment;

use super::context::ConnectionContext;
use super::http2;
use super::peer::Peer;
use super::socket::Socket;
use super::stop::{Sleeper, StopSignal};
use super::stream::{Aborted, RequestService};
use super::timeouts::{FIRST_REQUEST, Timeouts};
use crate::http::message::framing::{empty_lines, end_of_head};
use crate::http::message::{
    BadRequest, BodyDecoder, BodyLength, Buffer, RequestHead, Sender, Version,
};
use crate::time::deadline::Deadline;
use crate::time::lag::Lag;
use crate::time::pacer::Priority;

/// Maximum number of bytes per read while a head is arriving.
///
/// Most heads are shorter. Bytes of a long body stay in the kernel until the body is read.
const HEAD_READ: usize = 4 * 1024;

/// Connection preface of an HTTP/2 client (RFC 9113, section 3.4).
const HTTP2_PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Serves a connection to its end: over HTTP/2 if it starts with the preface, else over HTTP/1.
///
/// This is not an `async fn`: its future would store the arguments in addition to the values built
/// from them.
pub fn serve<S: Socket, A: RequestService>(
    socket: S,
    peer: Peer,
    timeouts: Rc<Timeouts>,
    stop: &Rc<StopSignal>,
    service: Rc<A>,
) -> impl Future<Output = ()> + use<S, A> {
    let context = ConnectionContext::new(peer, timeouts.usage());
    let is_encrypted = context.peer().is_encrypted;
    let mut connection = Http1Connection::new(socket, is_encrypted, timeouts, stop);
    async move {
        let end = loop {
            let served = match connection.read_head(&*service).await {
                Ok(head) => {
                    let limits = &connection.timeouts.reuse;
                    connection.keeps_open &= context.count_request(limits, || connection.began);
                    // Boxed: an idle connection must not reserve this space.
                    Box::pin(service.serve(head, connection.began, &mut connection, &context))
                }
                Err(end) => break end,
            };
            let served = served.await;
            if let Some(end) = connection.end_after(served) {
                break end;
            }
        };
        // Boxed: each connection gets here only once, and idle ones must be small.
        match end {
            End::Refused(refusal) => {
                service.record_refused(refusal.status(), &context);
                Box::pin(connection.refuse(refusal)).await;
            }
            // `false`: it is not known that the client is still sending.
            End::Answered => Box::pin(connection.close(false)).await,
            End::Broken => Box::pin(connection.break_off()).await,
            End::Http2 => {
                let (stop, peer) = (connection.stop.signal(), context.into_peer());
                let timeouts = connection.timeouts;
                let (first, socket) = (connection.kept, connection.socket);
                Box::pin(http2::serve(first, socket, peer, timeouts, stop, service)).await;
            }
            End::Closed => {}
        }
    }
}

/// The head of the next request, or the reason why no other request follows.
type Next = Result<RequestHead, End>;

/// Reason why a connection cannot carry another request.
enum End {
    /// The request is malformed.
    Refused(BadRequest),
    /// The response is complete, and it is the last one.
    Answered,
    /// The response is incomplete.
    Broken,
    /// The client speaks HTTP/2 with prior knowledge (RFC 9113, section 3.3).
    Http2,
    /// The client has closed the connection, or it ends without another response.
    Closed,
}

/// A client connection over HTTP/1, and the progress of its current request.
#[expect(clippy::struct_excessive_bools, reason = "each is independent")]
struct Http1Connection<S> {
    socket: S,
    /// Whether the connection uses TLS. Then ALPN has already chosen the protocol version.
    is_encrypted: bool,
    timeouts: Rc<Timeouts>,
    /// Wakes the connection when the gateway stops.
    stop: Sleeper,
    /// Bytes that are read but not used yet: the start of a head, or bytes after a head.
    kept: Vec<u8>,
    sender: Sender,
    /// Decoder of the current request's body.
    decoder: BodyDecoder,
    /// Deadline for receiving bytes from the client.
    reading: Deadline,
    /// Whether `reading` is the deadline for a head. Otherwise it is that of the idle time.
    is_reading_head: bool,
    /// Deadline for sending bytes to the client.
    writing: Deadline,
    /// Lag of the client behind `min_body_rate` with the request's body.
    read_lag: Lag,
    /// Lag of the client behind `min_body_rate` with the response.
    write_lag: Lag,
    version: Version,
    /// Whether the connection may carry another request.
    keeps_open: bool,
    /// Whether a request has arrived on this connection.
    has_had_request: bool,
    /// Whether the client waits for an interim response before it sends its body.
    awaits_continue: bool,
    /// Progress of the current response.
    response: Progress,
    /// State of the wait for the worker's due departures, which go first.
    priority: Priority,
    /// Instant at which the current request's head arrived.
    began: Moment,
}

/// State of [`Http1Connection::read_head`] between two polls.
struct HeadProgress {
    /// Whether received bytes wait until the worker's due departures have left.
    is_deferred: bool,
    /// Whether the last poll found the socket silent, so it did not try to read.
    was_silent: bool,
    /// Number of kept bytes that were already searched for the end of the head.
    searched: usize,
}

/// Progress of the current response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Progress {
    /// No response has begun.
    None,
    /// The head of the response was written.
    Begun {
        /// Whether only the end of the connection marks the end of the response.
        is_endless: bool,
    },
    /// The response is complete.
    Over,
    /// The connection has switched to another protocol.
    Tunnel,
}

impl<S: Socket> Http1Connection<S> {
    fn new(socket: S, is_encrypted: bool, timeouts: Rc<Timeouts>, stop: &Rc<StopSignal>) -> Self {
        Self {
            socket,
            is_encrypted,
            timeouts,
            stop: stop.sleeper(),
            kept: Vec::new(),
            sender: Sender::default(),
            decoder: BodyDecoder::new(BodyLength::None),
            reading: Deadline::default(),
            is_reading_head: false,
            writing: Deadline::default(),
            read_lag: Lag::default(),
            write_lag: Lag::default(),
            version: Version::Http11,
            keeps_open: true,
            has_had_request: false,
            awaits_continue: false,
            response: Progress::None,
            priority: Priority::default(),
            began: Moment::default(),
        }
    }

    /// Reads the head of the next request: the phases Idle and `ReadingHead`.
    ///
    /// Bytes that have arrived are not processed while the worker has due departures.
    ///
    /// This is not an `async fn`: an idle connection stores this future, so it must be small.
    fn read_head(&mut self, service: &impl RequestService) -> impl Future<Output = Next> {
        self.reading.stop();
        let mut progress = HeadProgress {
            is_deferred: !self.kept.is_empty(),
            was_silent: false,
            searched: 0,
        };
        poll_fn(move |cx| self.poll_head(cx, service, &mut progress))
    }

    /// Polls for the head of the next request.
    fn poll_head(
        &mut self,
        cx: &mut Context<'_>,
        service: &impl RequestService,
        progress: &mut HeadProgress,
    ) -> Poll<Next> {
        if progress.is_deferred {
            self.began = ready!(service.poll_admission(&mut self.priority, cx));
            progress.is_deferred = false;
            let kept = std::mem::take(&mut self.kept);
            if let Some(next) = self.take_head(Cow::Owned(kept), &mut progress.searched) {
                return Poll::Ready(next);
            }
        }
        loop {
            // Asks whether the socket is silent, unless the poll before found it silent. Then the
            // runtime has woken the task because something has arrived, which is read at once.
            progress.was_silent = !progress.was_silent && self.socket.is_silent(cx);
            if progress.was_silent {
                return self.poll_no_head(cx);
            }
            let mut buffer = Buffer::take();
            match buffer.poll_fill(cx, &mut self.socket, HEAD_READ) {
                Poll::Pending => return self.poll_no_head(cx),
                Poll::Ready(Ok(0) | Err(_)) => return Poll::Ready(Err(End::Closed)),
                Poll::Ready(Ok(_)) => {
                    let Poll::Ready(now) = service.poll_admission(&mut self.priority, cx) else {
                        self.kept.extend_from_slice(buffer.filled());
                        progress.is_deferred = true;
                        return Poll::Pending;
                    };
                    self.began = now;
                    let searched = &mut progress.searched;
                    if let Some(next) = self.take_piece(buffer.filled(), searched) {
                        return Poll::Ready(next);
                    }
                }
            }
        }
    }

    /// Waits with a timeout, because no byte is available now.
    ///
    /// The timeout is `keep_alive` between requests, and `header_timeout` within a head.
    fn poll_no_head(&mut self, cx: &mut Context<'_>) -> Poll<Next> {
        // A new connection that sends nothing has the timeout of a head.
        let in_head = !self.kept.is_empty() || !self.has_had_request;
        if in_head != self.is_reading_head {
            self.is_reading_head = in_head;
            self.reading.stop();
        }
        self.reading.start(if in_head {
            self.timeouts.header
        } else {
            self.timeouts.keep_alive
        });
        let is_stopping = self.stop.poll_stopping(cx).is_ready() && self.kept.is_empty();
        if is_stopping && self.has_had_request {
            return Poll::Ready(Err(End::Closed));
        }
        if is_stopping {
            // A request may be in transit: every accepted connection gets a response.
            let stopped_at = self.stop.stopped_at();
            self.reading.set_earlier(stopped_at + FIRST_REQUEST);
        }
        ready!(self.reading.poll(cx));
        Poll::Ready(Err(if in_head && !is_stopping {
            End::Refused(BadRequest::TooSlow)
        } else {
            End::Closed
        }))
    }

    /// Appends `piece` to the bytes kept so far and tries to read a head.
    ///
    /// Each byte is copied once, however small the pieces are.
    fn take_piece(&mut self, piece: &[u8], searched: &mut usize) -> Option<Next> {
        if self.kept.is_empty() {
            return self.take_head(Cow::Borrowed(piece), searched);
        }
        let mut bytes = std::mem::take(&mut self.kept);
        bytes.extend_from_slice(piece);
        self.take_head(Cow::Owned(bytes), searched)
    }

    /// Takes the head at the start of `bytes` if it is complete. Otherwise keeps the bytes.
    ///
    /// `searched`: number of bytes already searched for the end of the head.
    fn take_head(&mut self, bytes: Cow<'_, [u8]>, searched: &mut usize) -> Option<Next> {
        if !self.has_had_request && !self.is_encrypted && agrees_with(&bytes, HTTP2_PREFACE) {
            let is_whole = bytes.len() >= HTTP2_PREFACE.len();
            self.kept = bytes.into_owned();
            return is_whole.then_some(Err(End::Http2));
        }
        let skipped = empty_lines(&bytes);
        let head = &bytes[skipped..];
        let limit = usize::try_from(self.timeouts.max_header_size).unwrap_or(usize::MAX);
        // The first piece is parsed at once, because most heads arrive whole. A head that arrives
        // in pieces is parsed when its end has arrived.
        let is_whole = *searched == 0 || end_of_head(head, *searched).is_some();
        let parsed = if is_whole {
            RequestHead::parse(head)
        } else {
            Ok(None)
        };
        match parsed {
            Ok(Some((request, end))) if end <= limit => {
                self.kept = head[end..].to_vec();
                self.begin_request(&request);
                Some(Ok(request))
            }
            Ok(None) if head.len() <= limit => {
                *searched = head.len();
                self.kept = match bytes {
                    Cow::Borrowed(bytes) => bytes[skipped..].to_vec(),
                    Cow::Owned(mut bytes) => {
                        bytes.drain(..skipped);
                        bytes
                    }
                };
                None
            }
            Ok(_) => Some(Err(End::Refused(BadRequest::HeadTooLarge))),
            Err(refusal) => Some(Err(End::Refused(refusal))),
        }
    }

    /// Resets the state of the connection for a new request.
    fn begin_request(&mut self, head: &RequestHead) {
        if self.has_had_request {
            self.reading.stop();
        } else {
            // The timer of the first head fires long before the next deadline, only to be set
            // again. Dropping it saves that, and the timer's memory while the request waits.
            self.reading = Deadline::default();
        }
        (self.read_lag, self.write_lag) = (Lag::default(), Lag::default());
        self.is_reading_head = false;
        self.has_had_request = true;
        self.version = head.version();
        self.keeps_open = head.keeps_alive() && !self.timeouts.keep_alive.is_zero();
        self.awaits_continue = head.expects_continue();
        self.decoder = BodyDecoder::new(head.length());
        self.response = Progress::None;
    }

    /// Returns why the connection ends after a request; `None` if it continues.
    fn end_after(&self, served: Result<(), Aborted>) -> Option<End> {
        match (served, self.response) {
            (_, Progress::Tunnel) | (Err(Aborted::ClientDisconnected), _) => Some(End::Closed),
            (Ok(()), Progress::Over) if self.keeps_open => None,
            (Ok(()), Progress::Over) => Some(End::Answered),
            (_, Progress::Begun { .. }) => Some(End::Broken),
            (_, Progress::None | Progress::Over) => Some(End::Closed),
        }
    }
}

/// Returns whether `bytes` and `text` are equal up to the length of the shorter one.
fn agrees_with(bytes: &[u8], text: &[u8]) -> bool {
    let length = bytes.len().min(text.len());
    bytes[..length] == text[..length]
}

#[cfg(test)]
mod tests;
