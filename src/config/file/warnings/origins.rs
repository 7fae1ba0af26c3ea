//! Warnings about `[origins.NAME]`.

use limit::{WithoutPool, show_duration};

use crate::node::Node;
use crate::{OnClientDisconnect, Origin, RouteLimit, Server, Settings, show_size};

/// Block size of buffers, in bytes.
const BLOCK: u64 = 16 << 10;

/// Warns of a buffer that is larger than the memory of all buffers.
pub(super) fn buffers(server: &Server, origin: &Origin, node: Node) {
    let memory = server.buffers.get();
    let written = [
        ("request_buffer", origin.request_buffer),
        ("response_buffer", origin.response_buffer),
    ];
    for (name, size) in written {
        let size = size.map_or(0, |size| size.get().max(BLOCK));
        if size > memory
            && let Some(field) = node.field(name)
        {
            let (size, memory) = (show_size(size), show_size(memory));
            field.warn(&format!(
                "a buffer of {size} does not fit into buffers of [server], which is {memory}; raise that, or lower {name}"
            ));
        }
    }
}

/// Warns of an unbounded number of requests that go on without their clients.
pub(super) fn unbounded_finish(settings: &Settings, index: usize, node: Node) {
    let origin = &settings.origins[index];
    let mut routes = settings.routes.iter();
    let is_bounded = |limit: &RouteLimit| limit.limit.in_flight.is_some();
    if origin.on_client_gone == OnClientDisconnect::Finish
        && origin.max_in_flight.is_none()
        && routes.any(|it| it.origin() == Some(index) && !it.limits.iter().any(is_bounded))
        && let Some(field) = node.field("on_client_gone")
    {
        field.warn(
            "clients that disconnect leave any number of requests at the origin; add max_in_flight, or write \"abort\"",
        );
    }
}

/// Warns of a queue that cannot fill: its last requests would wait longer than `queue_timeout`.
pub(super) fn unused_queue(origin: &Origin, node: Node) {
    // In an outage `queue_timeout` is paused, so more requests can wait.
    let is_bounded = origin.hold.is_zero() && !origin.queue_timeout.is_zero();
    let rate = origin.rate.filter(|rate| !rate.is_unlimited());
    let Some(rate) = rate.filter(|_| is_bounded) else {
        return;
    };
    let usable = rate.count_in(origin.queue_timeout);
    // The defaults suit any rate, and `drip check` shows them.
    let fields = [
        ("queue", origin.queue, 100),
        ("max_queue", origin.max_queue, 10_000),
    ];
    for (field, written, default) in fields {
        if written.get() as u64 > usable
            && written.get() != default
            && let Some(node) = node.field(field)
        {
            node.warn(&format!(
                "of {field} {written} at most {usable} can be used: further requests would wait longer than queue_timeout, which is {}; lower {field} to {usable}, or raise queue_timeout or rate",
                show_duration(origin.queue_timeout)
            ));
        }
    }
}

/// Warns if `orphan` is shorter than `response_timeout`.
///
/// Other gateways then get the permits of a vanished gateway while its requests may still run.
pub(super) fn short_orphan(origin: &Origin, node: Node) {
    let (orphan, response_timeout) = (origin.orphan, origin.response_timeout);
    // At least one of them is in the file, because the default of `orphan` is the longer one.
    let field = node
        .field("orphan")
        .or_else(|| node.field("response_timeout"));
    let Some(field) = field.filter(|_| orphan < response_timeout) else {
        return;
    };
    if origin.shared_permits().is_none() {
        return;
    }
    let [orphan, response_timeout] = [orphan, response_timeout].map(show_duration);
    field.warn(&format!(
        "if a gateway vanishes, its requests may run at the origin for response_timeout, which is {response_timeout}, and other gateways get its permits after orphan, which is {orphan}; set orphan to more than {response_timeout}, or lower response_timeout"
    ));
}

/// Warns of more gateways than shared permits.
///
/// Each gateway uses at least one permit while it cannot reach Redis.
pub(super) fn too_many_alone(origin: &Origin, node: Node) {
    let (Some(gateways), Some(permits)) = (origin.gateways, origin.shared_permits()) else {
        return;
    };
    let is_closed = origin.on_store_failure == WithoutPool::Closed;
    let gateways = gateways.get() as usize;
    if let Some(field) = node.field("gateways")
        && !is_closed
        && gateways > permits.get()
    {
        field.warn(&format!(
            "while Redis does not answer, each of {gateways} gateways uses a permit of its own, and max_in_flight is {permits}, so the origin may get more requests; set on_store_failure = \"closed\" if it must not"
        ));
    }
}
