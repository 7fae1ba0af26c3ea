//! The metrics of zones and their plans.

use std::collections::HashSet;

use super::stats;
use super::table::{Table, labels};
use crate::http::gateway::Gateway;
use crate::observe::key_names::KeyNames;
use crate::observe::metrics::LimitStatus;
use crate::status::sampler::shared_key::untrusted_proxies;
use crate::zone::{Zone, ZoneStats};

/// A zone at one moment.
struct ZoneNow<'g> {
    zone: &'g Zone,
    /// `None` if a worker does not answer in time, and for a zone that left the file.
    stats: Option<ZoneStats>,
    has_untrusted_proxy: Option<bool>,
}

/// Writes the zones of the file, and those that left it and still have waiters.
pub(super) async fn write(out: &mut String, gateway: &Gateway) {
    let (mut zones, mut seen): (Vec<(String, ZoneNow)>, _) = (Vec::new(), HashSet::new());
    for (index, zone) in gateway.zones_in_use().enumerate() {
        let name = labels(&[("zone", &zone.settings().name)]);
        let is_in_file = index < gateway.zones().len();
        // One that left the file shares the metrics of one that came in its place.
        if !seen.insert(name.clone()) {
            continue;
        }
        let proxy = || untrusted_proxies(gateway, index).next().is_some();
        let now = ZoneNow {
            zone,
            stats: if is_in_file { stats(zone).await } else { None },
            has_untrusted_proxy: is_in_file.then(proxy),
        };
        zones.push((name, now));
    }
    let plans = zones.iter().flat_map(|(_, it)| {
        let name = &it.zone.settings().name;
        let plans = it.zone.plan_metrics();
        plans.map(|(plan, metrics)| (labels(&[("zone", name), ("plan", plan)]), metrics))
    });
    let mut table = Table::new(out, plans);
    table.write("drip_plan_requests_total", |plan, series| {
        // A request without a key has no plan.
        let all = plan.each().filter(|it| it.0 != LimitStatus::NoKey.label());
        series.each("status", all);
    });
    let mut table = Table::new(out, zones);
    write_requests(&mut table);
    write_keys(&mut table);
    write_queues(&mut table);
}

fn write_requests(table: &mut Table<'_, ZoneNow<'_>>) {
    table.write("drip_zone_requests_total", |it, series| {
        series.counts("status", &it.zone.metrics().statuses);
    });
    table.write("drip_zone_rejections_total", |it, series| {
        series.counts("reason", &it.zone.metrics().rejections);
    });
    table.write("drip_zone_rate", |it, series| {
        series.add(it.zone.metrics().rate());
    });
    table.write("drip_zone_override", |it, series| {
        let overrides = it.zone.overrides();
        let zone = overrides.zone.as_ref();
        let kinds = [
            ("rate", zone.is_some_and(|it| it.rate.is_some())),
            ("pause", zone.is_some_and(|it| it.pause)),
            ("dry_run", zone.is_some_and(|it| it.dry_run.is_some())),
        ];
        series.each("kind", kinds.map(|(kind, is_on)| (kind, u8::from(is_on))));
    });
    table.write("drip_zone_untrusted_proxy", |it, series| {
        series.add_some(it.has_untrusted_proxy.map(u8::from));
    });
}

fn write_keys(table: &mut Table<'_, ZoneNow<'_>>) {
    table.write("drip_zone_keys", |it, series| {
        let metrics = it.zone.metrics();
        let states = [
            ("active", &metrics.keys_active),
            ("parked", &metrics.keys_parked),
        ];
        series.each("state", states.map(|(state, keys)| (state, keys.get())));
    });
    table.write("drip_zone_max_keys", |it, series| {
        series.add(it.zone.settings().max_keys);
    });
    table.write("drip_zone_overridden_keys", |it, series| {
        series.add(it.zone.overrides().keys.len());
    });
    table.write("drip_zone_evictions_total", |it, series| {
        let metrics = it.zone.metrics();
        let reasons = [
            ("idle", &metrics.evicted_idle),
            ("lru", &metrics.evicted_lru),
        ];
        series.each("reason", reasons.map(|(reason, keys)| (reason, keys.get())));
    });
    table.write("drip_zone_new_keys_total", |it, series| {
        series.add(it.zone.metrics().new_keys.get());
    });
    table.write("drip_zone_flooded_total", |it, series| {
        series.add(it.zone.metrics().flooded.get());
    });
}

fn write_queues(table: &mut Table<'_, ZoneNow<'_>>) {
    table.write("drip_zone_queue_depth", |it, series| {
        series.add(it.zone.metrics().depth.get());
    });
    table.write("drip_zone_in_flight", |it, series| {
        series.add(it.zone.metrics().in_flight.get());
    });
    table.write("drip_zone_queue_wait_seconds", |it, series| {
        series.durations("", &it.zone.metrics().waits.histogram);
    });
    table.write("drip_zone_cancelled_after_seconds", |it, series| {
        series.durations("", &it.zone.metrics().lefts.histogram);
    });
    table.write("drip_zone_drain_lateness_seconds", |it, series| {
        series.durations("", &it.zone.metrics().lateness);
    });
    table.write("drip_zone_queue_depth_max", |it, series| {
        series.add_some(it.stats.as_ref().map(|stats| stats.depth_max));
    });
    table.write("drip_zone_oldest_wait_seconds", |it, series| {
        let oldest = it.stats.as_ref().map(|stats| stats.oldest_wait);
        series.add_some(oldest.map(|wait| wait.as_secs_f64()));
    });
    table.write("drip_zone_top_key_queue_depth", |it, series| {
        // Two keys may have the same name after it is cut off. The deeper key comes first.
        let mut seen = HashSet::new();
        for state in it.stats.iter().flat_map(|stats| &stats.deepest) {
            let key = KeyNames::of(it.zone.settings()).short(&state.key);
            if seen.insert(key.clone()) {
                series.each("key", [(&*key, state.depth)]);
            }
        }
    });
}
