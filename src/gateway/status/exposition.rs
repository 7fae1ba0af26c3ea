//! `/metrics`: the recorder's metrics and those that are collected from the zones.
//!
//! The series of zones, origins and routes that are no longer in the file are left out.

mod body_buffers;
mod certificates;
mod learned_costs;
mod places;
mod rooms;
mod servers;
mod shared;

use std::collections::HashSet;
use std::fmt::{Display, Write as _};
use std::time::Duration;

use limit::Rate;
use metrics_exporter_prometheus::formatting::sanitize_label_value;
use tokio::time::timeout;

use super::sampler::shared_key::untrusted_proxies;
use super::views::FileAndNow;
use super::{Recorder, gates};
use crate::gate::{BlockedBy, GateSharing};
use crate::http::gateway::Gateway;
use crate::observe::key_names::KeyNames;
use crate::observe::metrics::NO_ROUTE;
use crate::zone::{Zone, ZoneStats};

/// How many keys of a zone have a series of their own.
pub(crate) const TOP_KEYS: usize = 10;
/// How long the workers may take to report the state of their zones.
const STATS_TIMEOUT: Duration = Duration::from_secs(1);

/// All metrics, in the text format of Prometheus.
pub(crate) async fn render(gateway: &Gateway, recorder: &Recorder) -> String {
    gateway.show_metrics();
    let mut text = CurrentNames::of(gateway).select(&recorder.render());
    // A reload may change the name, and the recorder would keep the former one.
    let mut info = Family::gauge("drip_gateway_info", "1, with the name of this gateway.");
    info.add(&[("name", &gateway.settings().server.name)], 1);
    text.push_str(&info.text);
    write_zones(&mut text, gateway).await;
    servers::write(&mut text, gateway);
    write_gates(&mut text, gateway);
    learned_costs::write(&mut text, gateway);
    rooms::write(&mut text, gateway);
    shared::write(&mut text, gateway);
    body_buffers::write(&mut text, gateway);
    certificates::write(&mut text, gateway);
    text
}

/// Writes what the zones report, as far as their workers answer in time.
async fn write_zones(out: &mut String, gateway: &Gateway) {
    let mut depths = Family::gauge(
        "drip_zone_queue_depth_max",
        "Requests waiting at the zone's deepest key.",
    );
    let mut waits = Family::gauge(
        "drip_zone_oldest_wait_seconds",
        "How long the oldest waiting request of the zone has waited.",
    );
    let mut proxies = Family::gauge(
        "drip_zone_untrusted_proxy",
        "1 while a peer that is not in trusted_proxies names different clients in limited requests, else 0.",
    );
    let mut keys = Family::gauge(
        "drip_zone_top_key_queue_depth",
        "Requests waiting at each of the zone's deepest keys, at most ten.",
    );
    for (index, zone) in gateway.zones().iter().enumerate() {
        let settings = zone.settings();
        let name = ("zone", settings.name.as_str());
        let is_there = untrusted_proxies(gateway, index).next().is_some();
        proxies.add(&[name], u8::from(is_there));
        let Some(stats) = stats(zone).await else {
            continue;
        };
        depths.add(&[name], stats.depth_max);
        waits.add(&[name], stats.oldest_wait.as_secs_f64());
        // Two keys may have the same name after it is cut off. The deeper key comes first.
        let mut seen = HashSet::new();
        for state in &stats.deepest {
            let key = KeyNames::of(settings).short(&state.key);
            if seen.insert(key.clone()) {
                keys.add(&[name, ("key", &key)], state.depth);
            }
        }
    }
    for family in [depths, waits, proxies, keys] {
        out.push_str(&family.text);
    }
}

