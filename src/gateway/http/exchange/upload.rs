//! Sends a request's body to the origin, piece by piece.
//!
//! `answer` and `download` poll it while they wait for the response.

use std::num::NonZeroU64;
use std::task::{Context, Poll, ready};

use config::Route;
use limit::Moment;

use crate::http::downstream::{ClientError, ClientStream, Polled};
use crate::http::message::{Buffer, FieldName, Fields, Then, Trailers};
use crate::origin::Connection;
use crate::time::clock;

/// Progress of a request's body on its way to the origin.
pub(super) struct Upload {
    phase: Phase,
    /// Number of bytes that the client may still send; `None`: no limit.
    bytes_left: Option<u64>,
    /// Instant at which the last piece arrived from the client; the epoch if none did.
    last_piece: Moment,
    /// Whether any byte of the body was read.
    has_begun: bool,
    /// Trailer fields after the body that are forwarded; `None` until the body is complete.
    trailers: Option<Trailers>,
}

/// Phase of the upload.
enum Phase {
    /// Waits for the next piece from the client.
    Reading,
    /// Waits until the origin has accepted this piece.
    Sending(Buffer),
    /// The origin has the whole request, including its head.
    Over,
    /// The origin accepts no more bytes: it may have responded or disconnected.
    ///
    /// The piece is unsent.
    Refused(Buffer),
}

impl Upload {
    /// Creates the upload of a request with or without a body.
    ///
    /// `max_size`: maximum size of the body in bytes.
    pub(super) fn new(max_size: Option<NonZeroU64>) -> Self {
        Self {
            phase: Phase::Reading,
            bytes_left: max_size.map(NonZeroU64::get),
            last_piece: Moment::default(),
            has_begun: false,
            trailers: None,
        }
    }

    /// Returns whether nothing more is sent.
    pub(super) fn is_over(&self) -> bool {
        matches!(self.phase, Phase::Over | Phase::Refused(_))
    }

    /// Returns whether the origin has the whole request.
    pub(super) fn is_complete(&self) -> bool {
        matches!(self.phase, Phase::Over)
    }

    /// Returns whether a piece of the body waits for the origin to accept it.
    pub(super) fn is_stalled(&self) -> bool {
        matches!(self.phase, Phase::Sending(_))
    }

    /// Returns whether the client still has to send a part of the request.
    ///
    /// Before the first poll this is not known, and true is returned.
    pub(super) fn awaits_client(&self) -> bool {
        matches!(self.phase, Phase::Reading)
    }

    /// Returns whether any byte of the body was read.
    ///
    /// If so, the request can be sent again only if the body is buffered.
    pub(super) fn has_begun(&self) -> bool {
        self.has_begun
    }

    /// Returns the instant at which the last piece arrived from the client; the epoch if none did.
    pub(super) fn last_piece(&self) -> Moment {
        self.last_piece
    }

    /// Prepares to continue on a new connection, which has taken over the bytes sent so far.
    pub(super) fn resume(&mut self) {
        self.phase = match std::mem::replace(&mut self.phase, Phase::Reading) {
            Phase::Refused(piece) => Phase::Sending(piece),
            // The end must be sent again.
            Phase::Over => Phase::Sending(Buffer::default()),
            phase => phase,
        };
    }

    /// Moves as many bytes as possible. Ready when the upload is [over](Self::is_over).
    ///
    /// `fields`: fields of the request's head. Trailer fields that `Connection` lists, or that the
    /// route changes or reads, are dropped: some servers add trailers to the fields of the head.
    pub(super) fn poll(
        &mut self,
        cx: &mut Context<'_>,
        client: &mut dyn ClientStream,
        origin: &mut Connection,
        fields: Fields<'_>,
        route: &Route,
    ) -> Polled {
        loop {
            match &mut self.phase {
                Phase::Over | Phase::Refused(_) => return Poll::Ready(Ok(())),
                // Nothing more comes from the client: only the end is sent.
                Phase::Reading if client.body_is_over() => {
                    self.phase = Phase::Sending(Buffer::default());
                }
                Phase::Reading => {
                    let mut piece = Buffer::take();
                    if client.poll_body(cx, &mut piece)?.is_pending() {
                        // The head is sent without waiting for the body.
                        if let Poll::Ready(Err(_)) = origin.poll_flush(cx) {
                            self.phase = Phase::Refused(piece);
                            continue;
                        }
                        return Poll::Pending;
                    }
                    if let Some(bytes_left) = &mut self.bytes_left {
                        let rest = bytes_left.checked_sub(piece.len() as u64);
                        *bytes_left = rest.ok_or(ClientError::TooLarge)?;
                    }
                    self.has_begun = true;
                    self.last_piece = clock::now();
                    self.phase = Phase::Sending(piece);
                }
                Phase::Sending(piece) => {
                    let is_last = client.body_is_over();
                    let then = if is_last {
                        let is_dropped = |name: &[u8]| {
                            fields.is_listed_in_connection(FieldName::Other, name)
                                || route.request_fields.has(name)
                                || route.inputs.reads_similar_name(name)
                        };
                        if let (None, Some(trailers)) = (&self.trailers, client.trailers()) {
                            self.trailers = Some(trailers.filtered(|name| !is_dropped(name)));
                        }
                        Then::End(self.trailers.as_ref())
                    } else {
                        Then::More
                    };
                    self.phase = match ready!(origin.poll_send(cx, piece, then)) {
                        Ok(()) if is_last => Phase::Over,
                        Ok(()) => Phase::Reading,
                        Err(_) => Phase::Refused(std::mem::take(piece)),
                    };
                }
            }
        }
    }
}
