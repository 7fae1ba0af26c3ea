use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::{env, fmt, fs, io};

use config::{Listen, ListenAddress, SocketMode};
use listenfd::ListenFd;
use rustix::fs::Mode;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};

/// Maximum number of connections that the kernel queues until they are accepted.
pub(super) const BACKLOG: i32 = 2048;

/// A listening socket for clients. Never blocks.
#[derive(Debug)]
pub(super) struct Listener {
    socket: Socket,
    /// Its place in `listen`.
    nth: usize,
    inherited: bool,
}

#[derive(Debug)]
enum Socket {
    Tcp(TcpListener),
    Unix(UnixListener),
}

/// A client connection as it was accepted. Never blocks.
#[derive(Debug)]
pub(super) enum AcceptedSocket {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Listener {
    /// Listens at each address of `listen`. Uses a socket that was handed down if one has that
    /// address; it keeps its permissions.
    ///
    /// # Errors
    ///
    /// Returns an error if an address cannot be bound. Also returns an error if a socket was handed
    /// down that is not in `listen`: clients would connect to it and get no answer.
    pub(super) fn open_all(listen: &[Listen]) -> io::Result<Vec<Self>> {
        let mut inherited = inherit()?;
        let open = |(nth, listen): (usize, &Listen)| {
            let address = &listen.address;
            let found = inherited.iter().position(|(bound, _)| bound.is(address));
            let socket = match found.map(|found| inherited.remove(found)) {
                Some((_, socket)) => Ok(socket),
                None => bind(address),
            };
            let socket = socket.and_then(Socket::never_block);
            Ok(Self {
                socket: socket
                    .map_err(|error| in_use(&error, &format!("server.listen {address}")))?,
                nth,
                inherited: found.is_some(),
            })
        };
        let listeners = listen.iter().enumerate().map(open);
        let listeners = listeners.collect::<io::Result<_>>()?;
        if let Some((address, _)) = inherited.first() {
            let what =
                format!("LISTEN_FDS hands down a socket at {address}; add it to server.listen");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
        }
        Ok(listeners)
    }

    /// Its place in `listen`.
    pub(super) fn nth(&self) -> usize {
        self.nth
    }

    /// Whether the parent process handed the socket down (`LISTEN_FDS`).
    ///
    /// Such a socket stays open when this process ends, for the next process.
    pub(super) fn is_inherited(&self) -> bool {
        self.inherited
    }

    /// The inode of a TCP socket; `None` of another one.
    pub(super) fn tcp_inode(&self) -> Option<u64> {
        match &self.socket {
            Socket::Tcp(socket) => Some(rustix::fs::fstat(socket).ok()?.st_ino),
            Socket::Unix(_) => None,
        }
    }

