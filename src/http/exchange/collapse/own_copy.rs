//! How much of a gathered answer its own client has.

use std::task::{Context, Poll, ready};

use super::erased::AnyClient;
use crate::http::downstream::ClientError;
use crate::http::message::Buffer;
use crate::http::message::buffer::READ_SIZE;
use crate::http::message::sender::Then;

/// How much of a gathered answer its own client has.
#[derive(Default)]
pub(super) struct OwnCopy {
    sent: usize,
    piece: Option<Piece>,
    is_ended: bool,
}

/// A piece that was offered to the client.
struct Piece {
    buffer: Buffer,
    length: usize,
    is_last: bool,
}

impl Piece {
    /// The first bytes of those that are left; `is_end`: they are all.
    fn first_of(rest: &[u8], is_end: bool) -> Self {
        let length = rest.len().min(READ_SIZE);
        let mut buffer = Buffer::take();
        buffer.clear_for_body();
        buffer.put(&rest[..length]);
        Self {
            buffer,
            length,
            is_last: is_end && length == rest.len(),
        }
    }
}

impl OwnCopy {
    /// Sends what the client has not got of `bytes`, and their `end` if they are all.
    pub(super) fn poll_send(
        &mut self,
        client: &mut dyn AnyClient,
        cx: &mut Context<'_>,
        bytes: &[u8],
        end: Option<Then<'_>>,
    ) -> Poll<Result<(), ClientError>> {
        loop {
            if self.piece.is_none() {
                let rest = bytes.get(self.sent..).unwrap_or_default();
                if rest.is_empty() && (end.is_none() || self.is_ended) {
                    return Poll::Ready(Ok(()));
                }
                self.piece = Some(Piece::first_of(rest, end.is_some()));
            }
            let Some(piece) = &mut self.piece else {
                return Poll::Ready(Ok(()));
            };
            let then = match end {
                Some(end) if piece.is_last => end,
                _ => Then::More,
            };
            ready!(client.poll_send(cx, &mut piece.buffer, then))?;
            self.sent += piece.length;
            self.is_ended |= piece.is_last;
            self.piece = None;
        }
    }
}
