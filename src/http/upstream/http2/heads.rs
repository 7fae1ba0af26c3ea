//! A bound on the heads that a server sends before they are read.
//!
//! Bodies have windows, but heads have none: h2 keeps each interim response until its request
//! takes it, and a request whose client reads nothing takes none.

use std::cell::Cell;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::super::stream::OriginStream;

/// Maximum number of heads of one request that are not read yet. A response has few.
const MAX_UNREAD: usize = 32;
/// Heads that may come for requests that have ended: all streams may be reset at once.
const MAX_LATE: usize = 256;
/// The type of the frame that begins a head (RFC 9113, section 6.2).
const HEADERS: u8 = 1;
/// Bytes of a frame before its payload (RFC 9113, section 4.1).
const FRAME_HEAD: usize = 9;

/// How many heads the server of a connection may still send.
#[derive(Debug, Default)]
pub(super) struct HeadBudget(Cell<usize>);

impl HeadBudget {
    /// Notes that a request is sent.
    pub(super) fn begin(&self) {
        self.0.set(self.0.get() + MAX_UNREAD);
    }

    /// Notes that a request has ended, and how many are left.
    pub(super) fn end(&self, left: usize) {
        self.0.set(self.0.get().min(MAX_UNREAD * left + MAX_LATE));
    }

    /// Notes that an interim response was read: another one may come.
    pub(super) fn note_read(&self) {
        self.0.set(self.0.get() + 1);
    }

    fn spend(&self) -> io::Result<()> {
        let too_many = || io::Error::new(io::ErrorKind::InvalidData, "too many interim responses");
        let left = self.0.get().checked_sub(1).ok_or_else(too_many)?;
        self.0.set(left);
        Ok(())
    }
}

/// A connection that fails when its server sends more heads than the budget has.
#[derive(Debug)]
pub(super) struct Watched {
    stream: OriginStream,
    budget: Rc<HeadBudget>,
    /// The start of the next frame, as far as it is here.
    head: [u8; FRAME_HEAD],
    filled: usize,
    /// Bytes of the present frame that are still to come.
    left: usize,
}

impl Watched {
    pub(super) fn new(stream: OriginStream, budget: Rc<HeadBudget>) -> Self {
        Self {
            stream,
            budget,
            head: [0; FRAME_HEAD],
            filled: 0,
            left: 0,
        }
    }

    fn watch(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let skipped = self.left.min(bytes.len());
            self.left -= skipped;
            bytes = &bytes[skipped..];
            let count = bytes.len().min(FRAME_HEAD - self.filled);
            self.head[self.filled..self.filled + count].copy_from_slice(&bytes[..count]);
            self.filled += count;
            bytes = &bytes[count..];
            if self.filled == FRAME_HEAD {
                self.filled = 0;
                let [high, middle, low, kind, ..] = self.head;
                self.left = u32::from_be_bytes([0, high, middle, low]) as usize;
                if kind == HEADERS {
                    self.budget.spend()?;
                }
            }
        }
        Ok(())
    }
}

impl AsyncRead for Watched {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        to: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = to.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, to))?;
        Poll::Ready(self.watch(&to.filled()[before..]))
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
