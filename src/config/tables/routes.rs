//! Reads the list of `[[routes]]`: each route alone, then its references to other tables.
//!
//! Two routes that select the same requests are reported. `route` defines the fields.

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap};
use std::hash::Hash;
use std::sync::Arc;

use super::limit::{self, Zones};
use super::names::{read_index, suggest_name};
use super::plan::CLASS;
use super::prelude::*;
use super::route::{Route, RouteAction, SELECTING, STATUS, has_effect_with_refuse};
use super::{collapse, cors, cost, page, rewrite};
use crate::{ClientNetworks, Listen, Origin, RouteLimit};

/// Tables of a file that its routes can name.
pub(crate) struct RouteNames<'a> {
    /// Names of all origins, in the order of the file.
    pub(crate) origin_names: &'a [&'a str],
    /// The same origins; `None` for one with a problem.
    pub(crate) origins: &'a [Option<Origin>],
    /// Zones that limits name.
    pub(crate) zones: Zones<'a>,
    /// Addresses for clients, which may have names.
    pub(crate) listens: &'a [Listen],
}

/// Reads the `[[routes]]`. In the result, `None` stands for a route with a problem.
pub(crate) fn read(tables: &[Node], known: &RouteNames) -> Vec<Option<Route>> {
    let mut by_selector = HashMap::new();
    let mut routes = Vec::new();
    for table in tables {
        let Some(mut fields) = Fields::begin(*table, "this route".to_owned(), Route::TABLE) else {
            routes.push(None);
            continue;
        };
        let mut route = Route::read(&mut fields);
        let node = fields.get("listen");
        route.listen = node.and_then(|node| read_listen(node, known.listens));
        let has_selector = SELECTING.iter().all(|name| !fields.is_wrong(name));
        if has_selector {
            match by_selector.entry(selector_in_any_order(&route)) {
                Entry::Vacant(vacant) => _ = vacant.insert(*table),
                Entry::Occupied(earlier) => table.report_problem(&format!(
                    "it has the same path, host, methods, match and listen as the route at {}, so it would never be used; remove one",
                    earlier.get().location()
                )),
            }
        }
        routes.push(complete(fields, route, has_selector, known));
    }
    routes
}

/// Returns the values of the fields in [`SELECTING`]. No two routes may have equal ones.
///
/// The order of hosts and methods does not matter.
fn selector_in_any_order(route: &Route) -> impl Eq + Hash + use<> {
    let hosts: BTreeSet<String> = route.hosts.iter().map(ToString::to_string).collect();
    let methods: BTreeSet<String> = route.methods.iter().cloned().collect();
    let (path, conditions) = (route.path.clone(), route.conditions.clone());
    (path, hosts, methods, conditions, route.listen.clone())
}

