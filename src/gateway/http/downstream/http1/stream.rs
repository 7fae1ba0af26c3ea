//! [`ClientStream`] of an HTTP/1 connection: the body of a request, and its response.
//!
//! `floor` is the minimum progress of a client with a body (`body_timeout`, `min_body_rate`). A
//! *lag* measures how far a client is behind it. `time::lag` has both.

use std::io;
use std::task::{Context, Poll};

use super::super::socket::{self, Socket, Wait};
use super::super::stream::{ClientError, ClientStream, EachField, Polled, Response, Tunnel};
use super::{Http1Connection, Progress};
use crate::http::message::{
    BodyLength, Buffer, Then, Trailers, Version, put_field, put_number_field, with_date,
};

/// Maximum number of unread body bytes that are discarded to keep the connection usable.
const MAX_DRAINED: usize = 256 * 1024;

impl<S: Socket> Http1Connection<S> {
    /// Converts the result of a write, and enforces `body_timeout` and `min_body_rate`.
    ///
    /// `bytes`: number of bytes that the socket accepted.
    pub(super) fn check_write(
        &mut self,
        cx: &mut Context<'_>,
        written: Poll<io::Result<()>>,
        bytes: usize,
    ) -> Polled {
        let floor = self.timeouts.floor;
        self.write_lag.moved(&mut self.writing, bytes as u64, floor);
        match written {
            Poll::Ready(written) => {
                self.writing.stop();
                Poll::Ready(written.map_err(|_| ClientError::Disconnected))
            }
            Poll::Pending => {
                let late = self.write_lag.poll_too_slow(&mut self.writing, cx, floor);
                late.map(|()| Err(ClientError::Disconnected))
            }
        }
    }

    /// Writes the first line and the fields of a response, without the empty line at the end.
    fn write_head(&mut self, status: u16, reason: &[u8], fields: EachField<'_>) {
        let out = self.sender.head();
        let version: &[u8] = match self.version {
            Version::Http10 => b"HTTP/1.0 ",
            _ => b"HTTP/1.1 ",
        };
        out.put(version);
        out.put(itoa::Buffer::new().format(status).as_bytes());
        out.put(b" ");
        out.put(reason);
        out.put(b"\r\n");
        fields(&mut |name, value| put_field(out, name, value));
    }
}

impl<S: Socket> ClientStream for Http1Connection<S> {
    fn poll_disconnected<'s>(&'s self, wait: &mut Wait<'s>, cx: &mut Context<'_>) -> Poll<()> {
        socket::poll_disconnected(&self.socket, wait, cx)
    }

    fn is_disconnected(&self, _cx: &mut Context<'_>) -> bool {
        socket::is_disconnected(self.socket.fd())
    }

    fn poll_body(&mut self, cx: &mut Context<'_>, piece: &mut Buffer) -> Polled {
        while !self.decoder.is_over() {
            piece.clear_for_body();
            if self.kept.is_empty() {
                let limit = self.decoder.read_limit();
                let Poll::Ready(read) = piece.poll_fill(cx, &mut self.socket, limit) else {
                    let floor = self.timeouts.floor;
                    let late = self.read_lag.poll_too_slow(&mut self.reading, cx, floor);
                    return late.map(|()| Err(ClientError::TooSlow));
                };
                if !matches!(read, Ok(1..)) {
                    return Poll::Ready(Err(ClientError::Disconnected));
                }
            } else {
                piece.put(&std::mem::take(&mut self.kept));
            }
            let (arrived, floor) = (piece.len() as u64, self.timeouts.floor);
            self.read_lag.moved(&mut self.reading, arrived, floor);
            let decoded = self.decoder.decode(piece.filled_mut());
            let (data, used) = decoded.map_err(|_| ClientError::Malformed)?;
            self.kept = piece.filled()[used..].to_vec();
            piece.truncate(data);
            if !piece.is_empty() {
                break;
            }
        }
        Poll::Ready(Ok(()))
    }

    fn body_is_over(&self) -> bool {
        self.decoder.is_over()
    }

    fn trailers(&self) -> Option<&Trailers> {
        self.decoder.trailers()
    }

    fn drain_body(&mut self, cx: &mut Context<'_>) {
        // A client that waits for an interim response gets the final one instead, and sends no
        // body.
        if self.awaits_continue {
            return;
        }
        let mut drained = 0;
        while !self.decoder.is_over() && drained < MAX_DRAINED {
            let mut piece = Buffer::take();
            match self.poll_body(cx, &mut piece) {
                Poll::Ready(Ok(())) => drained += piece.len(),
                Poll::Ready(Err(_)) | Poll::Pending => return,
            }
        }
    }

    fn send_interim(&mut self, status: u16, reason: &[u8], fields: EachField<'_>) {
        if status == 100 {
            // Until now the client waited for the origin, so its timeout did not apply.
            self.reading.stop();
        }
        self.write_head(status, reason, fields);
        self.sender.head().put(b"\r\n");
    }

    fn begin(&mut self, response: &Response<'_>) {
        self.write_head(response.status, response.reason, response.fields);
        // Whether the client knows the end of the body from the head.
        let has_end = matches!(response.length, BodyLength::None | BodyLength::Length(_));
        let is_endless = !has_end && self.version == Version::Http10;
        self.keeps_open &= !(is_endless || self.stop.is_stopping());
        // Unread bytes of the request's body would be parsed as the next request.
        self.keeps_open &= self.decoder.is_over();
        let out = self.sender.head();
        if let Some(now) = response.date {
            with_date(now, |date| put_field(out, b"Date", date));
        }
        if let Some(length) = response.content_length() {
            put_number_field(out, b"Content-Length", length);
        } else if !has_end && !is_endless {
            out.put(b"Transfer-Encoding: chunked\r\n");
        }
        if let Some(protocol) = response.upgrade {
            out.put(b"Connection: upgrade\r\n");
            put_field(out, b"Upgrade", protocol);
        } else if !self.keeps_open {
            out.put(b"Connection: close\r\n");
        } else if self.version == Version::Http10 {
            out.put(b"Connection: keep-alive\r\n");
        }
        out.put(b"\r\n");
        self.sender.begin_body(match response.length {
            length if has_end => length,
            _ if is_endless => BodyLength::UntilClose,
            _ => BodyLength::Chunked,
        });
        self.response = Progress::Begun { is_endless };
    }

    fn has_begun(&self) -> bool {
        self.response != Progress::None
    }

    fn poll_send(&mut self, cx: &mut Context<'_>, piece: &mut Buffer, then: Then<'_>) -> Polled {
        let unsent_before = self.sender.unsent() + piece.len();
        let sent = self.sender.poll_send(cx, &mut self.socket, piece, then);
        let unsent_after = self.sender.unsent() + piece.len();
        if sent.is_ready() && matches!(then, Then::End(_)) {
            self.response = Progress::Over;
        }
        // The first call adds the framing, so more bytes may be unsent than before: no progress
        // then.
        self.check_write(cx, sent, unsent_before.saturating_sub(unsent_after))
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Polled {
        let unsent_before = self.sender.unsent();
        let flushed = self.sender.poll_flush(cx, &mut self.socket);
        self.check_write(cx, flushed, unsent_before - self.sender.unsent())
    }

    fn tunnel(&mut self) -> Option<(Box<dyn Tunnel + '_>, Buffer)> {
        self.response = Progress::Tunnel;
        let mut ahead = Buffer::take();
        ahead.put(&std::mem::take(&mut self.kept));
        Some((Box::new(&mut self.socket), ahead))
    }
}
