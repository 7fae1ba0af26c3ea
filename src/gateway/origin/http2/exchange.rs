//! One request on a stream of a shared HTTP/2 connection, and its response.
//!
//! A server can *refuse* a request: it reports that it has not processed it, so that the request
//! can be sent again. `connection` unites this with HTTP/1.

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use h2::client::ResponseFuture;
use h2::{Reason, RecvStream, SendStream};

use super::read_ahead::ReadAhead;
use super::shared_connection::{SharedConnection, StreamPermit};
use super::{MAX_UNSENT, into_io};
use crate::http::http2;
use crate::http::message::sender::Then;
use crate::http::message::{
    BodyLength, Buffer, FieldTable, InvalidResponse, ResponseHead, Trailers,
};
use crate::time::deadline::Deadline;

/// Size up to which small pieces of a body are joined. A full frame still fits into the buffer
/// then.
const COALESCED: usize = 1000;

/// Request on a stream of a shared connection. Dropping it early resets the stream.
pub struct Http2Exchange {
    /// Declared before `permit`, so that the stream has ended before its permit is free.
    request: Request,
    /// Sent part of the request's body, until a head arrives; `None` if it is large.
    ///
    /// The server may still refuse the request without having processed it.
    sent: Option<Vec<u8>>,
    /// Part of the body that another connection sent before its server refused the request.
    taken_over: Option<Buffer>,
    /// Interim responses that were not taken yet. [`Budget`](super::watched_stream::Budget) limits
    /// them.
    interims: VecDeque<Box<::http::Response<()>>>,
    response: Response,
    /// Part of the body that has arrived and was not taken yet.
    read_ahead: ReadAhead,
    permit: StreamPermit,
    /// Values of the present head as text, to which the head's fields refer.
    text: Vec<u8>,
    /// Whether the whole body of the response was taken.
    body_is_over: bool,
    trailers: Option<Trailers>,
    /// Deadline for the server to send something.
    pub(in super::super) silence: Deadline,
    /// Whether the server has reported that it did not process the request.
    pub(in super::super) is_refused: bool,
    /// Whether the stream was reset after the server may have processed the request.
    pub(in super::super) is_reset: bool,
}

/// Progress of the request.
enum Request {
    None,
    /// The head is set and not sent.
    Ready(Box<::http::Request<()>>),
    /// The head is sent, the body is not.
    Sending(SendStream<Bytes>),
    Over,
}

/// Progress of the response.
enum Response {
    None,
    Awaited(ResponseFuture),
    /// The head has arrived and was not taken yet.
    Head(Box<::http::Response<()>>, RecvStream),
    Body(RecvStream),
    /// `None`: the error was returned before.
    Failed(Option<io::Error>),
}

impl Http2Exchange {
    /// Takes a stream on a connection.
    pub(super) fn open(connection: &Rc<SharedConnection>) -> Box<Self> {
        let permit = StreamPermit::take(connection);
        Box::new(Self {
            request: Request::None,
            sent: Some(Vec::new()),
            taken_over: None,
            interims: VecDeque::new(),
            response: Response::None,
            read_ahead: ReadAhead::new(permit.connection.unread.clone()),
            permit,
            text: Vec::new(),
            body_is_over: false,
            trailers: None,
            silence: Deadline::default(),
            is_refused: false,
            is_reset: false,
        })
    }

    /// Sets the head of the request. It is sent with the first piece of the body or with a flush.
    pub fn begin(&mut self, request: ::http::Request<()>) {
        self.request = Request::Ready(Box::new(request));
    }

    /// Returns whether the connection has carried requests before, and so may just be closing.
    ///
    /// False if only the stream was reset.
    pub(in super::super) fn is_reused(&self) -> bool {
        self.permit.is_reused && !self.is_reset
    }

    /// Returns whether the server has certainly not processed the request.
    ///
    /// The server reports it by resetting the stream as refused, or by a GOAWAY frame that names
    /// a lower stream (RFC 9113, section 8.7).
    pub(in super::super) fn is_unseen(&self) -> bool {
        matches!(self.request, Request::Ready(_)) || self.is_refused
    }

    /// Takes over the part of a body that another connection has sent to a server which refused it.
    ///
    /// Returns whether that was possible.
    pub(in super::super) fn take_over(&mut self, other: &mut Self) -> bool {
        let Some(mut sent) = other.sent.take() else {
            return false;
        };
        if let Some(rest) = other.taken_over.take() {
            sent.extend(rest.filled());
        }
        if !sent.is_empty() {
            let mut taken_over = Buffer::take();
            taken_over.put(&sent);
            self.taken_over = Some(taken_over);
        }
        true
    }

    /// Stops using the connection for further requests: it may be dead.
    pub(in super::super) fn distrust(&self) {
        self.permit.connection.is_leaving.set(true);
    }

