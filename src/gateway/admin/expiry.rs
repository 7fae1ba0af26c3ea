//! Ends expired acts of operators: overrides, maintenance and messages to visitors.
//!
//! An override is values of a zone, a key, a gate or a room in place of those of the file.

use std::time::Duration;

use actix_web::web::Data;
use config::{ChangedBy, History};
use limit::Moment;
use tokio::time::sleep;

use super::Admin;
use super::api::maintenance::subject as target_subject;
use crate::gate::report::subject as subject_of_gate;
use crate::http::gateway::Gateway;
use crate::room::api::subject as subject_of_room;
use crate::time::clock;
use crate::zone::api::subject as zone_subject;

/// Interval of the checks.
const INTERVAL: Duration = Duration::from_millis(100);

/// Ends expired acts as long as the gateway runs.
pub(super) async fn run(admin: Data<Admin>) {
    loop {
        sleep(INTERVAL).await;
        let (gateway, now) = (admin.gateway(), clock::now());
        let Some(gateway) = gateway else { continue };
        end_expired(&gateway, &admin.history, now);
        if gateway.maintenances().any_expired(now) {
            // A stopping gateway changes nothing.
            let expired = admin.maintain(move |all| all.take_expired(now)).await;
            for target in expired.unwrap_or_default() {
                record_expiry(&admin.history, &target_subject(&target), "maintenance");
            }
        }
    }
}

/// Records the expiry of an act, such as an override, in the log and in the history.
fn record_expiry(history: &History, subject: &str, act: &str) {
    tracing::info!(what = subject, "{act} expired");
    let text = format!("{subject}: {act} expired");
    history.add(clock::now(), ChangedBy::Expiry, vec![text]);
}

/// Ends expired overrides of zones, keys and gates, and expired acts on waiting rooms.
fn end_expired(gateway: &Gateway, history: &History, now: Moment) {
    let zones = gateway.zones().iter();
    for zone in zones.filter(|zone| zone.overrides().any_expired(now)) {
        for key in zone.change_overrides(|overrides| overrides.take_expired(now)) {
            record_expiry(history, &zone_subject(zone, key.as_ref()), "override");
        }
    }
    for origin in gateway.origins() {
        let gate = origin.gate();
        let expired = gate.and_then(|gate| gate.end_override_if(|set| set.has_expired(now)));
        if expired.is_some() {
            let subject = subject_of_gate(&origin.settings().name);
            record_expiry(history, &subject, "override");
        }
    }
    for room in gateway.rooms() {
        for act in room.take_expired(now) {
            record_expiry(history, &subject_of_room(room), act);
        }
    }
}
