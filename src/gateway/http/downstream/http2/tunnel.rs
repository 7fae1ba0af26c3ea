//! The stream of a WebSocket over HTTP/2, as a byte stream in both directions (RFC 8441).
//!
//! `exchange::tunnel` moves the bytes between this and the origin.

use std::cell::RefCell;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use h2::SendStream;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::body::Body;
use crate::http::http2::poll_send;

/// Both directions of a stream, as bytes.
pub(super) struct Http2Tunnel<'a> {
    /// Bytes from the client.
    pub(super) from: &'a RefCell<Body>,
    /// Bytes to the client.
    pub(super) to: &'a mut SendStream<Bytes>,
}

/// Builds the error of a reset stream.
fn reset_error() -> io::Error {
    io::ErrorKind::ConnectionReset.into()
}

impl AsyncRead for Http2Tunnel<'_> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        to: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let (mut body, max) = (self.from.borrow_mut(), to.remaining());
        let read = ready!(body.poll_read(cx, max, |bytes| to.put_slice(bytes)));
        Poll::Ready(read.map(drop).map_err(|_| reset_error()))
    }
}

impl AsyncWrite for Http2Tunnel<'_> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if bytes.is_empty() {
            return Poll::Ready(Ok(0));
        }
        poll_send(self.to, cx, bytes, false).map_err(|_| reset_error())
    }

    fn poll_flush(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let ended = self.to.send_data(Bytes::new(), true);
        Poll::Ready(ended.map_err(|_| reset_error()))
    }
}
