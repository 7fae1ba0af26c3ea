//! Which addresses drip can listen on without opening what nginx protects on one of them.
//!
//! Routes know no address: drip finds the server of a request by its host alone. So an address is
//! left out where a request would find a server other than in nginx, and the one in nginx protects
//! something. Servers that listen on no other address are left out with it.
//!
//! So are servers that only this machine reaches, where others listen for the network: their
//! routes would be found at each address.

use std::collections::{HashMap, HashSet};

use super::hosts;
use super::listen::{self, Listen};
use super::server::Server;

/// Maximum number of addresses that are compared. The rest is left out.
const MAX_ADDRESSES: usize = 64;

/// What is served.
#[derive(Debug, Default)]
pub(super) struct Served {
    /// The server for requests whose host matches no server name.
    pub(super) default: Option<usize>,
    /// Whether requests of other hosts must not reach the default server, as they would be those
    /// of a server whose names cannot be written.
    pub(super) is_closed: bool,
    /// The addresses that are left out.
    pub(super) dropped: HashSet<String>,
    /// The servers that have no other addresses.
    pub(super) left_out: HashSet<usize>,
}

/// The servers as they are looked at: those at an address, in the order of the file.
struct Map<'s> {
    servers: &'s [Server<'s>],
    order: &'s [usize],
    at: Vec<(String, Vec<usize>)>,
}

/// Chooses the addresses; `order`: the servers that take a name first come first.
///
/// Returns `None` if no address is safe.
pub(super) fn served(servers: &[Server], order: &[usize], tls: bool) -> Option<Served> {
    let at = by_address(servers, tls);
    if at.is_empty() {
        return Some(Served::default());
    }
    let map = Map { servers, order, at };
    let exposes = servers
        .iter()
        .any(|server| server.forwards && server.is_local());
    let protects = |it: &Server| it.protects || it.needs_certificates;
    let protects = exposes || servers.iter().any(protects);
    let most = if protects {
        MAX_ADDRESSES.min(map.at.len())
    } else {
        map.at.len()
    };
    let has_hidden = servers.iter().any(|it| it.has_other_names && it.protects);
    let (first, is_closed) = (0..most).find_map(|address| {
        let default = Some(map.default(address));
        if !protects || map.is_safe(&[address], default) {
            Some((address, false))
        } else {
            (has_hidden && map.is_safe(&[address], None)).then_some((address, true))
        }
    })?;
    let default = map.default(first);
    let open = (!is_closed).then_some(default);
    let mut chosen = vec![first];
    for address in (0..most).filter(|address| *address != first) {
        chosen.push(address);
        if protects && !map.is_safe(&chosen, open) {
            chosen.pop();
        }
    }
    let kept = map.servers_at(&chosen);
    let is_dropped = |address: &usize| !chosen.contains(address);
    let dropped = (0..map.at.len()).filter(is_dropped);
    Some(Served {
        default: Some(default),
        is_closed,
        dropped: dropped.map(|address| map.at[address].0.clone()).collect(),
        left_out: (0..servers.len()).filter(|it| !kept.contains(it)).collect(),
    })
}

/// The addresses, and the servers at each of them in the order of the file.
///
/// Those that are listened on come first, and of these the ones for the network: others are left
/// out beside them.
fn by_address(servers: &[Server], tls: bool) -> Vec<(String, Vec<usize>)> {
    let mut at: Vec<(String, Vec<usize>)> = Vec::new();
    let mut index_of: HashMap<String, usize> = HashMap::new();
    // The addresses with TLS come first, as the others are not listened on beside them.
    for with_tls in [true, false] {
        for (index, server) in servers.iter().enumerate() {
            let mut add = |address: String| {
                let known = *index_of.entry(address.clone()).or_insert(at.len());
                if known == at.len() {
                    at.push((address, Vec::new()));
                }
                if !at[known].1.contains(&index) {
                    at[known].1.push(index);
                }
            };
            for listen in &server.listens {
                if (listen.tls || !tls) == with_tls {
                    add(listen.address.clone());
                }
            }
            if server.listens.is_empty() && !with_tls {
                // An address that cannot be written.
                add(format!("?{index}"));
            }
        }
    }
    for (_, of_address) in &mut at {
        of_address.sort_unstable();
    }
    at.sort_by_key(|(address, of_address)| {
        let has_tls = |listen: &Listen| listen.address == *address && (listen.tls || !tls);
        let mut listens = of_address.iter().flat_map(|it| &servers[*it].listens);
        (!listens.any(has_tls), listen::is_local(address))
    });
    at
}

