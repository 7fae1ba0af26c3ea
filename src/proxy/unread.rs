//! What becomes of a request's body that nobody reads.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;

use http::HeaderMap;
use http::header::{CONNECTION, EXPECT, HeaderValue};
use http::request::Parts;
use hyper::Version;
use hyper::body::{Body, Incoming};

/// Pieces that are read for the sake of the connection, and how often in a row none may be there.
const MOST_PIECES: usize = 32;
const MOST_MISSES: usize = 2;

/// Reads what has come of an unwanted body, where that is all of it: then the connection goes on after the answer.
/// Otherwise it closes, as the rest may be long or never come, and whoever sends it is told by `answer`.
pub(super) async fn discard(head: &Parts, body: Incoming, answer: &mut HeaderMap) {
    // In HTTP/2 nothing else of the connection is in the way.
    if head.version == Version::HTTP_2 || body.is_end_stream() {
        return;
    }
    // Whoever waits for a word before it sends its body has the answer instead.
    if head.headers.contains_key(EXPECT) || !has_all_come(body).await {
        answer.insert(CONNECTION, const { HeaderValue::from_static("close") });
    }
}

async fn has_all_come(mut body: Incoming) -> bool {
    let (mut pieces, mut misses) = (0, 0);
    while pieces < MOST_PIECES && misses < MOST_MISSES {
        match poll_fn(|cx| Poll::Ready(Pin::new(&mut body).poll_frame(cx))).await {
            Poll::Ready(None) => return true,
            Poll::Ready(Some(Err(_))) => return false,
            Poll::Ready(Some(Ok(_))) => (pieces, misses) = (pieces + 1, 0),
            Poll::Pending => {
                misses += 1;
                // The connection hands on what it has once this task lets it.
                tokio::task::yield_now().await;
            }
        }
    }
    false
}
