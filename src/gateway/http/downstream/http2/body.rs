//! The body of one request, as h2 has it and as its service reads it.

use std::cell::RefCell;
use std::future::poll_fn;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use h2::RecvStream;
use http::HeaderMap;

use super::windows::{WAITING_WINDOW, Windows};
use crate::http::http2::StreamGone;
use crate::time::deadline::Deadline;

/// Bytes that are read of a body before its client gets the large window.
///
/// A body that is here as a whole needs none.
const OPEN_AFTER: usize = 16 * 1024;

/// The body of a request.
///
/// What is not read yet is bounded by the stream's window, whatever the size of its frames: they
/// are taken out of h2 as they come, because h2 keeps much for a small one, and ends the connection
/// when there are too many.
pub(super) struct Body {
    stream: RecvStream,
    windows: Rc<Windows>,
    /// Bytes that were taken out of h2 and are not read yet, from `start` on.
    ahead: Vec<u8>,
    start: usize,
    /// Number of bytes that were read, until the window is opened.
    read: usize,
    is_opened: bool,
    end: Option<End>,
}

/// What came after the last byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// The end of the body, or its trailers.
    Complete,
    /// The stream was reset, or its connection is gone.
    Gone,
    /// The client sent more than it was told that it may.
    Overrun,
}

impl Body {
    pub(super) fn new(stream: RecvStream, windows: Rc<Windows>) -> Self {
        Self {
            end: stream.is_end_stream().then_some(End::Complete),
            stream,
            windows,
            ahead: Vec::new(),
            start: 0,
            read: 0,
            is_opened: false,
        }
    }

    /// Returns whether all of the body was read, and no trailers follow.
    pub(super) fn is_over(&self) -> bool {
        self.start == self.ahead.len() && self.stream.is_end_stream()
    }

    /// Returns whether the client sent more than it was told that it may.
    pub(super) fn is_overrun(&self) -> bool {
        self.end == Some(End::Overrun)
    }

    /// Passes the next bytes to `take`, at most `most`. Returns how many; 0 at the end.
    pub(super) fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        most: usize,
        take: impl FnOnce(&[u8]),
    ) -> Poll<Result<usize, StreamGone>> {
        let waiting = &self.ahead[self.start..];
        let count = if waiting.is_empty() {
            let data = match self.poll_next(cx) {
                Poll::Ready(Ok(Some(data))) => data,
                Poll::Ready(ended) => return Poll::Ready(ended.map(|_| 0)),
                Poll::Pending => {
                    // Before its first bytes, a body may yet come as a whole.
                    if self.read > 0 {
                        self.open();
                    }
                    return Poll::Pending;
                }
            };
            let count = data.len().min(most);
            take(&data[..count]);
            self.keep(&data[count..]);
            count
        } else {
            let count = waiting.len().min(most);
            take(&waiting[..count]);
            self.start += count;
            if self.start == self.ahead.len() {
                (self.ahead, self.start) = (Vec::new(), 0);
            }
            count
        };
        // A stream that was reset has no window any more.
        let _reset = self.stream.flow_control().release_capacity(count);
        self.read = self.read.saturating_add(count);
        if self.read >= OPEN_AFTER && !self.is_over() {
            self.open();
        }
        Poll::Ready(Ok(count))
    }

    pub(super) fn poll_trailers(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<HeaderMap>, StreamGone>> {
        self.stream.poll_trailers(cx).map_err(|_| StreamGone)
    }

    /// Takes what has arrived out of h2. The task is woken when more arrives.
    pub(super) fn take_arrived(&mut self, cx: &mut Context<'_>) {
        while let Poll::Ready(Ok(Some(data))) = self.poll_next(cx) {
            let unread = self.ahead.len() - self.start + data.len();
            if !self.is_opened && self.read + unread > WAITING_WINDOW as usize {
                self.end = Some(End::Overrun);
                (self.ahead, self.start) = (Vec::new(), 0);
                cx.waker().wake_by_ref();
                return;
            }
            self.keep(&data);
        }
    }

    /// Ready once it is known whether there is a body: at its first byte, or at its end.
    pub(super) fn poll_known(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.take_arrived(cx);
        if self.end.is_some() || self.start < self.ahead.len() {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    }

    /// Adds bytes to those that wait to be read.
    fn keep(&mut self, bytes: &[u8]) {
        let length = self.ahead.len() + bytes.len();
        if length > self.ahead.capacity() {
            // A full window takes no more than the window: sizes are powers of two.
            let room = length.next_power_of_two() - self.ahead.len();
            self.ahead.reserve_exact(room);
        }
        self.ahead.extend_from_slice(bytes);
    }

    /// The next bytes from h2, at least one; `None` at the end.
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, StreamGone>> {
        match self.end {
            None => {}
            Some(End::Complete) => return Poll::Ready(Ok(None)),
            Some(End::Gone | End::Overrun) => return Poll::Ready(Err(StreamGone)),
        }
        let next = loop {
            match ready!(self.stream.poll_data(cx)) {
                // An empty frame is not the end.
                Some(Ok(data)) if data.is_empty() => {}
                Some(Ok(data)) => return Poll::Ready(Ok(Some(data))),
                Some(Err(_)) => break Err(StreamGone),
                None => break Ok(None),
            }
        };
        self.end = Some(next.as_ref().map_or(End::Gone, |_| End::Complete));
        Poll::Ready(next)
    }

    fn open(&mut self) {
        if !self.is_opened {
            self.is_opened = true;
            self.windows.open(self.stream.stream_id().as_u32());
        }
    }
}

impl Drop for Body {
    fn drop(&mut self) {
        if self.is_opened {
            self.windows.forget(self.stream.stream_id().as_u32());
        }
    }
}

/// Waits for `future`, and takes what arrives of the body out of h2 meanwhile.
pub(super) async fn taking_arrived<F: Future>(
    body: &RefCell<Body>,
    mut future: Pin<&mut F>,
) -> F::Output {
    poll_fn(|cx| {
        let polled = future.as_mut().poll(cx);
        if polled.is_pending() {
            body.borrow_mut().take_arrived(cx);
        }
        polled
    })
    .await
}

/// How long the rest of a body is dropped. As long as nginx waits for more of one over HTTP/1.
const LINGER: Duration = Duration::from_secs(5);
/// Maximum number of bytes of one body that are dropped.
const MAX_LINGERED: usize = 64 * 1024 * 1024;

/// Reads and drops the rest of a body, up to `LINGER` and `MAX_LINGERED`.
///
/// If that is not the whole body, h2 resets the stream with `NO_ERROR` when `body` is dropped.
pub(super) async fn linger(body: &RefCell<Body>) {
    let (mut lingered, mut ending) = (0, Deadline::default());
    ending.start(LINGER);
    poll_fn(|cx| {
        while let Poll::Ready(read) = body.borrow_mut().poll_read(cx, usize::MAX, |_| {}) {
            lingered += match read {
                Ok(count @ 1..) => count,
                Ok(0) | Err(_) => return Poll::Ready(()),
            };
            if lingered > MAX_LINGERED {
                return Poll::Ready(());
            }
        }
        ending.poll(cx)
    })
    .await;
}
