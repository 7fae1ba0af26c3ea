use actix_web::web::Data;
use config::StoreKind;

use crate::admin::Admin;
use crate::admin::reply::{self, Answer};
use crate::http::gateway::Gateway;
use crate::status::counts;
use crate::status::counts::Labelled;
use crate::status::minute::{Minute, Of};
use crate::status::timestamp::timestamp;
use crate::status::views::{Plain, SharedStore, Store, StoreZone};
use crate::zone::{StoreHealth, Zone};

pub(super) async fn show(admin: Data<Admin>) -> Answer {
    let gateway = admin.serving()?;
    let store = gateway.store_health();
    Ok(reply::ok(&SharedStore {
        store: store.map(|store| view(&gateway, store, &admin.recent.minute)),
    }))
}

fn view(gateway: &Gateway, store: &StoreHealth, minute: &Minute) -> Store {
    let outage = store.outage();
    // Without its password.
    let url = store.settings().url.to_string();
    let zones = gateway.zones().iter();
    let zones = zones.filter(|zone| zone.settings().store != StoreKind::Memory);
    let zones: Vec<_> = zones.map(|it| zone(it)).collect();
    let mut operations = Labelled::new();
    for zone in &zones {
        counts::add(&mut operations, &zone.operations);
    }
    Store {
        url: Plain::new(&url),
        up: outage.is_none(),
        out_since: outage.as_ref().map(|(since, _)| timestamp(*since)),
        reason: outage.map(|(_, reason)| Plain::new(&reason)),
        latency: minute.latency(&Of::Store(url), &store.latencies()),
        operations,
        zones,
    }
}

fn zone(zone: &Zone) -> StoreZone {
    StoreZone {
        zone: Plain::new(&zone.settings().name),
        on_store_failure: zone.settings().on_store_failure.name().into(),
        operations: counts::operations(zone.metrics()),
        differs: zone.differs(),
    }
}
