//! [`ClientStream`] of one HTTP/2 request: its body and its response.
//!
//! `body` buffers the request's body; `tunnel` moves the bytes of a WebSocket. `floor` is the
//! minimum progress of a client with a body; `time::lag` measures how far a client is behind it.

use std::cell::RefCell;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use h2::server::SendResponse;
use h2::{Reason, SendStream};
use http::StatusCode;
use http::header::{CONTENT_LENGTH, DATE, HeaderValue};

use super::super::socket::Wait;
use super::super::stream::{ClientError, ClientStream, EachField, Polled, Response, Tunnel};
use super::super::timeouts::Timeouts;
use super::body::Body;
use super::count_requests;
use super::tunnel::Http2Tunnel;
use crate::http::http2::{self, append};
use crate::http::message::{Buffer, READ_SIZE, RequestHead, Then, Trailers, with_date};
use crate::time::deadline::Deadline;
use crate::time::lag::Lag;

/// Time after which the gateway itself sends `100 Continue`, if the origin has not answered.
///
/// Some origins never answer before they have the body, and some clients wait for ever. curl waits
/// one second, too, before it sends the body unasked.
const CONTINUE_AFTER: Duration = Duration::from_secs(1);

/// Maximum size of all interim responses to one request, with [`INTERIM_OVERHEAD`].
///
/// Further interim responses are dropped: no window limits heads if the client reads nothing.
const MAX_INTERIM_BYTES: u32 = 32 << 10;

/// Size that is counted for each field and for each head, in addition to names and values.
///
/// The value is that of RFC 9113, section 10.5.1.
const INTERIM_OVERHEAD: usize = 32;

/// One request of a connection, and its response.
pub(super) struct Http2Stream<'a> {
    body: &'a RefCell<Body>,
    /// Whether the whole body of the request was read.
    is_over: bool,
    /// Whether the request's body may pause without limit while the response continues.
    may_pause: bool,
    trailers: Option<Trailers>,
    /// Progress of the response.
    response: RefCell<Progress>,
    has_begun: bool,
    timeouts: Rc<Timeouts>,
    /// Deadline for receiving bytes from the client.
    reading: Deadline,
    /// Deadline for an interim response, if the client waits for one before it sends the body.
    ///
    /// Boxed: few clients wait for one.
    expecting: Option<Box<Deadline>>,
    /// Deadline for sending bytes to the client.
    writing: Deadline,
    /// Lag of the client behind `min_body_rate` with the request's body.
    read_lag: Lag,
    /// Lag of the client behind `min_body_rate` with the response.
    write_lag: Lag,
    /// Size of the interim responses so far. See [`MAX_INTERIM_BYTES`].
    interim_bytes: u32,
    /// Each active request of the connection holds a clone. They share `min_body_rate`.
    active_requests: &'a Rc<()>,
}

/// Progress of the response.
enum Progress {
    /// No head is sent yet. The `http::Response` is set once the response has begun.
    Ahead(SendResponse<Bytes>, Option<http::Response<()>>),
    /// The head is sent. The body follows.
    Sending(SendStream<Bytes>),
    /// The response is complete.
    Over,
}

impl<'a> Http2Stream<'a> {
    pub(super) fn new(
        body: &'a RefCell<Body>,
        respond: SendResponse<Bytes>,
        timeouts: Rc<Timeouts>,
        active_requests: &'a Rc<()>,
    ) -> Self {
        Self {
            is_over: body.borrow().is_over(),
            body,
            may_pause: false,
            trailers: None,
            response: RefCell::new(Progress::Ahead(respond, None)),
            has_begun: false,
            timeouts,
            reading: Deadline::default(),
            expecting: None,
            writing: Deadline::default(),
            read_lag: Lag::default(),
            write_lag: Lag::default(),
            interim_bytes: 0,
            active_requests,
        }
    }

    /// Sets what the request's head decides: whether a body follows, and `100-continue`.
    ///
    /// Bytes after the head of a WebSocket request are not a body.
    pub(super) fn adapt_to(&mut self, head: &RequestHead) {
        self.is_over |= head.opens_websocket();
        self.expecting = head.expects_continue().then(Box::default);
    }

