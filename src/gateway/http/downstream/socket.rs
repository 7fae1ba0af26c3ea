//! Sockets of clients, plain or encrypted: readiness, detection of a disconnect, peeking.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tokio::io::{AsyncRead, AsyncWrite, Interest};
use tokio::net::{TcpStream, UnixStream};
use tokio_rustls::server::TlsStream;

/// Future that waits for the end of a client's connection; `None` until it is needed.
pub type Wait<'a> = Option<Pin<Box<dyn Future<Output = ()> + 'a>>>;

/// A client connection, plain or encrypted.
pub trait Socket: AsyncRead + AsyncWrite + Unpin + 'static {
    /// Returns the underlying socket.
    fn fd(&self) -> BorrowedFd<'_>;

    /// Ready when the kernel has bytes to read, or the end of the connection.
    fn poll_readable(&self, cx: &mut Context<'_>) -> Poll<()>;

    /// Returns whether there is certainly nothing to read, not even the end of the connection.
    ///
    /// If so, the task is woken once there is something to read. This saves taking a buffer that
    /// stays empty.
    fn is_silent(&self, cx: &mut Context<'_>) -> bool {
        self.poll_readable(cx).is_pending()
    }

    /// Ready when the peer has closed, reset, or shut its sending side.
    ///
    /// Detects the end even if earlier bytes are still unread.
    fn wait_closed(&self) -> Pin<Box<dyn Future<Output = ()> + '_>>;
}

/// Returns whether the peer has closed, reset, or shut its sending side.
///
/// Detects the end even if earlier bytes are still unread.
pub(super) fn is_disconnected(socket: BorrowedFd<'_>) -> bool {
    let no_wait = Timespec::default();
    let mut polled = [PollFd::new(&socket, PollFlags::RDHUP)];
    poll(&mut polled, Some(&no_wait)).is_ok_and(|count| count > 0)
}

/// Ready when the peer has disconnected.
///
/// A client that waits usually sends nothing, so the next readable event is the end of its
/// connection. If bytes came instead, this waits for the end itself.
pub(super) fn poll_disconnected<'s>(
    socket: &'s impl Socket,
    wait: &mut Wait<'s>,
    cx: &mut Context<'_>,
) -> Poll<()> {
    if wait.is_none() {
        ready!(socket.poll_readable(cx));
    }
    let closing = wait.get_or_insert_with(|| socket.wait_closed());
    closing.as_mut().poll(cx)
}

/// A socket whose next bytes can be inspected before they are taken.
pub trait Peek: Socket {
    /// Waits until there may be bytes to read, or the end of the connection.
    fn wait_readable(&self) -> impl Future<Output = io::Result<()>>;

    /// Calls `read`. If `read` would block, clears the socket's readiness in the runtime.
    ///
    /// # Errors
    ///
    /// Returns the error of `read`, and `WouldBlock` if there is nothing to read.
    fn try_read<R>(&self, read: impl FnOnce() -> io::Result<R>) -> io::Result<R>;
}

/// Implements both traits for a socket of tokio.
macro_rules! plain_socket {
    ($socket:ty) => {
        impl Socket for $socket {
            fn fd(&self) -> BorrowedFd<'_> {
                self.as_fd()
            }

            fn poll_readable(&self, cx: &mut Context<'_>) -> Poll<()> {
                self.poll_read_ready(cx).map(|_ready| ())
            }

            // The runtime also reports a closed peer to a task that waits for urgent data. No
            // urgent data is ever reported, because the gateway does not enable it.
            fn wait_closed(&self) -> Pin<Box<dyn Future<Output = ()> + '_>> {
                Box::pin(async move {
                    if let Ok(ready) = self.ready(Interest::PRIORITY).await
                        && !ready.is_read_closed()
                    {
                        std::future::pending::<()>().await;
                    }
                })
            }
        }

        impl Peek for $socket {
            async fn wait_readable(&self) -> io::Result<()> {
                self.readable().await
            }

            fn try_read<R>(&self, read: impl FnOnce() -> io::Result<R>) -> io::Result<R> {
                self.try_io(Interest::READABLE, read)
            }
        }
    };
}

plain_socket!(TcpStream);
plain_socket!(UnixStream);

impl Socket for TlsStream<TcpStream> {
    fn fd(&self) -> BorrowedFd<'_> {
        self.get_ref().0.as_fd()
    }

    fn is_silent(&self, _: &mut Context<'_>) -> bool {
        // The TLS session may hold decrypted bytes.
        false
    }

    fn poll_readable(&self, cx: &mut Context<'_>) -> Poll<()> {
        self.get_ref().0.poll_readable(cx)
    }

    fn wait_closed(&self) -> Pin<Box<dyn Future<Output = ()> + '_>> {
        self.get_ref().0.wait_closed()
    }
}
