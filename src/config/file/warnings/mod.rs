//! Warnings about legal values that are probably mistakes.
//!
//! Silence is better than a false alarm: a file that works as intended has no warning. Each `check`
//! function adds the warnings about a few fields to the report of a node: a value of the file with
//! its location.

mod collapse;
mod ineffective;
mod keys;
mod limits;
mod origins;
mod server;
mod streams;

use super::Node;
use crate::{PathPattern, Route, Settings};

/// Nodes that warnings may be about. Each list has the order of the settings.
pub(super) struct FileNodes<'r> {
    pub(super) server: Option<Node<'r>>,
    pub(super) origins: Vec<Node<'r>>,
    pub(super) zones: Vec<Node<'r>>,
    pub(super) routes: Vec<Node<'r>>,
}

/// Adds all warnings about valid settings, at their locations.
pub(super) fn find(settings: &Settings, nodes: &FileNodes) {
    if let Some(node) = nodes.server {
        server::check(&settings.server, node);
        ineffective::check_server(&settings.server, node);
    }
    for (index, (origin, node)) in settings.origins.iter().zip(&nodes.origins).enumerate() {
        origins::check_orphan(origin, *node);
        origins::check_gateways(origin, *node);
        origins::check_buffers(&settings.server, origin, *node);
        ineffective::check_origin(&settings.server, origin, *node);
        origins::check_finish(settings, index, *node);
        origins::check_queue(origin, *node);
    }
    for (index, (zone, node)) in settings.zones.iter().zip(&nodes.zones).enumerate() {
        keys::check(zone, *node);
        server::check_exempt(zone, *node);
        limits::check_lease(settings, index, *node);
        if !is_used(settings, index) {
            node.warn("no route and no origin uses this zone; name it in the limits of a route, or remove it");
        }
    }
    for (route, node) in settings.routes.iter().zip(&nodes.routes) {
        check_wildcard(route, *node);
        check_room(settings, route, *node);
        collapse::check(settings, route, *node);
        ineffective::check_route(route, *node);
        let items = node.field("limits").and_then(|limits| limits.items());
        for (limit, item) in route.limits.iter().zip(items.iter().flatten()) {
            limits::check_burst(settings, limit, *item);
            streams::check(settings, route, limit, *item);
            limits::check_capacity(settings, route, limit, *item);
        }
    }
}

/// Warns of a `*` in a path that is not a regular expression: it matches only the character `*`.
fn check_wildcard(route: &Route, node: Node) {
    let (PathPattern::Prefix(path) | PathPattern::Exact(path)) = &route.path else {
        return;
    };
    let Some((before, behind)) = path.split_once('*') else {
        return;
    };
    let remedy = if behind.trim_matches('*').is_empty() {
        format!("\"{before}\", which takes every path that begins with it")
    } else {
        let parts: Vec<_> = path.split('*').map(regex_syntax::escape).collect();
        // The quotes keep backslashes as they are.
        format!("'regex:^{}'", parts.join("[^/]*"))
    };
    let message = format!(
        "* is no wildcard in \"{}\", so only a path that has a * matches; write {remedy}",
        route.path
    );
    node.warn_field("path", &message);
}

/// Warns of a route that uses the waiting room of an origin without one.
fn check_room(settings: &Settings, route: &Route, node: Node) {
    if let Some(origin) = route.origin()
        && route.room
        && !route.asks_room
    {
        let name = &settings.origins[origin].name;
        let message = format!(
            "origin {name} has no waiting room, so this does nothing; add [origins.{name}.room], or remove it"
        );
        node.warn_field("room", &message);
    }
}

/// Returns whether a limit of a route, a waiting room or an origin uses the zone with this index.
fn is_used(settings: &Settings, zone: usize) -> bool {
    let mut limits = settings.routes.iter().flat_map(|route| &route.limits);
    let mut origins = settings.origins.iter();
    limits.any(|limit| limit.zone == zone)
        || origins.any(|origin| {
            let room = origin.room.as_ref();
            let draw = room.and_then(|room| room.draw.zone_limit());
            origin.share == Some(zone) || draw.is_some_and(|draw| draw.zone == zone)
        })
}
