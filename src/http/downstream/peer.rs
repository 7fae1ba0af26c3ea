use std::net::{IpAddr, SocketAddr};

/// The other end of a client's connection, and this one.
#[derive(Clone, Copy, Debug, Default)]
pub struct Peer {
    /// `None` on a unix socket.
    pub address: Option<SocketAddr>,
    /// Where the client connected to; `None` on a unix socket.
    pub local: Option<SocketAddr>,
    /// Whether the connection is encrypted.
    pub secure: bool,
}

impl Peer {
    /// The other end's address, one of IPv4 as such; `None` on a unix socket.
    #[must_use]
    pub fn ip(&self) -> Option<IpAddr> {
        self.address.map(|address| address.ip().to_canonical())
    }

    /// `http` or `https`.
    #[must_use]
    pub fn scheme(&self) -> &'static str {
        if self.secure { "https" } else { "http" }
    }
}
