//! Chooses the addresses on which drip can listen without exposing what nginx protects.
//!
//! drip chooses the server of a request by its host alone; the address does not matter. If a server
//! protects something, or only this machine can reach it, drip keeps only addresses with the same
//! servers. The servers of all other addresses are left out.

use std::collections::{HashMap, HashSet};

use super::listen;
use super::server::Server;

/// Maximum number of addresses that are compared. Further addresses are left out.
const MAX_ADDRESSES: usize = 64;

/// The servers and addresses that drip keeps.
#[derive(Debug, Default)]
pub(super) struct Served {
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
    /// Whether drip listens on the address.
    ///
    /// With TLS, drip serves plain connections only on socket files.
    is_served: bool,
    servers: Vec<usize>,
}

/// Chooses the addresses; `None` if none is safe.
pub(super) fn served(servers: &[Server], tls: bool) -> Option<Served> {
    let addresses = by_address(servers, tls);
    let is_forwarding = |it: &usize| servers[*it].forwards;
    let matters = |it: &usize| is_forwarding(it) || servers[*it].protects;
    let is_strict = servers.iter().any(|it| it.protects)
        || (servers.iter().any(|it| it.forwards && it.is_local())
            && addresses.iter().any(|it| !listen::is_local(&it.text)));
    let is_same = |one: &Address, other: &Address| {
        let of_one = one.servers.iter().filter(|it| matters(it));
        let of_other = other.servers.iter().filter(|it| matters(it));
        of_one.eq(of_other) && one.default(servers) == other.default(servers)
    };
    // Requests to another address may arrive at this socket and must not bypass its protection.
    let is_clear = |one: &&Address| {
        let mut others = addresses.iter();
        others.all(|other| {
            let protects = other.servers.iter().any(|it| servers[*it].protects);
            !protects || !listen::covers(&one.text, &other.text) || is_same(one, other)
        })
    };
    let compared = addresses.iter().take(MAX_ADDRESSES);
    let mut order: Vec<usize> = (0..servers.len()).collect();
    let first = compared.clone().find(|it| !is_strict || is_clear(it));
    let Some(first) = first else {
        let none = || Served {
            order,
            ..Served::default()
        };
        return (!is_strict).then(none);
    };
    order.sort_by_key(|index| !first.servers.contains(index));
    let mut dropped = HashSet::new();
    if is_strict {
        let kept = compared.filter(|it| is_same(first, it)).filter(is_clear);
        let kept: HashSet<&str> = kept.map(|it| &*it.text).collect();
        let others = addresses.iter().filter(|it| !kept.contains(&*it.text));
        dropped.extend(others.filter(|it| it.is_served).map(|it| it.text.clone()));
        order.retain(|index| first.servers.contains(index));
    }
    Some(Served {
        order,
        default: Some(first.default(servers)),
        dropped,
    })
}

/// Returns the addresses: those that drip can serve first, and network addresses before local ones.
fn by_address(servers: &[Server], tls: bool) -> Vec<Address> {
    let mut addresses: Vec<Address> = Vec::new();
    let mut index_of: HashMap<&str, usize> = HashMap::new();
    for (index, server) in servers.iter().enumerate() {
        for listen in &server.listens {
            let text = &*listen.address;
            let known = *index_of.entry(text).or_insert_with(|| {
                addresses.push(Address {
                    text: text.to_owned(),
                    is_served: false,
                    servers: Vec::new(),
                });
                addresses.len() - 1
            });
            let address = &mut addresses[known];
            address.is_served |= listen.tls || !tls || text.starts_with("unix:");
            if address.servers.last() != Some(&index) {
                address.servers.push(index);
            }
        }
    }
    addresses.sort_by_key(|it| (!it.is_served, listen::is_local(&it.text)));
    addresses
}

impl Address {
    /// Returns the default server of the address.
    fn default(&self, servers: &[Server]) -> usize {
        let is_default = |index: &&usize| {
            let mut listens = servers[**index].listens.iter();
            listens.any(|it| it.default && it.address == self.text)
        };
        let default = self.servers.iter().find(is_default);
        let default = default.or(self.servers.first());
        default.copied().unwrap_or_default()
    }
}
