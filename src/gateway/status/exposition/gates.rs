//! The metrics of origins' gates.

use config::Origin;
use limit::Rate;

use super::table::{Series, Table, labels};
use crate::gate::{BlockedBy, GateSharing, GateState, OriginGate, PlaceSharing};
use crate::http::gateway::Gateway;
use crate::status::gates;
use crate::status::views::FileAndNow;

/// A gate at one moment.
struct GateNow<'g> {
    origin: &'g Origin,
    gate: &'g OriginGate,
    state: GateState,
}

pub(super) fn write(out: &mut String, gateway: &Gateway) {
    let gates = gateway.origins().iter().filter_map(|origin| {
        let (gate, origin) = (origin.gate()?, origin.settings());
        let state = gate.state(0);
        let now = GateNow {
            origin,
            gate,
            state,
        };
        Some((labels(&[("origin", &origin.name)]), now))
    });
    let gates: Vec<_> = gates.collect();
    let sharing = gates
        .iter()
        .filter_map(|(name, it)| Some((name.clone(), it.state.sharing.as_ref()?)));
    write_sharing(&mut Table::new(out, sharing));
    let places = gates
        .iter()
        .filter_map(|(name, it)| Some((name.clone(), it.state.places.as_ref()?)));
    write_places(&mut Table::new(out, places));
    let mut table = Table::new(out, gates);
    write_queue(&mut table);
    write_limits(&mut table);
    write_counts(&mut table);
}

fn write_queue(table: &mut Table<'_, GateNow<'_>>) {
    table.write("drip_origin_queue_depth", |it, series| {
        series.add(it.state.depth);
    });
    table.write("drip_origin_class_queue_depth", |it, series| {
        let classes = it.state.classes.iter();
        series.each("class", classes.map(|(class, depth)| (&*class.name, depth)));
    });
    table.write("drip_origin_queue_wait_seconds", |it, series| {
        series.durations("", &it.gate.metrics().waits.histogram);
    });
    table.write("drip_origin_blocked_seconds_total", |it, series| {
        let blocked = BlockedBy::ALL.into_iter().zip(it.state.blocked);
        series.each(
            "by",
            blocked.map(|(by, time)| (by.label(), time.as_secs_f64())),
        );
    });
}

fn write_limits(table: &mut Table<'_, GateNow<'_>>) {
    table.write("drip_origin_rate", |it, series| {
        file_and_now(series, gates::rate(it.origin, &it.state, Rate::per_second));
    });
    table.write("drip_origin_in_flight_limit", |it, series| {
        file_and_now(series, gates::max_in_flight(it.origin, &it.state));
    });
    table.write("drip_origin_override", |it, series| {
        let other = it.state.overridden.as_ref();
        let kinds = [
            ("rate", other.is_some_and(|it| it.rate.is_some())),
            (
                "max_in_flight",
                other.is_some_and(|it| it.max_in_flight.is_some()),
            ),
            ("pause", other.is_some_and(|it| it.is_paused)),
        ];
        series.each("kind", kinds.map(|(kind, is_on)| (kind, u8::from(is_on))));
    });
}

/// Writes a setting as the file has it, and as it is now in force.
fn file_and_now<V: std::fmt::Display>(series: &mut Series, setting: FileAndNow<V>) {
    let both = [("file", setting.file), ("now", setting.now)];
    series.each(
        "of",
        both.into_iter()
            .filter_map(|(of, value)| Some((of, value?))),
    );
}

fn write_counts(table: &mut Table<'_, GateNow<'_>>) {
    table.write("drip_origin_rejections_total", |it, series| {
        series.counts("reason", &it.gate.metrics().rejections);
    });
    table.write("drip_origin_class_requests_total", |it, series| {
        for class in &it.origin.classes {
            let passed = it.gate.metrics().class(&class.name).get();
            series.each("class", [(&*class.name, passed)]);
        }
    });
    table.write("drip_origin_backoffs_total", |it, series| {
        series.counts("reason", &it.gate.metrics().backoffs);
    });
    table.write("drip_origin_adopted_backoffs_total", |it, series| {
        series.counts("reason", &it.gate.metrics().adopted);
    });
    table.write("drip_origin_lost_slots_total", |it, series| {
        series.add(it.gate.metrics().lost_slots.get());
    });
    table.write("drip_origin_invalid_retry_after_total", |it, series| {
        series.add(it.gate.metrics().invalid_retry_afters.get());
    });
}

/// Writes how gateways share the rates of origins.
fn write_sharing(table: &mut Table<'_, &GateSharing>) {
    table.write("drip_origin_shared", |it, series| {
        series.add(u8::from(!it.is_alone));
    });
    table.write("drip_origin_gateways", |it, series| {
        series.add_some(it.gateways);
    });
    table.write("drip_origin_part", |it, series| series.add(it.part));
    table.write("drip_origin_slots_total", |it, series| {
        series.each(
            "result",
            [("used", it.slots.used), ("lapsed", it.slots.lapsed)],
        );
    });
}

/// Writes how gateways share the places of origins.
fn write_places(table: &mut Table<'_, &PlaceSharing>) {
    table.write("drip_origin_places_shared", |it, series| {
        series.add(u8::from(!it.is_out));
    });
    table.write("drip_origin_places_held", |it, series| series.add(it.held));
    table.write("drip_origin_places_gateways", |it, series| {
        series.add_some(it.pool.as_ref().map(|pool| pool.gateways));
    });
    table.write("drip_origin_places", |it, series| {
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
