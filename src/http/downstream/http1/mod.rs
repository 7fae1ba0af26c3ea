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
//! | phase | what happens | what it holds | it ends after |
//! |---|---|---|---|
//! | Idle | nothing has come of the next request | the socket | `keep_alive` |
//! | `ReadingHead` | a head is coming | what has come of it | `header_timeout` |
//! | Waiting | the request waits for its turn | its head, and at most 4 KB of what follows | its limits decide |
//! | Forwarding | bodies move both ways | buffers while there are bytes in them | `body_timeout` |
//! | Tunnel | bytes move both ways | the same | `tunnel_timeout` |
//! | Lingering | what the client still sends is dropped, so that it gets the answer | one buffer while it reads | 5 s of silence, 30 s in all |
//!
//! Idle, `ReadingHead` and Lingering are in this file; the request's service has the connection in between, as its
//! [`ClientStream`].

mod closing;
mod stream;

use std::future::poll_fn;
use std::io;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use super::context::ConnectionContext;
use super::peer::Peer;
use super::socket::Socket;
use super::stop::{Sleeper, StopSignal};
use super::stream::{Aborted, ClientError, RequestService};
use super::timeouts::Timeouts;
use crate::deadline::Deadline;
use crate::http::message::request::{empty_lines, end_of_head};
use crate::http::message::{
    BadRequest, BodyDecoder, BodyLength, Buffer, RequestHead, Sender, Version,
};
use crate::limit::Moment;
use crate::pacer::Priority;

/// Bytes that one read takes while a head is coming: most heads are shorter, and what is behind them stays with the
/// kernel.
const HEAD_READ: usize = 4 * 1024;
/// Time that a connection which has asked for nothing yet has for it after the gateway was told to stop.
const FIRST_REQUEST: Duration = Duration::from_millis(500);

/// Serves a connection of HTTP/1 to its end.
///
/// No `async fn`: its future would have room for the arguments besides what is made of them.
pub fn serve<S: Socket, A: RequestService>(
    socket: S,
    peer: Peer,
    timeouts: Timeouts,
    stop: &Rc<StopSignal>,
    service: Rc<A>,
) -> impl Future<Output = ()> + use<S, A> {
    let context = ConnectionContext::new(peer);
    let mut connection = Connection::new(socket, timeouts, stop);
    async move {
        let end = loop {
            let head = match connection.read_head(&*service).await {
                Next::Request(head) => head,
                Next::Refused(refusal) => break End::Refused(refusal),
                Next::Closed => break End::Closed,
            };
            connection.begin_request(&head);
            let began = connection.began;
            let served = service.serve(&head, began, &mut connection, &context).await;
            if let Some(end) = connection.end_after(served) {
                break end;
            }
        };
        // Boxed, as few connections come to them.
        match end {
            End::Refused(refusal) => {
                service.refused(refusal.status(), &context);
                Box::pin(connection.refuse(refusal)).await;
            }
            End::Answered => Box::pin(connection.close(false)).await,
            End::Broken => Box::pin(connection.break_off()).await,
            End::Closed => {}
        }
    }
}

/// What came next on a connection.
enum Next {
    Request(RequestHead),
    Refused(BadRequest),
    Closed,
}

/// Why nothing else can follow on a connection.
enum End {
    Refused(BadRequest),
    /// The answer is whole, but the last one.
    Answered,
    /// The answer broke off.
    Broken,
    Closed,
}

/// A client's connection, and how far its present request has come.
#[derive(Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each says another thing of the connection"
)]
struct Connection<S> {
    socket: S,
    timeouts: Timeouts,
    stop: Sleeper,
    /// Read, and not taken yet: the beginning of a head, or what came behind one.
    kept: Vec<u8>,
    sender: Sender,
    decoder: BodyDecoder,
    /// While something must come.
    reading: Deadline,
    /// Whether that is the next head, as opposed to any.
    in_head: bool,
    /// While something must be taken.
    writing: Deadline,
    version: Version,
    /// Whether the client may ask again on this connection.
    keeps: bool,
    any_request_yet: bool,
    /// Whether the client waits for a word before it sends its body.
    expects: bool,
    answer: Progress,
    priority: Priority,
    /// When the next request's head came.
    began: Moment,
}

/// How far the present answer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Progress {
    None,
    Begun {
        /// Whether only the end of the connection tells where it ends.
        endless: bool,
    },
    Over,
    Tunnel,
}

