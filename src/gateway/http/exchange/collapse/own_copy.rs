//! Sends a collected answer to the leader's own client.
//!
//! The *leader* is the request that fetched the answer. The answer is collected in memory for other
//! clients, too, so this client may be slower than the origin. `collector` collects it.

use std::ops::Range;
use std::task::{Context, Poll, ready};

use crate::collapse::AnswerBody;
use crate::http::downstream::{ClientError, ClientStream, Polled};
use crate::http::message::{Buffer, READ_SIZE, Then};

/// Source of the bytes that the client gets.
#[derive(Clone, Copy)]
pub(super) enum Source<'a> {
    /// The bytes collected so far.
    Gathered(&'a [u8]),
    /// A complete answer, or the rest of one.
    Body(&'a AnswerBody),
}

impl Source<'_> {
    /// Returns the number of available bytes.
    fn length(self) -> usize {
        match self {
            Self::Gathered(bytes) => bytes.len(),
            Self::Body(body) => body.length(),
        }
    }

    /// Passes the bytes of `range` to `read`. Returns `None` if they were dropped to free memory.
    fn read(self, range: Range<usize>, read: impl FnOnce(&[u8])) -> Option<()> {
        match self {
            Self::Gathered(bytes) => bytes.get(range).map(read),
            Self::Body(body) => body.read(range, read),
        }
    }
}

/// Progress of the leader's own client with a collected answer.
#[derive(Default)]
pub(super) struct OwnCopy {
    /// Number of bytes that the client has accepted.
    sent: usize,
    /// Piece that was offered to the client, which has not accepted all of it yet.
    piece: Option<Piece>,
    /// Whether the client has accepted the last piece, and the end of the answer with it.
    is_ended: bool,
}

/// A piece that was offered to the client.
struct Piece {
    buffer: Buffer,
    length: usize,
    is_last: bool,
}

impl Piece {
    /// Takes the bytes from `start`; `None` if the source was dropped to free memory.
    ///
    /// `is_end`: the source gets no more bytes.
    fn read_from(source: Source<'_>, start: usize, is_end: bool) -> Option<Self> {
        let end = source.length().min(start + READ_SIZE);
        let mut buffer = Buffer::for_body();
        source.read(start..end, |bytes| buffer.put(bytes))?;
        Some(Self {
            buffer,
            length: end - start,
            is_last: is_end && end == source.length(),
        })
    }
}

impl OwnCopy {
    /// Returns whether the client has not yet accepted the whole offered piece.
    pub(super) fn is_sending(&self) -> bool {
        self.piece.is_some()
    }

    /// Returns the number of bytes that were sent or offered, and counts from 0 again.
    ///
    /// The next source begins after these bytes.
    pub(super) fn take_sent(&mut self) -> usize {
        let piece = self.piece.as_mut();
        let offered = piece.map_or(0, |piece| std::mem::take(&mut piece.length));
        std::mem::take(&mut self.sent) + offered
    }

    /// Sends the rest of the source to the client, and then `end`, if the source is complete.
    pub(super) fn poll_send(
        &mut self,
        client: &mut dyn ClientStream,
        cx: &mut Context<'_>,
        source: Source<'_>,
        end: Option<Then<'_>>,
    ) -> Polled {
        loop {
            let piece = match &mut self.piece {
                Some(piece) => piece,
                none => {
                    let has_all = self.sent == source.length();
                    if has_all && (end.is_none() || self.is_ended) {
                        return Poll::Ready(Ok(()));
                    }
                    let piece = Piece::read_from(source, self.sent, end.is_some());
                    none.insert(piece.ok_or(ClientError::Disconnected)?)
                }
            };
            // A piece that was offered before the source was complete is not the last one.
            let then = end.filter(|_| piece.is_last).unwrap_or(Then::More);
            ready!(client.poll_send(cx, &mut piece.buffer, then))?;
            self.sent += piece.length;
            self.is_ended |= piece.is_last;
            self.piece = None;
        }
    }
}
