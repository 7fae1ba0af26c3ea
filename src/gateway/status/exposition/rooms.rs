//! The metrics of waiting rooms.

use limit::Rate;

use super::table::{Table, labels};
use crate::http::gateway::Gateway;
use crate::status::rooms::events;
use crate::time::clock;

pub(super) fn write(out: &mut String, gateway: &Gateway) {
    let now = clock::now();
    let rooms = gateway.rooms();
    let rooms = rooms.map(|room| {
        let name = labels(&[("origin", room.origin())]);
        (name, (room, room.status(now)))
    });
    let mut table = Table::new(out, rooms);
    table.write("drip_room_requests_total", |(room, _), series| {
        series.counts("request", &room.metrics().requests);
    });
    table.write("drip_room_wait_seconds", |(room, _), series| {
        series.durations("", &room.metrics().wait);
    });
    table.write("drip_room_wait_error_seconds", |(room, _), series| {
        series.durations("", &room.metrics().wait_error);
    });
    table.write("drip_room_visitors", |(_, status), series| {
        let state = &status.state;
        let all = [
            ("waiting", state.waiting),
            ("called", state.called),
            ("inside", state.inside),
        ];
        series.each("where", all);
    });
    table.write("drip_room_visitors_total", |(_, status), series| {
        series.each("event", events(&status.counts));
    });
    table.write("drip_room_pace", |(_, status), series| {
        series.add_some(Some(status.state.pace).filter(|pace| pace.is_finite()));
    });
    table.write("drip_room_places", |(_, status), series| {
        series.add_some(status.limits.sessions);
    });
    table.write("drip_room_admit", |(_, status), series| {
        let admit = Some(status.limits.admit).filter(|admit| !admit.is_unlimited());
        series.add_some(admit.map(Rate::per_second));
    });
    table.write("drip_room_open", |(_, status), series| {
        series.add(u8::from(status.state.is_open));
    });
    table.write("drip_room_paused", |(_, status), series| {
        series.add(u8::from(status.limits.is_paused));
    });
}
