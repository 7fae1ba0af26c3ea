use std::fmt;
use std::net::SocketAddr;
use std::num::{NonZeroU64, NonZeroUsize};
use std::path::PathBuf;
use std::time::Duration;

use ipnet::IpNet;

/// `[server]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Server {
    /// Where clients connect; at least one, none of them twice.
    pub listen: Vec<Listen>,
    /// The admin port; `None`: there is none.
    pub admin: Option<SocketAddr>,
    /// Worker threads, at most 1024.
    pub workers: NonZeroUsize,
    /// Peers whose [`Server::forwarded_header`] is believed.
    pub trusted_proxies: Vec<IpNet>,
    /// The field in which a trusted peer names its client.
    pub forwarded_header: ForwardedHeader,
    /// Past it, new connections wait in the kernel's backlog.
    pub max_connections: NonZeroUsize,
    /// How long an idle client connection is kept; zero: none is.
    pub keep_alive: Duration,
    /// Silence on a TCP connection after which the kernel checks that the other side is still there, on
    /// client and origin connections: 1 s to 9 h; `None`: it does not check.
    pub tcp_keepalive: Option<Duration>,
    /// For the whole head of a request; never zero.
    pub header_timeout: Duration,
    /// Between two reads of a request's body; never zero.
    pub body_timeout: Duration,
    /// Of a request's head, in bytes: 1024 to 1048576.
    pub max_header_size: usize,
    /// Of a request's body, in bytes; `None`: no limit.
    pub max_body_size: Option<NonZeroU64>,
    /// How long a stop lets the queues drain; zero: not at all.
    pub shutdown_timeout: Duration,
    /// What clients are shown where they connect by TLS; `None`: they do not.
    pub tls: Option<Tls>,
}

/// `[server.tls]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tls {
    /// At least one, no certificate twice. A client gets the one that is for the name that it asks for, and where
    /// none is, the first.
    pub pairs: Vec<CertPair>,
}

/// The files of a certificate. That they are there, and fit each other, is not checked here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertPair {
    /// The certificate and what leads from it to its root, absolute.
    pub cert: PathBuf,
    /// The private key, absolute.
    pub key: PathBuf,
}

/// The field in which a trusted peer names its client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForwardedHeader {
    /// `X-Forwarded-For`.
    XForwardedFor,
    /// `Forwarded`, as RFC 7239 has it.
    Forwarded,
}

/// Where clients connect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Listen {
    /// An address and port; `[::]` takes IPv4 too. Port 0 is one that the kernel picks.
    Tcp(SocketAddr),
    /// A socket file, absolute.
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
