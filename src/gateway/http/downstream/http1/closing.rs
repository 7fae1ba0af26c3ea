//! Lingering close: the client can receive its last response completely.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use http::StatusCode;
use limit::Moment;
use rustix::net::sockopt::set_socket_linger;

use super::super::socket::Socket;
use super::super::stream::ClientStream;
use super::{Http1Connection, Progress};
use crate::http::message::date::with_date;
use crate::http::message::{BadRequest, Buffer};
use crate::time::clock;
use crate::time::deadline::Deadline;

/// Maximum silence of the client while a connection lingers.
///
/// A client that is still sending must be able to read its last response. A connection that is
/// closed with unread bytes is reset, and a reset discards the response (RFC 9112, section 9.6).
///
/// `LINGER_SILENCE` limits a pause, `LINGER` limits the total duration. Both values are those of
/// nginx.
const LINGER_SILENCE: Duration = Duration::from_secs(5);
/// Maximum total duration of lingering.
const LINGER: Duration = Duration::from_secs(30);
/// Maximum number of bytes that are discarded while lingering.
const MAX_LINGERED: usize = 256 * 1024 * 1024;
/// Builds the complete response to a malformed request.
fn error_response(refusal: BadRequest, now: Moment) -> Vec<u8> {
    let status = StatusCode::from_u16(refusal.status()).unwrap_or(StatusCode::BAD_REQUEST);
    let reason = status.canonical_reason().unwrap_or_default();
    let body = format!("{reason}: {refusal}\n");
    let date = with_date(now, |date| String::from_utf8_lossy(date).into_owned());
    format!(
        "HTTP/1.1 {code} {reason}\r\nConnection: close\r\nDate: {date}\r\n\
         Content-Type: text/plain; charset=utf-8\r\nContent-Length: {length}\r\n\r\n{body}",
        code = status.as_str(),
        length = body.len(),
    )
    .into_bytes()
}

impl<S: Socket> Http1Connection<S> {
    /// Rejects a malformed request. The error response is the last one on the connection.
    pub(super) async fn refuse(mut self, refusal: BadRequest) {
        let now = clock::now();
        self.sender.head().put(&error_response(refusal, now));
        self.keeps = false;
        if poll_fn(|cx| self.poll_flush(cx)).await.is_ok() {
            self.close(true).await;
        }
    }

    /// Closes the connection after an incomplete response. The available part is sent first.
    ///
    /// If only the end of the connection marks the end of the response, the connection is reset.
    /// Otherwise the client would take the part for the whole.
    pub(super) async fn break_off(mut self) {
        if poll_fn(|cx| self.poll_flush(cx)).await.is_err() {
            return;
        }
        if self.answer == (Progress::Begun { endless: true }) {
            // An error means that the connection is already closed.
            let _disconnected = set_socket_linger(self.socket.fd(), Some(Duration::ZERO));
        } else {
            self.close(false).await;
        }
    }

    /// Closes the connection. A client that is still sending can read its last response.
    ///
    /// `sends`: the client is known to be still sending.
    pub(super) async fn close(mut self, sends: bool) {
        let shut = poll_fn(|cx| {
            let shut = Pin::new(&mut self.socket).poll_shutdown(cx);
            self.wrote(cx, shut, 0)
        });
        if shut.await.is_ok() && (sends || !self.kept.is_empty() || !self.decoder.is_over()) {
            self.linger().await;
        }
    }

    /// Discards bytes of the client until it closes, or until a limit of lingering is reached.
    async fn linger(&mut self) {
        let (mut all, silence) = (Deadline::default(), &mut self.reading);
        all.start(LINGER);
        silence.stop();
        let mut dropped = 0;
        let socket = &mut self.socket;
        poll_fn(|cx| {
            loop {
                let read = Buffer::take().poll_fill(cx, socket, usize::MAX);
                match read {
                    Poll::Ready(Ok(0) | Err(_)) => return Poll::Ready(()),
                    Poll::Ready(Ok(count)) => {
                        silence.stop();
                        dropped += count;
                    }
                    Poll::Pending => {
                        silence.start(LINGER_SILENCE);
                        return if silence.poll(cx).is_ready() {
                            Poll::Ready(())
                        } else {
                            all.poll(cx)
                        };
                    }
                }
                if dropped > MAX_LINGERED || all.poll(cx).is_ready() {
                    return Poll::Ready(());
                }
            }
        })
        .await;
    }
}
