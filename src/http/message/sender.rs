//! A message on its way out: its head and the pieces of its body, in as few writes as they fit into.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::AsyncWrite;

use super::body::BodyEncoder;
use super::buffer::Buffer;
use super::fields::Trailers;
use super::framing::BodyLength;

/// Writes one message after the other. It holds a buffer only while bytes wait to be written.
#[derive(Debug)]
pub struct Sender {
    /// The head, and what followed it into the same write.
    out: Option<Buffer>,
    encoder: BodyEncoder,
    /// Whether the piece at hand is in its framing.
    framed: bool,
    /// Whether the message's end is, too.
    finished: bool,
}

/// What follows a piece of a body.
#[derive(Clone, Copy, Debug)]
pub enum Then<'a> {
    /// More of it.
    More,
    /// Its end.
    End(Option<&'a Trailers>),
}

impl Default for Sender {
    fn default() -> Self {
        Self {
            out: None,
            encoder: BodyEncoder::new(BodyLength::None),
            framed: false,
            finished: false,
        }
    }
}

impl Sender {
    /// Where the next head is to be written.
    pub fn head(&mut self) -> &mut Buffer {
        self.out.get_or_insert_with(Buffer::take)
    }

    /// The head is written: a body of this length follows.
    pub fn begin_body(&mut self, length: BodyLength) {
        self.encoder = BodyEncoder::new(length);
        self.framed = false;
        self.finished = false;
    }

    /// Whether there is something to send, of which nothing was written.
    #[must_use]
    pub fn is_untouched(&self) -> bool {
        self.out.as_ref().is_some_and(Buffer::is_untouched)
    }

    /// Whether a head is still to be sent.
    #[must_use]
    pub fn has_head(&self) -> bool {
        self.out.is_some()
    }

    /// Throws away what was not sent.
    pub fn discard(&mut self) {
        self.out = None;
        self.framed = false;
    }

    /// Sends the next piece of the body, and what is still to be sent before it. Ready once all of it is written; then
    /// the buffer is empty. Until then it must be called with the same piece.
    ///
    /// # Errors
    ///
    /// Those of the connection.
    pub fn poll_send<W: AsyncWrite + Unpin>(
        &mut self,
        cx: &mut Context<'_>,
        to: &mut W,
        piece: &mut Buffer,
        then: Then<'_>,
    ) -> Poll<io::Result<()>> {
        if !self.framed {
            self.framed = true;
            self.frame(piece, then);
        }
        ready!(self.poll_flush(cx, to))?;
        ready!(piece.poll_drain(cx, to))?;
        ready!(Pin::new(to).poll_flush(cx))?;
        piece.clear_for_body();
        self.framed = false;
        Poll::Ready(Ok(()))
    }

    /// Puts a piece into its framing: behind the head where that is still to be sent and both fit into one write.
    fn frame(&mut self, piece: &mut Buffer, then: Then<'_>) {
        // Room for the size of a chunk and the end of the body.
        const FRAMING: usize = 64;
        let last = match &mut self.out {
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
            && !self.finished
        {
            self.finished = true;
            self.encoder.finish(trailers, last);
        }
    }

    /// Sends what is still to be sent but for pieces at hand.
    ///
    /// # Errors
    ///
    /// Those of the connection.
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
