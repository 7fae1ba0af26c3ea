//! Builds the routes of servers that have names.
//!
//! A name is a host such as `a.test`, or a wildcard such as `*.test`, which covers the hosts below
//! it. The routes of the default server are for all hosts.
//!
//! nginx chooses the server first; drip chooses the path first. So each host or wildcard also gets
//! a route for every path of the wildcards that cover it, and of the default server.

use std::collections::{HashMap, HashSet};

use super::Translation;
use super::precedence::{find_by_path, find_by_prefix, order_routes, takes_every_path};
use super::protection::Protection;
use super::route::{Action, Location, Pattern, tables};
use super::scope::Scope;
use super::server::Server;
use crate::import::MAX_ROUTES;

/// A server with the names for which it gets routes.
struct NamedServer<'s> {
    server: &'s Server<'s>,
    names: Vec<&'s str>,
    locations: Vec<Location<'s>>,
}

impl Translation<'_> {
    /// Adds routes for the locations of each server under each of its names.
    ///
    /// `order`: the servers in order; for each name, the server that nginx chooses comes first.
    /// `default`: the server of all hosts that have no other, with `default_routes`. `by_server`:
    /// the locations of each server.
    pub(super) fn add_virtual_hosts<'t>(
        &mut self,
        servers: &'t [Server<'t>],
        (order, default): (&[usize], Option<usize>),
        by_server: &[Vec<Location<'t>>],
        default_routes: &[Location<'t>],
        http: &Scope<'t>,
    ) {
        let mut wildcards: HashMap<&str, usize> = HashMap::new();
        for (index, server) in servers.iter().enumerate() {
            for name in server.names.iter().filter(|name| name.starts_with('*')) {
                wildcards.entry(name).or_insert(index);
            }
        }
        let mut taken_names: HashSet<&str> = HashSet::new();
        let mut named_servers: Vec<NamedServer<'t>> = Vec::new();
        let others = order.iter().filter(|index| Some(**index) != default);
        // A default server that only redirects yields its names to the next server.
        let default = default.filter(|it| !by_server[*it].is_empty() || servers[*it].protects);
        if let Some(index) = default {
            taken_names.extend(servers[index].names.iter().map(String::as_str));
        }
        for index in default.into_iter().chain(others.copied()) {
            let server = &servers[index];
            let protection = Protection::of(&[], server.block, &http.inside(server.block));
            if by_server[index].is_empty() && protection.is_none() {
                continue;
            }
            let names: Vec<&str> = if Some(index) == default {
                // The routes for all hosts serve these names, unless the wildcard of another server
                // covers a name and would take its requests.
                let is_other = |name: String| wildcards.get(&*name).is_some_and(|it| *it != index);
                let names = server.names.iter().map(String::as_str);
                names.filter(|name| covering(name).any(is_other)).collect()
            } else {
                take_names(server, &mut taken_names)
            };
            if names.is_empty() {
                continue;
            }
            let mut locations = by_server[index].clone();
            if !locations.iter().any(takes_every_path) {
                locations.push(remaining_paths(server, protection.as_ref()));
            }
            named_servers.push(NamedServer {
                server,
                names,
                locations,
            });
        }
        self.add_named(servers, &named_servers, default_routes);
    }

    /// Adds the routes of each name, or notes that there are too many. `kept`: the named servers.
    fn add_named(&mut self, servers: &[Server], kept: &[NamedServer], default_routes: &[Location]) {
        let hosts = kept.iter().flat_map(|server| {
            let names = server.names.iter();
            names.map(move |name| (*name, &server.locations[..]))
        });
        let hosts: Vec<(&str, &[Location])> = hosts.collect();
        let Some(routes) = routes_by_host(default_routes, &hosts) else {
            self.is_unsafe = true;
            let message = format!("there are more than {MAX_ROUTES} routes; nothing is translated");
            return servers[0].at.note(message);
        };
        let mut routes = routes.iter();
        for NamedServer { server, names, .. } in kept {
            for (number, (name, routes)) in names.iter().zip(&mut routes).enumerate() {
                // The comment is written at the first name only.
                let comment = (number == 0).then(|| format!("{}: server {name}", server.at));
                let comments = comment.into_iter().collect();
                self.routes.extend(tables(routes, Some(name), comments));
            }
        }
    }
}

/// Takes the names of a server that no earlier server has. Notes the other names.
fn take_names<'s>(server: &'s Server, taken_names: &mut HashSet<&'s str>) -> Vec<&'s str> {
    if server.names.is_empty() {
        server.at.note("this server has no server_name that a route can have, and import writes no routes by listen address; it is left out");
    }
    let mut free = Vec::new();
    for name in &server.names {
        if taken_names.insert(name) {
            free.push(&**name);
        } else {
            server.at.note(format!("{name} has a server already, and import writes no routes by listen address; this one is left out for it"));
        }
    }
    free
}

