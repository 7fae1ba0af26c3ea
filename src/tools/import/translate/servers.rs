use super::addresses::Served;
use super::locations;
use super::page::{Section, list};
use super::pages::Pages;
use super::precedence::ordered;
use super::route::{Action, Forward, Location, OtherMethods};
use super::scope::{Around, Scope, named};
use super::server::{self, Server};
use super::virtual_hosts::Chosen;
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
            return self.notes.add(place.unwrap_or(Place { file: 0, line: 1 }), "import writes no routes by listen address, and with the servers of any one of these addresses it would forward what another server protects; nothing is translated");
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
        let chosen = Chosen {
            servers,
            order,
            // One that only redirects leaves its names to the next.
            default: default.filter(|index| !all[*index].is_empty() || servers[*index].protects),
            skipped: default,
            tls,
        };
        self.virtual_hosts(&chosen, &all, &any, http);
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
                name: server.host(),
                has_others: servers.len() > 1,
                block: server.block,
                scope: &scope,
                within: None,
            };
            let mut found = Vec::new();
            let is_left_out = choice.left_out.contains(&index);
            if is_left_out && server.is_local() {
                self.notes.add(server.place, "this server is left out: only this machine reaches it, and import writes no routes by listen address, so other machines would reach it at the other addresses; give it a drip of its own");
            } else if is_left_out {
                self.notes.add(server.place, "this server is left out: import writes no routes by listen address, and its requests or those of another address would pass what is protected; give it a drip of its own");
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

    pub(super) fn routes(
        &mut self,
        locations: &[Location],
        host: Option<&str>,
        comment: Option<&str>,
    ) {
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
                Action::Absent => refuse(404, &location.pages, &mut section),
                Action::Refuse(status) => refuse(*status, &location.pages, &mut section),
                Action::Forward(forward) => {
                    self.forwards(forward, location, section);
                    continue;
                }
            }
            self.routes.push(section);
        }
    }
}

impl Translation<'_> {
    /// Makes the routes of a location that forwards: one for each condition, and those of other
    /// methods.
    fn forwards(&mut self, forward: &Forward, of: &Location, mut section: Section) {
        let mut rest = section.clone();
        rest.comments.clear();
        if let Some((methods, _)) = &forward.methods {
            section.fields.push(("methods", list(methods)));
        }
        self.choose(forward, of, section);
        match &forward.methods {
            None => {}
            Some((_, OtherMethods::Refused(status))) => {
                refuse(*status, &of.pages, &mut rest);
                self.routes.push(rest);
            }
            Some((_, OtherMethods::Of(networks))) => {
                let networks = networks.clone();
                let forward = Forward {
                    networks,
                    ..forward.clone()
                };
                self.choose(&forward, of, rest);
            }
        }
    }

    fn choose(&mut self, forward: &Forward, of: &Location, section: Section) {
        let mut plain = section.clone();
        plain.comments.clear();
        self.forward(forward, of, section);
        for (condition, origin) in &forward.choices {
            let mut section = plain.clone();
            section.fields.push(("match", format!("{{ {condition} }}")));
            let forward = Forward {
                origin: origin.clone(),
                ..forward.clone()
            };
            self.forward(&forward, of, section);
        }
    }

    /// Adds a route, unless the file has too many networks.
    fn forward(&mut self, forward: &Forward, of: &Location, mut section: Section) {
        self.networks += forward.networks.count();
        if self.networks <= MAX_NETWORKS {
            forward.write(&mut section);
            of.pages.write(&mut section);
        } else {
            let before = self.notes.count();
            self.notes.add(of.place, format!("this is refused, as the routes have more than {MAX_NETWORKS} networks; write them into a file, one a line, and allow = {{ file = \"networks.txt\" }} or deny, with the origin {}", forward.origin));
            section.comments.extend(self.notes.since(before));
            refuse(403, &of.pages, &mut section);
        }
        self.routes.push(section);
    }
}

/// Writes the fields of a route that refuses its requests.
fn refuse(status: u16, pages: &Pages, section: &mut Section) {
    section.fields.push(("refuse", status.to_string()));
    pages.write_for_status(section, status);
}

/// Whether a server redirects what it does not forward.
fn redirects(block: &[Directive]) -> bool {
    let is_redirect = |location: &Directive| {
        let inside = location.inside();
        location.args.last().is_some_and(|path| path == "/") && locations::redirects(inside)
    };
    server::answers_all(block) || named(block, "location").any(is_redirect)
}
