//! Metrics of waiting rooms.

use super::events;
use crate::http::gateway::Gateway;
use crate::status::exposition::table::{Table, labels};
use crate::time::clock;

/// Writes the metrics of all waiting rooms.
pub(crate) fn write(out: &mut String, gateway: &Gateway) {
    let now = clock::now();
    let rooms = gateway.rooms();
    let rooms = rooms.map(|room| {
        let name = labels(&[("origin", &room.origin)]);
        (name, (room, room.status(now)))
    });
    let mut table = Table::new(out, rooms);
    table.counts("drip_room_requests_total", "request", |(room, _)| {
        &room.metrics.requests
    });
    table.durations("drip_room_wait_seconds", |(room, _)| &room.metrics.wait);
    table.durations("drip_room_wait_error_seconds", |(room, _)| {
        &room.metrics.wait_error
    });
    table.each("drip_room_visitors", "where", |(_, status)| {
        let state = &status.state;
        [
            ("waiting", state.waiting),
            ("called", state.called),
            ("inside", state.inside),
        ]
    });
    table.each("drip_room_visitors_total", "event", |(_, status)| {
        events(&status.counts)
    });
    table.some("drip_room_pace", |(_, status)| {
        Some(status.state.pace).filter(|pace| pace.is_finite())
    });
    table.some("drip_room_session_limit", |(_, status)| {
        status.limits.sessions
    });
    table.some("drip_room_admit", |(_, status)| {
        let admit = status.limits.admit;
        (!admit.is_unlimited()).then(|| admit.per_second())
    });
    table.value("drip_room_open", |(_, status)| {
        u8::from(status.state.is_open)
    });
    table.value("drip_room_paused", |(_, status)| {
        u8::from(status.limits.is_paused)
    });
}
