//! Listening sockets: bound here, or inherited from a service manager.

use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

use config::{Listen, ListenAddress};
use listenfd::ListenFd;
use rustix::fs::Mode;
use rustix::io::ioctl_fionbio;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};

/// Maximum length of the kernel's queue of connections that are not accepted yet.
pub(super) const BACKLOG: i32 = 2048;

/// A listening socket for clients. Never blocks.
pub(super) struct Listener {
    socket: OwnedFd,
    is_tcp: bool,
    /// Index of its address in `listen`.
    pub(super) index: usize,
    /// Whether the parent process passed the socket (`LISTEN_FDS`).
    ///
    /// Such a socket stays open when this process ends, for the next process.
    pub(super) is_inherited: bool,
}

/// An accepted client connection. Never blocks.
pub(super) enum AcceptedSocket {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Listener {
    /// Listens at each address of `listen`.
    ///
    /// An inherited socket with the same address is used as it is, with its permissions.
    ///
    /// # Errors
    ///
    /// An address cannot be bound, or an inherited socket is not in `listen`: clients would connect
    /// to it and get no response.
    pub(super) fn open_all(listen: &[Listen]) -> io::Result<Vec<Self>> {
        let mut inherited = inherit()?;
        let mut listeners = Vec::with_capacity(listen.len());
        for (index, Listen { address, .. }) in listen.iter().enumerate() {
            // The texts are compared, because they omit permissions, which do not matter here.
            let is_same = |bound: &ListenAddress| bound.to_string() == address.to_string();
            let found = inherited.iter().position(|(bound, _)| is_same(bound));
            let socket = match found.map(|position| inherited.remove(position)) {
                Some((_, socket)) => Ok(socket),
                None => bind(address),
            };
            let explain = |error| explain_failed_bind(&error, &format!("server.listen {address}"));
            let socket = socket.map_err(explain)?;
            ioctl_fionbio(&socket, true)?;
            listeners.push(Self {
                socket,
                is_tcp: matches!(address, ListenAddress::Tcp(_)),
                index,
                is_inherited: found.is_some(),
            });
        }
        if let Some((address, _)) = inherited.first() {
            return Err(invalid_input(format!(
                "LISTEN_FDS passes a socket at {address}; add it to server.listen"
            )));
        }
        Ok(listeners)
    }

    /// Returns the inode of a TCP socket; `None` for another socket.
    pub(super) fn tcp_inode(&self) -> Option<u64> {
        let status = self.is_tcp.then(|| rustix::fs::fstat(&self.socket));
        Some(status?.ok()?.st_ino)
    }

    /// Accepts a connection from the kernel's queue.
    ///
    /// # Errors
    ///
    /// The errors of accept(2), and `WouldBlock` if the queue is empty.
    pub(super) fn accept(&self) -> io::Result<AcceptedSocket> {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let accepted = rustix::net::accept_with(&self.socket, flags)?;
        Ok(if self.is_tcp {
            AcceptedSocket::Tcp(accepted.into())
        } else {
            AcceptedSocket::Unix(accepted.into())
        })
    }
}

impl AsRawFd for Listener {
    fn as_raw_fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }
}

/// First descriptor that systemd's protocol passes, after the three standard streams.
const FIRST_INHERITED: usize = 3;

/// Returns the listening sockets inherited by this process, by systemd's protocol.
fn inherit() -> io::Result<Vec<(ListenAddress, OwnedFd)>> {
    check_count()?;
    let mut passed = ListenFd::from_env();
    let mut inherited = Vec::new();
    for index in 0..passed.len() {
        inherited.push(if let Ok(Some(socket)) = passed.take_tcp_listener(index) {
            (ListenAddress::Tcp(socket.local_addr()?), socket.into())
        } else if let Ok(Some(socket)) = passed.take_unix_listener(index) {
            // A socket without a name has an empty path.
            let address = socket.local_addr()?;
            let path = address
                .as_pathname()
                .map_or_else(PathBuf::new, Path::to_owned);
            (ListenAddress::Unix { path, mode: None }, socket.into())
        } else {
            let descriptor = index + FIRST_INHERITED;
            return Err(invalid_input(format!(
                "LISTEN_FDS: descriptor {descriptor} is not a listening stream socket"
            )));
        });
    }
    Ok(inherited)
}

/// Refuses a `LISTEN_FDS` above the number of open descriptors.
///
/// A wrong number may be a billion, and each announced descriptor takes time and memory.
fn check_count() -> io::Result<()> {
    let own_pid = std::process::id().to_string();
    let pid = env::var("LISTEN_PID").unwrap_or_default();
    let announced = env::var("LISTEN_FDS").unwrap_or_default();
    let Ok(announced) = announced.parse::<usize>() else {
        return Ok(());
    };
    if !pid.is_empty() && pid != own_pid {
        return Ok(());
    }
    // Without /proc, the number is trusted up to the descriptors of an ordinary process.
    let open = fs::read_dir("/proc/self/fd").map_or(1 << 16, Iterator::count);
    if announced <= open {
        return Ok(());
    }
    Err(invalid_input(format!(
        "LISTEN_FDS is {announced}, and fewer descriptors are open"
    )))
}

fn invalid_input(message: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, message)
}

/// Binds a socket to an address.
fn bind(address: &ListenAddress) -> io::Result<OwnedFd> {
    match address {
        ListenAddress::Tcp(address) => {
            let socket = TcpListener::bind(address)?;
            // The socket listens already, with the standard library's shorter queue.
            rustix::net::listen(&socket, BACKLOG)?;
            Ok(socket.into())
        }
        ListenAddress::Unix { path, mode } => bind_unix(path, *mode),
    }
}

/// Binds a socket file, with its permissions.
fn bind_unix(path: &Path, mode: Option<u32>) -> io::Result<OwnedFd> {
    // A socket file outlives the process that made it. A file without a listening process blocks
    // the bind, so remove it.
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
    let mode = mode.map(Mode::from_raw_mode);
    if let Some(mode) = mode {
        // The kernel creates the file with the mode of the socket, reduced by the umask (Linux).
        rustix::fs::fchmod(&socket, mode)?;
    }
    rustix::net::bind(&socket, &SocketAddrUnix::new(path)?)?;
    if let Some(mode) = mode {
        // Restore the bits that the umask removed. No client can connect before the socket listens.
        rustix::fs::chmod(path, mode)?;
    }
    rustix::net::listen(&socket, BACKLOG)?;
    Ok(socket)
}

/// Adds to `error` the address that could not be bound, and the most common cause.
pub(super) fn explain_failed_bind(error: &io::Error, address: &str) -> io::Error {
    let hint = if error.kind() == io::ErrorKind::AddrInUse {
        ": another program or gateway listens there"
    } else {
        ""
    };
    io::Error::new(error.kind(), format!("{address}: {error}{hint}"))
}
