use std::os::fd::{AsFd, BorrowedFd};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};

/// A client's connection, plain or encrypted.
pub trait Socket: AsyncRead + AsyncWrite + Unpin + Send + 'static {
    /// The socket underneath.
    fn fd(&self) -> BorrowedFd<'_>;
}

impl Socket for TcpStream {
    fn fd(&self) -> BorrowedFd<'_> {
        self.as_fd()
    }
}

impl Socket for UnixStream {
    fn fd(&self) -> BorrowedFd<'_> {
        self.as_fd()
    }
}

/// Whether the peer has closed, reset, or shut its sending side, even where bytes from before are still unread.
pub(super) fn has_left(socket: impl AsFd) -> bool {
    let at_once = Timespec::default();
    let mut asked = [PollFd::new(&socket, PollFlags::RDHUP)];
    poll(&mut asked, Some(&at_once)).is_ok_and(|ready| ready > 0)
}
