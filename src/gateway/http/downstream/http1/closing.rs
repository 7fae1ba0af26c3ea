//! Lingering close: the client can receive its last response completely.
//!
//! A connection that is closed with unread bytes is reset, and a reset discards the response
//! (RFC 9112, section 9.6). So the bytes of a client that is still sending are read and discarded
//! for a while: the connection *lingers*. The durations are those of nginx.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use rustix::net::sockopt::set_socket_linger;

use super::super::socket::Socket;
use super::super::stream::{self, ClientStream};
use super::{Http1Connection, Progress};
use crate::http::message::{BadRequest, Buffer};
use crate::time::clock;
use crate::time::deadline::Deadline;

/// Maximum pause of the client while a connection lingers.
const MAX_SILENCE: Duration = Duration::from_secs(5);
/// Maximum total duration of lingering.
const MAX_LINGER: Duration = Duration::from_secs(30);
/// Maximum number of bytes that are discarded while lingering.
const MAX_DISCARDED: usize = 256 * 1024 * 1024;

impl<S: Socket> Http1Connection<S> {
    /// Rejects a malformed request. The error response is the last one on the connection.
    pub(super) async fn refuse(mut self, refusal: BadRequest) {
        self.keeps_open = false;
        if stream::refuse(&mut self, refusal, clock::now())
            .await
            .is_ok()
        {
            // `true`: the client may still be sending the rest of its request.
            self.close(true).await;
        }
    }

    /// Closes the connection after an incomplete response. The available part is sent first.
    ///
    /// If only the end of the connection marks the end of the response, the connection is reset.
    /// A normal close would make the client take the part for the whole.
    pub(super) async fn break_off(mut self) {
        if poll_fn(|cx| self.poll_flush(cx)).await.is_err() {
            return;
        }
        if self.response == (Progress::Begun { is_endless: true }) {
            // With a linger time of zero, the kernel resets the connection when it is closed. An
            // error means that it is already closed.
            let _disconnected = set_socket_linger(self.socket.fd(), Some(Duration::ZERO));
        } else {
            self.close(false).await;
        }
    }

    /// Closes the connection. A client that is still sending can read its last response.
    ///
    /// `is_sending`: the client is known to be still sending.
    pub(super) async fn close(mut self, is_sending: bool) {
        let shut = poll_fn(|cx| {
            let shut = Pin::new(&mut self.socket).poll_shutdown(cx);
            self.check_write(cx, shut, 0)
        });
        // The client may also be sending if bytes are unread, or if its body is not complete.
        if shut.await.is_ok() && (is_sending || !self.kept.is_empty() || !self.decoder.is_over()) {
            self.linger().await;
        }
    }

    /// Discards bytes of the client until it closes, or until a limit of lingering is reached.
    async fn linger(&mut self) {
        let (mut total, silence) = (Deadline::default(), &mut self.reading);
        total.start(MAX_LINGER);
        silence.stop();
        let mut discarded = 0;
        let socket = &mut self.socket;
        poll_fn(|cx| {
            loop {
                match Buffer::take().poll_fill(cx, socket, usize::MAX) {
                    Poll::Ready(Ok(0) | Err(_)) => return Poll::Ready(()),
                    Poll::Ready(Ok(count)) => {
                        silence.stop();
                        discarded += count;
                    }
                    Poll::Pending => {
                        silence.start(MAX_SILENCE);
                        return match silence.poll(cx) {
                            Poll::Ready(()) => Poll::Ready(()),
                            Poll::Pending => total.poll(cx),
                        };
                    }
                }
                if discarded > MAX_DISCARDED || total.poll(cx).is_ready() {
                    return Poll::Ready(());
                }
            }
        })
        .await;
    }
}