fn write_gates(out: &mut String, gateway: &Gateway) {
    let origins = gateway.origins().iter();
    let gates = origins.filter_map(|origin| Some((origin.settings(), origin.gate()?.state(0))));
    let gates: Vec<_> = gates.collect();
    if gates.is_empty() {
        return;
    }
    let mut depths = Family::gauge(
        "drip_origin_queue_depth",
        "Requests waiting at the origin's gate.",
    );
    let mut classes = Family::gauge(
        "drip_origin_class_queue_depth",
        "Requests of a class waiting at the origin's gate.",
    );
    let mut rates = Family::gauge(
        "drip_origin_rate",
        "The rate of the origin's gate in requests a second: of the file, and now in force.",
    );
    let mut places = Family::gauge(
        "drip_origin_in_flight_limit",
        "Most requests at the origin at once: of the file, and now in force.",
    );
    let mut blocked = Family::counter(
        "drip_origin_blocked_seconds_total",
        "How long any request waited at the origin's gate, by what the first one waited for.",
    );
    let mut overrides = Family::gauge(
        "drip_origin_override",
        "1 while the origin's gate is not as in the file, by kind: rate, max_in_flight, pause.",
    );
    for (origin, gate) in &gates {
        let name = ("origin", origin.name.as_str());
        let other = gate.overridden.as_ref();
        for (kind, is_on) in [
            ("rate", other.is_some_and(|it| it.rate.is_some())),
            (
                "max_in_flight",
                other.is_some_and(|it| it.max_in_flight.is_some()),
            ),
            ("pause", other.is_some_and(|it| it.is_paused)),
        ] {
            overrides.add(&[name, ("kind", kind)], u8::from(is_on));
        }
        depths.add(&[name], gate.depth);
        for (class, depth) in &gate.classes {
            classes.add(&[name, ("class", &class.name)], depth);
        }
        let rate = gates::rate(origin, gate, Rate::per_second);
        let most = gates::max_in_flight(origin, gate);
        rates.add_file_and_now(name, rate);
        places.add_file_and_now(name, most);
        for (by, time) in BlockedBy::ALL.into_iter().zip(gate.blocked) {
            blocked.add(&[name, ("by", by.label())], time.as_secs_f64());
        }
    }
    let has_classes = gates.iter().any(|(_, gate)| !gate.classes.is_empty());
    let classes = has_classes.then_some(classes);
    let families = [
        Some(depths),
        classes,
        Some(rates),
        Some(places),
        Some(blocked),
        Some(overrides),
    ];
    for family in families.into_iter().flatten() {
        out.push_str(&family.text);
    }
    let shared = gates.iter();
    let shared = shared.filter_map(|(origin, it)| Some((&*origin.name, it.sharing.as_ref()?)));
    write_sharing(out, &shared.collect::<Vec<_>>());
    let places = gates.iter();
    let places = places.filter_map(|(origin, it)| Some((&*origin.name, it.places.as_ref()?)));
    places::write(out, &places.collect::<Vec<_>>());
}

/// Writes how gateways share the rates of origins; nothing if they share none.
fn write_sharing(out: &mut String, shared: &[(&str, &GateSharing)]) {
    if shared.is_empty() {
        return;
    }
    let mut together = Family::gauge(
        "drip_origin_shared",
        "1 while the gate takes its slots from the grid in Redis, 0 while it goes on alone: Redis is out or refuses its key.",
    );
    let mut gateways = Family::gauge(
        "drip_origin_gateways",
        "Gateways that share the origin's rate, as this one was last told.",
    );
    let mut parts = Family::gauge(
        "drip_origin_part",
        "This gateway's part of the origin's rate, from 0 to 1.",
    );
    let mut slots = Family::counter(
        "drip_origin_slots_total",
        "Slots of the grid in Redis that the gate was granted, by what became of them.",
    );
    for (origin, sharing) in shared {
        let name = ("origin", *origin);
        together.add(&[name], u8::from(!sharing.is_alone));
        if let Some(count) = sharing.gateways {
            gateways.add(&[name], count);
        }
        parts.add(&[name], sharing.part);
        slots.add(&[name, ("result", "used")], sharing.slots.used);
        slots.add(&[name, ("result", "lapsed")], sharing.slots.lapsed);
    }
    for family in [together, gateways, parts, slots] {
        out.push_str(&family.text);
    }
}

