//! Ends expired overrides, maintenance and messages to visitors.

use std::time::Duration;

use actix_web::web::Data;
use config::{ChangedBy, History};
use tokio::time::sleep;

use super::Admin;
use super::api::maintenance::subject as subject_of;
use super::api::rooms::subject as subject_of_room;
use crate::gate::report::subject as subject_of_gate;
use crate::http::gateway::Gateway;
use crate::time::clock;
use crate::zone::report::overridden::subject;

/// Interval of the checks.
const EVERY: Duration = Duration::from_millis(100);

/// Ends expired acts as long as the gateway runs.
pub(super) async fn run(admin: Data<Admin>) {
    loop {
        sleep(EVERY).await;
        if let Some(gateway) = admin.gateway() {
            end_expired(&gateway, &admin.history);
            end_at_gates(&gateway, &admin.history);
            end_in_rooms(&gateway, &admin.history);
            end_maintenance(&gateway, &admin).await;
        }
    }
}

/// Records an expiry in the log and in the history.
fn note(history: &History, subject: &str, what: &str) {
    tracing::info!(what = subject, "{what} expired");
    let text = format!("{subject}: {what} expired");
    history.add(clock::now(), ChangedBy::Expiry, vec![text]);
}

/// Ends expired maintenance.
async fn end_maintenance(gateway: &Gateway, admin: &Admin) {
    let now = clock::now();
    if !gateway.maintenances().any_expired(now) {
        return;
    }
    // A stopping gateway changes nothing.
    let expired = admin.maintain(move |all| all.take_expired(now)).await;
    for target in expired.unwrap_or_default() {
        note(&admin.history, &subject_of(&target), "maintenance");
    }
}

/// Ends expired overrides of gates.
fn end_at_gates(gateway: &Gateway, history: &History) {
    let now = clock::now();
    for origin in gateway.origins() {
        let expired = origin.gate().and_then(|gate| gate.take_expired(now));
        if expired.is_some() {
            note(
                history,
                &subject_of_gate(&origin.settings().name),
                "override",
            );
        }
    }
}

/// Ends expired acts on waiting rooms.
fn end_in_rooms(gateway: &Gateway, history: &History) {
    let now = clock::now();
    for room in gateway.rooms() {
        for expired in room.take_expired(now) {
            note(history, &subject_of_room(room), expired.label());
        }
    }
}

/// Ends expired overrides of zones and keys.
fn end_expired(gateway: &Gateway, history: &History) {
    let now = clock::now();
    for zone in gateway.zones() {
        if !zone.overrides().any_expired(now) {
            continue;
        }
        for key in zone.change_overrides(|overrides| overrides.take_expired(now)) {
            note(history, &subject(zone, key.as_ref()), "override");
        }
    }
}
