//! One client connection over HTTP/1, in one task.
//!
//! ```text
//!             ┌──────────────────────────────────────────────────────────────┐
//!             ▼                                                              │
//!   Idle ──▶ ReadingHead ──▶ Waiting ──▶ Forwarding ──▶ Answered ── keeps ───┘
//!    │            │             │             │             │
//!    │            │ refused     │ left        │ broke off   ├─ closes ─▶ Lingering ─▶ Closed
//!    │            ▼             ▼             ▼             │
//!    └─────▶ Lingering ─▶    Closed      Lingering          └─ 101 ───▶ Tunnel ─────▶ Closed
//! ```
//!
//! | phase | what happens | what it holds | timeout |
//! |---|---|---|---|
//! | Idle | no byte of the next request is here | the socket | `keep_alive` |
//! | `ReadingHead` | a head is arriving | the part so far | `header_timeout` |
//! | Waiting | the request waits for its turn | its head, and up to 4 KB after it | its limits |
//! | Forwarding | bodies move both ways | buffers while they hold bytes | `body_timeout`, `min_body_rate` |
//! | Tunnel | bytes move both ways | the same | `tunnel_timeout` |
//! | Lingering | the client's bytes are dropped | one buffer per read | 5 s silence, 30 s in all |
//!
//! Lingering lets a client that is still sending receive its response.
//!
//! | phases | file | types |
//! |---|---|---|
//! | Idle, `ReadingHead` | `mod.rs` | `Next`: a head, a refusal, or the end of the connection |
//! | Waiting, Forwarding, Tunnel | `stream.rs` | `Progress`: how far the response is |
//! | Answered | `mod.rs` | `End`: why the connection ends; without one it is Idle again |
//! | Lingering | `closing.rs` | |
//!
//! From Waiting to Tunnel the connection belongs to the [`RequestService`], as its
//! [`ClientStream`].

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

/// Maximum number of bytes that one read takes while a head is arriving.
///
/// Most heads are shorter, and the bytes after them stay in the kernel.
const HEAD_READ: usize = 4 * 1024;

