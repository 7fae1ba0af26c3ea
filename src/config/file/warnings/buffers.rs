//! Buffers of an origin for which there is no memory, and requests without clients that nothing bounds.

use crate::node::Node;
use crate::{OnClientGone, Origin, RouteLimit, Server, Settings, show_size};

/// Buffers take memory in blocks of this many bytes.
const BLOCK: u64 = 16 << 10;

/// Warns of a buffer that is larger than the memory of all buffers.
pub(super) fn buffers(server: &Server, origin: &Origin, node: Node) {
    let memory = server.buffers.get();
    let written = [
        ("request_buffer", origin.request_buffer),
        ("response_buffer", origin.response_buffer),
    ];
    for (name, size) in written {
        let (Some(size), Some(field)) = (size, node.field(name)) else {
            continue;
        };
        let size = size.get().max(BLOCK);
        if size > memory {
            let (size, memory) = (show_size(size), show_size(memory));
            field.warn(&format!(
                "a buffer of {size} does not fit into buffers of [server], which is {memory}; raise that, or lower {name}"
            ));
        }
    }
}

/// Warns of requests that go on without their clients where nothing bounds their number.
pub(super) fn unbounded_finish(settings: &Settings, index: usize, node: Node) {
    let origin = &settings.origins[index];
    let Some(field) = node.field("on_client_gone") else {
        return;
    };
    if origin.on_client_gone == OnClientGone::Abort || origin.max_in_flight.is_some() {
        return;
    }
    let mut routes = settings.routes.iter();
    let is_bounded = |limit: &RouteLimit| limit.limit.in_flight.is_some();
    let is_open = routes.any(|it| it.origin() == Some(index) && !it.limits.iter().any(is_bounded));
    if is_open {
        field.warn(
            "clients that disconnect leave any number of requests at the origin; add max_in_flight, or write \"abort\"",
        );
    }
}
