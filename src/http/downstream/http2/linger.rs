//! Lingering: the end of a stream whose client still uploads after its whole response.
//!
//! A server may then reset the stream without an error (RFC 9113, section 8.1). Many clients do
//! not see a response whose reset comes with it, or wait for room to send the rest of the body. So
//! the rest is read and dropped for a while, and reset only then.

use std::future::poll_fn;
use std::task::Poll;
use std::time::Duration;

use h2::RecvStream;

use crate::time::deadline::Deadline;

/// How long the rest of a body is dropped. As long as nginx waits for more of one over HTTP/1.
const LINGER: Duration = Duration::from_secs(5);
/// Maximum number of bytes of one body that are dropped.
const MAX_LINGERED: usize = 64 * 1024 * 1024;

/// Reads and drops the rest of a body, up to `LINGER` and `MAX_LINGERED`.
///
/// If that is not the whole body, h2 resets the stream with `NO_ERROR` as `body` is dropped.
pub(super) async fn linger(mut body: RecvStream) {
    let (mut lingered, mut ending) = (0, Deadline::default());
    ending.start(LINGER);
    poll_fn(|cx| {
        while let Poll::Ready(data) = body.poll_data(cx) {
            let Some(Ok(data)) = data else {
                return Poll::Ready(());
            };
            lingered += data.len();
            if lingered > MAX_LINGERED {
                return Poll::Ready(());
            }
            // A stream that was reset has no window any more.
            let _reset = body.flow_control().release_capacity(data.len());
        }
        ending.poll(cx)
    })
    .await;
}
