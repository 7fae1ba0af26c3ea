//! Builds the routes of servers that have names.
//!
//! nginx chooses the server first; drip chooses the path first. So each host or wildcard also gets
//! a route for every path of the wildcards that cover it, and of the default server.

use std::collections::{HashMap, HashSet};

use super::Translation;
use super::precedence::{is_whole, of_path, of_prefix, ordered};
use super::protection::Protection;
use super::route::{Action, Location, Pattern, tables};
use super::scope::Scope;
use super::server::Server;
use crate::import::MAX_ROUTES;

/// A server with the names that it keeps.
struct Named<'s> {
    index: usize,
    names: Vec<&'s str>,
    own: Vec<Location<'s>>,
}

impl Translation<'_> {
    /// Adds routes for the locations of all servers, `all`, under each of their names.
    ///
    /// `order`: the servers in order; for each name, the server that nginx chooses comes first.
    /// `any`: the routes of hosts that have no server, which are those of `default`.
    pub(super) fn virtual_hosts<'t>(
        &mut self,
        servers: &'t [Server<'t>],
        (order, default): (&[usize], Option<usize>),
        all: &[Vec<Location<'t>>],
        any: &[Location<'t>],
        http: &Scope<'t>,
    ) {
        let mut wildcards: HashMap<&str, usize> = HashMap::new();
        for (index, server) in servers.iter().enumerate() {
            for name in server.names.iter().filter(|name| name.starts_with('*')) {
                wildcards.entry(name).or_insert(index);
            }
        }
        let mut owners: HashMap<&str, usize> = HashMap::new();
        let mut kept: Vec<Named<'t>> = Vec::new();
        let others = order.iter().filter(|index| Some(**index) != default);
        // A default server that only redirects yields its names to the next server.
        let default = default.filter(|it| !all[*it].is_empty() || servers[*it].protects);
        if let Some(index) = default {
            owners.extend(servers[index].names.iter().map(|name| (&**name, index)));
        }
        for index in default.into_iter().chain(others.copied()) {
            let server = &servers[index];
            let protection = Protection::of(&[], server.block, &http.inside(server.block));
            if all[index].is_empty() && protection.is_none() {
                continue;
            }
            let names = if Some(index) == default {
                // For these hosts the routes for all hosts come after those of a wildcard.
                let is_other = |name: String| wildcards.get(&*name).is_some_and(|it| *it != index);
                let names = server.names.iter().map(|name| &**name);
                names.filter(|name| covering(name).any(is_other)).collect()
            } else {
                Self::free_names(server, index, &mut owners)
            };
            if names.is_empty() {
                continue;
            }
            let mut own = all[index].clone();
            if !own.iter().any(is_whole) {
                own.push(rest(server, protection.as_ref()));
            }
            kept.push(Named { index, names, own });
        }
        self.named(servers, &kept, any);
    }

    /// Returns the names of a server that no earlier server has.
    fn free_names<'s>(
        server: &'s Server,
        index: usize,
        owners: &mut HashMap<&'s str, usize>,
    ) -> Vec<&'s str> {
        if server.names.is_empty() {
            server.at.note("this server has no server_name that a route can have, and import writes no routes by listen address; it is left out");
        }
        let mut free = Vec::new();
        for name in &server.names {
            if owners.contains_key(&**name) {
                server.at.note(format!("{name} has a server already, and import writes no routes by listen address; this one is left out for it"));
            } else {
                owners.insert(name, index);
                free.push(&**name);
            }
        }
        free
    }

    /// Adds the routes of each name.
    fn named(&mut self, servers: &[Server], kept: &[Named], any: &[Location]) {
        let all = kept.iter().flat_map(|named| {
            let names = named.names.iter();
            names.map(move |name| (*name, &named.own[..]))
        });
        let all: Vec<(&str, &[Location])> = all.collect();
        let Some(routes) = of_hosts(any, &all, MAX_ROUTES) else {
            self.is_unsafe = true;
            let message = format!("there are more than {MAX_ROUTES} routes; nothing is translated");
            return servers[0].at.note(message);
        };
        let mut routes = routes.iter();
        for named in kept {
            let at = servers[named.index].at;
            for (number, (name, own)) in named.names.iter().zip(&mut routes).enumerate() {
                let comment = (number == 0).then(|| format!("{at}: server {name}"));
                let comments = comment.into_iter().collect();
                self.routes.extend(tables(own, Some(name), comments));
            }
        }
    }
}

