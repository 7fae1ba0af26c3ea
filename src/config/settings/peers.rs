//! Lists of peers, such as trusted proxies.

use std::net::IpAddr;

use super::networks::{ClientNetworks, Networks};

/// Peers of connections from clients, such as trusted proxies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peers {
    /// Peers with an address.
    pub networks: Networks,
    /// Includes all programs that connect to a Unix socket: `"unix:"`.
    pub has_unix: bool,
    by_address: ClientNetworks,
}

impl Peers {
    /// Makes a list of these networks, and of the peers on Unix sockets if `has_unix`.
    pub fn new(networks: Networks, has_unix: bool) -> Self {
        Self {
            by_address: ClientNetworks::new(Some(&networks), None),
            networks,
            has_unix,
        }
    }

    /// Returns whether the list contains a peer. `None` is a peer on a Unix socket.
    pub fn contain(&self, peer: Option<IpAddr>) -> bool {
        match peer {
            // The IPv4 address in a NAT64 address is another peer. Treating it as the same would
            // extend trust.
            Some(peer) => self.by_address.names(peer),
            None => self.has_unix,
        }
    }
}

impl Default for Peers {
    fn default() -> Self {
        Self::new(Networks::default(), false)
    }
}
