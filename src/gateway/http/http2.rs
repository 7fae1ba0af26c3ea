//! Bodies and trailers over HTTP/2, for clients and origins. The crate h2 handles the protocol.
//!
//! The *window* of a stream is the number of bytes that the peer accepts now. *Trailers* are fields
//! after a body.

use std::task::{Context, Poll, ready};

use bytes::Bytes;
use h2::SendStream;
use http::header::{HeaderMap, HeaderName, HeaderValue};

use super::message::{Buffer, Trailers};

/// Maximum number of bytes of one body that wait until the peer reads them.
pub(crate) const MAX_UNSENT: usize = 64 * 1024;

/// Error: the stream was reset, or its connection was closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StreamClosed;

/// Sends as many of the bytes as the window allows, at least one. Ready with their number.
///
/// `is_last`: the body ends with these bytes.
pub(crate) fn poll_send(
    stream: &mut SendStream<Bytes>,
    cx: &mut Context<'_>,
    bytes: &[u8],
    is_last: bool,
) -> Poll<Result<usize, StreamClosed>> {
    stream.reserve_capacity(bytes.len());
    // Number of bytes that the window and the buffer accept now.
    let mut capacity = stream.capacity();
    if capacity == 0 {
        let granted = ready!(stream.poll_capacity(cx));
        capacity = granted.and_then(Result::ok).ok_or(StreamClosed)?;
    }
    let count = capacity.min(bytes.len());
    let data = Bytes::copy_from_slice(&bytes[..count]);
    let sent = stream.send_data(data, is_last && count == bytes.len());
    Poll::Ready(sent.map(|()| count).map_err(|_| StreamClosed))
}

/// Sends a whole piece, in parts as the window allows. Calls `note` with the bytes of each part.
///
/// `is_last`: the body ends with the piece.
pub(crate) fn poll_send_piece(
    stream: &mut SendStream<Bytes>,
    cx: &mut Context<'_>,
    piece: &mut Buffer,
    is_last: bool,
    mut note: impl FnMut(&[u8]),
) -> Poll<Result<(), StreamClosed>> {
    while !piece.is_empty() {
        let count = ready!(poll_send(stream, cx, piece.filled(), is_last))?;
        note(&piece.filled()[..count]);
        piece.consume(count);
    }
    Poll::Ready(Ok(()))
}

/// Sends the end of a body, with its trailers.
pub(crate) fn send_end(
    stream: &mut SendStream<Bytes>,
    trailers: Option<&Trailers>,
) -> Result<(), StreamClosed> {
    let ended = match trailers {
        Some(trailers) => {
            let mut fields = HeaderMap::new();
            for (name, value) in trailers.iter() {
                append(&mut fields, name, value);
            }
            stream.send_trailers(fields)
        }
        None => stream.send_data(Bytes::new(), true),
    };
    ended.map_err(|_| StreamClosed)
}

/// Adds a field to a head or to trailers.
pub(crate) fn append(headers: &mut HeaderMap, name: &[u8], value: &[u8]) {
    let name = HeaderName::from_bytes(name);
    // HTTP/2 accepts every field that HTTP/1 accepts, so no field is lost here.
    if let (Ok(name), Ok(value)) = (name, HeaderValue::from_bytes(value)) {
        headers.append(name, value);
    }
}

/// Returns the trailers that may be forwarded; `None` if there are none.
///
/// [`Trailers::push`] leaves out fields that are not allowed as trailers.
pub(crate) fn trailers(received: Option<&HeaderMap>) -> Option<Trailers> {
    let mut trailers = Trailers::default();
    for (name, value) in received.into_iter().flatten() {
        trailers.push(name.as_str().as_bytes(), value.as_bytes());
    }
    Some(trailers).filter(|trailers| !trailers.is_empty())
}
