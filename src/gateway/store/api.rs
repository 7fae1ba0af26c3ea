//! `/api/store`: the store, Redis, of shared zones and origins, as JSON.

use actix_web::web::Data;
use config::{StoreKind, Words};
use serde_json::{Value, json};

use crate::admin::Admin;
use crate::admin::reply::{self, Answer};
use crate::http::gateway::Gateway;
use crate::status::counts::{self, Labelled};
use crate::status::minute::{LatencySource, Minute};
use crate::status::plain::Plain;
use crate::status::timestamp::timestamp;
use crate::zone::StoreHealth;

/// `GET /api/store`: the store; `null` without one.
pub(crate) async fn show(admin: Data<Admin>) -> Answer {
    let gateway = admin.serving()?;
    let store = gateway.store_health();
    let store = store.map(|store| store_json(&gateway, store, &admin.recent.minute));
    Ok(reply::ok(&json!({ "store": store })))
}

/// JSON of the store.
fn store_json(gateway: &Gateway, store: &StoreHealth, minute: &Minute) -> Value {
    let outage = store.outage();
    // The URL without its password.
    let url = store.settings().url.to_string();
    let mut all_operations = Labelled::new();
    let mut zones = Vec::new();
    for zone in gateway.zones() {
        let settings = zone.settings();
        if settings.store == StoreKind::Memory {
            continue;
        }
        let operations = counts::operations(zone.metrics());
        counts::add(&mut all_operations, &operations);
        zones.push(json!({
            "zone": Plain::new(&settings.name),
            "on_store_failure": settings.on_store_failure.word(),
            "operations": operations,
            // Whether another gateway has another rate for the zone.
            "differs": zone.differs(),
        }));
    }
    json!({
        "url": Plain::new(&url),
        "up": outage.is_none(),
        "out_since": outage.as_ref().map(|(since, _)| timestamp(*since)),
        "reason": outage.as_ref().map(|(_, reason)| Plain::new(reason)),
        "latency": minute.latency(&LatencySource::Store(url), &store.round_trips().counts()),
        "operations": all_operations,
        "zones": zones,
    })
}
