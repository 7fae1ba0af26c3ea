use std::fmt;
use std::net::SocketAddr;
use std::num::{NonZeroU16, NonZeroU64, NonZeroUsize};
use std::path::PathBuf;
use std::time::Duration;

use ipnet::IpNet;

/// `[server]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Server {
    /// What tells this gateway from others: 1 to 64 printable characters.
    pub name: String,
    /// Addresses for clients; at least one, without duplicates.
    pub listen: Vec<Listen>,
    /// Address of the admin port; `None`: there is none.
    pub admin: Option<SocketAddr>,
    /// Worker threads, at most 1024.
    pub workers: NonZeroUsize,
    /// Peers whose [`Server::forwarded_header`] is trusted.
    pub trusted_proxies: Vec<IpNet>,
    /// The field in which a trusted peer names its client.
    pub forwarded_header: ForwardedHeader,
    /// Most connections at once; further ones wait in the kernel's backlog.
    pub max_connections: NonZeroUsize,
    /// Most requests at once on one connection over HTTP/2.
    pub max_concurrent_streams: NonZeroU16,
    /// Whether requests over HTTP/2 are held back where `burst` has no room left.
    pub hold_streams: bool,
    /// How long an idle client connection is kept; zero: idle connections are closed.
    pub keep_alive: Duration,
    /// Idle time after which the kernel probes the peer of a TCP connection; `None`: never.
    ///
    /// It is from 1 s to 9 h, and applies to client and origin connections.
    pub tcp_keepalive: Option<Duration>,
    /// Longest time for the whole head of a request; never zero.
    pub header_timeout: Duration,
    /// Longest time between two reads of a request's body; never zero.
    pub body_timeout: Duration,
    /// Largest head of a request, in bytes: 1024 to 1048576.
    pub max_header_size: usize,
    /// Largest body of a request, in bytes; `None`: no limit.
    pub max_body_size: Option<NonZeroU64>,
    /// How long the queues may drain when the gateway stops; zero: not at all.
    pub shutdown_timeout: Duration,
    /// Certificates for TLS connections of clients; `None`: no TLS.
    pub tls: Option<Tls>,
}

impl Server {
    /// How many requests of a key that came over HTTP/2 may wait above `burst`.
    ///
    /// A client with one connection has no more requests at once than this.
    #[must_use]
    pub fn held_streams(&self) -> u32 {
        if self.hold_streams {
            self.max_concurrent_streams.get().into()
        } else {
            0
        }
    }
}

/// `[server.tls]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tls {
    /// Certificates with their keys: at least one, no certificate twice.
    ///
    /// A client gets the certificate for the name that it asks for, and otherwise the first.
    pub pairs: Vec<CertPair>,
}

/// The files of a certificate.
///
/// Whether they exist and belong together is not checked here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertPair {
    /// Absolute path of the certificate and its chain up to the root.
    pub cert: PathBuf,
    /// Absolute path of the private key.
    pub key: PathBuf,
}

/// The field in which a trusted peer names its client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForwardedHeader {
    /// `X-Forwarded-For`.
    XForwardedFor,
    /// `Forwarded`, RFC 7239.
    Forwarded,
}

impl ForwardedHeader {
    /// Both fields by their names in the file.
    pub const NAMED: [(&'static str, Self); 2] = [
        ("x-forwarded-for", Self::XForwardedFor),
        ("forwarded", Self::Forwarded),
    ];
}

/// An address for clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Listen {
    /// An address and port.
    ///
    /// `[::]` accepts IPv4 too. For port 0 the kernel picks a port.
    Tcp(SocketAddr),
    /// Absolute path of a socket file.
    Unix(PathBuf),
}

impl fmt::Display for Listen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}
