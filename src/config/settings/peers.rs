use std::net::IpAddr;

use super::networks::{ClientNetworks, Networks};

/// Peers of connections from clients, as a list names them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peers {
    /// Those with an address.
    pub networks: Networks,
    /// Whether all programs that connect to a socket file are among them: `"unix:"`.
    pub has_unix: bool,
    by_address: ClientNetworks,
}

impl Peers {
    /// The peers of these networks, and perhaps those on socket files.
    pub fn new(networks: Networks, has_unix: bool) -> Self {
        Self {
            by_address: ClientNetworks::new(Some(&networks), None),
            networks,
            has_unix,
        }
    }

    /// Whether a peer is one of them. `None` is a peer on a socket file.
    pub fn contain(&self, peer: Option<IpAddr>) -> bool {
        match peer {
            // Trust is not widened: the IPv4 address in one of NAT64 is another peer.
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
