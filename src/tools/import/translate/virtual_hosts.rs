//! Routes of servers with names.
//!
//! nginx looks for the server first, and drip for the path. So the host of a server, or its
//! wildcard, gets a route for each path of those for more hosts: of wildcards that take it, too,
//! and of the default server.

use std::collections::{HashMap, HashSet};

use super::Translation;
use super::precedence::{is_whole, of_path, of_prefix, ordered};
use super::protection::Protection;
use super::route::{Action, Location, Pattern};
use super::scope::Scope;
use super::server::Server;

/// The servers that are translated.
pub(super) struct Chosen<'s> {
    pub(super) servers: &'s [Server<'s>],
    /// Those that take a name first come first.
    pub(super) order: Vec<usize>,
    /// The server for all other hosts, if it keeps its names.
    pub(super) default: Option<usize>,
    /// The same, whether it keeps them or not.
    pub(super) skipped: Option<usize>,
}

/// A server with the names that it has.
struct Named<'s> {
    index: usize,
    names: Vec<&'s str>,
    own: Vec<Location>,
}

impl Translation<'_> {
    /// Makes routes of the locations of all servers, `all`, for each of their names.
    ///
    /// `any`: the routes of hosts that have no server.
    pub(super) fn virtual_hosts(
        &mut self,
        chosen: &Chosen,
        all: &[Vec<Location>],
        any: &[Location],
        http: &Scope,
    ) {
        let servers = chosen.servers;
        let mut owners: HashMap<&str, usize> = HashMap::new();
        let mut kept: Vec<Named> = Vec::new();
        let wildcards: HashSet<&str> = servers
            .iter()
            .flat_map(|server| &server.names)
            .filter(|name| name.starts_with('*'))
            .map(String::as_str)
            .collect();
        let is_below = |name: &&String| covering(name).any(|it| wildcards.contains(it.as_str()));
        if let Some(index) = chosen.default {
            owners.extend(servers[index].names.iter().map(|name| (&**name, index)));
        }
        let others = chosen.order.iter().copied();
        for index in others.filter(|index| Some(*index) != chosen.skipped) {
            let server = &servers[index];
            let protection = Protection::of(&[], server.block, &http.inside(server.block));
            let has_wider = !any.is_empty() || server.names.iter().any(|name| is_below(&name));
            if all[index].is_empty() && (protection.is_none() || !has_wider) {
                continue;
            }
            let mut own = all[index].clone();
            if has_wider && !own.iter().any(is_whole) {
                own.push(self.rest(server, protection.as_ref()));
            }
            let names = self.free_names(server, index, &mut owners);
            kept.push(Named { index, names, own });
        }
        if let Some(index) = chosen.default {
            // Routes for all hosts come behind those of a wildcard.
            let is_taken = |name: &&String| {
                let mut around = covering(name).filter_map(|it| owners.get(it.as_str()));
                around.any(|owner| *owner != index)
            };
            let server = &servers[index];
            let names: Vec<&str> = server
                .names
                .iter()
                .filter(is_taken)
                .map(|it| &**it)
                .collect();
            if !names.is_empty() {
                let mut own = all[index].clone();
                if !own.iter().any(is_whole) {
                    let protection = Protection::of(&[], server.block, &http.inside(server.block));
                    own.push(self.rest(server, protection.as_ref()));
                }
                kept.insert(0, Named { index, names, own });
            }
        }
        self.named(servers, &kept, any);
    }

    /// The names of a server that no other one has.
    fn free_names<'s>(
        &mut self,
        server: &'s Server,
        index: usize,
        owners: &mut HashMap<&'s str, usize>,
    ) -> Vec<&'s str> {
        if server.names.is_empty() {
            self.notes.add(server.place, "this server has no server_name that a route can have, and import writes no routes by listen address; it is left out");
        }
        let mut free = Vec::new();
        for name in &server.names {
            if owners.contains_key(&**name) {
                self.notes.add(server.place, format!("{name} has a server already, and import writes no routes by listen address; this one is left out for it"));
            } else {
                owners.insert(name, index);
                free.push(&**name);
            }
        }
        free
    }

    /// Makes the routes of each name.
    fn named(&mut self, servers: &[Server], kept: &[Named], any: &[Location]) {
        let mut wildcards: Vec<(&str, &Named)> = Vec::new();
        for named in kept {
            let names = named.names.iter().filter(|name| name.starts_with('*'));
            wildcards.extend(names.map(|name| (*name, named)));
        }
        // Each comes behind those that take its hosts, too.
        wildcards.sort_by_key(|(name, _)| name.len());
        let mut routes_of: HashMap<&str, Vec<Location>> = HashMap::new();
        for (name, named) in wildcards {
            let is_alone = has_regex(&wider(name, any, &routes_of));
            routes_of.insert(name, ordered(&named.own, is_alone, &mut self.notes));
        }
        for named in kept {
            let mut in_order: HashMap<bool, Vec<Location>> = HashMap::new();
            let server = &servers[named.index];
            for (number, name) in named.names.iter().enumerate() {
                let wider = wider(name, any, &routes_of);
                let is_alone = has_regex(&wider);
                let own = in_order
                    .entry(is_alone)
                    .or_insert_with(|| ordered(&named.own, is_alone, &mut self.notes));
                let comment = (number == 0)
                    .then(|| format!("{}: server {name}", self.notes.name(server.place)));
                self.routes(own, Some(name), comment.as_deref());
                self.fill(own, &wider, name);
            }
        }
    }

    /// The location of a server's requests for which it has none: no other server takes them.
    fn rest(&mut self, server: &Server, protection: Option<&Protection>) -> Location {
        let before = self.notes.count();
        let shown = format!("server {}", server.names.join(" "));
        let status = if let Some(protection) = protection {
            protection.tell(&shown, &mut self.notes);
            protection.status
        } else {
            self.notes.add(
                server.place,
                format!("requests for {shown} that match no location here get 404"),
            );
            404
        };
        Location {
            pattern: Pattern::Prefix {
                path: "/".to_owned(),
                stops: false,
            },
            action: Action::Refuse(status),
            comments: self.notes.since(before),
            place: server.place,
        }
    }

    /// Copies this host's locations to the exact and longer paths of routes for more hosts.
    ///
    /// Without the copies those routes would take requests of this host.
    fn fill(&mut self, own: &[Location], wider: &[&[Location]], host: &str) {
        let has = |pattern: &Pattern| own.iter().any(|location| location.pattern == *pattern);
        let mut filled = HashSet::new();
        for location in wider.iter().copied().flatten() {
            let pattern = &location.pattern;
            if !filled.insert(location.path()) {
                continue;
            }
            let best = match pattern {
                _ if has(pattern) => None,
                Pattern::Exact(path) => of_path(own, path),
                Pattern::Prefix { path, .. } if own.iter().any(|it| it.prefix() == Some(path)) => {
                    None
                }
                Pattern::Prefix { path, .. } => of_prefix(own, path),
                // All of this host's are regular expressions then, and go before those of more hosts.
                Pattern::Regex(_) => None,
            };
            if let Some(best) = best {
                let copy = Location {
                    pattern: pattern.clone(),
                    comments: Vec::new(),
                    ..best.clone()
                };
                self.routes(&[copy], Some(host), None);
            }
        }
    }
}

/// The routes for more hosts than a name, which would take its requests.
fn wider<'l>(
    name: &str,
    any: &'l [Location],
    routes_of: &'l HashMap<&str, Vec<Location>>,
) -> Vec<&'l [Location]> {
    let around = covering(name).filter_map(|it| routes_of.get(it.as_str()));
    std::iter::once(any)
        .chain(around.map(Vec::as_slice))
        .collect()
}

fn has_regex(routes: &[&[Location]]) -> bool {
    let mut all = routes.iter().copied().flatten();
    all.any(|location| location.regex().is_some())
}

/// The wildcards that take a host, or all hosts of a wildcard, the longest first.
fn covering(name: &str) -> impl Iterator<Item = String> + '_ {
    let whole = name.strip_prefix("*.").unwrap_or(name);
    whole
        .match_indices('.')
        .map(|(at, _)| format!("*{}", &whole[at..]))
}
