//! Warnings about `[origins.NAME]`: its buffers, its gate, and what gateways share in Redis.
//!
//! The gate of an origin holds requests back until a permit and its rate let them go. In each
//! function, `node` is the origin in the file.

use limit::{WithoutPool, show_duration};

use crate::node::Node;
use crate::table_settings::TableSettings;
use crate::{OnClientDisconnect, Origin, Server, Settings, show_size};

/// Size of the blocks that buffers consist of, in bytes.
const BLOCK: u64 = 16 << 10;

/// Warns of a buffer that is larger than the memory of all buffers.
pub(super) fn check_buffers(server: &Server, origin: &Origin, node: Node) {
    let memory = server.buffers.get();
    for (name, size) in [
        ("request_buffer", origin.request_buffer),
        ("response_buffer", origin.response_buffer),
    ] {
        let size = size.map_or(0, |size| size.get().max(BLOCK));
        if size > memory {
            let (size, memory) = (show_size(size), show_size(memory));
            let message = format!(
                "a buffer of {size} does not fit into buffers of [server], which is {memory}; raise that, or lower {name}"
            );
            node.warn_field(name, &message);
        }
    }
}

/// Warns of an unbounded number of requests that go on after their clients disconnected.
///
/// `index`: index of the origin.
pub(super) fn check_finish(settings: &Settings, index: usize, node: Node) {
    let origin = &settings.origins[index];
    let routes = settings.routes.iter();
    let mut routes = routes.filter(|route| route.origin() == Some(index));
    let is_unbounded = routes.any(|route| {
        let mut limits = route.limits.iter();
        limits.all(|limit| limit.limit.in_flight.is_none())
    });
    if origin.on_client_gone == OnClientDisconnect::Finish
        && origin.max_in_flight.is_none()
        && is_unbounded
    {
        node.warn_field(
            "on_client_gone",
            "clients that disconnect leave any number of requests at the origin; add max_in_flight, or write \"abort\"",
        );
    }
}

/// Warns of a queue that cannot fill: its last requests would wait longer than `queue_timeout`.
pub(super) fn check_queue(origin: &Origin, node: Node) {
    // In an outage `queue_timeout` is paused, so more requests can wait.
    let is_bounded = !origin.holds() && !origin.queue_timeout.is_zero();
    let rate = origin.rate.filter(|rate| !rate.is_unlimited());
    let Some(rate) = rate.filter(|_| is_bounded) else {
        return;
    };
    let usable = rate.count_in(origin.queue_timeout);
    for (name, length) in [("queue", origin.queue), ("max_queue", origin.max_queue)] {
        // The defaults suit any rate, and `drip show` writes them.
        let default = Origin::TABLE.field(name).and_then(|field| field.default);
        let is_default = default == Some(&*length.to_string());
        if length.get() as u64 > usable && !is_default {
            let queue_timeout = show_duration(origin.queue_timeout);
            let message = format!(
                "of {name} {length} at most {usable} can be used: further requests would wait longer than queue_timeout, which is {queue_timeout}; lower {name} to {usable}, or raise queue_timeout or rate"
            );
            node.warn_field(name, &message);
        }
    }
}

/// Warns if `orphan` is shorter than `response_timeout`.
///
/// Other gateways then get the permits of a vanished gateway while its requests may still run.
pub(super) fn check_orphan(origin: &Origin, node: Node) {
    if origin.orphan >= origin.response_timeout || origin.shared_permits().is_none() {
        return;
    }
    // The file has at least one of both fields, because the default of `orphan` is longer than that
    // of `response_timeout`.
    let field = node.field("orphan");
    let field = field.or_else(|| node.field("response_timeout"));
    let [orphan, response_timeout] = [origin.orphan, origin.response_timeout].map(show_duration);
    field.unwrap_or(node).warn(&format!(
        "if a gateway vanishes, its requests may run at the origin for response_timeout, which is {response_timeout}, and other gateways get its permits after orphan, which is {orphan}; set orphan to more than {response_timeout}, or lower response_timeout"
    ));
}

/// Warns of more gateways than shared permits.
///
/// Each gateway uses at least one permit while it cannot reach Redis.
pub(super) fn check_gateways(origin: &Origin, node: Node) {
    if let (Some(gateways), Some(permits)) = (origin.gateways, origin.shared_permits())
        && origin.on_store_failure != WithoutPool::Closed
        && gateways.get() as usize > permits.get()
    {
        let message = format!(
            "while Redis does not answer, each of {gateways} gateways uses a permit of its own, and max_in_flight is {permits}, so the origin may get more requests; set on_store_failure = \"closed\" if it must not"
        );
        node.warn_field("gateways", &message);
    }
}
