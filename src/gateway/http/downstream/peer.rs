//! The two ends of a client connection, and the identity of the client.
//!
//! The other end is a client or a proxy. `exchange::client` finds the client behind trusted
//! proxies.

use std::net::IpAddr;
use std::num::NonZeroU16;
use std::sync::Arc;

use super::certificate_facts::ClientCertificate;
use super::proxy_protocol::ProxyHeader;
use crate::observe::connections::OpenConnection;

/// The two ends of a client connection.
#[derive(Clone, Debug, Default)]
pub struct Peer {
    /// Address of the client; `None` on a unix socket.
    pub address: Option<PeerAddress>,
    /// Port that the client connected to; 0 on a unix socket.
    pub local_port: u16,
    /// HTTPS port to which all requests are redirected; `None`: requests are served here.
    pub redirect: Option<NonZeroU16>,
    /// Whether the connection is encrypted.
    pub is_encrypted: bool,
    /// Entry in the table of open connections; `None` if there is none.
    pub connection: Option<OpenConnection>,
    /// Rarely present facts. Behind one pointer, because idle connections must be small.
    pub facts: Option<Arc<PeerFacts>>,
}

/// Facts about a client that depend on its listener and its certificate.
#[derive(Clone, Debug, Default)]
pub struct PeerFacts {
    /// Configured name of the listener that the client connected to, if it has one.
    pub listener: Option<Arc<str>>,
    /// Verified certificate of the client.
    pub certificate: Option<ClientCertificate>,
}

/// Address and port of a client. Smaller than `SocketAddr`: it has no scope of an IPv6 address.
pub type PeerAddress = (IpAddr, u16);

impl Peer {
    /// Returns the client's address, with an IPv4-mapped address as IPv4; `None` on a unix socket.
    pub fn ip(&self) -> Option<IpAddr> {
        self.address.map(|(ip, _)| ip.to_canonical())
    }

    /// Replaces both ends by those that the header of a proxy names.
    pub(crate) fn with_proxy_header(mut self, header: ProxyHeader) -> Self {
        if let ProxyHeader::Proxied {
            source,
            destination,
        } = header
        {
            self.address = Some((source.ip(), source.port()));
            self.local_port = destination.port();
        }
        self
    }

    /// Returns the configured name of the listener that the client connected to, if it has one.
    pub(crate) fn listener(&self) -> Option<&str> {
        self.facts.as_ref()?.listener.as_deref()
    }

    /// Returns the verified certificate of the client.
    pub fn certificate(&self) -> Option<&ClientCertificate> {
        self.facts.as_ref()?.certificate.as_ref()
    }

    /// Sets the verified certificate of the client.
    pub(crate) fn set_certificate(&mut self, certificate: ClientCertificate) {
        let facts = Arc::make_mut(self.facts.get_or_insert_default());
        facts.certificate = Some(certificate);
    }

    /// Returns `http` or `https`.
    pub fn scheme(&self) -> &'static str {
        if self.is_encrypted { "https" } else { "http" }
    }
}

#[cfg(test)]
impl Peer {
    /// Creates a peer with this address and port, such as `192.0.2.1:80`.
    pub(crate) fn at(address: &str) -> Self {
        let address: std::net::SocketAddr = address.parse().unwrap();
        Self {
            address: Some((address.ip(), address.port())),
            ..Self::default()
        }
    }
}
