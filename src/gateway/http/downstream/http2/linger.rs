//! Lingering: the end of a stream whose client still uploads after its whole response.
//!
//! A server may then reset the stream without an error (RFC 9113, section 8.1). Many clients do
//! not see a response whose reset comes with it, or wait for room to send the rest of the body. So
//! the rest is read and dropped for a while, and reset only then.

use std::cell::RefCell;
use std::future::poll_fn;
use std::task::Poll;
use std::time::Duration;

use super::body::Body;
use crate::time::deadline::Deadline;

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
