//! Bounds on what a server sends that is not read yet, and on late frames of ended requests.
//!
//! A *window* is the number of bytes of a body that the server may send before it gets a new
//! window. An *interim* response (status 1xx) precedes the final one. The crate `h2` has the
//! protocol. A stream of bytes below h2 counts the frames that pass, because:
//!
//! - h2 drops late frames of a cancelled request, and does not check that the server respects the
//!   stream's old window.
//! - Heads have no window. h2 keeps each interim response until its request takes it, and a request
//!   whose client reads nothing takes none.
//! - h2 keeps small pieces of bodies as frames, which take far more memory than their bytes. So the
//!   requests get time to take them before more is read. Here such a frame is a *piece*.

use std::cell::Cell;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::super::stream::OriginStream;
use super::liveness::Received;
use super::{MAX_CANCELLED, STREAM_WINDOW};

/// Maximum number of unread heads of one request. A response has few.
const MAX_UNREAD: usize = 32;
/// Heads that may arrive for ended requests: all streams may be reset at once.
const MAX_LATE: usize = 256;
/// Bytes of a body that may arrive before the client takes them.
const WINDOW: usize = STREAM_WINDOW as usize;
/// Number of small pieces that are read before the requests get time to take them.
const MAX_SMALL: usize = 128;
/// Size in bytes below which a piece takes more memory as a frame than it has bytes.
const SMALL: usize = 256;
/// Number of consecutive empty pieces that are hidden from h2.
///
/// h2 ends a connection that has had 100 of them, over any length of time. More than this number
/// are a flood.
const MAX_EMPTY: usize = 100;
/// Type of the frame that carries a piece of a body (RFC 9113, section 6.1).
const DATA: u8 = 0;
/// Type of the frame that begins a head (RFC 9113, section 6.2).
const HEADERS: u8 = 1;
/// Type of a ping, and of its answer (RFC 9113, section 6.7).
const PING: u8 = 6;
/// Undefined frame type. Such a frame is ignored (RFC 9113, section 4.1).
const UNKNOWN: u8 = 0xff;
/// Flag of the last frame of a stream.
const END_STREAM: u8 = 1;
/// Flag of a frame with padding (RFC 9113, section 6.1).
const PADDED: u8 = 8;
/// Bytes of a frame before its payload (RFC 9113, section 4.1).
const FRAME_HEAD: usize = 9;
/// Index of the frame's type in these bytes.
const KIND: usize = 3;

/// Budget of what the server of a connection may still send.
#[derive(Debug, Default)]
pub(super) struct Budget {
    /// Heads that may arrive for all requests.
    heads: Cell<usize>,
    /// Heads for cancelled requests, in addition to [`MAX_LATE`]: a final one and trailers each.
    late_heads: Cell<usize>,
    /// Bytes of bodies: the windows of all streams, including cancelled ones.
    bodies: Cell<usize>,
    /// Amount received so far.
    pub(super) received: Cell<Received>,
}

impl Budget {
    /// Counts bytes, and frames other than pings.
    fn count(&self, bytes: usize, frames: u64) {
        let mut received = self.received.get();
        received.bytes += bytes as u64;
        received.frames += frames;
        self.received.set(received);
    }

    /// Records that a request is sent.
    pub(super) fn begin(&self) {
        self.heads.update(|heads| heads + MAX_UNREAD);
        self.bodies.update(|bodies| bodies + WINDOW);
    }

    /// Records that a request has ended.
    ///
    /// `is_whole`: whether its whole response arrived. `remaining`: number of other requests.
    pub(super) fn end(&self, is_whole: bool, remaining: usize) {
        // After a cancelled request, its window, a final head and trailers may still arrive.
        let (unused_window, late_heads) = if is_whole { (WINDOW, 0) } else { (0, 2) };
        (self.heads).update(|heads| heads.min(MAX_UNREAD * remaining + MAX_LATE));
        (self.late_heads).update(|heads| (heads + late_heads).min(2 * MAX_CANCELLED));
        let max_bodies = WINDOW * (remaining + MAX_CANCELLED);
        (self.bodies).update(|bodies| bodies.saturating_sub(unused_window).min(max_bodies));
    }

    /// Records that an interim response was read: another one may arrive.
    pub(super) fn note_interim_read(&self) {
        self.heads.update(|heads| heads + 1);
    }

    /// Records that the server gets a new window of this number of bytes.
    pub(super) fn note_released(&self, bytes: usize) {
        self.bodies.update(|all| all + bytes);
    }

    /// Spends one head, or one of the late heads if none is left.
    fn spend_head(&self) -> io::Result<()> {
        let budgets = [&self.heads, &self.late_heads];
        let unspent = budgets.into_iter().find(|heads| heads.get() > 0);
        let heads = unspent.ok_or_else(|| too_many("interim responses"))?;
        heads.set(heads.get() - 1);
        Ok(())
    }

