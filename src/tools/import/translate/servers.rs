use std::collections::HashSet;

use super::addresses::Served;
use super::locations;
use super::page::{Section, list};
use super::precedence::{is_whole, of_path, of_prefix, ordered};
use super::protection::Protection;
use super::route::{Action, Forward, Location, OtherMethods, Pattern};
use super::scope::{Around, Scope, named};
use super::server::{self, Server};
use super::{Translation, addresses};
use crate::tools::import::notes::Place;
use crate::tools::import::tree::Directive;

/// Maximum number of networks of all routes together.
const MAX_NETWORKS: usize = 100_000;

/// Maximum number of routes of the result. Each name of a server multiplies its locations.
const MAX_ROUTES: usize = 5000;

impl Translation<'_> {
    /// Makes routes of all servers.
    pub(super) fn servers(&mut self, servers: &[Server], http: &Scope) {
        let tls = servers.iter().any(Server::has_tls);
        let mut order = (0..servers.len()).collect::<Vec<_>>();
        // If several servers have one name, the server with TLS is kept.
        order.sort_by_key(|index| tls && !servers[*index].has_tls());
        let Some(choice) = addresses::served(servers, &order, tls) else {
            self.is_unsafe = true;
            let place = servers.first().map(|server| server.place);
            return self.notes.add(place.unwrap_or(Place { file: 0, line: 1 }), "drip has no routes by listen address, and with the servers of any one of these addresses it would forward what another server protects; nothing is translated");
        };
        order.retain(|index| !choice.left_out.contains(index));
        let all = self.locations_of_all(servers, http, &choice);
        let mut default = choice.default;
        if let Some(index) = default.filter(|_| choice.is_closed) {
            self.notes.add(servers[index].place, "requests of other hosts get 404, and not the locations of this server: some of them are protected by a server whose server_name drip does not have");
            default = None;
        }
        self.dropped = choice.dropped;
        let mut any = Vec::new();
        if let Some(index) = default {
            any = ordered(&all[index], false, &mut self.notes);
            let also = if servers[index].names.is_empty() {
                String::new()
            } else {
                format!(" ({})", servers[index].names.join(", "))
            };
            let comment = format!(
                "{}: the server for all hosts that have none of their own{also}",
                self.notes.name(servers[index].place)
            );
            self.routes(&any, None, Some(&comment));
        }
        let mut taken: HashSet<&str> = default
            .into_iter()
            // One that only redirects leaves its names to the next.
            .filter(|index| !all[*index].is_empty() || servers[*index].protects)
            .flat_map(|index| &servers[index].names)
            .map(String::as_str)
            .collect();
        // Those of any host would go before the prefixes of this one.
        let alone = any.iter().any(|location| location.regex().is_some());
        for index in order.into_iter().filter(|index| Some(*index) != default) {
            let server = &servers[index];
            let protection = Protection::of_server(server.block, &http.inside(server.block));
            let is_kept = !tls || server.has_tls();
            if all[index].is_empty() && (protection.is_none() || any.is_empty() || !is_kept) {
                continue;
            }
            let mut own = all[index].clone();
            if !any.is_empty() && !own.iter().any(is_whole) {
                own.push(self.rest(server, protection.as_ref()));
            }
            let own = ordered(&own, alone, &mut self.notes);
            self.hosts(server, &own, &any, &mut taken);
        }
    }

    /// The locations of each server. Those of a server that is left out are empty.
    fn locations_of_all(
        &mut self,
        servers: &[Server],
        http: &Scope,
        choice: &Served,
    ) -> Vec<Vec<Location>> {
        let mut all = Vec::new();
        for (index, server) in servers.iter().enumerate() {
            let scope = http.inside(server.block);
            let around = Around {
                server: index,
                name: server.names.first().map(String::as_str),
                has_others: servers.len() > 1,
                block: server.block,
                scope: &scope,
                within: None,
            };
            let mut found = Vec::new();
            let is_left_out = choice.left_out.contains(&index);
            if is_left_out && server.is_local() {
                self.notes.add(server.place, "this server is left out: only this machine reaches it, and drip has no routes by listen address, so other machines would reach it at the other addresses; give it a drip of its own");
            } else if is_left_out {
                self.notes.add(server.place, "this server is left out: drip has no routes by listen address, and its requests or those of another address would pass what is protected; give it a drip of its own");
            } else if server::answers_all(server.block) {
                let message =
                    "nginx answers all requests of this server itself; its locations are left out";
                self.notes.add(server.place, message);
            } else {
                self.locations(server.block, &scope, around, &mut found);
            }
            let is_unused = |it: &Location| matches!(it.action, Action::Absent);
            if redirects(server.block) && found.iter().all(is_unused) {
                found.clear();
            }
            all.push(found);
        }
        all
    }

    /// Makes routes of the locations of a server, `own`, for each of its names that is not taken.
    ///
    /// `any`: the locations of hosts that have no server.
    fn hosts<'s>(
        &mut self,
        server: &'s Server,
        own: &[Location],
        any: &[Location],
        taken: &mut HashSet<&'s str>,
    ) {
        if server.names.is_empty() {
            self.notes.add(server.place, "this server has no server_name that a route can have, and drip has no routes by listen address; it is left out");
        }
        for (number, name) in server.names.iter().enumerate() {
            if !taken.insert(name) {
                self.notes.add(server.place, format!("{name} has a server already, and drip has no routes by listen address; this one is left out for it"));
                continue;
            }
            let comment =
                (number == 0).then(|| format!("{}: server {name}", self.notes.name(server.place)));
            self.routes(own, Some(name), comment.as_deref());
            self.fill(own, any, name);
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

    /// Copies this host's locations to the exact and longer paths of routes for any host.
    ///
    /// Without the copies those routes would take requests of this host.
    fn fill(&mut self, own: &[Location], any: &[Location], host: &str) {
        let has = |pattern: &Pattern| own.iter().any(|location| location.pattern == *pattern);
        for pattern in any.iter().map(|location| &location.pattern) {
            let best = match pattern {
                _ if has(pattern) => None,
                Pattern::Exact(path) => of_path(own, path),
                Pattern::Prefix { path, .. } if own.iter().any(|it| it.prefix() == Some(path)) => {
                    None
                }
                Pattern::Prefix { path, .. } => of_prefix(own, path),
                // All of this host's are regular expressions then, and go before those of any host.
                Pattern::Regex { .. } => None,
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

    fn routes(&mut self, locations: &[Location], host: Option<&str>, comment: Option<&str>) {
        for (number, location) in locations.iter().enumerate() {
            if self.routes.len() >= MAX_ROUTES {
                // What they refuse would be open without them.
                self.is_unsafe |= locations[number..].iter().any(Location::is_refused);
                return self.notes.add(
                    location.place,
                    format!("there are more than {MAX_ROUTES} routes; the rest is left out"),
                );
            }
            let mut section = Section::new("[[routes]]");
            section
                .comments
                .extend(comment.filter(|_| number == 0).map(str::to_owned));
            section.comments.extend(location.comments.iter().cloned());
            section.text("path", &location.path());
            if let Some(host) = host {
                section.text("host", host);
            }
            match &location.action {
                Action::Absent => section.fields.push(("refuse", "404".to_owned())),
                Action::Refuse(status) => section.fields.push(("refuse", status.to_string())),
                Action::Forward(forward) => {
                    section = self.forwards(forward, location.place, section);
                }
            }
            self.routes.push(section);
        }
    }
}

impl Translation<'_> {
    /// Makes the route of a location that forwards. If some methods have another, that is added.
    fn forwards(&mut self, forward: &Forward, place: Place, mut section: Section) -> Section {
        let Some((methods, others)) = &forward.methods else {
            self.forward(forward, place, &mut section);
            return section;
        };
        let mut rest = section.clone();
        rest.comments.clear();
        section.fields.push(("methods", list(methods)));
        self.forward(forward, place, &mut section);
        self.routes.push(section);
        match others {
            OtherMethods::Refused(status) => rest.fields.push(("refuse", status.to_string())),
            OtherMethods::Of(networks) => {
                let networks = networks.clone();
                let forward = Forward {
                    networks,
                    ..forward.clone()
                };
                self.forward(&forward, place, &mut rest);
            }
        }
        rest
    }

    /// Writes the fields of a route, unless the file has too many networks.
    fn forward(&mut self, forward: &Forward, place: Place, section: &mut Section) {
        self.networks += forward.networks.count();
        if self.networks <= MAX_NETWORKS {
            return forward.write(section);
        }
        let before = self.notes.count();
        self.notes.add(place, format!("this is refused, as the routes have more than {MAX_NETWORKS} networks; write them into a file, one a line, and allow = {{ file = \"networks.txt\" }} or deny, with the origin {}", forward.origin));
        section.comments.extend(self.notes.since(before));
        section.fields.push(("refuse", "403".to_owned()));
    }
}

/// Whether a server redirects what it does not forward.
fn redirects(block: &[Directive]) -> bool {
    let is_redirect = |location: &Directive| {
        let inside = location.inside();
        location.args.last().is_some_and(|path| path == "/") && locations::redirects(inside)
    };
    server::answers_all(block) || named(block, "location").any(is_redirect)
}