/// The current state of a zone; `None` if a worker does not answer in time.
pub(crate) async fn stats(zone: &Zone) -> Option<ZoneStats> {
    timeout(STATS_TIMEOUT, zone.stats(TOP_KEYS)).await.ok()
}

/// All series of one name, in the text format of Prometheus. There may be none now.
struct Family {
    name: &'static str,
    text: String,
}

impl Family {
    fn gauge(name: &'static str, help: &str) -> Self {
        Self::new(name, help, "gauge")
    }

    fn counter(name: &'static str, help: &str) -> Self {
        Self::new(name, help, "counter")
    }

    fn new(name: &'static str, help: &str, kind: &str) -> Self {
        let text = format!("# HELP {name} {help}\n# TYPE {name} {kind}\n");
        Self { name, text }
    }

    /// Adds a series.
    fn add(&mut self, labels: &[(&str, &str)], value: impl Display) {
        let out = &mut self.text;
        out.push_str(self.name);
        for (nth, (label, value)) in labels.iter().enumerate() {
            // Writing to a string does not fail.
            let _ = write!(out, "{}{label}=\"", if nth == 0 { '{' } else { ',' });
            for c in value.chars() {
                match c {
                    '\\' => out.push_str("\\\\"),
                    '"' => out.push_str("\\\""),
                    '\n' => out.push_str("\\n"),
                    c => out.push(c),
                }
            }
            out.push('"');
        }
        let end = if labels.is_empty() { "" } else { "}" };
        let _ = writeln!(out, "{end} {value}");
    }

    /// Adds a setting as the file has it, and as it is now in force.
    fn add_file_and_now<V: Display>(&mut self, name: (&str, &str), setting: FileAndNow<V>) {
        for (of, value) in [("file", setting.file), ("now", setting.now)] {
            if let Some(value) = value {
                self.add(&[name, ("of", of)], value);
            }
        }
    }
}

/// The first labels of the series that are in force.
///
/// Those of waiting rooms begin with `room:`, those of routes that collapse with `shared:`.
///
/// The recorder forgets no series. Those of something that left the file are left out here. If it comes
/// back, they continue from their last values.
struct CurrentNames(HashSet<String>);

impl CurrentNames {
    fn of(gateway: &Gateway) -> Self {
        let mut labels = HashSet::new();
        for zone in gateway.zones_in_use() {
            let name = &zone.settings().name;
            labels.insert(format!("zone=\"{name}\""));
            for plan in zone.settings().plans.iter() {
                labels.insert(format!("zone=\"{name}\",plan=\"{}\"", plan.name));
            }
        }
        for (index, origin) in gateway.origins().iter().enumerate() {
            let name = &origin.settings().name;
            if origin.gate().is_some() {
                labels.insert(format!("origin=\"{name}\""));
                for class in &origin.settings().classes {
                    labels.insert(format!("origin=\"{name}\",class=\"{}\"", class.name));
                }
            }
            if origin.settings().room.is_some() {
                labels.insert(format!("room:origin=\"{name}\""));
            }
            if gateway.collapse_metrics(index).is_some() {
                labels.insert(format!("shared:origin=\"{name}\""));
            }
        }
        let routes = gateway.counted_routes().map(|(name, _)| name);
        for route in routes.chain([NO_ROUTE.to_owned()]) {
            labels.insert(format!("route=\"{}\"", sanitize_label_value(&route)));
        }
        Self(labels)
    }

    fn select(&self, text: &str) -> String {
        let mut selected = String::with_capacity(text.len() + 1024);
        for line in text.lines().filter(|line| self.has(line)) {
            selected.push_str(line);
            selected.push('\n');
        }
        selected
    }