    /// Takes a connection that waits in the kernel.
    ///
    /// # Errors
    ///
    /// Returns the errors of accept(2), and `WouldBlock` if no connection waits.
    pub(super) fn accept(&self) -> io::Result<AcceptedSocket> {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let accepted = rustix::net::accept_with(self.as_fd(), flags)?;
        Ok(match self.socket {
            Socket::Tcp(_) => AcceptedSocket::Tcp(accepted.into()),
            Socket::Unix(_) => AcceptedSocket::Unix(accepted.into()),
        })
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.socket {
            Socket::Tcp(socket) => socket.as_fd(),
            Socket::Unix(socket) => socket.as_fd(),
        }
    }
}

impl AsRawFd for Listener {
    fn as_raw_fd(&self) -> RawFd {
        self.as_fd().as_raw_fd()
    }
}

impl Socket {
    fn never_block(self) -> io::Result<Self> {
        match &self {
            Self::Tcp(socket) => socket.set_nonblocking(true)?,
            Self::Unix(socket) => socket.set_nonblocking(true)?,
        }
        Ok(self)
    }
}

/// The address of a socket that was handed down.
#[derive(Debug)]
enum Bound {
    Tcp(SocketAddr),
    /// A socket without a name has an empty path.
    Unix(PathBuf),
}

impl Bound {
    fn is(&self, address: &ListenAddress) -> bool {
        match (self, address) {
            (Self::Tcp(bound), ListenAddress::Tcp(address)) => bound == address,
            (Self::Unix(bound), ListenAddress::Unix { path, .. }) => bound == path,
            _ => false,
        }
    }
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

/// The listening sockets that this process was started with, passed as systemd does.
fn inherit() -> io::Result<Vec<(Bound, Socket)>> {
    can_be_handed()?;
    let mut handed = ListenFd::from_env();
    let mut inherited = Vec::new();
    for index in 0..handed.len() {
        if let Ok(Some(socket)) = handed.take_tcp_listener(index) {
            inherited.push((Bound::Tcp(socket.local_addr()?), Socket::Tcp(socket)));
        } else if let Ok(Some(socket)) = handed.take_unix_listener(index) {
            let path = socket.local_addr()?.as_pathname().map(Path::to_owned);
            let path = path.unwrap_or_else(PathBuf::new);
            inherited.push((Bound::Unix(path), Socket::Unix(socket)));
        } else {
            let what = format!(
                "LISTEN_FDS: descriptor {} is not a listening stream socket",
                index + 3
            );
            return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
        }
    }
    Ok(inherited)
}

/// Refuses a `LISTEN_FDS` above the number of open descriptors.
///
/// Reading it takes time and memory for each, and a wrong one may be a billion.
fn can_be_handed() -> io::Result<()> {
    let own = std::process::id().to_string();
    let is_for_us = env::var("LISTEN_PID").map_or(true, |id| id.is_empty() || id == own);
    let wanted = env::var("LISTEN_FDS").unwrap_or_default();
    let Some(wanted) = wanted.parse::<usize>().ok().filter(|_| is_for_us) else {
        return Ok(());
    };
    // Without /proc, what is told is believed, up to the descriptors of an ordinary process.
    let open = fs::read_dir("/proc/self/fd").map_or(1 << 16, Iterator::count);
    if wanted <= open {
        return Ok(());
    }
    let what = format!("LISTEN_FDS is {wanted}, and fewer descriptors are open");
    Err(io::Error::new(io::ErrorKind::InvalidInput, what))
}

fn bind(address: &ListenAddress) -> io::Result<Socket> {
    match address {
        ListenAddress::Tcp(address) => bind_tcp(address).map(Socket::Tcp),
        ListenAddress::Unix { path, mode } => bind_unix(path, *mode).map(Socket::Unix),
    }
}

fn bind_tcp(address: &SocketAddr) -> io::Result<TcpListener> {
    let socket = TcpListener::bind(address)?;
    rustix::net::listen(&socket, BACKLOG)?;
    Ok(socket)
}

fn bind_unix(path: &Path, mode: Option<SocketMode>) -> io::Result<UnixListener> {
    // A socket file outlives the process that made it. A file that no process listens on blocks the
    // bind, so remove it.
    if fs::symlink_metadata(path).is_ok_and(|file| file.file_type().is_socket()) {
        if UnixStream::connect(path).is_ok() {
            return Err(io::ErrorKind::AddrInUse.into());
        }
        fs::remove_file(path)?;
    }
    let socket = rustix::net::socket_with(
        AddressFamily::UNIX,
        SocketType::STREAM,
        SocketFlags::CLOEXEC,
        None,
    )?;
    let mode = mode.map(|mode| Mode::from_raw_mode(mode.bits()));
    if let Some(mode) = mode {
        // The kernel creates the file with what the socket and the umask both allow (Linux).
        rustix::fs::fchmod(&socket, mode)?;
    }
    rustix::net::bind(&socket, &SocketAddrUnix::new(path)?)?;
    if let Some(mode) = mode {
        // What the umask took away. Nobody connects before the socket listens.
        rustix::fs::chmod(path, mode)?;
    }
    rustix::net::listen(&socket, BACKLOG)?;
    Ok(socket.into())
}

/// Adds to `error` the address that could not be bound, and the most common cause.
pub(super) fn in_use(error: &io::Error, address: &str) -> io::Error {
    let hint = if error.kind() == io::ErrorKind::AddrInUse {
        ": another program, or another gateway with buckets of its own, listens there"
    } else {
        ""
    };
    io::Error::new(error.kind(), format!("{address}: {error}{hint}"))
}
