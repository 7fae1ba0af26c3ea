//! The metrics of waiting rooms that are collected when Prometheus asks.

use super::Family;
use crate::http::gateway::Gateway;
use crate::status::rooms::events;
use crate::time::clock;

pub(super) fn write(out: &mut String, gateway: &Gateway) {
    let now = clock::now();
    let rooms: Vec<_> = gateway.rooms().map(|it| (it, it.status(now))).collect();
    if rooms.is_empty() {
        return;
    }
    let mut visitors = Family::gauge(
        "drip_room_visitors",
        "Visitors of the waiting room of an origin, by where they are.",
    );
    let mut events_total = Family::counter(
        "drip_room_visitors_total",
        "Visitors of the waiting room of an origin, by what they did or what was done.",
    );
    let mut calls_a_second = Family::gauge(
        "drip_room_pace",
        "Calls of the waiting room in calls a second, as they are measured.",
    );
    let mut places = Family::gauge(
        "drip_room_places",
        "Most visitors inside the origin at once, as it is now in force.",
    );
    let mut admits = Family::gauge(
        "drip_room_admit",
        "Most calls a second, as it is now in force.",
    );
    let mut open = Family::gauge(
        "drip_room_open",
        "1 once the waiting room has opened, else 0.",
    );
    let mut paused = Family::gauge(
        "drip_room_paused",
        "1 while calling is paused in the waiting room, else 0.",
    );
    for (room, status) in &rooms {
        let name = ("origin", room.origin());
        let state = &status.state;
        for (place, count) in [
            ("waiting", state.waiting),
            ("called", state.called),
            ("inside", state.inside),
        ] {
            visitors.add(&[name, ("where", place)], count);
        }
        for (event, count) in events(&status.counts) {
            events_total.add(&[name, ("event", event)], count);
        }
        if state.pace.is_finite() {
            calls_a_second.add(&[name], state.pace);
        }
        if let Some(sessions) = status.limits.sessions {
            places.add(&[name], sessions);
        }
        if !status.limits.admit.is_unlimited() {
            admits.add(&[name], status.limits.admit.per_second());
        }
        open.add(&[name], u8::from(state.is_open));
        paused.add(&[name], u8::from(status.limits.is_paused));
    }
    for family in [
        visitors,
        events_total,
        calls_a_second,
        places,
        admits,
        open,
        paused,
    ] {
        out.push_str(&family.text);
    }
}
