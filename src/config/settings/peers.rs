use std::fmt;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use ipnet::IpNet;

use super::networks::{ClientNetworks, Networks};

/// Peers of connections from clients, as a list names them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peers {
    patterns: Vec<PeerPattern>,
    /// The networks of the patterns.
    networks: ClientNetworks,
    has_unix: bool,
    file: Option<PathBuf>,
}

/// Some peers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PeerPattern {
    /// Those with an address in this network.
    Network(IpNet),
    /// All programs that connect to a socket file.
    Unix,
}

impl Peers {
    /// The peers of any of these patterns. `file`: the absolute path of the file that has them.
    pub fn new(patterns: Vec<PeerPattern>, file: Option<PathBuf>) -> Self {
        let networks = Networks {
            list: networks(&patterns).collect(),
            file: None,
        };
        Self {
            networks: ClientNetworks::new(Some(&networks), None),
            has_unix: patterns.contains(&PeerPattern::Unix),
            patterns,
            file,
        }
    }

    /// The networks among the patterns.
    pub fn networks(&self) -> impl Iterator<Item = IpNet> {
        networks(&self.patterns)
    }

    /// The patterns, in the order in which they are written.
    pub fn patterns(&self) -> &[PeerPattern] {
        &self.patterns
    }

    /// The file that has the patterns, one a line; `None`: they stand in the configuration itself.
    pub fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    /// Whether a peer is one of them. `None` is a peer on a socket file.
    pub fn contain(&self, peer: Option<IpAddr>) -> bool {
        match peer {
            Some(_) => self.networks.serve(peer),
            None => self.has_unix,
        }
    }
}

fn networks(patterns: &[PeerPattern]) -> impl Iterator<Item = IpNet> {
    patterns.iter().filter_map(|pattern| match pattern {
        PeerPattern::Network(network) => Some(*network),
        PeerPattern::Unix => None,
    })
}

impl Default for Peers {
    fn default() -> Self {
        Self::new(Vec::new(), None)
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
