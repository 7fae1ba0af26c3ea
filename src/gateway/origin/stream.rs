//! Byte stream to a server, over TCP, TLS or a unix socket.
//!
//! `dial` opens it; `http1` and `http2` use it.

use std::io;
use std::net::IpAddr;
use std::os::fd::AsFd;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use actix_rt::net::{ActixStream, Ready};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};
use tokio_rustls::client::TlsStream;

use super::tls::explain_alert;

/// Byte stream to and from a server.
#[derive(Debug)]
pub enum OriginStream {
    Tcp(TcpStream),
    Unix(UnixStream),
    /// Boxed: the state of TLS takes a kilobyte, which the other variants would also take.
    Tls(Box<TlsStream<TcpStream>>),
}

/// Evaluates the same expression for each kind of stream.
macro_rules! of_each {
    ($stream:expr, $it:ident => $does:expr) => {
        match $stream.get_mut() {
            Self::Tcp($it) => $does,
            Self::Unix($it) => $does,
            Self::Tls($it) => $does,
        }
    };
}

impl OriginStream {
    /// Returns whether the server has chosen HTTP/2 by ALPN.
    pub(super) fn chose_http2(&self) -> bool {
        match self {
            Self::Tls(stream) => stream.get_ref().1.alpn_protocol() == Some(b"h2"),
            Self::Tcp(_) | Self::Unix(_) => false,
        }
    }

    /// Returns the address of the server; `None` on a unix socket.
    pub(super) fn peer(&self) -> Option<IpAddr> {
        let tcp = match self {
            Self::Tcp(stream) => stream,
            Self::Tls(stream) => stream.get_ref().0,
            Self::Unix(_) => return None,
        };
        tcp.peer_addr().ok().map(|address| address.ip())
    }

    /// Returns whether there is certainly nothing to read, not even the end of the connection.
    ///
    /// If so, the task is woken when there is something to read.
    pub(super) fn has_no_input(&self, cx: &mut Context<'_>) -> bool {
        match self {
            Self::Tcp(stream) => stream.poll_read_ready(cx).is_pending(),
            Self::Unix(stream) => stream.poll_read_ready(cx).is_pending(),
            // Decrypted bytes may wait in the TLS session.
            Self::Tls(_) => false,
        }
    }

    /// Returns whether no byte, and no end of the connection, has arrived since the last read.
    ///
    /// Checks only what the runtime has noticed, and does not register the task for a wake-up. A
    /// byte that has arrived is lost: such a connection cannot be used any more.
    pub(super) fn is_quiet(&mut self) -> bool {
        let mut byte = [0];
        let read = match self {
            Self::Tcp(stream) => stream.try_read(&mut byte),
            Self::Unix(stream) => stream.try_read(&mut byte),
            // Decrypted bytes may wait in the TLS session, which the runtime does not know.
            Self::Tls(stream) => {
                let mut cx = Context::from_waker(Waker::noop());
                let mut to = ReadBuf::new(&mut byte);
                return Pin::new(stream).poll_read(&mut cx, &mut to).is_pending();
            }
        };
        read.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
    }

    /// Returns whether the kernel has unread bytes, or the close of the connection by the server.
    ///
    /// For TLS only the close counts, because session tickets arrive at any time.
    pub(super) fn has_input_in_kernel(&self) -> bool {
        let (fd, flags) = match self {
            Self::Tcp(stream) => (stream.as_fd(), PollFlags::IN | PollFlags::RDHUP),
            Self::Unix(stream) => (stream.as_fd(), PollFlags::IN | PollFlags::RDHUP),
            Self::Tls(stream) => (stream.get_ref().0.as_fd(), PollFlags::RDHUP),
        };
        let no_wait = Timespec::default();
        poll(&mut [PollFd::from_borrowed_fd(fd, flags)], Some(&no_wait))
            .is_ok_and(|ready| ready > 0)
    }
}

impl AsyncRead for OriginStream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        to: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        of_each!(self, stream => Pin::new(stream).poll_read(cx, to).map_err(explain_alert))
    }
}

impl AsyncWrite for OriginStream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        of_each!(self, stream => Pin::new(stream).poll_write(cx, bytes))
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        of_each!(self, stream => Pin::new(stream).poll_flush(cx))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        of_each!(self, stream => Pin::new(stream).poll_shutdown(cx))
    }
}

/// Interface that awc requires of a stream. awc calls neither function.
impl ActixStream for OriginStream {
    fn poll_read_ready(&self, _: &mut Context<'_>) -> Poll<io::Result<Ready>> {
        Poll::Ready(Ok(Ready::ALL))
    }

    fn poll_write_ready(&self, _: &mut Context<'_>) -> Poll<io::Result<Ready>> {
        Poll::Ready(Ok(Ready::ALL))
    }
}
