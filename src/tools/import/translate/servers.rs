//! Translates servers and their locations to routes.
//!
//! The default server gets routes without a host, and the others get routes for each of their
//! names. A server protects something if not everybody may send all of its requests.

use super::Translation;
use super::addresses::{self, ServedAddresses};
use super::locations;
use super::precedence::order_routes;
use super::route::{Action, Location, tables};
use super::scope::{EnclosingServer, Scope, named};
use super::server::{self, Server};
use crate::import::tree::Directive;

impl Translation<'_> {
    /// Adds the routes of all servers.
    pub(super) fn add_servers<'t>(&mut self, servers: &'t [Server<'t>], http: &Scope<'t>) {
        let Some(choice) = addresses::choose(servers) else {
            self.is_unsafe = true;
            return servers[0].at.note("import writes no routes by listen address, and with the servers of any one of these addresses it would forward what another server protects; nothing is translated");
        };
        let by_server = self.locations_by_server(servers, http, &choice);
        let mut default = choice.default;
        let mut others = choice.order.iter().filter(|index| Some(**index) != default);
        if let Some(index) = default
            && others.any(|other| servers[*other].has_other_names && servers[*other].protects)
        {
            servers[index].at.note("requests for other hosts get 404 instead of the locations of this server: a server whose server_name drip does not support protects some of them");
            default = None;
        }
        let mut default_routes = Vec::new();
        if let Some(index) = default {
            let server = &servers[index];
            default_routes = order_routes(&by_server[index], false);
            let mut comment = format!(
                "{}: the server for all hosts that have none of their own",
                server.at
            );
            if !server.names.is_empty() {
                comment += &format!(" ({})", server.names.join(", "));
            }
            let tables = tables(&default_routes, None, vec![comment]);
            self.routes.extend(tables);
        }
        self.add_virtual_hosts(
            servers,
            (&choice.order, default),
            &by_server,
            &default_routes,
            http,
        );
        self.dropped_addresses = choice.dropped;
    }

    /// Returns the locations of each server. A server that is left out has none.
    fn locations_by_server<'t>(
        &mut self,
        servers: &[Server<'t>],
        http: &Scope<'t>,
        choice: &ServedAddresses,
    ) -> Vec<Vec<Location<'t>>> {
        let mut by_server = Vec::new();
        for (index, server) in servers.iter().enumerate() {
            let scope = http.inside(server.block);
            let enclosing = EnclosingServer {
                index,
                host: server.host(),
                has_others: servers.len() > 1,
                protects: server.protects,
                block: server.block,
                scope: &scope,
                outer_path: None,
            };
            let mut routes = Vec::new();
            if !choice.order.contains(&index) {
                if server.forwards || server.protects {
                    server.at.note("this server is left out: import writes no routes by listen address, and would open requests that are protected or local; run a drip of its own for it");
                }
            } else if server::answers_all(server.block) {
                let message =
                    "nginx answers all requests of this server itself; its locations are left out";
                server.at.note(message);
            } else {
                self.add_locations(server.block, &scope, enclosing, &mut routes);
            }
            let is_unused = |route: &Location| matches!(route.action, Action::Absent);
            // All these routes would answer 404, so none of them is needed.
            if redirects(server.block) && routes.iter().all(is_unused) {
                routes.clear();
            }
            by_server.push(routes);
        }
        by_server
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