    /// Sends the head, if it is not sent yet. `is_last`: no body follows.
    pub(in super::super) fn send_head(&mut self, is_last: bool) -> io::Result<()> {
        let Request::Ready(request) = &mut self.request else {
            return Ok(());
        };
        let request = std::mem::take(&mut **request);
        // Each handle has its own position in h2's queue of streams to open.
        let mut send = self.permit.connection.send.clone();
        match send.send_request(request, is_last) {
            Ok((response, stream)) => {
                self.response = Response::Awaited(response);
                self.request = if is_last {
                    Request::Over
                } else {
                    Request::Sending(stream)
                };
                Ok(())
            }
            Err(error) => {
                self.is_refused = true;
                self.request = Request::Over;
                self.response = Response::Failed(Some(into_io(error)));
                Err(io::ErrorKind::BrokenPipe.into())
            }
        }
    }

    /// Sends all buffered bytes.
    pub(in super::super) fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.send_head(false)?;
        self.poll_send_taken_over(cx)
    }

    /// Sends the part of the body that another connection has sent before, if there is one.
    fn poll_send_taken_over(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if let (Some(taken_over), Request::Sending(stream)) =
            (&mut self.taken_over, &mut self.request)
        {
            let note = |data: &[u8]| note_sent(&mut self.sent, data);
            let sent = http2::poll_send_piece(stream, cx, taken_over, false, note);
            ready!(sent).map_err(|_| io::ErrorKind::BrokenPipe)?;
            self.taken_over = None;
        }
        Poll::Ready(Ok(()))
    }

    /// Sends a piece of the request's body, and its end if `then` says so.
    pub(in super::super) fn poll_send(
        &mut self,
        cx: &mut Context<'_>,
        piece: &mut Buffer,
        then: Then<'_>,
    ) -> Poll<io::Result<()>> {
        let is_last = matches!(then, Then::End(None));
        self.send_head(is_last && piece.is_empty() && self.taken_over.is_none())?;
        ready!(self.poll_send_taken_over(cx))?;
        let Request::Sending(stream) = &mut self.request else {
            return Poll::Ready(Ok(()));
        };
        let to_broken_pipe = |_| io::Error::from(io::ErrorKind::BrokenPipe);
        let had_bytes = !piece.is_empty();
        let note = |data: &[u8]| note_sent(&mut self.sent, data);
        let sent = http2::poll_send_piece(stream, cx, piece, is_last, note);
        ready!(sent).map_err(to_broken_pipe)?;
        piece.clear_for_body();
        if let Then::End(trailers) = then {
            if !(had_bytes && is_last) {
                http2::send_end(stream, trailers).map_err(to_broken_pipe)?;
            }
            self.request = Request::Over;
        }
        Poll::Ready(Ok(()))
    }

    /// Returns whether a head has been received.
    pub(in super::super) fn has_head(&self) -> bool {
        !self.interims.is_empty() || matches!(self.response, Response::Head(..))
    }

    /// Returns the received head. Its size is always zero, because h2 enforces the limit.
    pub(in super::super) fn head<'a>(
        &'a mut self,
        table: &'a mut FieldTable,
        to_head: bool,
    ) -> Result<Option<(ResponseHead<'a>, usize)>, InvalidResponse> {
        let (head, ended) = match (self.interims.front(), &self.response) {
            (Some(interim), _) => (interim, false),
            (None, Response::Head(head, body)) => {
                (head, body.is_end_stream() && self.read_ahead.is_empty())
            }
            _ => return Ok(None),
        };
        self.text.clear();
        let head = ResponseHead::of_http2(head, &mut self.text, table, to_head, ended)?;
        Ok(Some((head, 0)))
    }

    /// Removes the received head. `length`: length of the body that follows.
    pub(in super::super) fn take_head(&mut self, length: BodyLength) {
        if self.interims.pop_front().is_some() {
            self.permit.connection.budget.note_interim_read();
            return;
        }
        self.response = match std::mem::replace(&mut self.response, Response::None) {
            Response::Head(_, body) => {
                self.body_is_over = length.is_empty();
                Response::Body(body)
            }
            other => other,
        };
    }

    /// Receives a head.
    pub(in super::super) fn poll_receive(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let response = match &mut self.response {
            Response::Awaited(response) => response,
            Response::Failed(error) => {
                let error = error.take();
                let error = error.unwrap_or_else(|| io::ErrorKind::BrokenPipe.into());
                return Poll::Ready(Err(error));
            }
            _ => return Poll::Pending,
        };
        let received = match response.poll_informational(cx) {
            Poll::Ready(Some(interim)) => {
                interim.map(|interim| self.interims.push_back(Box::new(interim)))
            }
            Poll::Ready(None) | Poll::Pending => {
                ready!(Pin::new(&mut *response).poll(cx)).map(|last| {
                    let (parts, body) = last.into_parts();
                    let head = ::http::Response::from_parts(parts, ());
                    self.response = Response::Head(Box::new(head), body);
                })
            }
        };
        match received {
            // Once a part of the response has arrived, the request is not sent again.
            Ok(()) => self.sent = None,
            Err(error) => {
                self.is_refused |= is_unprocessed(&error);
                self.is_reset = error.is_reset() && !self.is_refused;
                self.response = Response::Failed(None);
                return Poll::Ready(Err(into_io(error)));
            }
        }
        Poll::Ready(Ok(()))
    }

    /// Reads ahead: buffers what has arrived of the response while the client reads nothing.
    ///
    /// Wakes the task when more arrives. Without this, h2 would end the connection with all its
    /// requests because of frames that nobody takes. The buffer is bounded, because the server gets
    /// no new window for its bytes.
    pub(in super::super) fn read_ahead(&mut self, cx: &mut Context<'_>) {
        while matches!(self.response, Response::Awaited(_)) {
            match self.poll_receive(cx) {
                Poll::Ready(Ok(())) => {}
                Poll::Ready(Err(error)) => self.response = Response::Failed(Some(error)),
                Poll::Pending => return,
            }
        }
        if let Response::Head(_, body) | Response::Body(body) = &mut self.response {
            // The end, the trailers or an error follow later, after the buffered bytes.
            while let Poll::Ready(Some(Ok(data))) = body.poll_data(cx) {
                self.read_ahead.put(&data);
            }
        }
    }

    /// Returns the next piece of the response's body. Only the end is an empty piece.
    pub(in super::super) fn poll_body(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Buffer>> {
        let mut piece = Buffer::take();
        let Response::Body(body) = &mut self.response else {
            return Poll::Ready(Ok(piece));
        };
        if !self.body_is_over && !self.read_ahead.is_empty() {
            piece.clear_for_body();
            release(&self.permit, body, self.read_ahead.take(&mut piece));
            self.body_is_over = self.read_ahead.is_empty() && body.is_end_stream();
            return Poll::Ready(Ok(piece));
        }
        while !self.body_is_over {
            let Some(data) = ready!(body.poll_data(cx)) else {
                let trailers = ready!(body.poll_trailers(cx)).map_err(into_io)?;
                self.trailers = http2::trailers(trailers.as_ref());
                self.body_is_over = true;
                break;
            };
            let data = data.map_err(into_io)?;
            release(&self.permit, body, data.len());
            if !data.is_empty() {
                piece.clear_for_body();
                piece.put(&data);
            }
            self.body_is_over = body.is_end_stream();
            // Joins small pieces that have arrived.
            while !self.body_is_over
                && (1..COALESCED).contains(&piece.len())
                && let Poll::Ready(Some(Ok(data))) = body.poll_data(cx)
            {
                release(&self.permit, body, data.len());
                piece.put(&data);
                self.body_is_over = body.is_end_stream();
            }
            if !piece.is_empty() {
                break;
            }
        }
        Poll::Ready(Ok(piece))
    }

    /// Returns whether the whole body of the response was taken.
    pub(in super::super) fn body_is_over(&self) -> bool {
        self.body_is_over
    }

    /// Returns the trailer fields of the response.
    pub(in super::super) fn trailers(&self) -> Option<&Trailers> {
        self.trailers.as_ref()
    }
}