    /// Whether a line is in force: its first label, and the second one if that is a part of the first.
    fn has(&self, line: &str) -> bool {
        let labels = line.split_once('{').map_or("", |(_, labels)| labels);
        let begins = |label: &str| labels.starts_with(label);
        let is_named = ["zone=", "origin=", "route="].into_iter().any(begins);
        // Zones and origins share the counts of the store.
        if !is_named || line.starts_with("drip_store_") {
            return true;
        }
        // An origin may have a room, or routes that collapse, and no gate.
        for (name, part) in [("drip_room_", "room:"), ("drip_shared_", "shared:")] {
            if line.starts_with(name) {
                let end = labels_end(labels, 1);
                return end.is_none_or(|end| self.0.contains(&format!("{part}{}", &labels[..end])));
            }
        }
        let first = labels_end(labels, 1).unwrap_or_default();
        let second = labels.get(first + 1..).unwrap_or_default();
        let mut parts = ["plan=", "class="].into_iter();
        let parts = parts.any(|label| second.starts_with(label));
        labels_end(labels, 1 + usize::from(parts)).is_none_or(|end| self.0.contains(&labels[..end]))
    }
}

/// The index after the first `count` labels.
fn labels_end(labels: &str, count: usize) -> Option<usize> {
    let (mut quotes, mut escaped) = (0, false);
    labels
        .bytes()
        .position(|byte| {
            match byte {
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                b'"' => quotes += 1,
                _ => {}
            }
            quotes == 2 * count
        })
        .map(|last| last + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_escaped_as_prometheus_reads_them() {
        let mut family = Family::gauge("m", "About m.");
        let key = KeyNames::at_gate(None).short(b"a\"\\\n\xff<script>");
        family.add(&[("zone", "z"), ("key", &key)], 3);
        assert_eq!(
            family.text,
            "# HELP m About m.\n# TYPE m gauge\nm{zone=\"z\",key=\"a\\\"\\\\\\\\\\\\x0A\\\\xFF<script>\"} 3\n"
        );
    }

    #[test]
    fn what_left_the_file_is_left_out() {
        let labels = [
            "zone=\"a\"",
            "route=\"/\"",
            "zone=\"a\",plan=\"p\"",
            "origin=\"o\",class=\"c\"",
            "room:origin=\"r\"",
            "shared:origin=\"s\"",
        ];
        let in_force = CurrentNames(labels.map(str::to_owned).into());
        let kept = "# HELP drip_zone_rate x\ndrip_zone_rate{zone=\"a\"} 1\ndrip_zone_keys{zone=\"a\",state=\"x\"} 1\n\
                    drip_requests_total{route=\"/\",code=\"200\"} 1\n\
                    drip_plan_requests_total{zone=\"a\",plan=\"p\",status=\"passed\"} 1\n\
                    drip_origin_class_requests_total{origin=\"o\",class=\"c\"} 1\n\
                    drip_room_requests_total{origin=\"r\",request=\"poll\"} 1\n\
                    drip_shared_requests_total{origin=\"s\",outcome=\"kept\"} 1\n\
                    drip_shared_wait_seconds_bucket{origin=\"s\",le=\"0.1\"} 1\n\
                    drip_build_info{version=\"1\"} 1\nprocess_threads 3\n";
        let gone = "drip_zone_rate{zone=\"b\"} 1\ndrip_zone_keys{zone=\"b\",state=\"a\"} 1\n\
                    drip_plan_requests_total{zone=\"a\",plan=\"q\",status=\"passed\"} 1\n\
                    drip_origin_class_requests_total{origin=\"o\",class=\"d\"} 1\n\
                    drip_origin_queue_depth{origin=\"r\"} 1\n\
                    drip_room_requests_total{origin=\"o\",request=\"poll\"} 1\n\
                    drip_shared_requests_total{origin=\"o\",outcome=\"kept\"} 1\n\
                    drip_shared_wait_seconds_sum{origin=\"r\"} 1\n\
                    drip_origin_queue_depth{origin=\"s\"} 1\n\
                    drip_requests_total{route=\"/b\",code=\"200\"} 1\n";
        assert_eq!(in_force.select(&format!("{kept}{gone}")), kept);
    }
}