/// Returns a location that refuses all paths for which the server has no other location.
///
/// Without it, another server would take these requests.
fn remaining_paths<'t>(server: &Server<'t>, protection: Option<&Protection>) -> Location<'t> {
    let notes = server.at.notes;
    let notes_before = notes.count();
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
        comments: notes.since(notes_before),
        ..Location::new(Pattern::prefix("/"), Action::Refuse(status), server.at)
    }
}

/// Returns the routes of each host, so that each host has exactly its own locations.
///
/// Returns `None` if there are more than [`MAX_ROUTES`]. `default_routes`: the routes of hosts that
/// have no server. `hosts`: the name and the locations of each host or wildcard.
pub(in crate::import) fn routes_by_host<'n>(
    default_routes: &[Location<'n>],
    hosts: &[(&str, &[Location<'n>])],
) -> Option<Vec<Vec<Location<'n>>>> {
    let own_count: usize = hosts.iter().map(|(_, own)| own.len()).sum();
    let mut count = default_routes.len();
    if count + own_count > MAX_ROUTES {
        return None;
    }
    let mut wildcards: Vec<_> = hosts.iter().filter(|it| it.0.starts_with('*')).collect();
    // A longer wildcard covers fewer hosts. Its routes depend on those of shorter wildcards.
    wildcards.sort_by_key(|(name, _)| name.len());
    let mut by_wildcard: HashMap<&str, Vec<Location>> = HashMap::new();
    for (name, own) in wildcards {
        let outranks_regexes = has_regex(&wider_routes(name, default_routes, &by_wildcard));
        by_wildcard.insert(name, order_routes(own, outranks_regexes));
    }
    let mut by_host = Vec::new();
    for (name, own) in hosts {
        let wider = wider_routes(name, default_routes, &by_wildcard);
        let mut routes = order_routes(own, has_regex(&wider));
        routes.extend(copy_for_wider_paths(&routes, &wider));
        count += routes.len();
        if count > MAX_ROUTES {
            return None;
        }
        by_host.push(routes);
    }
    Some(by_host)
}

/// Copies a host's locations for paths of wider routes: routes that cover more hosts.
///
/// Without a copy, a wider route with an equal or longer path would take requests of this host.
fn copy_for_wider_paths<'n>(own: &[Location<'n>], wider: &[&[Location<'n>]]) -> Vec<Location<'n>> {
    let mut copies: Vec<Location> = Vec::new();
    let mut copied_paths = HashSet::new();
    for Location { pattern, .. } in wider.iter().copied().flatten() {
        if !copied_paths.insert(pattern.route_path()) {
            continue;
        }
        let found = match pattern {
            _ if own.iter().any(|known| known.pattern == *pattern) => None,
            Pattern::Exact(path) => find_by_path(own, path),
            Pattern::Prefix { path, .. } if own.iter().any(|it| it.prefix() == Some(path)) => None,
            Pattern::Prefix { path, .. } => find_by_prefix(own, path),
            // Then `order_routes` has made all prefixes of this host regular expressions, and drip
            // compares the expressions of a host before those for more hosts.
            Pattern::Regex(_) => None,
        };
        copies.extend(found.map(|found| Location {
            pattern: pattern.clone(),
            comments: Vec::new(),
            ..found.clone()
        }));
    }
    copies
}

/// Returns the routes that cover more hosts than this name: they may take its requests.
fn wider_routes<'l, 'n>(
    name: &str,
    default_routes: &'l [Location<'n>],
    by_wildcard: &'l HashMap<&str, Vec<Location<'n>>>,
) -> Vec<&'l [Location<'n>]> {
    let wildcard_routes = covering(name).filter_map(|it| by_wildcard.get(it.as_str()));
    let wildcard_routes = wildcard_routes.map(Vec::as_slice);
    std::iter::once(default_routes)
        .chain(wildcard_routes)
        .collect()
}

/// Returns whether a route has a regular expression.
fn has_regex(routes: &[&[Location]]) -> bool {
    let mut all = routes.iter().copied().flatten();
    all.any(|location| location.regex().is_some())
}

/// Returns the wildcards that cover a host or wildcard, the longest first.
pub(in crate::import) fn covering(name: &str) -> impl Iterator<Item = String> + '_ {
    let host = name.strip_prefix("*.").unwrap_or(name);
    let dots = host.match_indices('.');
    dots.map(|(dot, _)| format!("*{}", &host[dot..]))
}
