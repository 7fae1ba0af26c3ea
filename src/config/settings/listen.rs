//! Addresses at which clients connect: the entries of `listen` in `[server]`.

use std::fmt;
use std::net::SocketAddr;
use std::num::NonZeroU16;
use std::path::PathBuf;
use std::sync::Arc;

use crate::ClientAuth;

/// Entry of `server.listen`: an address for clients, and its service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listen {
    /// Address to which clients connect.
    pub address: ListenAddress,
    /// Protocol and behavior at the address.
    pub service: ListenService,
    /// Client authentication at this address; `None`: no client needs a certificate.
    pub client_auth: Option<ClientAuth>,
    /// Name by which routes select the address.
    pub name: Option<Arc<str>>,
}

/// Address to which clients connect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListenAddress {
    /// IP address and port.
    ///
    /// `[::]` accepts IPv4 too. For port 0 the kernel picks a port.
    Tcp(SocketAddr),
    /// Unix socket.
    Unix {
        /// Absolute path.
        path: PathBuf,
        /// Permission bits as chmod(2) takes them, 0 to 0o777; `None`: those of the umask.
        mode: Option<u32>,
    },
}

/// Service at an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListenService {
    /// HTTP/1 without TLS, or HTTP/2 without TLS if the client begins with it (prior knowledge).
    Plain,
    /// HTTP/1 and HTTP/2 over TLS, with the certificates of `[server.tls]`. Never on a Unix socket.
    Tls,
    /// HTTP without TLS that redirects requests to this port, over TLS.
    ///
    /// Only the checks of a certificate authority are served.
    Redirect(NonZeroU16),
}

impl fmt::Display for Listen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.address.fmt(f)
    }
}

impl fmt::Display for ListenAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            Self::Unix { path, .. } => write!(f, "unix:{}", path.display()),
        }
    }
}