impl Map<'_> {
    /// The default server of an address.
    fn default(&self, address: usize) -> usize {
        let (text, of_address) = &self.at[address];
        let is_default = |index: &&usize| {
            let listens = &self.servers[**index].listens;
            listens.iter().any(|it| it.default && it.address == *text)
        };
        let default = of_address.iter().find(is_default);
        default.or(of_address.first()).copied().unwrap_or_default()
    }

    fn servers_at(&self, chosen: &[usize]) -> HashSet<usize> {
        let all = chosen.iter().flat_map(|address| &self.at[*address].1);
        all.copied().collect()
    }

    /// Whether every request at these addresses finds its server of nginx, or one that forwards
    /// nothing, unless its server of nginx protects nothing, and no request from the network one
    /// that only this machine reaches. `open`: the server of other hosts.
    fn is_safe(&self, chosen: &[usize], open: Option<usize>) -> bool {
        let kept = self.servers_at(chosen);
        let is_of_machine =
            |index: &usize| self.servers[*index].forwards && self.servers[*index].is_local();
        let is_of_network = |address: &usize| !listen::is_local(&self.at[*address].0);
        if chosen.iter().any(is_of_network) && kept.iter().any(is_of_machine) {
            return false;
        }
        let mut takes: HashMap<&str, usize> = HashMap::new();
        let first = open.into_iter().chain(self.order.iter().copied());
        for index in first.filter(|index| kept.contains(index)) {
            let server = &self.servers[index];
            if server.protects || server.forwards {
                for name in &server.names {
                    takes.entry(name).or_insert(index);
                }
            }
        }
        let has_tls = self.servers.iter().any(Server::has_tls);
        // Other addresses are not listened on.
        let is_served = |address: usize| {
            let (text, of_address) = &self.at[address];
            let mut listens = of_address.iter().flat_map(|it| &self.servers[*it].listens);
            let is_unix = text.starts_with("unix:");
            !has_tls || is_unix || listens.any(|it| it.address == *text && it.tls)
        };
        let is_wrong = |address: usize, theirs: usize, ours: Option<usize>| {
            let Some(ours) = ours.filter(|ours| self.servers[*ours].forwards) else {
                return false;
            };
            // Only its own addresses ask for certificates.
            let is_bare = self.servers[ours].needs_certificates
                && is_served(address)
                && !self.at[address].1.contains(&ours);
            ours != theirs && (self.servers[theirs].protects || is_bare)
        };
        let arrives = |address: &usize| {
            let text = &self.at[*address].0;
            let mut all = chosen.iter().map(|chosen| &self.at[*chosen].0);
            all.any(|chosen| chosen == text || listen::covers(chosen, text))
        };
        (0..self.at.len()).filter(arrives).all(|address| {
            let of_address = &self.at[address].1;
            let mut others: Vec<usize> = of_address.clone();
            others.retain(|index| self.servers[*index].has_other_names);
            others.push(self.default(address));
            let mut exact: HashMap<&str, usize> = HashMap::new();
            for index in of_address {
                for name in &self.servers[*index].names {
                    exact.entry(name).or_insert(*index);
                }
            }
            let is_named_wrong = |name: &str| {
                let ours = hosts::lookup(&takes, name).or(open);
                match hosts::lookup(&exact, name) {
                    Some(theirs) => is_wrong(address, theirs, ours),
                    None => others.iter().any(|theirs| is_wrong(address, *theirs, ours)),
                }
            };
            let names = takes.keys().chain(exact.keys());
            !others.iter().any(|theirs| is_wrong(address, *theirs, open))
                && !names.into_iter().any(|name| is_named_wrong(name))
        })
    }
}
