use std::net::{SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::{fs, io};

use listenfd::ListenFd;

/// Connections that the kernel keeps for us until they are accepted.
const BACKLOG: i32 = 2048;

/// The sockets on which clients are listened for. The server can pause, but not close them while it goes on serving.
#[derive(Debug, Default)]
pub(super) struct Listeners {
    /// Bound by this process.
    own: Vec<OwnedFd>,
    /// Handed down by whoever started it (`LISTEN_FDS`), and not asked for yet.
    inherited: Vec<Inherited>,
}

#[derive(Debug)]
enum Inherited {
    Tcp(SocketAddr, TcpListener),
    Unix(PathBuf, UnixListener),
}

impl Listeners {
    /// Takes the sockets that this process was started with, as systemd hands them down.
    ///
    /// # Errors
    ///
    /// Where one of them is no socket that listens for streams.
    pub(super) fn inherit() -> io::Result<Self> {
        let mut handed = ListenFd::from_env();
        let mut inherited = Vec::new();
        for index in 0..handed.len() {
            if let Ok(Some(socket)) = handed.take_tcp_listener(index) {
                inherited.push(Inherited::Tcp(socket.local_addr()?, socket));
            } else if let Ok(Some(socket)) = handed.take_unix_listener(index) {
                let path = socket.local_addr()?.as_pathname().map(Path::to_owned);
                inherited.push(Inherited::Unix(path.unwrap_or_default(), socket));
            } else {
                let what = format!(
                    "LISTEN_FDS: descriptor {} is no listening stream socket",
                    index + 3
                );
                return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
            }
        }
        Ok(Self {
            own: Vec::new(),
            inherited,
        })
    }

    pub(super) fn open(&mut self, address: &SocketAddr) -> io::Result<TcpListener> {
        let found = self.inherited.iter().position(
            |inherited| matches!(inherited, Inherited::Tcp(bound, _) if bound == address),
        );
        if let Some(Inherited::Tcp(_, socket)) = found.map(|found| self.inherited.remove(found)) {
            return Ok(socket);
        }
        let socket = TcpListener::bind(address)?;
        rustix::net::listen(&socket, BACKLOG)?;
        self.own.push(socket.try_clone()?.into());
        Ok(socket)
    }

    pub(super) fn open_unix(&mut self, path: &Path) -> io::Result<UnixListener> {
        let found = self
            .inherited
            .iter()
            .position(|inherited| matches!(inherited, Inherited::Unix(bound, _) if bound == path));
        if let Some(Inherited::Unix(_, socket)) = found.map(|found| self.inherited.remove(found)) {
            return Ok(socket);
        }
        // A socket file outlives the process that made it; one that nobody listens on any more is in the way.
        if fs::symlink_metadata(path).is_ok_and(|file| file.file_type().is_socket()) {
            if UnixStream::connect(path).is_ok() {
                return Err(io::ErrorKind::AddrInUse.into());
            }
            fs::remove_file(path)?;
        }
        let socket = UnixListener::bind(path)?;
        self.own.push(socket.try_clone()?.into());
        Ok(socket)
    }

    /// Makes sure that no socket that was handed down is left over: somebody connects there, and nobody would answer.
    ///
    /// # Errors
    ///
    /// Where there is one, with its address.
    pub(super) fn all_asked_for(&self) -> io::Result<()> {
        let Some(left) = self.inherited.first() else {
            return Ok(());
        };
        let address = match left {
            Inherited::Tcp(address, _) => address.to_string(),
            Inherited::Unix(path, _) => format!("unix:{}", path.display()),
        };
        let what = format!("LISTEN_FDS hands down a socket at {address}; add it to server.listen");
        Err(io::Error::new(io::ErrorKind::InvalidInput, what))
    }

    /// From here on whoever connects is refused; at a socket that was handed down, waits for the next process there.
    pub(super) fn close(self) {
        for socket in self.own {
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
