use std::net::SocketAddr;

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
