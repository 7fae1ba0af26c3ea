//! Bounds on what a server sends before it is read, and for requests that are over.
//!
//! h2 drops what comes late for a request that was cancelled, whatever it is, and never asks whether
//! the server still respects the window that the stream had.
//!
//! Heads have no window: h2 keeps each interim response until its request takes it, and a request
//! whose client reads nothing takes none.
//!
//! h2 keeps small pieces of bodies as frames, which take far more memory than their bytes. So the
//! requests get time to take them before more is read.

use std::cell::Cell;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::super::stream::OriginStream;
use super::liveness::Received;
use super::{MAX_CANCELLED, STREAM_WINDOW};

/// Maximum number of heads of one request that are not read yet. A response has few.
const MAX_UNREAD: usize = 32;
/// Heads that may come for requests that have ended: all streams may be reset at once.
const MAX_LATE: usize = 256;
/// Bytes of a body that may come before the client takes them.
const WINDOW: usize = STREAM_WINDOW as usize;
/// Small pieces of bodies that are read before the requests get time to take them.
const MAX_SMALL: usize = 128;
/// A smaller piece takes more memory as a frame than it has bytes.
const SMALL: usize = 256;
/// Empty pieces of bodies one after another that h2 does not see. It ends a connection that has had
/// 100 of them, in however long a time; more than these are a flood.
const MAX_EMPTY: usize = 100;
/// The type of the frame that carries a piece of a body (RFC 9113, section 6.1).
const DATA: u8 = 0;
/// The type of the frame that begins a head (RFC 9113, section 6.2).
const HEADERS: u8 = 1;
/// The type of a ping, and of its answer (RFC 9113, section 6.7).
const PING: u8 = 6;
/// A type that nothing defines: such a frame is ignored (RFC 9113, section 4.1).
const UNKNOWN: u8 = 0xff;
/// The flag of the last frame of a stream.
const END_STREAM: u8 = 1;
/// The flag of a frame with padding (RFC 9113, section 6.1).
const PADDED: u8 = 8;
/// Bytes of a frame before its payload (RFC 9113, section 4.1).
const FRAME_HEAD: usize = 9;

/// What the server of a connection may still send.
#[derive(Debug, Default)]
pub(super) struct Budget {
    heads: Cell<usize>,
    /// Heads for requests that were cancelled, beside [`MAX_LATE`]: a final one and trailers each.
    late_heads: Cell<usize>,
    /// Bytes of bodies: the windows of all streams, also of those that were cancelled.
    bodies: Cell<usize>,
    /// What has come so far.
    received: Cell<Received>,
}

impl Budget {
    /// What the server has sent so far.
    pub(super) fn received(&self) -> Received {
        self.received.get()
    }

    /// Counts bytes, and frames that are no pings.
    fn count(&self, bytes: usize, frames: u64) {
        let mut received = self.received.get();
        received.bytes += bytes as u64;
        received.frames += frames;
        self.received.set(received);
    }

    /// Notes that a request is sent.
    pub(super) fn begin(&self) {
        self.heads.set(self.heads.get() + MAX_UNREAD);
        self.bodies.set(self.bodies.get() + WINDOW);
    }

    /// Notes that a request has ended, whether all of its response came, and how many requests are
    /// left.
    pub(super) fn end(&self, is_whole: bool, left: usize) {
        let most = MAX_UNREAD * left + MAX_LATE;
        self.heads.set(self.heads.get().min(most));
        let (unused, late) = if is_whole { (WINDOW, 0) } else { (0, 2) };
        let late = self.late_heads.get() + late;
        self.late_heads.set(late.min(2 * MAX_CANCELLED));
        let most = WINDOW * (left + MAX_CANCELLED);
        let bodies = self.bodies.get().saturating_sub(unused);
        self.bodies.set(bodies.min(most));
    }

    /// Notes that an interim response was read: another one may come.
    pub(super) fn note_read(&self) {
        self.heads.set(self.heads.get() + 1);
    }

    /// Notes that the server gets a window of so many bytes again.
    pub(super) fn note_released(&self, bytes: usize) {
        self.bodies.set(self.bodies.get() + bytes);
    }

    fn spend_head(&self) -> io::Result<()> {
        let kept = [&self.heads, &self.late_heads];
        let kept = kept.into_iter().find(|heads| heads.get() > 0);
        let heads = kept.ok_or_else(|| too_many("interim responses"))?;
        heads.set(heads.get() - 1);
        Ok(())
    }

