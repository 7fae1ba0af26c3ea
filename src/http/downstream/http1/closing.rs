//! Lingering: the end of a connection, at which its client gets the last answer whole.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use rustix::net::sockopt::set_socket_linger;

use super::super::error_response::error_response;
use super::super::socket::Socket;
use super::super::stream::ClientStream;
use super::{Connection, Progress};
use crate::clock;
use crate::deadline::Deadline;
use crate::http::message::{BadRequest, Buffer};

/// A client that still sends gets to read its last answer: a connection that is closed on unread bytes is reset, and a
/// reset takes the answer with it (RFC 9112, section 9.6). This long while nothing comes, and in all, as in nginx.
const LINGER_SILENCE: Duration = Duration::from_secs(5);
const LINGER: Duration = Duration::from_secs(30);
/// Bytes that are dropped meanwhile.
const MAX_LINGERED: usize = 256 * 1024 * 1024;
impl<S: Socket> Connection<S> {
    /// Refuses what came: the answer is the last.
    pub(super) async fn refuse(mut self, refusal: BadRequest) {
        let now = clock::now();
        self.sender.head().put(&error_response(refusal, now));
        self.keeps = false;
        if poll_fn(|cx| self.poll_flush(cx)).await.is_ok() {
            self.close(true).await;
        }
    }

    /// Closes after an answer that broke off, of which all that came is sent. Where only the end of the connection would
    /// tell how long the answer is, that is a reset, so that nobody takes the part for the whole.
    pub(super) async fn break_off(mut self) {
        if poll_fn(|cx| self.poll_flush(cx)).await.is_err() {
            return;
        }
        if self.answer == (Progress::Begun { endless: true }) {
            // Where that fails the connection is gone already.
            let _gone = set_socket_linger(self.socket.fd(), Some(Duration::ZERO));
        } else {
            self.close(false).await;
        }
    }

    /// Closes, and lets the client have its last answer where it still sends. `sends`: it surely does.
    pub(super) async fn close(mut self, sends: bool) {
        let shut = poll_fn(|cx| {
            let shut = Pin::new(&mut self.socket).poll_shutdown(cx);
            self.wrote(cx, shut)
        });
        if shut.await.is_ok() && (sends || !self.kept.is_empty() || !self.decoder.is_over()) {
            self.linger().await;
        }
    }

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
