//! Warnings about fields that have no effect beside another field.

use std::time::Duration;

use crate::node::Node;
use crate::{BackoffMode, Collapse, Origin, Route, Server};

/// Warns of limits on client connections when connections are not kept.
pub(super) fn of_server(server: &Server, node: Node) {
    let limits = [
        ("keep_alive_time", !server.keep_alive_time.is_zero()),
        ("keep_alive_requests", server.keep_alive_requests.is_some()),
    ];
    for (name, is_set) in limits {
        if is_set && server.keep_alive.is_zero() {
            let because = "keep_alive = \"0\" closes each connection after one response";
            warn(node, name, because);
        }
    }
}

/// Warns of fields of an origin that another field makes ineffective.
pub(super) fn of_origin(server: &Server, origin: &Origin, node: Node) {
    // A default that is written out is no mistake. This holds for the checks below, too.
    if origin.keep_alive == 0 && origin.keep_alive_timeout != Duration::from_secs(60) {
        let because = "keep_alive = 0 keeps no idle connection";
        warn(node, "keep_alive_timeout", because);
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

/// Warns of a `follow_timeout` longer than `max_wait`.
pub(super) fn of_route(route: &Route, node: Node) {
    let collapse = route.collapse.as_ref().zip(node.field("collapse"));
    let max_wait = route.max_wait.filter(|_| !route.dry_run);
    if let (Some((collapse, node)), Some(max_wait)) = (collapse, max_wait)
        && collapse.follow_timeout > max_wait
        && collapse.follow_timeout != Collapse::default().follow_timeout
    {
        warn(node, "follow_timeout", "max_wait of the route is shorter");
    }
}

/// Warns that a field has no effect. `because`: the reason.
fn warn(node: Node, name: &'static str, because: &str) {
    if let Some(field) = node.field(name) {
        field.warn(&format!("has no effect: {because}; remove one of the two"));
    }
}
