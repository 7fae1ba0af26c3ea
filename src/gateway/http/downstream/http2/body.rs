//! Body of one request over HTTP/2: taken out of h2, and buffered until it is read.
//!
//! A *window* is the number of body bytes that the client may send ahead (HTTP/2 flow control).
//! `windows` has their sizes: a stream gets the large one when its body is read.

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
use crate::http::http2::StreamClosed;
use crate::time::deadline::Deadline;

/// Number of body bytes read before the stream gets the large window.
///
/// A body that arrives as a whole does not need the large window.
const OPEN_AFTER: usize = 16 * 1024;

/// Body of one request.
///
/// The stream's window limits the number of unread bytes, whatever the size of the frames. Frames
/// are taken out of h2 when they arrive: h2 allocates much memory per small frame, and it ends the
/// connection when it holds too many.
pub(super) struct Body {
    stream: RecvStream,
    windows: Rc<Windows>,
    /// Bytes taken out of h2.
    arrived: Vec<u8>,
    /// Index of the first unread byte in `arrived`.
    start: usize,
    /// Number of bytes read. Counted only until the window is opened.
    read: usize,
    /// Whether the stream has the large window.
    is_opened: bool,
    /// Set when h2 has reported the end.
    end: Option<End>,
}

/// How the body ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// The body is complete; trailers may follow.
    Complete,
    /// The stream was reset or its connection was closed.
    Closed,
    /// The client sent more bytes than its window allows.
    Overrun,
}

impl Body {
    pub(super) fn new(stream: RecvStream, windows: Rc<Windows>) -> Self {
        Self {
            end: stream.is_end_stream().then_some(End::Complete),
            stream,
            windows,
            arrived: Vec::new(),
            start: 0,
            read: 0,
            is_opened: false,
        }
    }

    /// Returns whether the body was read completely and has no trailers.
    pub(super) fn is_over(&self) -> bool {
        self.start == self.arrived.len() && self.stream.is_end_stream()
    }

    /// Returns whether the client sent more bytes than its window allows.
    pub(super) fn is_overrun(&self) -> bool {
        self.end == Some(End::Overrun)
    }

    /// Passes the next bytes to `take`, at most `max`. Returns their number; 0 at the end.
    pub(super) fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        max: usize,
        take: impl FnOnce(&[u8]),
    ) -> Poll<Result<usize, StreamClosed>> {
        let unread = &self.arrived[self.start..];
        let count = if unread.is_empty() {
            let data = match self.poll_next(cx) {
                Poll::Ready(Ok(Some(data))) => data,
                // The end of the body, or an error.
                Poll::Ready(ended) => return Poll::Ready(ended.map(|_| 0)),
                Poll::Pending => {
                    // Until its first bytes are read, the body may still arrive as a whole.
                    if self.read > 0 {
                        self.open_window();
                    }
                    return Poll::Pending;
                }
            };
            let count = data.len().min(max);
            take(&data[..count]);
            self.append(&data[count..]);
            count
        } else {
            let count = unread.len().min(max);
            take(&unread[..count]);
            self.start += count;
            if self.start == self.arrived.len() {
                (self.arrived, self.start) = (Vec::new(), 0);
            }
            count
        };
        // Lets the client send as many bytes more. A stream that was reset has no window any more.
        let _reset = self.stream.flow_control().release_capacity(count);
        self.read = self.read.saturating_add(count);
        if self.read >= OPEN_AFTER && !self.is_over() {
            self.open_window();
        }
        Poll::Ready(Ok(count))
    }

    /// Returns the trailers. Call it only after the last byte was read.
    pub(super) fn poll_trailers(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<HeaderMap>, StreamClosed>> {
        self.stream.poll_trailers(cx).map_err(|_| StreamClosed)
    }

    /// Takes the bytes that have arrived out of h2. Registers the task for more.
    pub(super) fn take_arrived(&mut self, cx: &mut Context<'_>) {
        while let Poll::Ready(Ok(Some(data))) = self.poll_next(cx) {
            let unread = self.arrived.len() - self.start + data.len();
            if !self.is_opened && self.read + unread > WAITING_WINDOW as usize {
                self.end = Some(End::Overrun);
                (self.arrived, self.start) = (Vec::new(), 0);
                cx.waker().wake_by_ref();
                return;
            }
            self.append(&data);
        }
    }

    /// Ready when the first byte or the end of the body has arrived.
    ///
    /// Then it is known whether the body is empty.
    pub(super) fn poll_start(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.take_arrived(cx);
        if self.end.is_some() || self.start < self.arrived.len() {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    }

    /// Appends bytes to the unread ones.
    fn append(&mut self, bytes: &[u8]) {
        let length = self.arrived.len() + bytes.len();
        if length > self.arrived.capacity() {
            // The large window is a power of two, so a full buffer is never larger than it.
            let room = length.next_power_of_two() - self.arrived.len();
            self.arrived.reserve_exact(room);
        }
        self.arrived.extend_from_slice(bytes);
    }

    /// Returns the next bytes from h2, at least one; `None` at the end.
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, StreamClosed>> {
        match self.end {
            None => {}
            Some(End::Complete) => return Poll::Ready(Ok(None)),
            Some(End::Closed | End::Overrun) => return Poll::Ready(Err(StreamClosed)),
        }
        let next = loop {
            match ready!(self.stream.poll_data(cx)) {
                // An empty frame is not the end.
                Some(Ok(data)) if data.is_empty() => {}
                Some(Ok(data)) => return Poll::Ready(Ok(Some(data))),
                Some(Err(_)) => break Err(StreamClosed),
                None => break Ok(None),
            }
        };
        self.end = Some(next.as_ref().map_or(End::Closed, |_| End::Complete));
        Poll::Ready(next)
    }

    /// Gives the stream the large window, unless it already has it.
    fn open_window(&mut self) {
        if !self.is_opened {
            self.is_opened = true;
            self.windows.open_stream(self.stream.stream_id().as_u32());
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

/// Waits for `future`. Meanwhile takes the arriving bytes of the body out of h2.
pub(super) async fn take_arrived_during<F: Future>(
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

/// Maximum time for which the rest of a body is discarded, as in nginx over HTTP/1.
const LINGER: Duration = Duration::from_secs(5);
/// Maximum number of bytes of one body that are discarded.
const MAX_LINGERED: usize = 64 * 1024 * 1024;

/// Reads and discards the rest of a body, up to `LINGER` and `MAX_LINGERED`.
///
/// If the body is longer, h2 resets the stream with `NO_ERROR` when `body` is dropped.
pub(super) async fn linger(body: &RefCell<Body>) {
    let (mut discarded, mut deadline) = (0, Deadline::default());
    deadline.start(LINGER);
    poll_fn(|cx| {
        while let Poll::Ready(read) = body.borrow_mut().poll_read(cx, usize::MAX, |_| {}) {
            discarded += match read {
                Ok(count @ 1..) => count,
                Ok(0) | Err(_) => return Poll::Ready(()),
            };
            if discarded > MAX_LINGERED {
                return Poll::Ready(());
            }
        }
        deadline.poll(cx)
    })
    .await;
}