impl Drop for Http2Exchange {
    fn drop(&mut self) {
        if let Response::Body(body) = &self.response {
            self.permit.is_whole =
                self.body_is_over && self.read_ahead.is_empty() && body.is_end_stream();
        }
    }
}

/// Keeps a copy of the sent part of a request's body, as long as it is small.
fn note_sent(sent: &mut Option<Vec<u8>>, data: &[u8]) {
    if let Some(copy) = sent {
        if copy.len() + data.len() <= MAX_UNSENT {
            copy.extend(data);
        } else {
            *sent = None;
        }
    }
}

/// Gives the server a new window of `count` bytes of the body.
fn release(permit: &StreamPermit, body: &mut RecvStream, count: usize) {
    permit.connection.budget.note_released(count);
    // Fails for a stream that was reset, as it has no window any more.
    let _reset = body.flow_control().release_capacity(count);
}

/// Returns whether the server has reported that it did not process the request.
///
/// h2 returns the error of a GOAWAY frame only for streams above the last one that the frame names.
/// The server has not processed these, whatever its reason is (RFC 9113, section 6.8).
fn is_unprocessed(error: &h2::Error) -> bool {
    let is_refused = error.is_reset() && error.reason() == Some(Reason::REFUSED_STREAM);
    error.is_remote() && (is_refused || error.is_go_away())
}
