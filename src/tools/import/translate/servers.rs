//! Translates servers and their locations to routes.

use super::addresses::Served;
use super::locations;
use super::precedence::ordered;
use super::route::{Action, Location, tables};
use super::scope::{EnclosingServer, Scope, named};
use super::server::{self, Server};
use super::{Translation, addresses};
use crate::import::tree::Directive;

impl Translation<'_> {
    /// Adds the routes of all servers.
    pub(super) fn servers<'t>(&mut self, servers: &'t [Server<'t>], http: &Scope<'t>) {
        let tls = servers.iter().any(|it| it.listens.iter().any(|it| it.tls));
        let Some(choice) = addresses::served(servers, tls) else {
            self.is_unsafe = true;
            return servers[0].at.note("import writes no routes by listen address, and with the servers of any one of these addresses it would forward what another server protects; nothing is translated");
        };
        let all = self.locations_of_all(servers, http, &choice);
        let mut default = choice.default;
        let is_hidden = |index: &usize| servers[*index].has_other_names && servers[*index].protects;
        let mut others = choice.order.iter().filter(|index| Some(**index) != default);
        if let Some(index) = default
            && others.any(is_hidden)
        {
            servers[index].at.note("requests for other hosts get 404 instead of the locations of this server: a server whose server_name drip does not support protects some of them");
            default = None;
        }
        self.dropped = choice.dropped;
        let mut any = Vec::new();
        if let Some(index) = default {
            any = ordered(&all[index], false);
            let also = if servers[index].names.is_empty() {
                String::new()
            } else {
                format!(" ({})", servers[index].names.join(", "))
            };
            let comment = format!(
                "{}: the server for all hosts that have none of their own{also}",
                servers[index].at
            );
            self.routes.extend(tables(&any, None, vec![comment]));
        }
        self.virtual_hosts(servers, (&choice.order, default), &all, &any, http);
    }

    /// Returns the locations of each server. A server that is left out has none.
    fn locations_of_all<'t>(
        &mut self,
        servers: &[Server<'t>],
        http: &Scope<'t>,
        choice: &Served,
    ) -> Vec<Vec<Location<'t>>> {
        let mut all = Vec::new();
        for (index, server) in servers.iter().enumerate() {
            let scope = http.inside(server.block);
            let around = EnclosingServer {
                server: index,
                name: server.host(),
                has_others: servers.len() > 1,
                protects: server.protects,
                block: server.block,
                scope: &scope,
                within: None,
            };
            let mut found = Vec::new();
            if !choice.order.contains(&index) {
                if server.forwards || server.protects {
                    server.at.note("this server is left out: import writes no routes by listen address, and would open requests that are protected or local; run a drip of its own for it");
                }
            } else if server::answers_all(server.block) {
                let message =
                    "nginx answers all requests of this server itself; its locations are left out";
                server.at.note(message);
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
}

/// Returns whether a server redirects the requests that it does not forward.
fn redirects(block: &[Directive]) -> bool {
    let is_redirect = |location: &Directive| {
        let inside = location.inside();
        location.args.last().is_some_and(|path| path == "/") && locations::redirects(inside)
    };
    server::answers_all(block) || named(block, "location").any(is_redirect)
}