    /// Returns whether the response is complete while the request's body is not.
    pub(super) fn is_unread(&self) -> bool {
        matches!(*self.response.borrow(), Progress::Over) && !self.is_over
    }

    /// Sends `100 Continue` if the client waits for it and the origin has not answered in time.
    fn poll_continue(&mut self, cx: &mut Context<'_>) {
        let Some(expecting) = self.expecting.as_mut().filter(|_| !self.has_begun) else {
            return;
        };
        expecting.start(CONTINUE_AFTER);
        if expecting.poll(cx).is_ready() {
            self.send_interim(100, b"", &|_| {});
        }
    }

    /// Resets the stream.
    pub(super) fn reset(&mut self, reason: Reason) {
        match self.response.get_mut() {
            Progress::Ahead(respond, _) => respond.send_reset(reason),
            Progress::Sending(stream) => stream.send_reset(reason),
            Progress::Over => {}
        }
    }

    /// Sends the head, unless it is already sent. `is_last`: no body follows.
    pub(super) fn send_head(&mut self, is_last: bool) -> Result<(), ClientError> {
        let response = self.response.get_mut();
        if let Progress::Ahead(respond, head) = response
            && let Some(head) = head.take()
        {
            let stream = respond.send_response(head, is_last);
            let stream = stream.map_err(|_| ClientError::Disconnected)?;
            *response = if is_last {
                Progress::Over
            } else {
                Progress::Sending(stream)
            };
        }
        Ok(())
    }
}

/// Returns the bytes that count for `min_body_rate`: `bytes` times the number of requests.
///
/// The requests of a connection share this rate, so each must reach only its part of it.
fn credit(bytes: usize, active_requests: &Rc<()>) -> u64 {
    // The connection may have ended before its last request.
    (bytes as u64).saturating_mul(count_requests(active_requests).max(1) as u64)
}

