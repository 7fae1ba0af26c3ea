//! Chooses the addresses on which drip can listen without exposing what nginx protects.
//!
//! nginx chooses the server of a request by the address on which it arrives, and then by its host.
//! drip chooses by the host alone. So if a server protects something (see `protection`), or only
//! this machine can reach it, drip keeps only addresses with the same servers. The other addresses,
//! and servers that have only those, are left out.

use std::collections::{HashMap, HashSet};

use super::listen;
use super::server::Server;

/// Maximum number of addresses that are compared. Further addresses are left out.
const MAX_ADDRESSES: usize = 64;

/// The servers and addresses that drip keeps. Servers are indexes in the list of all servers.
#[derive(Debug, Default)]
pub(super) struct ServedAddresses {
    /// The servers that are kept. For each name, the server that nginx chooses comes first.
    pub(super) order: Vec<usize>,
    /// The server for requests whose host matches no server name.
    pub(super) default: Option<usize>,
    /// Addresses that are left out.
    pub(super) dropped: HashSet<String>,
}

/// An address, and the servers that listen on it in the order of the file.
struct Address {
    text: String,
    /// Whether drip can listen on the address.
    ///
    /// With TLS, drip serves plain connections only on socket files.
    is_served: bool,
    servers: Vec<usize>,
}

/// Chooses the addresses; `None` if none is safe.
///
/// Without strict rules, all servers and addresses are kept, and only the default is chosen.
pub(super) fn choose(servers: &[Server]) -> Option<ServedAddresses> {
    let addresses = by_address(servers);
    // Whether requests to one address must not reach the servers of another one.
    let is_strict = servers.iter().any(|it| it.protects)
        || (servers.iter().any(|it| it.forwards && it.is_local())
            && addresses.iter().any(|it| !listen::is_local(&it.text)));
    let is_safe = |address: &&Address| address.is_safe(&addresses, servers);
    let compared = addresses.iter().take(MAX_ADDRESSES);
    let mut served = ServedAddresses {
        order: (0..servers.len()).collect(),
        ..ServedAddresses::default()
    };
    let chosen = compared.clone().find(|it| !is_strict || is_safe(it));
    let Some(chosen) = chosen else {
        return (!is_strict).then_some(served);
    };
    served.default = Some(chosen.default_server(servers));
    served
        .order
        .sort_by_key(|index| !chosen.servers.contains(index));
    if is_strict {
        let kept = compared.filter(|it| chosen.has_same_servers(it, servers) && is_safe(it));
        let kept: HashSet<&str> = kept.map(|it| &*it.text).collect();
        let others = addresses.iter().filter(|it| !kept.contains(&*it.text));
        let others = others.filter(|it| it.is_served);
        served.dropped = others.map(|it| it.text.clone()).collect();
        served.order.retain(|index| chosen.servers.contains(index));
    }
    Some(served)
}

/// Returns the addresses: those that drip can serve first, and network addresses before local ones.
fn by_address(servers: &[Server]) -> Vec<Address> {
    let has_tls = servers.iter().any(Server::has_tls);
    let mut addresses: Vec<Address> = Vec::new();
    let mut index_of: HashMap<&str, usize> = HashMap::new();
    for (index, server) in servers.iter().enumerate() {
        for listen in &server.listens {
            let text = &*listen.address;
            let address_index = *index_of.entry(text).or_insert_with(|| {
                addresses.push(Address {
                    text: text.to_owned(),
                    is_served: false,
                    servers: Vec::new(),
                });
                addresses.len() - 1
            });
            let address = &mut addresses[address_index];
            address.is_served |= listen.has_tls || !has_tls || text.starts_with("unix:");
            if address.servers.last() != Some(&index) {
                address.servers.push(index);
            }
        }
    }
    addresses.sort_by_key(|it| (!it.is_served, listen::is_local(&it.text)));
    addresses
}

impl Address {
    /// Returns the default server of the address: the one marked as such, or else the first.
    fn default_server(&self, servers: &[Server]) -> usize {
        let is_default = |index: &&usize| {
            let mut listens = servers[**index].listens.iter();
            listens.any(|it| it.is_default && it.address == self.text)
        };
        let default = self.servers.iter().find(is_default);
        let default = default.or(self.servers.first());
        default.copied().unwrap_or_default()
    }

    /// Returns whether both addresses have the same servers that forward or protect requests.
    fn has_same_servers(&self, other: &Self, servers: &[Server]) -> bool {
        let matters = |index: &&usize| servers[**index].forwards || servers[**index].protects;
        let own_servers = self.servers.iter().filter(matters);
        own_servers.eq(other.servers.iter().filter(matters))
            && self.default_server(servers) == other.default_server(servers)
    }

    /// Returns whether drip can serve the address alone without exposing what another one protects.
    ///
    /// Requests to another address may arrive at a socket of this one.
    fn is_safe(&self, addresses: &[Self], servers: &[Server]) -> bool {
        addresses.iter().all(|other| {
            let protects = other.servers.iter().any(|index| servers[*index].protects);
            !protects
                || !listen::covers(&self.text, &other.text)
                || self.has_same_servers(other, servers)
        })
    }
}
