//! Writer for unit tests that accepts only a few bytes at a time.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::AsyncWrite;

/// Writer that accepts as many bytes per call as `sizes` lists, over and over again.
///
/// Zero: the call returns `Pending` and registers no waker, so the test must poll again.
pub(crate) struct Writer {
    sizes: Vec<usize>,
    calls: usize,
    /// Accepted bytes of each call.
    pub(crate) writes: Vec<Vec<u8>>,
    pub(crate) is_flushed: bool,
}

impl Writer {
    pub(crate) fn new(sizes: Vec<usize>) -> Self {
        Self {
            sizes,
            calls: 0,
            writes: Vec::new(),
            is_flushed: true,
        }
    }
}

impl AsyncWrite for Writer {
    fn poll_write(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let size = this.sizes[this.calls % this.sizes.len()];
        this.calls += 1;
        if size == 0 {
            return Poll::Pending;
        }
        let count = size.min(bytes.len());
        this.writes.push(bytes[..count].to_vec());
        this.is_flushed = false;
        Poll::Ready(Ok(count))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.get_mut().is_flushed = true;
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
