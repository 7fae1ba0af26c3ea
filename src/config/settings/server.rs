use std::net::SocketAddr;
use std::num::{NonZeroU16, NonZeroU64, NonZeroUsize};
use std::path::PathBuf;
use std::time::Duration;

use super::listen::{Listen, ListenAddress, ListenService};
use super::peers::Peers;
use crate::config::byte_rate::ByteRate;

/// `[server]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Server {
    /// What tells this gateway from others: 1 to 64 printable characters.
    pub name: String,
    /// Addresses for clients; at least one, without duplicates.
    pub listen: Vec<Listen>,
    /// Address of the admin port; `None`: there is none.
    pub admin: Option<SocketAddr>,
    /// Names by which the admin port may be asked, besides those of the host; in lower case.
    pub admin_hosts: Vec<String>,
    /// Worker threads, at most 1024.
    pub workers: NonZeroUsize,
    /// Peers whose [`Server::forwarded_header`] is trusted.
    pub trusted_proxies: Peers,
    /// Peers that must begin each connection with a header of the PROXY protocol.
    pub proxy_protocol: Peers,
    /// The field in which a trusted peer names its client.
    pub forwarded_header: ForwardedHeader,
    /// Most connections at once; further ones wait in the kernel's backlog.
    pub max_connections: NonZeroUsize,
    /// Most requests at once on one connection over HTTP/2.
    pub max_concurrent_streams: NonZeroU16,
    /// Whether requests over HTTP/2 are held back where `burst` has no room left.
    pub hold_streams: bool,
    /// Whether fields with `_` for `-` are passed on and read, although limits read that field.
    pub underscores_in_headers: bool,
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
    /// Least rate of a body while the client is waited for; `None`: any byte will do.
    pub min_body_rate: Option<ByteRate>,
    /// Largest head of a request, in bytes: 1024 to 1048576.
    pub max_header_size: usize,
    /// Largest body of a request, in bytes; `None`: no limit.
    pub max_body_size: Option<NonZeroU64>,
    /// How long the queues may drain when the gateway stops; zero: not at all.
    pub shutdown_timeout: Duration,
    /// Absolute path of the file in which levels and schedules outlive the process; `None`: they do
    /// not.
    pub state: Option<PathBuf>,
    /// Certificates for TLS connections of clients; `None`: no address has TLS.
    pub tls: Option<Tls>,
}

impl Server {
    /// The entries of `listen`, each with its service unless it is that of a text entry.
    pub(crate) fn listen_as_written(
        &self,
    ) -> impl Iterator<Item = (&ListenAddress, Option<ListenService>)> {
        self.listen.iter().map(|Listen { address, service }| {
            let usual = ListenService::of_text(address, self.tls.is_some());
            (address, Some(*service).filter(|service| *service != usual))
        })
    }

    /// Whether clients get TLS at any address.
    #[must_use]
    pub fn has_tls_address(&self) -> bool {
        let mut listen = self.listen.iter();
        listen.any(|listen| listen.service == ListenService::Tls)
    }

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
