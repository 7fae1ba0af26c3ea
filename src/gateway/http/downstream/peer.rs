use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroU16;
use std::sync::Arc;

use super::certificate_facts::ClientCertificate;
use super::proxy_protocol::ProxyHeader;
use crate::observe::connections::OpenConnection;

/// The two ends of a client's connection.
#[derive(Clone, Debug, Default)]
pub struct Peer {
    /// The address of the client; `None` on a unix socket.
    pub address: Option<PeerAddress>,
    /// The port that the client connected to; 0 on a unix socket.
    pub local_port: u16,
    /// The port to which requests are redirected, over TLS; `None`: they are served here.
    pub redirect: Option<NonZeroU16>,
    /// Whether the connection is encrypted.
    pub secure: bool,
    /// Its entry in the table of open connections; `None` if it is in none.
    pub connection: Option<OpenConnection>,
    /// What few connections have; one pointer, because each idle connection has room for it.
    pub facts: Option<Arc<PeerFacts>>,
}

/// What is known of a client by the way in which it came.
#[derive(Clone, Debug, Default)]
pub struct PeerFacts {
    /// The name of the address that the client connected to, if it has one.
    pub listener: Option<Arc<str>>,
    /// The certificate that the client showed, once it is verified.
    pub certificate: Option<ClientCertificate>,
}

/// The address of a client: smaller than [`SocketAddr`], which knows the scope of an IPv6 address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerAddress {
    ip: IpAddr,
    port: u16,
}

impl From<SocketAddr> for PeerAddress {
    fn from(address: SocketAddr) -> Self {
        Self {
            ip: address.ip(),
            port: address.port(),
        }
    }
}

impl From<PeerAddress> for SocketAddr {
    fn from(address: PeerAddress) -> Self {
        Self::new(address.ip, address.port)
    }
}

impl Peer {
    /// Returns the client's address, with an IPv4-mapped address as IPv4; `None` on a unix socket.
    pub fn ip(&self) -> Option<IpAddr> {
        self.address.map(|address| address.ip.to_canonical())
    }

    /// Returns the ends that the proxy at the other end of the connection names.
    pub(crate) fn behind_proxy(self, header: ProxyHeader) -> Self {
        match header {
            ProxyHeader::Proxied {
                source,
                destination,
            } => Self {
                address: Some(source.into()),
                local_port: destination.port(),
                ..self
            },
            ProxyHeader::Own => self,
        }
    }

    /// Returns the name of the address that the client connected to, if it has one.
    pub(crate) fn listener(&self) -> Option<&str> {
        self.facts.as_ref()?.listener.as_deref()
    }

    /// Returns the certificate that the client showed, once it is verified.
    pub fn certificate(&self) -> Option<&ClientCertificate> {
        self.facts.as_ref()?.certificate.as_ref()
    }

    /// Returns the same peer, with the certificate that it showed.
    pub(crate) fn with_certificate(self, certificate: ClientCertificate) -> Self {
        let listener = self.facts.as_ref().and_then(|facts| facts.listener.clone());
        let facts = PeerFacts {
            listener,
            certificate: Some(certificate),
        };
        Self {
            facts: Some(Arc::new(facts)),
            ..self
        }
    }

    /// Returns `http` or `https`.
    pub fn scheme(&self) -> &'static str {
        if self.secure { "https" } else { "http" }
    }
}