impl<S: Socket> Connection<S> {
    fn new(socket: S, timeouts: Timeouts, stop: &Rc<StopSignal>) -> Self {
        Self {
            socket,
            timeouts,
            stop: stop.sleeper(),
            kept: Vec::new(),
            sender: Sender::default(),
            decoder: BodyDecoder::new(BodyLength::None),
            reading: Deadline::default(),
            in_head: false,
            writing: Deadline::default(),
            version: Version::Http11,
            keeps: true,
            any_request_yet: false,
            expects: false,
            answer: Progress::None,
            priority: Priority::default(),
            began: Moment::default(),
        }
    }

    /// Idle and `ReadingHead`: the next request's head.
    async fn read_head(&mut self, service: &impl RequestService) -> Next {
        let mut searched = 0;
        self.reading.stop();
        if !self.kept.is_empty() {
            let admission = |cx: &mut Context<'_>| service.poll_admission(&mut self.priority, cx);
            self.began = poll_fn(admission).await;
            let kept = std::mem::take(&mut self.kept);
            if let Some(next) = self.take_head(&kept, &mut searched) {
                return next;
            }
        }
        poll_fn(|cx| self.poll_head(cx, service, &mut searched)).await
    }

    fn poll_head(
        &mut self,
        cx: &mut Context<'_>,
        service: &impl RequestService,
        searched: &mut usize,
    ) -> Poll<Next> {
        loop {
            self.began = ready!(service.poll_admission(&mut self.priority, cx));
            let mut buffer = Buffer::take();
            buffer.put(&self.kept);
            match buffer.poll_fill(cx, &mut self.socket, HEAD_READ) {
                Poll::Pending => return self.poll_no_head(cx),
                Poll::Ready(Ok(0) | Err(_)) => return Poll::Ready(Next::Closed),
                Poll::Ready(Ok(_)) => {
                    if let Some(next) = self.take_head(buffer.filled(), searched) {
                        return Poll::Ready(next);
                    }
                }
            }
        }
    }

    /// Nothing has come. That may last for `keep_alive` between requests, and for `header_timeout` within a head.
    fn poll_no_head(&mut self, cx: &mut Context<'_>) -> Poll<Next> {
        // A connection that never sends a byte is one with a slow head.
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
            // Its request may be on the way: whoever was let in is answered.
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

    /// The head that `bytes` begin with, if it has come whole. Else they are kept.
    fn take_head(&mut self, bytes: &[u8], searched: &mut usize) -> Option<Next> {
        let bytes = &bytes[empty_lines(bytes)..];
        let limit = self.timeouts.max_header_size;
        // A head that comes in pieces is parsed once it is whole.
        let is_whole = *searched == 0 || end_of_head(bytes, *searched).is_some();
        let parsed = if is_whole {
            RequestHead::parse(bytes)
        } else {
            Ok(None)
        };
        match parsed {
            Ok(Some((head, end))) if end <= limit => {
                self.kept = bytes[end..].to_vec();
                Some(Next::Request(head))
            }
            Ok(None) if bytes.len() <= limit => {
                *searched = bytes.len();
                self.kept = bytes.to_vec();
                None
            }
            Ok(_) => Some(Next::Refused(BadRequest::HeadTooLarge)),
            Err(refusal) => Some(Next::Refused(refusal)),
        }
    }

    fn begin_request(&mut self, head: &RequestHead) {
        self.reading.stop();
        self.in_head = false;
        self.any_request_yet = true;
        self.version = head.version();
        self.keeps = head.keeps_alive() && !self.timeouts.keep_alive.is_zero();
        self.expects = head.expects_continue();
        self.decoder = BodyDecoder::new(head.length());
        self.answer = Progress::None;
    }

    /// Why the connection ends after a request, if it does.
    fn end_after(&self, served: Result<(), Aborted>) -> Option<End> {
        match (served, self.answer) {
            (_, Progress::Tunnel) | (Err(Aborted::ClientGone), _) => Some(End::Closed),
            (Ok(()), Progress::Over) if self.keeps => None,
            (Ok(()), Progress::Over) => Some(End::Answered),
            (_, Progress::Begun { .. }) => Some(End::Broken),
            (_, Progress::None | Progress::Over) => Some(End::Closed),
        }
    }

    /// Maps the result of a write, enforcing `body_timeout`.
    fn wrote(
        &mut self,
        cx: &mut Context<'_>,
        wrote: Poll<io::Result<()>>,
    ) -> Poll<Result<(), ClientError>> {
        match wrote {
            Poll::Ready(wrote) => {
                self.writing.stop();
                Poll::Ready(wrote.map_err(|_| ClientError::Gone))
            }
            Poll::Pending => {
                self.writing.start(self.timeouts.body);
                self.writing.poll(cx).map(|()| Err(ClientError::Gone))
            }
        }
    }
}
