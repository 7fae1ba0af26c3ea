use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tokio::io::{AsyncRead, AsyncWrite, Interest};
use tokio::net::{TcpStream, UnixStream};
use tokio_rustls::server::TlsStream;

/// What is kept while the end of a connection is waited for; `None` before there is anything.
pub type Wait<'a> = Option<Pin<Box<dyn Future<Output = ()> + 'a>>>;

/// A client's connection, plain or encrypted.
pub trait Socket: AsyncRead + AsyncWrite + Unpin + 'static {
    /// Returns the socket underneath.
    fn fd(&self) -> BorrowedFd<'_>;

    /// Ready when the kernel has bytes to read, or the end of the connection.
    fn poll_readable(&self, cx: &mut Context<'_>) -> Poll<()>;

    /// Returns whether there is surely nothing to read, not even the end of the connection.
    ///
    /// If so, the task is woken when there is. Saves taking a buffer in vain.
    fn is_silent(&self, cx: &mut Context<'_>) -> bool;

    /// Ready when the peer has closed, reset, or shut its sending side.
    ///
    /// This sees the end even if earlier bytes are still unread.
    fn closed(&self) -> Pin<Box<dyn Future<Output = ()> + '_>>;
}

/// Returns whether the peer has closed, reset, or shut its sending side.
///
/// This sees the end even if earlier bytes are still unread.
pub(super) fn has_left(socket: BorrowedFd<'_>) -> bool {
    let at_once = Timespec::default();
    let mut asked = [PollFd::new(&socket, PollFlags::RDHUP)];
    poll(&mut asked, Some(&at_once)).is_ok_and(|ready| ready > 0)
}

/// Ready when the peer has left.
///
/// Usually nothing is unread while a client waits, so the next thing to read is the end. Only if
/// bytes are unread, this also starts a wait for the end alone.
pub(super) fn poll_gone<'s>(
    socket: &'s impl Socket,
    wait: &mut Wait<'s>,
    cx: &mut Context<'_>,
) -> Poll<()> {
    if wait.is_none() {
        ready!(socket.poll_readable(cx));
    }
    let closed = wait.get_or_insert_with(|| socket.closed());
    closed.as_mut().poll(cx)
}

/// A socket whose next bytes can be looked at before they are taken.
pub trait Peek: Socket {
    /// Waits until there may be bytes to read, or the end.
    fn wait_readable(&self) -> impl Future<Output = io::Result<()>>;

    /// Calls `read`. If it would block, the runtime is told so.
    ///
    /// # Errors
    ///
    /// Returns the error of `read`, and `WouldBlock` if nothing is there.
    fn try_read<R>(&self, read: impl FnOnce() -> io::Result<R>) -> io::Result<R>;
}

macro_rules! plain_socket {
    ($socket:ty) => {
        impl Socket for $socket {
            fn fd(&self) -> BorrowedFd<'_> {
                self.as_fd()
            }

            fn poll_readable(&self, cx: &mut Context<'_>) -> Poll<()> {
                self.poll_read_ready(cx).map(|_ready| ())
            }

            fn is_silent(&self, cx: &mut Context<'_>) -> bool {
                self.poll_read_ready(cx).is_pending()
            }

            // The runtime reports a closed peer to a task that waits for urgent data. It reports
            // nothing else to that task, because it does not register for urgent data.
            fn closed(&self) -> Pin<Box<dyn Future<Output = ()> + '_>> {
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
        // Decrypted bytes may wait in the TLS session.
        false
    }

    fn poll_readable(&self, cx: &mut Context<'_>) -> Poll<()> {
        self.get_ref().0.poll_readable(cx)
    }

    fn closed(&self) -> Pin<Box<dyn Future<Output = ()> + '_>> {
        self.get_ref().0.closed()
    }
}
