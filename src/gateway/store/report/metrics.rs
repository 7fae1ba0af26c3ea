//! Metrics of the store, Redis, written when `/metrics` is read.
//!
//! `status/exposition/families.txt` has their types and help texts.

use std::collections::HashSet;

use crate::http::gateway::Gateway;
use crate::observe::metrics::StoreResult;
use crate::status::exposition::table::{Table, labels};

/// Writes the metrics of the store; nothing if no store is used.
pub(crate) fn write(out: &mut String, gateway: &Gateway) {
    let mut table = Table::of_process(out);
    if let Some(store) = gateway.store_health() {
        table.value("drip_store_up", |()| u8::from(store.outage().is_none()));
        table.write("drip_store_duration_seconds", |(), series| {
            series.durations("", &store.round_trips().histogram);
        });
    }
    let zones = gateway.zones_in_use().filter_map(|zone| {
        let operations = zone.metrics().operations()?.each();
        let name = labels(&[("zone", &zone.settings().name)]);
        Some((name, operations.collect::<Vec<_>>()))
    });
    let origins = gateway.origins().iter().filter_map(|origin| {
        let claims = origin.gate()?.metrics().claims_made()?;
        let results = StoreResult::ALL.into_iter().filter(|it| it.is_tried());
        let claims = results.map(|result| (result.label(), claims.get(result)));
        let name = labels(&[("origin", &origin.settings().name)]);
        Some((name, claims.collect()))
    });
    // A zone that a reload has replaced may still be in use, and shares the metrics of its
    // successor. So each name is written once.
    let mut seen = HashSet::new();
    let rows = zones.chain(origins);
    let rows = rows.filter(|(name, _)| seen.insert(name.clone()));
    Table::new(out, rows).write("drip_store_operations_total", |operations, series| {
        series.each("result", operations.iter().copied());
    });
}
