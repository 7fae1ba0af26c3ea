//! Reads the `[[routes]]`: each alone, then compared with the others and with the names it uses.

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap};
use std::hash::Hash;
use std::sync::Arc;

use super::limit::{self, Zones};
use super::names::{index, meant};
use super::prelude::*;
use super::route::{NOT_REFUSED, Route, RouteAction, STATUS};
use super::{collapse, cors, cost, page, rewrite};
use crate::{ClientNetworks, Listen, Origin, RouteLimit};

/// Names that routes can use.
pub(crate) struct RouteNames<'a> {
    pub(crate) origin_names: &'a [&'a str],
    /// Origins without problems.
    pub(crate) origins: &'a [Option<Origin>],
    pub(crate) zones: Zones<'a>,
    /// Addresses for clients, which may have names.
    pub(crate) listens: &'a [Listen],
}

/// Reads the `[[routes]]`. `None` stands for a route with a problem.
pub(crate) fn read(tables: &[Node], known: &RouteNames) -> Vec<Option<Route>> {
    let mut earlier = HashMap::new();
    let mut routes = Vec::new();
    for table in tables {
        let Some(mut fields) = Fields::of(*table, "this route".to_owned(), Route::TABLE) else {
            routes.push(None);
            continue;
        };
        let mut route = Route::read(&mut fields);
        let node = fields.get("listen");
        route.listen = node.and_then(|node| listen(node, known.listens));
        let is_right = |name: &&'static str| !fields.is_wrong(name);
        let is_known = SELECTING.iter().all(is_right);
        if is_known {
            match earlier.entry(in_any_order(&route)) {
                Entry::Vacant(free) => _ = free.insert(*table),
                Entry::Occupied(twin) => table.wrong(&format!(
                    "it has the same path, host, methods, match and listen as the route at {}, so it would never be used; remove one",
                    twin.get().location()
                )),
            }
        }
        routes.push(complete(fields, route, is_known, known));
    }
    routes
}

/// Fields that select the requests of a route.
const SELECTING: [&str; 5] = ["path", "host", "methods", "match", "listen"];

/// Returns the values of the fields in [`SELECTING`], which are equal for no two routes.
///
/// The order of hosts and methods does not matter.
fn in_any_order(route: &Route) -> impl Eq + Hash + use<> {
    let hosts: BTreeSet<String> = route.hosts.iter().map(ToString::to_string).collect();
    let methods: BTreeSet<String> = route.methods.iter().cloned().collect();
    let (path, conditions) = (route.path.clone(), route.conditions.clone());
    (path, hosts, methods, conditions, route.listen.clone())
}

/// Reads the fields that refer to other tables, and reports values that do not fit together.
///
/// `is_known`: the fields that select its requests are right.
fn complete(
    mut fields: Fields,
    mut route: Route,
    is_known: bool,
    known: &RouteNames,
) -> Option<Route> {
    let action = action(&mut fields, known);
    let origin = match action {
        Some(RouteAction::Forward(origin)) => known.origins.get(origin).and_then(Option::as_ref),
        Some(RouteAction::Refuse(_) | RouteAction::Maintenance { .. }) | None => None,
    };
    let class = fields.get("class");
    let name = class.map(|node| values::class(node).map(|name| (node, name)));
    let class = origin.and_then(|origin| class_of(name, origin));
    let room = fields.read_given("room", None, values::boolean);
    route.room = room.unwrap_or(true);
    route.asks_room = route.room && origin.is_some_and(|origin| origin.room.is_some());
    let limits = fields.optional("limits", Vec::new(), |node| limit::read(node, &known.zones));
    let cost = fields.read_given("cost", None, cost::read);
    route.cost = cost.unwrap_or_default();
    if let (Some(node), Some(limits)) = (fields.right("cost"), &limits) {
        cost::check(node, &route.cost, limits, known.zones.zones);
    }
    if let (Some(node), Some(origin)) = (fields.right("cost"), origin) {
        cost::check_origin(node, &route.cost, origin);
    }
    if let Some(node) = fields.right("origin_pages") {
        page::check_origin_pages(node, &route);
    }
    let rewrite = rewrite::read(&mut fields, is_known.then_some(&route.path));
    let methods = (!fields.is_wrong("methods")).then_some(&route.methods[..]);
    let collapse = fields.optional("collapse", None, |node| {
        collapse::read(node, methods).map(Arc::new).map(Some)
    });
    let cors = fields.optional("cors", None, |node| {
        cors::read(node).map(Arc::new).map(Some)
    });
    let is_right = !fields.has_wrong();
    fields.finish();
    (route.cors, route.collapse) = (cors?, collapse?);
    route.limits = limits?;
    for RouteLimit { limit, .. } in &mut route.limits {
        limit.max_wait = route.max_wait;
        limit.cost = route.cost.usual();
    }
    route.action = action?;
    route.rewrite = rewrite?;
    route.class = class.unwrap_or_default();
    let (allow, deny) = (route.allow.as_ref(), route.deny.as_ref());
    let networks = allow.or(deny).map(|_| ClientNetworks::new(allow, deny));
    route.networks = networks.map(Arc::new);
    is_right.then_some(route)
}

/// Reads the action of a route. Reports each field that has no effect if requests are refused.
fn action(fields: &mut Fields, known: &RouteNames) -> Option<RouteAction> {
    let Some(refuse) = fields.get("refuse") else {
        let origin = fields.read_given("origin", Some("\"app\""), |node| {
            index(node, "origins", known.origin_names)
        });
        return origin.map(RouteAction::Forward);
    };
    // Marks the field as read, although no value of it fits.
    fields.get("origin");
    for node in NOT_REFUSED.iter().filter_map(|name| fields.value(name)) {
        node.report_as_is(
            "a route with refuse answers all its requests itself; remove this field or refuse",
        );
    }
    (STATUS.read)(refuse).map(RouteAction::Refuse)
}

/// Reads the name of an address for clients.
fn listen(node: Node, listens: &[Listen]) -> Option<Arc<str>> {
    let name = values::text(node)?;
    let names = || listens.iter().filter_map(|it| it.name.as_ref());
    if let Some(known) = names().find(|known| ***known == *name) {
        return Some(Arc::clone(known));
    }
    let names: Vec<&str> = names().map(|name| &**name).collect();
    let known = if names.is_empty() {
        "none has a name; write listen = [{ address = \"...\", name = \"internal\" }] in [server]"
            .to_owned()
    } else {
        meant(name, &names, "there are")
    };
    node.missing(&format!(
        "no entry of listen in [server] has the name {}; {known}",
        toml_string(name)
    ));
    None
}

/// Returns the class that a route names, or the first class of its origin.
///
/// The inner `None`: the name is wrong, which has been reported.
fn class_of(class: Option<Option<(Node, &str)>>, origin: &Origin) -> Option<Arc<str>> {
    let first = origin.classes.first().map(|it| &it.name);
    let Some(class) = class else {
        return first.map(Arc::clone);
    };
    let (node, name) = class?;
    let mut names = origin.classes.iter().map(|it| &it.name);
    if let Some(known) = names.find(|known| ***known == *name) {
        return Some(Arc::clone(known));
    }
    let names: Vec<&str> = origin.classes.iter().map(|it| &*it.name).collect();
    let table = format!("[origins.{}.classes]", origin.name);
    node.missing(&if names.is_empty() {
        format!("the origin has no classes; add {table} with {name} = 1")
    } else {
        format!("{table} has no {name}; {}", meant(name, &names, "it has"))
    });
    None
}
