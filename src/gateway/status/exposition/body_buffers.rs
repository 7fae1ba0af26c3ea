//! The metrics of buffered bodies that are collected when Prometheus asks.

use super::Family;
use crate::http::gateway::Gateway;

pub(super) fn write(out: &mut String, gateway: &Gateway) {
    let memory = gateway.body_memory();
    if !gateway.buffers_bodies() && memory.held() == 0 {
        return;
    }
    let families = [
        (
            Family::gauge(
                "drip_body_buffer_bytes",
                "Memory of bodies that are buffered, in blocks of 16 KB.",
            ),
            memory.held(),
        ),
        (
            Family::gauge(
                "drip_body_buffer_max_bytes",
                "Most memory of bodies that are buffered.",
            ),
            memory.limit(),
        ),
        (
            Family::counter(
                "drip_body_buffer_refusals_total",
                "Times that a body got no memory, and went on without a buffer.",
            ),
            memory.refused(),
        ),
    ];
    for (mut family, value) in families {
        family.add(&[], value);
        out.push_str(&family.text);
    }
}
