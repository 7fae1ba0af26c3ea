//! Metrics of the origins' gates, written when `/metrics` is read.
//!
//! `status/exposition/families.txt` has their types and help texts.

use config::Origin;
use limit::Rate;

use super::sample::ConfiguredAndEffective;
use crate::gate::{BlockedBy, GateSharing, GateStatus, OriginGate, PermitSharing, report};
use crate::http::gateway::Gateway;
use crate::overrides::overridden_names;
use crate::status::exposition::table::{Series, Table, labels};

/// A gate with its status at one instant.
struct GateNow<'g> {
    origin: &'g Origin,
    gate: &'g OriginGate,
    status: GateStatus,
}

/// Writes the metrics of all gates.
pub(crate) fn write(out: &mut String, gateway: &Gateway) {
    let gates = gateway.origins().iter().filter_map(|origin| {
        let (gate, origin) = (origin.gate()?, origin.settings());
        let status = gate.status(0);
        let now = GateNow {
            origin,
            gate,
            status,
        };
        Some((labels(&[("origin", &origin.name)]), now))
    });
    let gates: Vec<_> = gates.collect();
    let sharing = gates.iter();
    let sharing =
        sharing.filter_map(|(name, it)| Some((name.clone(), it.status.sharing.as_ref()?)));
    write_sharing(&mut Table::new(out, sharing));
    let permits = gates.iter();
    let permits =
        permits.filter_map(|(name, it)| Some((name.clone(), it.status.permits.as_ref()?)));
    write_permits(&mut Table::new(out, permits));
    let mut table = Table::new(out, gates);
    write_queue_and_limits(&mut table);
    write_counts(&mut table);
}

/// Writes the waiters of gates, and the limits for which they wait.
fn write_queue_and_limits(table: &mut Table<'_, GateNow<'_>>) {
    table.value("drip_origin_queue_depth", |it| it.status.depth);
    table.write("drip_origin_class_queue_depth", |it, series| {
        let classes = it.status.classes.iter();
        series.each("class", classes.map(|(class, depth)| (&*class.name, depth)));
    });
    table.durations("drip_origin_queue_wait_seconds", |it| {
        &it.gate.metrics().waits.histogram
    });
    table.each("drip_origin_blocked_seconds_total", "by", |it| {
        BlockedBy::ALL.map(|by| (by.label(), it.status.blocked[by as usize].as_secs_f64()))
    });
    table.write("drip_origin_rate", |it, series| {
        configured_and_effective(
            series,
            report::rate(it.origin, &it.status, Rate::per_second),
        );
    });
    table.write("drip_origin_in_flight_limit", |it, series| {
        configured_and_effective(series, report::max_in_flight(it.origin, &it.status));
    });
    table.each("drip_origin_override", "kind", |it| {
        overridden_names(it.status.overridden.as_ref())
    });
}

/// Writes the configured and the effective value of a setting, under the label `of`.
fn configured_and_effective<V: std::fmt::Display>(
    series: &mut Series,
    setting: ConfiguredAndEffective<V>,
) {
    let both = [("file", setting.file), ("now", setting.now)];
    let known = both.into_iter();
    series.each(
        "of",
        known.filter_map(|(label, value)| Some((label, value?))),
    );
}

/// Writes the counts of gates.
fn write_counts(table: &mut Table<'_, GateNow<'_>>) {
    table.counts("drip_origin_rejections_total", "reason", |it| {
        &it.gate.metrics().rejections
    });
    table.write("drip_origin_class_requests_total", |it, series| {
        for class in &it.origin.classes {
            let passed = it.gate.metrics().class(&class.name).get();
            series.each("class", [(&*class.name, passed)]);
        }
    });
    table.counts("drip_origin_backoffs_total", "reason", |it| {
        &it.gate.metrics().backoffs
    });
    table.counts("drip_origin_adopted_backoffs_total", "reason", |it| {
        &it.gate.metrics().adopted
    });
    table.value("drip_origin_lost_slots_total", |it| {
        it.gate.metrics().lost_slots.get()
    });
    table.value("drip_origin_invalid_retry_after_total", |it| {
        it.gate.metrics().invalid_retry_afters.get()
    });
}

/// Writes the metrics of origin rates that gateways share.
fn write_sharing(table: &mut Table<'_, &GateSharing>) {
    table.value("drip_origin_shared", |it| u8::from(!it.is_alone));
    table.some("drip_origin_gateways", |it| it.gateways);
    table.value("drip_origin_part", |it| it.part);
    table.each("drip_origin_slots_total", "result", |it| {
        [("used", it.slots.used), ("expired", it.slots.expired)]
    });
}

/// Writes the metrics of origin permits that gateways share.
fn write_permits(table: &mut Table<'_, &PermitSharing>) {
    table.value("drip_origin_permits_shared", |it| u8::from(!it.is_out));
    table.value("drip_origin_permits_held", |it| it.held);
    table.some("drip_origin_permits_gateways", |it| {
        it.pool.as_ref().map(|pool| pool.gateways)
    });
    table.write("drip_origin_permits", |it, series| {
        let Some(pool) = &it.pool else { return };
        let in_use = pool.in_use.min(pool.held);
        let (withheld, unknown) = pool.withheld_and_unknown();
        let states = [
            ("used", in_use),
            ("idle", pool.held - in_use),
            ("withheld", withheld),
            ("unknown", unknown),
            ("free", pool.free),
        ];
        series.each("state", states);
    });
}