/// Returns the location for all paths that the server itself does not have.
///
/// No other server may take these requests.
fn rest<'t>(server: &Server<'t>, protection: Option<&Protection>) -> Location<'t> {
    let notes = server.at.notes;
    let before = notes.count();
    let shown = format!("server {}", server.names.join(" "));
    let status = if let Some(protection) = protection {
        protection.note_refusal(&shown);
        protection.status
    } else {
        let what = format!("requests for {shown} that match no location here get 404");
        server.at.note(what);
        404
    };
    Location {
        comments: notes.since(before),
        ..Location::new(Pattern::prefix("/"), Action::Refuse(status), server.at)
    }
}

/// Returns the routes of each host, so that each host has exactly its own locations.
///
/// Returns `None` if there are more than `most`. `any`: the routes of hosts that have no server.
pub(in crate::import) fn of_hosts<'n>(
    any: &[Location<'n>],
    hosts: &[(&str, &[Location<'n>])],
    most: usize,
) -> Option<Vec<Vec<Location<'n>>>> {
    let own: usize = hosts.iter().map(|(_, own)| own.len()).sum();
    if any.len() + own > most {
        return None;
    }
    let mut wildcards: Vec<_> = hosts.iter().filter(|it| it.0.starts_with('*')).collect();
    // A wildcard comes after longer ones, which cover fewer hosts.
    wildcards.sort_by_key(|(name, _)| name.len());
    let mut routes_of: HashMap<&str, Vec<Location>> = HashMap::new();
    for (name, own) in wildcards {
        let outranks_regexes = has_regex(&wider(name, any, &routes_of));
        routes_of.insert(name, ordered(own, outranks_regexes));
    }
    let mut count = any.len();
    let mut all = Vec::new();
    for (name, own) in hosts {
        let wider = wider(name, any, &routes_of);
        let mut routes = ordered(own, has_regex(&wider));
        routes.extend(copies(&routes, &wider));
        count += routes.len();
        if count > most {
            return None;
        }
        all.push(routes);
    }
    Some(all)
}

/// Copies a host's locations for equal and longer paths of routes that cover more hosts.
///
/// Without the copies those routes would take requests of this host.
fn copies<'n>(own: &[Location<'n>], wider: &[&[Location<'n>]]) -> Vec<Location<'n>> {
    let mut copies: Vec<Location> = Vec::new();
    let mut filled = HashSet::new();
    for location in wider.iter().copied().flatten() {
        let pattern = &location.pattern;
        if !filled.insert(pattern.path()) {
            continue;
        }
        let best = match pattern {
            _ if own.iter().any(|known| known.pattern == *pattern) => None,
            Pattern::Exact(path) => of_path(own, path),
            Pattern::Prefix { path, .. } if own.iter().any(|it| it.prefix() == Some(path)) => None,
            Pattern::Prefix { path, .. } => of_prefix(own, path),
            // All locations of this host are regular expressions then, and precede those of more
            // hosts.
            Pattern::Regex(_) => None,
        };
        copies.extend(best.map(|best| Location {
            pattern: pattern.clone(),
            comments: Vec::new(),
            ..best.clone()
        }));
    }
    copies
}

/// Returns the routes that cover more hosts than this name and would take its requests.
fn wider<'l, 'n>(
    name: &str,
    any: &'l [Location<'n>],
    routes_of: &'l HashMap<&str, Vec<Location<'n>>>,
) -> Vec<&'l [Location<'n>]> {
    let around = covering(name).filter_map(|it| routes_of.get(it.as_str()));
    let around = around.map(Vec::as_slice);
    std::iter::once(any).chain(around).collect()
}

fn has_regex(routes: &[&[Location]]) -> bool {
    let mut all = routes.iter().copied().flatten();
    all.any(|location| location.regex().is_some())
}

/// Returns the wildcards that cover a host or wildcard, the longest first.
pub(in crate::import) fn covering(name: &str) -> impl Iterator<Item = String> + '_ {
    let whole = name.strip_prefix("*.").unwrap_or(name);
    let dots = whole.match_indices('.');
    dots.map(|(at, _)| format!("*{}", &whole[at..]))
}
