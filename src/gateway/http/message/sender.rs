//! Sends a message, its head and the pieces of its body, in as few writes as possible.
//!
//! `body` has the framing: the bytes that mark the end of a body, such as chunks.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::AsyncWrite;

use super::body::BodyEncoder;
use super::buffer::Buffer;
use super::framing::BodyLength;
use super::trailers::Trailers;

/// Writes messages one after another.
///
/// Holds a buffer only while bytes wait to be written.
#[derive(Default)]
pub struct Sender {
    /// The head, and a first piece that goes into the same write.
    out: Option<Buffer>,
    /// Framing of the current body.
    encoder: BodyEncoder,
    /// Whether the current piece is already framed.
    is_framed: bool,
    /// Whether the end of the message is already framed.
    is_finished: bool,
}

/// Continuation of a body after a piece: more of it, or its end.
#[derive(Clone, Copy, Debug)]
pub enum Then<'a> {
    /// More of the body.
    More,
    /// The end of the body, with its trailers.
    End(Option<&'a Trailers>),
}

impl Sender {
    /// Returns the buffer for the next head.
    pub fn head(&mut self) -> &mut Buffer {
        self.out.get_or_insert_with(Buffer::take)
    }

    /// Begins the body of this length, after its head is written.
    pub fn begin_body(&mut self, length: BodyLength) {
        self.encoder = BodyEncoder::new(length);
        self.is_framed = false;
        self.is_finished = false;
    }

    /// Returns whether bytes wait to be sent and none of them were written.
    pub(crate) fn is_untouched(&self) -> bool {
        self.out.as_ref().is_some_and(Buffer::is_untouched)
    }

    /// Returns the number of bytes that wait to be sent before the current piece.
    pub(crate) fn unsent(&self) -> usize {
        self.out.as_ref().map_or(0, Buffer::len)
    }

    /// Sends the next piece of the body, and all bytes before it.
    ///
    /// Ready when all bytes are written; the piece is empty then. Until then the caller must pass
    /// the same piece.
    ///
    /// # Errors
    ///
    /// Returns an error if the connection fails.
    pub fn poll_send<W: AsyncWrite + Unpin>(
        &mut self,
        cx: &mut Context<'_>,
        to: &mut W,
        piece: &mut Buffer,
        then: Then<'_>,
    ) -> Poll<io::Result<()>> {
        if !self.is_framed {
            self.is_framed = true;
            self.frame(piece, then);
        }
        ready!(self.poll_flush(cx, to))?;
        ready!(piece.poll_drain(cx, to))?;
        ready!(Pin::new(to).poll_flush(cx))?;
        piece.clear_for_body();
        self.is_framed = false;
        Poll::Ready(Ok(()))
    }

    /// Frames a piece. Appends it to an unsent head if both fit into one write.
    fn frame(&mut self, piece: &mut Buffer, then: Then<'_>) {
        // Room for the size of a chunk and for the end of the body.
        const FRAMING: usize = 64;
        let target = match &mut self.out {
            Some(out) if out.has_room_for(piece.len() + FRAMING) => {
                self.encoder.put(piece.filled(), out);
                piece.clear_for_body();
                out
            }
            _ => {
                self.encoder.frame(piece);
                piece
            }
        };
        if let Then::End(trailers) = then
            && !self.is_finished
        {
            self.is_finished = true;
            self.encoder.finish(trailers, target);
        }
    }

    /// Sends all waiting bytes, but not the current piece.
    ///
    /// # Errors
    ///
    /// Returns an error if the connection fails.
    pub fn poll_flush<W: AsyncWrite + Unpin>(
        &mut self,
        cx: &mut Context<'_>,
        to: &mut W,
    ) -> Poll<io::Result<()>> {
        if let Some(out) = &mut self.out {
            ready!(out.poll_drain(cx, to))?;
            self.out = None;
        }
        Pin::new(to).poll_flush(cx)
    }
}

#[cfg(test)]
mod tests;
