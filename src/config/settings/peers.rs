use std::fmt;
use std::net::IpAddr;

use ipnet::IpNet;

/// Peers of connections from clients, as a list of the file names them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Peers(Vec<PeerPattern>);

/// Some peers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PeerPattern {
    /// Those with an address in this network.
    Network(IpNet),
    /// All programs that connect to a socket file.
    Unix,
}

impl Peers {
    /// The peers of any of these patterns.
    #[must_use]
    pub fn new(patterns: Vec<PeerPattern>) -> Self {
        Self(patterns)
    }

    /// The patterns, in the order of the file.
    #[must_use]
    pub fn patterns(&self) -> &[PeerPattern] {
        &self.0
    }

    /// Whether a peer is one of them. `None` is a peer on a socket file.
    #[must_use]
    pub fn contain(&self, peer: Option<IpAddr>) -> bool {
        self.0.iter().any(|pattern| match (pattern, peer) {
            (PeerPattern::Network(network), Some(address)) => network.contains(&address),
            (PeerPattern::Unix, None) => true,
            _ => false,
        })
    }
}

impl fmt::Display for PeerPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Network(network) => network.fmt(f),
            Self::Unix => f.write_str("unix:"),
        }
    }
}
