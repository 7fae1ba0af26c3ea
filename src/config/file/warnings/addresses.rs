//! Networks that hold everyone, and addresses that others reach.

use std::net::SocketAddr;

use ipnet::IpNet;

use crate::node::Node;
use crate::{PeerPattern, Peers, Zone};

/// Warns of a list that trusts whoever connects.
pub(super) fn every_peer(node: Option<Node>, peers: &Peers) {
    let networks = peers.patterns().iter().map(|pattern| match pattern {
        PeerPattern::Network(network) => Some(*network),
        PeerPattern::Unix => None,
    });
    every_address(
        node,
        &networks.collect::<Vec<_>>(),
        &Everyone {
            one: "trusts every peer",
            all: "trust every peer",
            so: "so each client chooses the address that it is known by; name the proxies only",
        },
    );
}

/// What a list that has every address means.
struct Everyone {
    one: &'static str,
    all: &'static str,
    so: &'static str,
}

/// Warns of a network with every address of its family, and of several that are as much together.
fn every_address(node: Option<Node>, networks: &[Option<IpNet>], means: &Everyone) {
    let Some(node) = node else {
        return;
    };
    let Everyone { one, all, so } = means;
    let mut has_one = false;
    for (item, network) in node.items().iter().flatten().zip(networks) {
        if network.is_some_and(|network| network.prefix_len() == 0) {
            item.warn(&format!("{} {one}, {so}", item.found()));
            has_one = true;
        }
    }
    let together = IpNet::aggregate(&networks.iter().flatten().copied().collect());
    if !has_one && let Some(whole) = together.iter().find(|it| it.prefix_len() == 0) {
        node.warn(&format!(
            "its networks together are {whole} and {all}, {so}"
        ));
    }
}

pub(super) fn is_loopback(address: &SocketAddr) -> bool {
    address.ip().to_canonical().is_loopback()
}

pub(super) fn exempt(zone: &Zone, node: Node) {
    let networks: Vec<_> = zone.exempt.iter().copied().map(Some).collect();
    every_address(
        node.field("exempt"),
        &networks,
        &Everyone {
            one: "is every address of its family",
            all: "are every address of its family",
            so: "so the zone never limits these clients; name fewer",
        },
    );
}
