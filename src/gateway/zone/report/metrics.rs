//! Metrics of zones and of their plans.

use std::collections::HashSet;

use super::shared_key::untrusted_proxies;
use super::stats;
use crate::http::gateway::Gateway;
use crate::observe::key_names::KeyNames;
use crate::observe::metrics::{LimitStatus, ZoneMetrics};
use crate::overrides::overridden_names;
use crate::status::exposition::table::{Table, labels};
use crate::zone::{Zone, ZoneStats};

/// A zone with its state at one instant.
struct ZoneNow<'g> {
    zone: &'g Zone,
    metrics: &'g ZoneMetrics,
    /// `None` if a worker does not answer in time, and for a zone that was removed from the file.
    stats: Option<ZoneStats>,
    /// `None` for a zone that was removed from the file.
    has_untrusted_proxy: Option<bool>,
}

/// Writes the metrics of the zones of the file, and of removed zones that still have waiters.
pub(crate) async fn write(out: &mut String, gateway: &Gateway) {
    let mut zones: Vec<(String, ZoneNow)> = Vec::new();
    let mut seen = HashSet::new();
    for (index, zone) in gateway.zones_in_use().enumerate() {
        let name = labels(&[("zone", &zone.settings().name)]);
        let is_in_file = index < gateway.zones().len();
        // A removed zone shares the metrics of a new zone with the same name.
        if !seen.insert(name.clone()) {
            continue;
        }
        let has_untrusted_proxy = || untrusted_proxies(gateway, index).next().is_some();
        let now = ZoneNow {
            zone,
            metrics: zone.metrics(),
            stats: if is_in_file { stats(zone).await } else { None },
            has_untrusted_proxy: is_in_file.then(has_untrusted_proxy),
        };
        zones.push((name, now));
    }
    let plans = zones.iter().flat_map(|(_, now)| {
        let name = &now.zone.settings().name;
        let plans = now.zone.plan_metrics();
        plans.map(|(plan, metrics)| (labels(&[("zone", name), ("plan", plan)]), metrics))
    });
    let mut table = Table::new(out, plans);
    table.write("drip_plan_requests_total", |plan, series| {
        // A request without a key has no plan.
        let all = plan.each().filter(|it| it.0 != LimitStatus::NoKey.label());
        series.each("status", all);
    });
    let mut table = Table::new(out, zones);
    write_zones(&mut table);
}

/// Writes the metrics of these zones.
fn write_zones(table: &mut Table<'_, ZoneNow<'_>>) {
    table.counts("drip_zone_requests_total", "status", |it| {
        &it.metrics.statuses
    });
    table.counts("drip_zone_rejections_total", "reason", |it| {
        &it.metrics.rejections
    });
    table.value("drip_zone_rate", |it| it.metrics.rate());
    table.each("drip_zone_override", "kind", |it| {
        overridden_names(it.zone.overrides().zone.as_ref())
    });
    table.some("drip_zone_untrusted_proxy", |it| {
        it.has_untrusted_proxy.map(u8::from)
    });
    table.each("drip_zone_keys", "state", |it| {
        let (active, parked) = (&it.metrics.keys_active, &it.metrics.keys_parked);
        [("active", active.get()), ("parked", parked.get())]
    });
    table.value("drip_zone_max_keys", |it| it.zone.settings().max_keys);
    table.value("drip_zone_overridden_keys", |it| {
        it.zone.overrides().keys.len()
    });
    table.each("drip_zone_evictions_total", "reason", |it| {
        let (idle, lru) = (&it.metrics.evicted_idle, &it.metrics.evicted_lru);
        [("idle", idle.get()), ("lru", lru.get())]
    });
    table.value("drip_zone_new_keys_total", |it| it.metrics.new_keys.get());
    table.value("drip_zone_flooded_total", |it| it.metrics.flooded.get());
    table.value("drip_zone_queue_depth", |it| it.metrics.depth.get());
    table.value("drip_zone_in_flight", |it| it.metrics.in_flight.get());
    table.durations("drip_zone_queue_wait_seconds", |it| {
        &it.metrics.waits.histogram
    });
    table.durations("drip_zone_cancelled_after_seconds", |it| {
        &it.metrics.disconnects.histogram
    });
    table.durations("drip_zone_drain_lateness_seconds", |it| {
        &it.metrics.lateness
    });
    table.some("drip_zone_queue_depth_max", |it| {
        it.stats.as_ref().map(|stats| stats.depth_max)
    });
    table.some("drip_zone_oldest_wait_seconds", |it| {
        let stats = it.stats.as_ref();
        stats.map(|stats| stats.oldest_wait.as_secs_f64())
    });
    table.write("drip_zone_top_key_queue_depth", |it, series| {
        // Two long keys may have the same name after truncation. The deeper key comes first.
        let mut seen = HashSet::new();
        for state in it.stats.iter().flat_map(|stats| &stats.deepest) {
            let key = KeyNames::of(it.zone.settings()).short(&state.key);
            if seen.insert(key.clone()) {
                series.each("key", [(&*key, state.depth)]);
            }
        }
    });
}
