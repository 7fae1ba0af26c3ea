use std::io;

use rustix::net::{RecvFlags, recv};
use tokio::io::Interest;
use tokio::net::TcpStream;

use super::socket::Socket;

/// A socket whose next bytes can be looked at before they are taken.
pub(super) trait Peek: Socket {
    /// Calls `read`. If it would block, the runtime is told so.
    fn try_read<R>(&self, read: impl FnOnce() -> io::Result<R>) -> io::Result<R>;

    /// Copies bytes that are there to `buffer`, and leaves them there. Returns how many.
    ///
    /// 0 is the end of the stream.
    ///
    /// # Errors
    ///
    /// Returns the errors of recv(2), and `WouldBlock` if nothing is there.
    fn peek_now(&self, buffer: &mut [u8]) -> io::Result<usize> {
        self.try_read(|| Ok(recv(self.fd(), buffer, RecvFlags::PEEK)?.1))
    }
}

impl Peek for TcpStream {
    fn try_read<R>(&self, read: impl FnOnce() -> io::Result<R>) -> io::Result<R> {
        self.try_io(Interest::READABLE, read)
    }
}
