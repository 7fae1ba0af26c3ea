use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroU16;
use std::sync::Arc;

use super::certificate_facts::ClientCertificate;
use super::proxy_protocol::ProxyHeader;

/// The two ends of a client's connection.
#[derive(Clone, Debug, Default)]
pub struct Peer {
    /// The address of the client; `None` on a unix socket.
    pub address: Option<SocketAddr>,
    /// The port that the client connected to; 0 on a unix socket.
    pub local_port: u16,
    /// The port to which requests are redirected, over TLS; `None`: they are served here.
    pub redirect: Option<NonZeroU16>,
    /// The name of the address that the client connected to, if it has one.
    pub listener: Option<Arc<str>>,
    /// Whether the connection is encrypted.
    pub secure: bool,
    /// The certificate that the client showed, once it is verified.
    pub certificate: Option<Arc<ClientCertificate>>,
}

impl Peer {
    /// Returns the client's address, with an IPv4-mapped address as IPv4; `None` on a unix socket.
    #[must_use]
    pub fn ip(&self) -> Option<IpAddr> {
        self.address.map(|address| address.ip().to_canonical())
    }

    /// Returns the ends that the proxy at the other end of the connection names.
    #[must_use]
    pub fn behind_proxy(self, header: ProxyHeader) -> Self {
        match header {
            ProxyHeader::Proxied {
                source,
                destination,
            } => Self {
                address: Some(source),
                local_port: destination.port(),
                ..self
            },
            ProxyHeader::Own => self,
        }
    }

    /// Returns `http` or `https`.
    #[must_use]
    pub fn scheme(&self) -> &'static str {
        if self.secure { "https" } else { "http" }
    }
}
