//! Warnings about fields that have no effect, because another field makes them useless.
//!
//! `node` is the table of the file with the fields.

use std::time::Duration;

use limit::parse_duration;

use crate::node::Node;
use crate::table_settings::TableSettings;
use crate::{BackoffMode, Collapse, Origin, Route, Server};

/// Warns of limits on client connections when connections are not kept.
pub(super) fn check_server(server: &Server, node: Node) {
    let because = "keep_alive = \"0\" closes each connection after one response";
    if server.keep_alive.is_zero() && !server.keep_alive_time.is_zero() {
        warn(node, "keep_alive_time", because);
    }
    if server.keep_alive.is_zero() && server.keep_alive_requests.is_some() {
        warn(node, "keep_alive_requests", because);
    }
}

/// Warns of fields of an origin that another field makes ineffective.
pub(super) fn check_origin(server: &Server, origin: &Origin, node: Node) {
    // A default may be written out: `drip show` does that.
    let is_default = is_default::<Origin>("keep_alive_timeout", origin.keep_alive_timeout);
    if origin.keep_alive == 0 && !is_default {
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
    if let (Some(max_body_size), Some(buffer)) = (server.max_body_size, origin.request_buffer)
        && max_body_size < buffer
    {
        node.warn_field("request_buffer", "max_body_size of [server] is smaller: no body fills this buffer; lower it, or raise that");
    }
}

/// Warns of a `follow_timeout` of `collapse` that is longer than `max_wait`.
///
/// `follow_timeout`: how long a request waits for the answer to an equal request.
pub(super) fn check_route(route: &Route, node: Node) {
    let collapse = route.collapse.as_ref().zip(node.field("collapse"));
    let max_wait = route.max_wait.filter(|_| !route.dry_run);
    if let (Some((collapse, node)), Some(max_wait)) = (collapse, max_wait)
        && collapse.follow_timeout > max_wait
        && !is_default::<Collapse>("follow_timeout", collapse.follow_timeout)
    {
        warn(node, "follow_timeout", "max_wait of the route is shorter");
    }
}

/// Returns whether a duration is the default of a field.
fn is_default<T: TableSettings>(name: &str, duration: Duration) -> bool {
    let default = T::TABLE.field(name).and_then(|field| field.default);
    default.and_then(|text| parse_duration(text.trim_matches('"'))) == Some(duration)
}

/// Warns that a field has no effect. `because`: the reason.
fn warn(node: Node, name: &'static str, because: &str) {
    let message = format!("has no effect: {because}; remove one of the two");
    node.warn_field(name, &message);
}