    /// `bytes`: of a piece of a body, without its padding, for which h2 opens the window by itself.
    ///
    /// An end without a byte counts as a head: a response has no more than one.
    fn spend_piece(&self, bytes: usize, is_last: bool) -> io::Result<()> {
        if bytes == 0 && is_last {
            return self.spend_head();
        }
        let left = self.bodies.get().checked_sub(bytes);
        let left = left.ok_or_else(|| too_many("bytes of responses that are over"))?;
        self.bodies.set(left);
        Ok(())
    }
}

fn too_many(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("too many {what}"))
}

/// A connection that fails when its server sends more than the budget has, and that pauses after
/// many small pieces of bodies.
pub(super) struct Watched {
    stream: OriginStream,
    budget: Rc<Budget>,
    /// The start of the next frame, as far as it is here.
    head: [u8; FRAME_HEAD],
    filled: usize,
    /// Bytes of the present frame that are still to come.
    left: usize,
    /// Set if the first of them is the length of the frame's padding: whether its stream ends.
    padded: Option<bool>,
    /// Small pieces of bodies since the last pause.
    small: usize,
    /// Empty pieces of bodies since the last other one.
    empty: usize,
}

impl Watched {
    pub(super) fn new(stream: OriginStream, budget: Rc<Budget>) -> Self {
        Self {
            stream,
            budget,
            head: [0; FRAME_HEAD],
            filled: 0,
            left: 0,
            padded: None,
            small: 0,
            empty: 0,
        }
    }

    fn watch(&mut self, bytes: &mut [u8]) -> io::Result<()> {
        self.budget.count(bytes.len(), 0);
        let mut at = 0;
        while at < bytes.len() {
            if let Some(is_last) = self.padded.take() {
                let bytes = self.left.saturating_sub(1 + usize::from(bytes[at]));
                // h2 sees it: its head has gone on.
                self.note_piece(bytes, is_last)?;
            }
            let skipped = self.left.min(bytes.len() - at);
            self.left -= skipped;
            at += skipped;
            let count = (bytes.len() - at).min(FRAME_HEAD - self.filled);
            let head = &bytes[at..at + count];
            self.head[self.filled..self.filled + count].copy_from_slice(head);
            self.filled += count;
            at += count;
            if self.filled == FRAME_HEAD {
                self.filled = 0;
                let [high, middle, low, kind, flags, ref stream @ ..] = self.head;
                self.left = u32::from_be_bytes([0, high, middle, low]) as usize;
                self.budget.count(0, u64::from(kind != PING));
                if kind == HEADERS {
                    self.budget.spend_head()?;
                } else if kind == DATA && *stream != [0; 4] {
                    let is_last = flags & END_STREAM != 0;
                    if flags & PADDED != 0 && self.left > 0 {
                        self.padded = Some(is_last);
                        continue;
                    }
                    let is_hidden = self.note_piece(self.left, is_last)?;
                    // A frame whose type came with an earlier read is left as it is.
                    let mut head = bytes[..at].iter_mut().rev().take(FRAME_HEAD);
                    if let Some(kind) = head.nth(FRAME_HEAD - 4).filter(|_| is_hidden) {
                        *kind = UNKNOWN;
                    }
                }
            }
        }
        Ok(())
    }

    /// Notes a piece of a body that has so many bytes beside its padding, and returns whether it is
    /// one of the empty ones that h2 need not see.
    fn note_piece(&mut self, bytes: usize, is_last: bool) -> io::Result<bool> {
        self.budget.spend_piece(bytes, is_last)?;
        self.small += usize::from((1..SMALL).contains(&bytes));
        if bytes > 0 {
            self.empty = 0;
        } else if !is_last {
            self.empty += 1;
        }
        Ok(bytes == 0 && !is_last && self.empty <= MAX_EMPTY)
    }
}

impl AsyncRead for Watched {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        to: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        // What came before them reaches its request first.
        if self.empty > 2 * MAX_EMPTY {
            return Poll::Ready(Err(too_many("empty pieces of bodies")));
        }
        if self.small >= MAX_SMALL {
            // The tasks of the requests were woken before this one wakes itself.
            self.small = 0;
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        let before = to.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, to))?;
        Poll::Ready(self.watch(&mut to.filled_mut()[before..]))
    }
}

impl AsyncWrite for Watched {
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