/// Reads the fields that refer to other tables, and reports values that do not fit together.
///
/// `has_selector`: whether the fields that select its requests are right. Returns `None` if the
/// route has a problem.
fn complete(
    mut fields: Fields,
    mut route: Route,
    has_selector: bool,
    known: &RouteNames,
) -> Option<Route> {
    let action = read_action(&mut fields, known);
    let origin = match action {
        Some(RouteAction::Forward(origin)) => known.origins.get(origin).and_then(Option::as_ref),
        Some(RouteAction::Refuse(_) | RouteAction::Maintenance { .. }) | None => None,
    };
    let class = fields.get("class");
    let class = class.and_then(|node| Some((node, (CLASS.read)(node)?)));
    let class = origin.and_then(|origin| find_class(class, origin));
    route.class = class.unwrap_or_default();
    let room = fields.read_optional("room", values::boolean);
    route.room = room.unwrap_or(true);
    route.asks_room = route.room && origin.is_some_and(|origin| origin.room.is_some());
    let limits = fields.read_optional("limits", |node| limit::read(node, &known.zones));
    route.limits = limits.unwrap_or_default();
    let cost = fields.read_optional("cost", cost::read);
    route.cost = cost.unwrap_or_default();
    if let Some(node) = fields.valid_value("cost") {
        cost::check(node, &route.cost, &route.limits, &known.zones);
        if let Some(origin) = origin {
            cost::check_origin(node, &route.cost, origin);
        }
    }
    if let Some(node) = fields.valid_value("origin_pages") {
        page::check_origin_pages(node, &route);
    }
    route.rewrite = rewrite::read(&mut fields, has_selector.then_some(&route.path));
    let methods = (!fields.is_wrong("methods")).then_some(&route.methods[..]);
    let collapse = fields.read_optional("collapse", |node| collapse::read(node, methods));
    route.collapse = collapse.map(Arc::new);
    route.cors = fields.read_optional("cors", cors::read).map(Arc::new);
    let is_right = fields.finish();
    for RouteLimit { limit, .. } in &mut route.limits {
        limit.max_wait = route.max_wait;
        limit.cost = route.cost.cost_if_unknown();
    }
    route.action = action?;
    let (allow, deny) = (route.allow.as_ref(), route.deny.as_ref());
    let networks = allow.or(deny).map(|_| ClientNetworks::new(allow, deny));
    route.networks = networks.map(Arc::new);
    is_right.then_some(route)
}

/// Reads `refuse` or `origin`. Reports each field that has no effect beside `refuse`.
fn read_action(fields: &mut Fields, known: &RouteNames) -> Option<RouteAction> {
    let Some(refuse) = fields.get("refuse") else {
        let origin = fields.read_field("origin", Some("\"app\""), |node| {
            read_index(node, "origins", known.origin_names)
        });
        return origin.map(RouteAction::Forward);
    };
    // Marks the field as read: no value of it fits beside `refuse`.
    fields.get("origin");
    let without_effect = Route::TABLE.names().into_iter();
    let without_effect = without_effect.filter(|name| !has_effect_with_refuse(name));
    for node in without_effect.filter_map(|name| fields.peek(name)) {
        node.report_as_is(
            "a route with refuse answers all its requests itself; remove this field or refuse",
        );
    }
    (STATUS.read)(refuse).map(RouteAction::Refuse)
}

/// Reads `listen`: the name of an address for clients.
fn read_listen(node: Node, listens: &[Listen]) -> Option<Arc<str>> {
    let name = values::text(node)?;
    let names = || listens.iter().filter_map(|listen| listen.name.as_ref());
    if let Some(known) = names().find(|known| ***known == *name) {
        return Some(Arc::clone(known));
    }
    let names: Vec<&str> = names().map(|name| &**name).collect();
    let hint = if names.is_empty() {
        "none has a name; write listen = [{ address = \"...\", name = \"internal\" }] in [server]"
            .to_owned()
    } else {
        suggest_name(name, &names, "there are")
    };
    node.report_missing(&format!(
        "no entry of listen in [server] has the name {}; {hint}",
        toml_string(name)
    ));
    None
}

/// Returns the class that a route names, or the first class of its origin.
///
/// `class`: the value of the field `class`, and the name in it; `None` without that field. Reports
/// a name that the origin does not have.
fn find_class(class: Option<(Node, Arc<str>)>, origin: &Origin) -> Option<Arc<str>> {
    let mut names = origin.classes.iter().map(|class| &class.name);
    let Some((node, name)) = class else {
        return names.next().map(Arc::clone);
    };
    if names.any(|known| *known == name) {
        return Some(name);
    }
    let names: Vec<&str> = origin.classes.iter().map(|class| &*class.name).collect();
    let table = format!("[origins.{}.classes]", origin.name);
    let hint = suggest_name(&name, &names, "it has");
    node.report_missing(&if names.is_empty() {
        format!("the origin has no classes; add {table} with {name} = 1")
    } else {
        format!("{table} has no {name}; {hint}")
    });
    None
}