impl ClientStream for Http2Stream<'_> {
    fn poll_disconnected<'s>(&'s self, _wait: &mut Wait<'s>, cx: &mut Context<'_>) -> Poll<()> {
        if self.is_disconnected(cx) {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    }

    fn is_disconnected(&self, cx: &mut Context<'_>) -> bool {
        let reset = match &mut *self.response.borrow_mut() {
            Progress::Ahead(respond, _) => respond.poll_reset(cx),
            Progress::Sending(stream) => stream.poll_reset(cx),
            Progress::Over => return false,
        };
        reset.is_ready() || self.body.borrow().is_overrun()
    }

    fn poll_body(&mut self, cx: &mut Context<'_>, piece: &mut Buffer) -> Polled {
        while !self.is_over {
            let read = self.body.borrow_mut().poll_read(cx, READ_SIZE, |bytes| {
                piece.clear_for_body();
                piece.put(bytes);
            });
            let Poll::Ready(read) = read else {
                self.poll_continue(cx);
                if self.may_pause {
                    return Poll::Pending;
                }
                let floor = self.timeouts.floor;
                let late = self.read_lag.poll_too_slow(&mut self.reading, cx, floor);
                return late.map(|()| Err(ClientError::TooSlow));
            };
            self.expecting = None;
            let read = read.map_err(|_| ClientError::Disconnected)?;
            if read == 0 {
                let trailers = ready!(self.body.borrow_mut().poll_trailers(cx));
                let trailers = trailers.map_err(|_| ClientError::Disconnected)?;
                self.is_over = true;
                self.trailers = http2::trailers(trailers.as_ref());
            } else {
                let (bytes, floor) = (credit(read, self.active_requests), self.timeouts.floor);
                self.read_lag.moved(&mut self.reading, bytes, floor);
                self.is_over = self.body.borrow().is_over();
                break;
            }
        }
        Poll::Ready(Ok(()))
    }

    fn let_body_pause(&mut self, may_pause: bool) {
        self.may_pause = may_pause;
    }

    fn body_is_over(&self) -> bool {
        self.is_over
    }

    fn trailers(&self) -> Option<&Trailers> {
        self.trailers.as_ref()
    }

    fn send_interim(&mut self, status: u16, _reason: &[u8], fields: EachField<'_>) {
        if status == 100 {
            if self.expecting.take().is_none() {
                return;
            }
            // Until now the client waited for the origin, so its timeout did not apply.
            self.reading.stop();
        }
        let mut head = http::Response::new(());
        *head.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::CONTINUE);
        let mut size = INTERIM_OVERHEAD;
        fields(&mut |name, value| {
            size += name.len() + value.len() + INTERIM_OVERHEAD;
            append(head.headers_mut(), name, value);
        });
        let size = u32::try_from(size).unwrap_or(u32::MAX);
        if self.interim_bytes.saturating_add(size) > MAX_INTERIM_BYTES {
            return;
        }
        self.interim_bytes += size;
        if let Progress::Ahead(respond, _) = self.response.get_mut() {
            // An error means that the client has disconnected. Sending the response detects that.
            let _disconnected = respond.send_informational(head);
        }
    }

    fn begin(&mut self, response: &Response<'_>) {
        let mut head = http::Response::new(());
        // A WebSocket over HTTP/2 begins with a 200 (RFC 8441, section 5).
        let status = match response.status {
            101 => 200,
            status => status,
        };
        *head.status_mut() = StatusCode::from_u16(status).unwrap_or_default();
        let headers = head.headers_mut();
        (response.fields)(&mut |name, value| append(headers, name, value));
        if let Some(now) = response.date
            && let Ok(date) = with_date(now, HeaderValue::from_bytes)
        {
            headers.insert(DATE, date);
        }
        if let Some(length) = response.content_length() {
            headers.insert(CONTENT_LENGTH, length.into());
        }
        self.has_begun = true;
        if let Progress::Ahead(_, head_to_send) = self.response.get_mut() {
            *head_to_send = Some(head);
        }
    }

    fn has_begun(&self) -> bool {
        self.has_begun
    }

    fn poll_send(&mut self, cx: &mut Context<'_>, piece: &mut Buffer, then: Then<'_>) -> Polled {
        let is_last = matches!(then, Then::End(None));
        self.send_head(is_last && piece.is_empty())?;
        let Progress::Sending(stream) = self.response.get_mut() else {
            return Poll::Ready(Ok(()));
        };
        let unsent_before = piece.len();
        let sent = http2::poll_send_piece(stream, cx, piece, is_last, |_| {});
        let is_disconnected = sent.is_pending() && stream.poll_reset(cx).is_ready();
        let bytes = credit(unsent_before - piece.len(), self.active_requests);
        let floor = self.timeouts.floor;
        self.write_lag.moved(&mut self.writing, bytes, floor);
        match sent {
            Poll::Ready(sent) => sent.map_err(|_| ClientError::Disconnected)?,
            Poll::Pending if is_disconnected => return Poll::Ready(Err(ClientError::Disconnected)),
            Poll::Pending => {
                let late = self.write_lag.poll_too_slow(&mut self.writing, cx, floor);
                return late.map(|()| Err(ClientError::Disconnected));
            }
        }
        self.writing.stop();
        piece.clear_for_body();
        if let Then::End(trailers) = then {
            // The frame with the last bytes of the piece has also ended the stream.
            let ended = if unsent_before > 0 && is_last {
                Ok(())
            } else {
                http2::send_end(stream, trailers)
            };
            *self.response.get_mut() = Progress::Over;
            return Poll::Ready(ended.map_err(|_| ClientError::Disconnected));
        }
        Poll::Ready(Ok(()))
    }

    fn poll_flush(&mut self, _cx: &mut Context<'_>) -> Polled {
        Poll::Ready(self.send_head(false))
    }

    fn tunnel(&mut self) -> Option<(Box<dyn Tunnel + '_>, Buffer)> {
        let Progress::Sending(to) = self.response.get_mut() else {
            return None;
        };
        let from = self.body;
        let tunnel = Http2Tunnel { from, to };
        Some((Box::new(tunnel), Buffer::default()))
    }
}
