//! Which addresses drip can listen on without opening what nginx protects on one of them.
//!
//! Routes know no address: drip finds the server of a request by its host alone. So where a server
//! protects something, or where only this machine reaches one, only addresses with the same servers
//! are kept. The servers of other addresses are left out.

use std::collections::{HashMap, HashSet};

use super::listen;
use super::server::Server;

/// Maximum number of addresses that are compared. The rest is left out.
const MAX_ADDRESSES: usize = 64;

/// What is served.
#[derive(Debug, Default)]
pub(super) struct Served {
    /// The servers that are kept. Those that take a name first come first.
    pub(super) order: Vec<usize>,
    /// The server for requests whose host matches no server name.
    pub(super) default: Option<usize>,
    /// The addresses that are left out.
    pub(super) dropped: HashSet<String>,
}

/// An address, and the servers that listen on it in the order of the file.
struct Address {
    text: String,
    /// Whether drip listens on it: beside addresses with TLS there are no others but socket files.
    is_served: bool,
    servers: Vec<usize>,
}

/// Chooses the addresses. Returns `None` if none is safe.
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
    // Requests to another address may arrive at its socket, and must not pass what is protected there.
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

/// The addresses: those that are listened on first, and of these the ones for the network.
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
    /// The default server.
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
