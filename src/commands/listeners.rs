use std::net::{SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::{fs, io};

/// Connections that the kernel keeps for us until they are accepted.
const BACKLOG: i32 = 2048;

/// The sockets on which clients are listened for. The server can pause, but not close them while it goes on serving.
#[derive(Debug, Default)]
pub(super) struct Listeners(Vec<OwnedFd>);

impl Listeners {
    pub(super) fn open(&mut self, address: &SocketAddr) -> io::Result<TcpListener> {
        let socket = TcpListener::bind(address)?;
        rustix::net::listen(&socket, BACKLOG)?;
        self.0.push(socket.try_clone()?.into());
        Ok(socket)
    }

    pub(super) fn open_unix(&mut self, path: &Path) -> io::Result<UnixListener> {
        // A socket file outlives the process that made it; one that nobody listens on any more is in the way.
        if fs::symlink_metadata(path).is_ok_and(|file| file.file_type().is_socket()) {
            if UnixStream::connect(path).is_ok() {
                return Err(io::ErrorKind::AddrInUse.into());
            }
            fs::remove_file(path)?;
        }
        let socket = UnixListener::bind(path)?;
        self.0.push(socket.try_clone()?.into());
        Ok(socket)
    }

    /// From here on whoever connects is refused.
    pub(super) fn close(self) {
        for socket in self.0 {
            // What is not connected any more need not be closed.
            let _closed = rustix::net::shutdown(&socket, rustix::net::Shutdown::Both);
        }
    }
}

/// Says which address it was that could not be had, and why most often.
pub(super) fn in_use(error: &io::Error, address: &str) -> io::Error {
    let hint = if error.kind() == io::ErrorKind::AddrInUse {
        ": another program, or another gateway with buckets of its own, listens there"
    } else {
        ""
    };
    io::Error::new(error.kind(), format!("{address}: {error}{hint}"))
}
