use std::cell::Cell;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use actix_web::body::BodySize;
use actix_web::dev::Payload;
use bytes::Bytes;
use futures_core::Stream;
use hyper::body::{Body, Frame, Incoming, SizeHint};

use super::connection::Connection;
use super::servers::InFlight;
use crate::clock;
use crate::limit::Moment;

/// A request's body on its way to the origin, piece by piece as the client sends it.
pub struct FromClient {
    payload: Option<Payload>,
    /// What `Content-Length` says is still to come; `None` where the client sends chunks.
    left: Option<u64>,
    upload: Upload,
}

/// How an upload is getting on, for whoever waits for the answer to it.
#[derive(Clone, Debug, Default)]
pub(super) struct Upload(Rc<Cell<Moment>>);

impl Upload {
    /// When the client's last piece, or its end, came.
    pub(super) fn last_piece(&self) -> Moment {
        self.0.get()
    }
}

impl FromClient {
    /// No body at all: no framing either.
    #[must_use]
    pub fn none() -> Self {
        Self {
            payload: None,
            left: Some(0),
            upload: Upload::default(),
        }
    }

    /// A body of `length`, or of unknown length.
    #[must_use]
    pub fn new(payload: Payload, length: Option<u64>) -> Self {
        Self {
            payload: Some(payload),
            left: length,
            upload: Upload::default(),
        }
    }

    pub(super) fn upload(&self) -> Upload {
        self.upload.clone()
    }

    pub(super) fn is_none(&self) -> bool {
        self.payload.is_none()
    }
}

impl Body for FromClient {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let Some(payload) = &mut self.payload else {
            return Poll::Ready(None);
        };
        let piece = ready!(Pin::new(payload).poll_next(cx));
        self.upload.0.set(clock::now());
        match piece {
            Some(Ok(piece)) => {
                self.left = self
                    .left
                    .map(|left| left.saturating_sub(piece.len() as u64));
                Poll::Ready(Some(Ok(Frame::data(piece))))
            }
            Some(Err(error)) => Poll::Ready(Some(Err(io::Error::other(error.to_string())))),
            None => {
                self.payload = None;
                Poll::Ready(None)
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.payload.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        self.left
            .map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}

/// An answer's body on its way to the client. Once its last byte has come, the connection goes back to its pool.
pub struct ToClient {
    body: Incoming,
    size: BodySize,
    connection: Option<Connection>,
    /// The request is at the origin until its answer's last byte.
    in_flight: Option<InFlight>,
}

impl ToClient {
    pub(super) fn new(
        body: Incoming,
        size: BodySize,
        connection: Connection,
        in_flight: InFlight,
    ) -> Self {
        let ended = body.is_end_stream();
        let mut whole = Self {
            body,
            size,
            connection: Some(connection),
            in_flight: Some(in_flight),
        };
        if ended {
            whole.end();
        }
        whole
    }

    fn end(&mut self) {
        self.in_flight = None;
        if let Some(connection) = self.connection.take() {
            connection.give_back();
        }
    }
}

impl ToClient {
    /// Its length, where the head told it.
    #[must_use]
    pub fn size(&self) -> BodySize {
        self.size
    }

    /// The next piece. An error is not a clean end: the client's connection breaks too, so that nobody takes a part for
    /// the whole.
    pub fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Option<hyper::Result<Bytes>>> {
        loop {
            match ready!(Pin::new(&mut self.body).poll_frame(cx)) {
                Some(Ok(frame)) => {
                    // Trailers end here: the client was not promised any.
                    if let Ok(data) = frame.into_data() {
                        return Poll::Ready(Some(Ok(data)));
                    }
                }
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                None => {
                    self.end();
                    return Poll::Ready(None);
                }
            }
        }
    }
}
