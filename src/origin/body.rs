use std::cell::Cell;
use std::num::NonZeroU64;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming, SizeHint};

use thiserror::Error;

use super::connection::Connection;
use super::server::InFlight;
use crate::clock;
use crate::deadline::Deadline;
use crate::limit::Moment;

/// A request's body on its way to the origin, piece by piece as the client sends it.
pub struct FromClient(
    /// `None` where there is none. Boxed, as mostly there is none and requests are moved about.
    Option<Box<Coming>>,
);

struct Coming {
    /// `None` where there is no more of it.
    body: Option<Incoming>,
    /// How many bytes of it may still come; `None`: any.
    room: Option<u64>,
    pause: Duration,
    silence: Deadline,
    progress: Rc<Progress>,
}

/// What made a client's body end before its end.
#[derive(Clone, Copy, Debug, Error)]
pub enum BrokenBody {
    /// It is longer than `max_body_size`.
    #[error("the client's body is too large")]
    TooLarge,
    /// Nothing of it came for `body_timeout`.
    #[error("the client's body came too slowly")]
    TooSlow,
    /// It is malformed, or its client left.
    #[error("the client's body broke off")]
    BrokeOff,
}

/// How an upload is getting on, for whoever waits for the answer to it; `None` where there is none.
#[derive(Clone, Debug, Default)]
pub(super) struct Upload(Option<Rc<Progress>>);

#[derive(Debug, Default)]
struct Progress {
    last_piece: Cell<Moment>,
    is_over: Cell<bool>,
}

impl Upload {
    /// When the client's last piece, or its end, came.
    pub(super) fn last_piece(&self) -> Moment {
        let progress = self.0.as_ref();
        progress.map_or_else(Moment::default, |progress| progress.last_piece.get())
    }

    /// Whether all of it was read, or there was none.
    pub(super) fn is_over(&self) -> bool {
        self.0
            .as_ref()
            .is_none_or(|progress| progress.is_over.get())
    }
}

impl FromClient {
    /// No body at all: no framing either.
    #[must_use]
    pub fn none() -> Self {
        Self(None)
    }

    /// The body of a request: at most `most` bytes, and no longer than `pause` between two pieces.
    #[must_use]
    pub fn new(body: Incoming, most: Option<NonZeroU64>, pause: Duration) -> Self {
        if body.is_end_stream() {
            return Self::none();
        }
        Self(Some(Box::new(Coming {
            body: Some(body),
            room: most.map(NonZeroU64::get),
            pause,
            silence: Deadline::default(),
            progress: Rc::default(),
        })))
    }

    /// Whether nobody knows how long it will be.
    #[must_use]
    pub fn is_chunked(&self) -> bool {
        self.size_hint().exact().is_none()
    }

    pub(super) fn upload(&self) -> Upload {
        Upload(self.0.as_ref().map(|coming| Rc::clone(&coming.progress)))
    }

    pub(super) fn is_none(&self) -> bool {
        self.0.is_none()
    }
}

impl Coming {
    fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BrokenBody>>> {
        loop {
            let Some(body) = &mut self.body else {
                return Poll::Ready(None);
            };
            let Poll::Ready(piece) = Pin::new(body).poll_frame(cx) else {
                self.silence.start(self.pause);
                ready!(self.silence.poll(cx));
                return Poll::Ready(Some(Err(BrokenBody::TooSlow)));
            };
            self.silence.stop();
            self.progress.last_piece.set(clock::now());
            // Trailers end here: the origin was not promised any.
            match piece
                .transpose()
                .map_err(|_| BrokenBody::BrokeOff)?
                .map(Frame::into_data)
            {
                Some(Ok(data)) => {
                    if let Some(room) = &mut self.room {
                        let left = room.checked_sub(data.len() as u64);
                        *room = left.ok_or(BrokenBody::TooLarge)?;
                    }
                    self.progress.is_over.set(self.is_end_stream());
                    return Poll::Ready(Some(Ok(Frame::data(data))));
                }
                Some(Err(_trailers)) => {}
                None => {
                    self.body = None;
                    self.progress.is_over.set(true);
                }
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        let none = SizeHint::with_exact(0);
        self.body.as_ref().map_or(none, Body::size_hint)
    }
}

impl Body for FromClient {
    type Data = Bytes;
    type Error = BrokenBody;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BrokenBody>>> {
        match &mut self.0 {
            None => Poll::Ready(None),
            Some(coming) => coming.poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.0.as_ref().is_none_or(|coming| coming.is_end_stream())
    }

    fn size_hint(&self) -> SizeHint {
        let none = SizeHint::with_exact(0);
        self.0.as_ref().map_or(none, |coming| coming.size_hint())
    }
}

/// An answer's body on its way to the client. Once its last byte has come, the connection goes back to its pool.
pub struct ToClient {
    body: Incoming,
    connection: Option<Connection>,
    /// The request is at the origin until its answer's last byte.
    in_flight: Option<InFlight>,
}

impl ToClient {
    pub(super) fn new(body: Incoming, connection: Connection, in_flight: InFlight) -> Self {
        let mut whole = Self {
            body,
            connection: Some(connection),
            in_flight: Some(in_flight),
        };
        if whole.is_over() {
            whole.end();
        }
        whole
    }

    /// Of a connection that has changed protocols: the request is at the origin until this is dropped.
    pub(super) fn of_tunnel(body: Incoming, in_flight: InFlight) -> Self {
        Self {
            body,
            connection: None,
            in_flight: Some(in_flight),
        }
    }

    fn end(&mut self) {
        self.in_flight = None;
        if let Some(connection) = self.connection.take() {
            connection.give_back();
        }
    }
}

impl ToClient {
    /// What is known of its length.
    #[must_use]
    pub fn size(&self) -> SizeHint {
        self.body.size_hint()
    }

    /// Whether its last byte has come.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.body.is_end_stream()
    }

    /// The next piece. An error is not a clean end: the client's connection breaks too, so that nobody takes a part for
    /// the whole.
    pub fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Option<hyper::Result<Bytes>>> {
        loop {
            match ready!(Pin::new(&mut self.body).poll_frame(cx)) {
                Some(Ok(frame)) => {
                    // Trailers end here: the client was not promised any.
                    if let Ok(data) = frame.into_data() {
                        if self.is_over() {
                            self.end();
                        }
                        return Poll::Ready(Some(Ok(data)));
                    }
                }
                Some(Err(error)) => {
                    // However long its client takes to hear of it, at the origin it is over.
                    self.in_flight = None;
                    return Poll::Ready(Some(Err(error)));
                }
                None => {
                    self.end();
                    return Poll::Ready(None);
                }
            }
        }
    }
}
