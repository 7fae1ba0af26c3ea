//! Fields that have no effect beside another one.

use crate::node::Node;
use crate::{BackoffMode, Origin, Route, Server};

/// Warns of limits of client connections that are not kept.
pub(super) fn of_server(server: &Server, node: Node) {
    if server.keep_alive.is_zero() {
        for name in ["keep_alive_time", "keep_alive_requests"] {
            warn(
                node,
                name,
                "keep_alive = \"0\" closes each connection after one response",
            );
        }
    }
}

/// Warns of limits of idle connections that are not kept, and of an order that a shadow does not obey.
pub(super) fn of_origin(server: &Server, origin: &Origin, node: Node) {
    if origin.keep_alive == 0 {
        warn(
            node,
            "keep_alive_timeout",
            "keep_alive = 0 keeps no idle connection",
        );
    }
    let backoff = origin.backoff.as_ref().zip(node.field("backoff"));
    if let Some((backoff, node)) = backoff
        && backoff.retry_after
        && backoff.mode == BackoffMode::Shadow
    {
        warn(node, "retry_after", "mode = \"shadow\" pauses nothing");
    }
    let is_above = |most| origin.request_buffer.is_some_and(|size| size > most);
    if server.max_body_size.is_some_and(is_above)
        && let Some(field) = node.field("request_buffer")
    {
        field.warn("max_body_size of [server] is smaller: no body fills this buffer; lower it, or raise that");
    }
}

/// Warns of a follower's timeout that `max_wait` ends before.
pub(super) fn of_route(route: &Route, node: Node) {
    let collapse = route.collapse.as_ref().zip(node.field("collapse"));
    let max_wait = route.max_wait.filter(|_| !route.dry_run);
    if let (Some((collapse, node)), Some(max_wait)) = (collapse, max_wait)
        && collapse.follow_timeout > max_wait
    {
        warn(node, "follow_timeout", "max_wait of the route is shorter");
    }
}

fn warn(node: Node, name: &'static str, because: &str) {
    if let Some(field) = node.field(name) {
        field.warn(&format!("has no effect: {because}; remove one of the two"));
    }
}