    /// Spends the bytes of a piece of a body, without its padding.
    ///
    /// h2 opens the window for padding by itself. An end without a byte counts as a head: a
    /// response has only one.
    fn spend_piece(&self, bytes: usize, is_last: bool) -> io::Result<()> {
        if bytes == 0 && is_last {
            return self.spend_head();
        }
        let unspent = self.bodies.get().checked_sub(bytes);
        let unspent = unspent.ok_or_else(|| too_many("bytes of ended responses"))?;
        self.bodies.set(unspent);
        Ok(())
    }
}

/// Returns the error of a server that exceeds its budget.
fn too_many(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("too many {what}"))
}

/// Stream of bytes that enforces the budget of its server.
///
/// It fails when the server sends more than the budget, and pauses after many small pieces of
/// bodies.
pub(super) struct WatchedStream {
    stream: OriginStream,
    budget: Rc<Budget>,
    /// Received part of the next frame's head.
    head: [u8; FRAME_HEAD],
    /// Number of bytes of that part.
    filled: usize,
    /// Bytes of the present frame's payload that have not arrived yet.
    unreceived: usize,
    /// Set if the next byte is the length of a piece's padding: whether the piece is the last one.
    padded: Option<bool>,
    /// Small pieces of bodies since the last pause.
    small_pieces: usize,
    /// Consecutive empty pieces of bodies.
    empty_pieces: usize,
}

impl WatchedStream {
    pub(super) fn new(stream: OriginStream, budget: Rc<Budget>) -> Self {
        Self {
            stream,
            budget,
            head: [0; FRAME_HEAD],
            filled: 0,
            unreceived: 0,
            padded: None,
            small_pieces: 0,
            empty_pieces: 0,
        }
    }

    /// Parses the frames in received bytes, spends the budget, and hides empty pieces from h2.
    fn watch(&mut self, bytes: &mut [u8]) -> io::Result<()> {
        self.budget.count(bytes.len(), 0);
        let mut position = 0;
        while position < bytes.len() {
            if let Some(is_last) = self.padded.take() {
                let padding = usize::from(bytes[position]);
                let without_padding = self.unreceived.saturating_sub(1 + padding);
                // The frame cannot be hidden from h2: its head has already passed.
                self.note_piece(without_padding, is_last)?;
            }
            // Skips the payload of the present frame, and collects the head of the next one.
            let payload = self.unreceived.min(bytes.len() - position);
            self.unreceived -= payload;
            position += payload;
            let count = (bytes.len() - position).min(FRAME_HEAD - self.filled);
            let head = &bytes[position..position + count];
            self.head[self.filled..self.filled + count].copy_from_slice(head);
            self.filled += count;
            position += count;
            if self.filled == FRAME_HEAD {
                self.filled = 0;
                let [high, middle, low, kind, flags, ref stream @ ..] = self.head;
                self.unreceived = u32::from_be_bytes([0, high, middle, low]) as usize;
                self.budget.count(0, u64::from(kind != PING));
                if kind == HEADERS {
                    self.budget.spend_head()?;
                } else if kind == DATA && *stream != [0; 4] {
                    let is_last = flags & END_STREAM != 0;
                    if flags & PADDED != 0 && self.unreceived > 0 {
                        self.padded = Some(is_last);
                        continue;
                    }
                    let is_hidden = self.note_piece(self.unreceived, is_last)?;
                    // If the type arrived with an earlier read, h2 has seen it, and it stays.
                    let type_position = (position + KIND).checked_sub(FRAME_HEAD);
                    if let Some(type_position) = type_position.filter(|_| is_hidden) {
                        bytes[type_position] = UNKNOWN;
                    }
                }
            }
        }
        Ok(())
    }

    /// Records a piece of a body with this number of bytes, without its padding.
    ///
    /// Returns whether the piece is an empty one that h2 need not see.
    fn note_piece(&mut self, bytes: usize, is_last: bool) -> io::Result<bool> {
        self.budget.spend_piece(bytes, is_last)?;
        self.small_pieces += usize::from((1..SMALL).contains(&bytes));
        if bytes > 0 {
            self.empty_pieces = 0;
        } else if !is_last {
            self.empty_pieces += 1;
        }
        Ok(bytes == 0 && !is_last && self.empty_pieces <= MAX_EMPTY)
    }
}

impl AsyncRead for WatchedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        to: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        // Fails only now, so that earlier pieces reach their request first.
        if self.empty_pieces > 2 * MAX_EMPTY {
            return Poll::Ready(Err(too_many("empty DATA frames")));
        }
        if self.small_pieces >= MAX_SMALL {
            // The tasks of the requests run first: they were woken before this task wakes itself.
            self.small_pieces = 0;
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        let before = to.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, to))?;
        Poll::Ready(self.watch(&mut to.filled_mut()[before..]))
    }
}

impl AsyncWrite for WatchedStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod properties;
