//! The socket below h2. It announces other stream [windows](super::windows) than h2 does.
//!
//! A *window* is the number of body bytes that the client may send ahead. The socket changes the
//! first frame that h2 writes, and adds frames of its own.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::windows::{Windows, announce_waiting_window};

/// Length of a frame's header (RFC 9113, section 4.1).
const FRAME_HEAD: usize = 9;

/// A client's socket that h2 reads and writes.
pub(super) struct WindowedSocket<S> {
    /// Bytes that were already read from the socket. h2 reads them first.
    first: Bytes,
    socket: S,
    windows: Rc<Windows>,
    /// The first frame that h2 writes (`SETTINGS`), until it is complete.
    settings: Option<Vec<u8>>,
    /// Frames of this socket that are written before the next bytes of h2.
    unsent: Bytes,
}

impl<S: AsyncWrite + Unpin> WindowedSocket<S> {
    pub(super) fn new(first: Vec<u8>, socket: S, windows: Rc<Windows>) -> Self {
        Self {
            first: first.into(),
            socket,
            windows,
            settings: Some(Vec::new()),
            unsent: Bytes::new(),
        }
    }

    /// Takes bytes of the first frame out of `bytes`. Returns their number.
    ///
    /// Returns `None` once the first frame is complete: then h2's bytes are written unchanged.
    fn take_settings(&mut self, bytes: &[u8]) -> Option<usize> {
        let settings = self.settings.as_mut()?;
        let count = bytes.len().min(frame_length(settings) - settings.len());
        settings.extend_from_slice(&bytes[..count]);
        if settings.len() >= FRAME_HEAD && settings.len() == frame_length(settings) {
            announce_waiting_window(&mut settings[FRAME_HEAD..]);
            self.unsent = self.settings.take()?.into();
        }
        Some(count)
    }

    /// Ready when all of `unsent` is written.
    fn poll_unsent(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.unsent.is_empty() {
            let count = ready!(Pin::new(&mut self.socket).poll_write(cx, &self.unsent))?;
            if count == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.unsent.advance(count);
        }
        Poll::Ready(Ok(()))
    }
}

/// Returns the length of the frame that `bytes` begin, or of its header if that is incomplete.
fn frame_length(bytes: &[u8]) -> usize {
    match *bytes {
        [high, middle, low, ..] if bytes.len() >= FRAME_HEAD => {
            FRAME_HEAD + u32::from_be_bytes([0, high, middle, low]) as usize
        }
        _ => FRAME_HEAD,
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for WindowedSocket<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        to: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if !self.windows.may_read() {
            // The tasks of the streams run first, and take their frames out of h2.
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        if !self.first.is_empty() {
            let count = self.first.len().min(to.remaining());
            to.put_slice(&self.first.split_to(count));
            self.windows.note_read(count);
            return Poll::Ready(Ok(()));
        }
        let before = to.filled().len();
        ready!(Pin::new(&mut self.socket).poll_read(cx, to))?;
        self.windows.note_read(to.filled().len() - before);
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for WindowedSocket<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if let Some(count) = self.take_settings(bytes) {
            return Poll::Ready(Ok(count));
        }
        ready!(self.poll_unsent(cx))?;
        Pin::new(&mut self.socket).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if self.settings.is_some() {
            let first = slices.iter().find(|slice| !slice.is_empty());
            return self.poll_write(cx, first.map_or(&[], |slice| slice));
        }
        ready!(self.poll_unsent(cx))?;
        Pin::new(&mut self.socket).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }

    /// Also writes pending window updates. h2 flushes only between frames, so no frame is split.
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            ready!(self.poll_unsent(cx))?;
            self.unsent = self.windows.take_frames().into();
            if self.unsent.is_empty() {
                return Pin::new(&mut self.socket).poll_flush(cx);
            }
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_unsent(cx))?;
        Pin::new(&mut self.socket).poll_shutdown(cx)
    }
}
