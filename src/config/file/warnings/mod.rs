//! Warnings about legal values that are probably mistakes.
//!
//! Silence is better than a false alarm: a file that works as intended has no warning.

mod collapse;
mod ineffective;
mod keys;
mod limits;
mod origins;
mod server;
mod streams;

use super::Node;
use crate::{PathPattern, Route, Settings};

/// Nodes that warnings may refer to.
pub(super) struct FileNodes<'r> {
    pub(super) server: Option<Node<'r>>,
    /// In the order of the settings. The same holds for zones and routes.
    pub(super) origins: Vec<Node<'r>>,
    pub(super) zones: Vec<Node<'r>>,
    pub(super) routes: Vec<Node<'r>>,
}

/// Adds all warnings about valid settings, at their locations.
pub(super) fn find(settings: &Settings, nodes: &FileNodes) {
    if let Some(node) = nodes.server {
        server::server(&settings.server, node);
        ineffective::of_server(&settings.server, node);
    }
    for (index, (origin, node)) in settings.origins.iter().zip(&nodes.origins).enumerate() {
        origins::short_orphan(origin, *node);
        origins::too_many_alone(origin, *node);
        origins::buffers(&settings.server, origin, *node);
        ineffective::of_origin(&settings.server, origin, *node);
        origins::unbounded_finish(settings, index, *node);
        origins::unused_queue(origin, *node);
    }
    for (index, (zone, node)) in settings.zones.iter().zip(&nodes.zones).enumerate() {
        keys::key(zone, *node);
        server::exempt(zone, *node);
        limits::lease(settings, index, *node);
        if !is_used(settings, index) {
            node.warn("no route and no origin uses this zone; name it in the limits of a route, or remove it");
        }
    }
    for (route, node) in settings.routes.iter().zip(&nodes.routes) {
        wildcard(route, *node);
        room(settings, route, *node);
        collapse::collapse(settings, route, *node);
        ineffective::of_route(route, *node);
        let items = node.field("limits").and_then(|limits| limits.items());
        for (limit, item) in route.limits.iter().zip(items.iter().flatten()) {
            limits::unused_burst(settings, limit, *item);
            streams::refused_streams(settings, route, limit, *item);
            limits::never_full(settings, route, limit, *item);
        }
    }
}

/// Warns of a `*` in a path, which matches only itself.
fn wildcard(route: &Route, node: Node) {
    let (path, begins) = match &route.path {
        PathPattern::Prefix(path) => (path, ""),
        PathPattern::Exact(path) => (path, "= "),
        PathPattern::Regex(_) => return,
    };
    let (Some(node), Some((before, behind))) = (node.field("path"), path.split_once('*')) else {
        return;
    };
    let prefix = format!("\"{before}\", which takes every path that begins with it");
    let remedy = if behind.trim_matches('*').is_empty() {
        prefix
    } else {
        let parts: Vec<_> = path.split('*').map(regex_syntax::escape).collect();
        // The quotes keep backslashes as they are.
        format!("'regex:^{}'", parts.join("[^/]*"))
    };
    node.warn(&format!(
        "* is no wildcard in \"{begins}{path}\", so only a path that has a * matches; write {remedy}"
    ));
}

/// Warns of a route that uses the waiting room of an origin without one.
fn room(settings: &Settings, route: &Route, node: Node) {
    let (Some(node), Some(origin)) = (node.field("room"), route.origin()) else {
        return;
    };
    let name = &settings.origins[origin].name;
    if route.room && !route.asks_room {
        node.warn(&format!(
            "origin {name} has no waiting room, so this does nothing; add [origins.{name}.room], or remove it"
        ));
    }
}

/// Returns whether a limit, a room or an origin uses the zone with this index.
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
