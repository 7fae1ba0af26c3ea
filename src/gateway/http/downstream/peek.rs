use std::io;

use tokio::io::Interest;
use tokio::net::{TcpStream, UnixStream};

use super::socket::Socket;

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

macro_rules! peek {
    ($socket:ty) => {
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

peek!(TcpStream);
peek!(UnixStream);