/// What a client sends first over HTTP/2 (RFC 9113, section 3.4).
const HTTP2_PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Serves a connection to its end, over HTTP/1, or over HTTP/2 if the client begins so.
///
/// This is not an `async fn`: its future would have room for the arguments, in addition to what is
/// made of them.
pub fn serve<S: Socket, A: RequestService>(
    socket: S,
    peer: Peer,
    timeouts: Rc<Timeouts>,
    stop: &Rc<StopSignal>,
    service: Rc<A>,
) -> impl Future<Output = ()> + use<S, A> {
    let context = ConnectionContext::new(peer, timeouts.usage());
    let is_encrypted = context.peer().secure;
    let mut connection = Http1Connection::new(socket, is_encrypted, timeouts, stop);
    async move {
        let end = loop {
            let served = match connection.read_head(&*service).await {
                Next::Request(head) => {
                    let limits = &connection.timeouts.reuse;
                    connection.keeps &= context.count_request(limits, || connection.began);
                    // Boxed: an idle connection does not need the room.
                    Box::pin(service.serve(head, connection.began, &mut connection, &context))
                }
                Next::Http2 => break End::Http2,
                Next::Refused(refusal) => break End::Refused(refusal),
                Next::Closed => break End::Closed,
            };
            let served = served.await;
            if let Some(end) = connection.end_after(served) {
                break end;
            }
        };
        // Boxed, because few connections come here.
        match end {
            End::Refused(refusal) => {
                service.refused(refusal.status(), &context);
                Box::pin(connection.refuse(refusal)).await;
            }
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

/// The next event on a connection.
enum Next {
    Request(RequestHead),
    /// The client speaks HTTP/2, by prior knowledge (RFC 9113, section 3.3).
    Http2,
    Refused(BadRequest),
    Closed,
}

/// Why a connection cannot carry another request.
enum End {
    Refused(BadRequest),
    /// The response is complete, and the last one.
    Answered,
    /// The response broke off.
    Broken,
    /// It goes on as a connection over HTTP/2.
    Http2,
    Closed,
}

/// A client's connection, and the progress of its current request.
#[derive(Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each says another thing of the connection"
)]
struct Http1Connection<S> {
    socket: S,
    /// Over TLS, ALPN has chosen the version.
    is_encrypted: bool,
    timeouts: Rc<Timeouts>,
    stop: Sleeper,
    /// Bytes that are read but not used yet: the start of a head, or bytes after one.
    kept: Vec<u8>,
    sender: Sender,
    decoder: BodyDecoder,
    /// The deadline while bytes must come from the client.
    reading: Deadline,
    /// Whether that deadline is for a head, and not for the idle time between requests.
    in_head: bool,
    /// The deadline while the client must accept bytes.
    writing: Deadline,
    /// How far the client is behind the least rate of the request's body.
    read_lag: Lag,
    /// The same of the response.
    write_lag: Lag,
    version: Version,
    /// Whether the connection may carry another request.
    keeps: bool,
    any_request_yet: bool,
    /// Whether the client waits for an interim response before it sends its body.
    expects: bool,
    answer: Progress,
    priority: Priority,
    /// When the head of the next request arrived.
    began: Moment,
}

/// The progress of the current response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Progress {
    None,
    Begun {
        /// Whether only the end of the connection marks the end of the response.
        endless: bool,
    },
    Over,
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
            in_head: false,
            writing: Deadline::default(),
            read_lag: Lag::default(),
            write_lag: Lag::default(),
            version: Version::Http11,
            keeps: true,
            any_request_yet: false,
            expects: false,
            answer: Progress::None,
            priority: Priority::default(),
            began: Moment::default(),
        }
    }

    /// Reads the head of the next request: the phases Idle and `ReadingHead`.
    ///
    /// What arrives is held back while departures go first.
    ///
    /// This is not an `async fn`: an idle connection has room for its future.
    fn read_head(&mut self, service: &impl RequestService) -> impl Future<Output = Next> {
        let mut searched = 0;
        self.reading.stop();
        let mut is_deferred = !self.kept.is_empty();
        let mut was_silent = false;
        poll_fn(move |cx| {
            self.poll_head(
                cx,
                service,
                &mut is_deferred,
                &mut was_silent,
                &mut searched,
            )
        })
    }

    fn poll_head(
        &mut self,
        cx: &mut Context<'_>,
        service: &impl RequestService,
        is_deferred: &mut bool,
        was_silent: &mut bool,
        searched: &mut usize,
    ) -> Poll<Next> {
        if *is_deferred {
            self.began = ready!(service.poll_admission(&mut self.priority, cx));
            *is_deferred = false;
            let kept = std::mem::take(&mut self.kept);
            if let Some(next) = self.take_head(Cow::Owned(kept), searched) {
                return Poll::Ready(next);
            }
        }
        loop {
            // After a poll that found nothing, the runtime wakes the task once something has
            // arrived.
            *was_silent = !*was_silent && self.socket.is_silent(cx);
            if *was_silent {
                return self.poll_no_head(cx);
            }
            let mut buffer = Buffer::take();
            match buffer.poll_fill(cx, &mut self.socket, HEAD_READ) {
                Poll::Pending => return self.poll_no_head(cx),
                Poll::Ready(Ok(0) | Err(_)) => return Poll::Ready(Next::Closed),
                Poll::Ready(Ok(_)) => {
                    let Poll::Ready(now) = service.poll_admission(&mut self.priority, cx) else {
                        self.kept.extend_from_slice(buffer.filled());
                        *is_deferred = true;
                        return Poll::Pending;
                    };
                    self.began = now;
                    if let Some(next) = self.take_piece(buffer.filled(), searched) {
                        return Poll::Ready(next);
                    }
                }
            }
        }
    }

    /// Handles the case that no byte is here.
    ///
    /// Between requests this may last for `keep_alive`, and within a head for `header_timeout`.
    fn poll_no_head(&mut self, cx: &mut Context<'_>) -> Poll<Next> {
        // A connection that never sends a byte counts as one with a slow head.
        let in_head = !self.kept.is_empty() || !self.any_request_yet;
        if in_head != self.in_head {
            self.in_head = in_head;
            self.reading.stop();
        }
        self.reading.start(if in_head {
            self.timeouts.header
        } else {
            self.timeouts.keep_alive
        });
        if self.stop.poll_stopping(cx).is_ready() && self.kept.is_empty() {
            if self.any_request_yet {
                return Poll::Ready(Next::Closed);
            }
            // Its request may be on the way: every accepted connection gets a response.
            self.reading
                .set_earlier(self.stop.stopped_at() + FIRST_REQUEST);
            ready!(self.reading.poll(cx));
            return Poll::Ready(Next::Closed);
        }
        ready!(self.reading.poll(cx));
        Poll::Ready(if in_head {
            Next::Refused(BadRequest::TooSlow)
        } else {
            Next::Closed
        })
    }

    /// Takes the next piece of a head, after the bytes that are kept.
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

    /// Takes the head at the start of `bytes` if it is complete; otherwise keeps the bytes.
    ///
    /// `searched`: how many bytes were searched for the end of the head.
    fn take_head(&mut self, bytes: Cow<'_, [u8]>, searched: &mut usize) -> Option<Next> {
        if !self.any_request_yet && !self.is_encrypted && begins_like(&bytes, HTTP2_PREFACE) {
            let is_whole = bytes.len() >= HTTP2_PREFACE.len();
            self.kept = bytes.into_owned();
            return is_whole.then_some(Next::Http2);
        }
        let skipped = empty_lines(&bytes);
        let head = &bytes[skipped..];
        let limit = usize::try_from(self.timeouts.max_header_size).unwrap_or(usize::MAX);
        // A head that arrives in pieces is parsed only when it is complete.
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
                Some(Next::Request(request))
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
            Ok(_) => Some(Next::Refused(BadRequest::HeadTooLarge)),
            Err(refusal) => Some(Next::Refused(refusal)),
        }
    }

    fn begin_request(&mut self, head: &RequestHead) {
        if self.any_request_yet {
            self.reading.stop();
        } else {
            // The timer for the first head fires too early for what follows: it would only be armed
            // again then. A request that waits need not keep it.
            self.reading = Deadline::default();
        }
        (self.read_lag, self.write_lag) = Default::default();
        self.in_head = false;
        self.any_request_yet = true;
        self.version = head.version();
        self.keeps = head.keeps_alive() && !self.timeouts.keep_alive.is_zero();
        self.expects = head.expects_continue();
        self.decoder = BodyDecoder::new(head.length());
        self.answer = Progress::None;
    }

    /// Returns why the connection ends after a request, if it does.
    fn end_after(&self, served: Result<(), Aborted>) -> Option<End> {
        match (served, self.answer) {
            (_, Progress::Tunnel) | (Err(Aborted::ClientGone), _) => Some(End::Closed),
            (Ok(()), Progress::Over) if self.keeps => None,
            (Ok(()), Progress::Over) => Some(End::Answered),
            (_, Progress::Begun { .. }) => Some(End::Broken),
            (_, Progress::None | Progress::Over) => Some(End::Closed),
        }
    }
}

/// Returns whether `bytes` may be the start of `text`, as far as they go.
fn begins_like(bytes: &[u8], text: &[u8]) -> bool {
    let length = bytes.len().min(text.len());
    bytes[..length] == text[..length]
}

#[cfg(test)]
mod tests;
