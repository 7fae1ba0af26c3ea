//! Buffers of an origin for which there is no memory.

use crate::config::node::Node;
use crate::config::{Origin, Server, show_size};

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
        if size.get() > memory {
            let (size, memory) = (show_size(size.get()), show_size(memory));
            field.warn(&format!(
                "a buffer of {size} does not fit into buffers of [server], which is {memory}; raise that, or lower {name}"
            ));
        }
    }
}
