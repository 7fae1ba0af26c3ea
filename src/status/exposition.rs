//! `/metrics`: the recorder's metrics and those that are collected from the zones.
//!
//! The series of zones, origins and routes that are no longer in the file are left out.

use std::collections::HashSet;
use std::fmt::{Display, Write as _};
use std::iter;
use std::sync::Arc;
use std::time::Duration;

use metrics_exporter_prometheus::formatting::sanitize_label_value;
use tokio::time::timeout;

use super::sampler::shared_key::untrusted_proxies;
use super::views::FileAndNow;
use super::{Recorder, gates};
use crate::config;
use crate::gate::BlockedBy;
use crate::http::gateway::Gateway;
use crate::limit::Rate;
use crate::observe::key_names::KeyNames;
use crate::observe::metrics::{
    GATEWAY, GATEWAY_HELP, NO_ROUTE, ORIGIN_BLOCKED, ORIGIN_BLOCKED_HELP, ORIGIN_CLASS_DEPTH,
    ORIGIN_CLASS_DEPTH_HELP, ORIGIN_DEPTH, ORIGIN_DEPTH_HELP, ORIGIN_GATEWAYS,
    ORIGIN_GATEWAYS_HELP, ORIGIN_IN_FLIGHT_LIMIT, ORIGIN_IN_FLIGHT_LIMIT_HELP, ORIGIN_PART,
    ORIGIN_PART_HELP, ORIGIN_RATE, ORIGIN_RATE_HELP, ORIGIN_SHARED, ORIGIN_SHARED_HELP,
    ORIGIN_SLOTS, ORIGIN_SLOTS_HELP, ZONE_DEPTH_MAX, ZONE_DEPTH_MAX_HELP, ZONE_OLDEST_WAIT,
    ZONE_OLDEST_WAIT_HELP, ZONE_TOP_KEY, ZONE_TOP_KEY_HELP, ZONE_UNTRUSTED_PROXY,
    ZONE_UNTRUSTED_PROXY_HELP,
};
use crate::zone::{Zone, ZoneStats};

/// How many keys of a zone have a series of their own.
pub(crate) const TOP_KEYS: usize = 10;
/// How long the workers may take to report the state of their zones.
const STATS_TIMEOUT: Duration = Duration::from_secs(1);

/// The current state of a gateway's zones.
pub(crate) struct Exposition {
    gateway: Arc<Gateway>,
    /// Those that answered in time, by their indices.
    zones: Vec<(usize, ZoneStats)>,
}

impl Exposition {
    pub(crate) async fn of(gateway: &Arc<Gateway>) -> Self {
        let mut zones = Vec::new();
        for (index, zone) in gateway.zones().iter().enumerate() {
            if let Some(stats) = stats(zone).await {
                zones.push((index, stats));
            }
        }
        Self {
            gateway: Arc::clone(gateway),
            zones,
        }
    }

    /// All metrics, in the text format of Prometheus.
    pub(crate) fn render(&self, recorder: &Recorder) -> String {
        self.gateway.show_metrics();
        let mut text = CurrentNames::of(&self.gateway).select(&recorder.render());
        let name = self.gateway.settings().server.name.clone();
        let info = iter::once((vec![("name", name)], 1));
        gauge(&mut text, GATEWAY, GATEWAY_HELP, info);
        self.write_zones(&mut text);
        self.write_gates(&mut text);
        text
    }

    fn write_zones(&self, out: &mut String) {
        let settings = |index| self.gateway.zone(index).settings();
        let zones = self.zones.iter();
        let zones: Vec<_> = zones.map(|it| (settings(it.0), &it.1)).collect();
        let name = |zone: &config::Zone| vec![("zone", zone.name.clone())];
        let depths = zones.iter().map(|(zone, it)| (name(zone), it.depth_max));
        gauge(out, ZONE_DEPTH_MAX, ZONE_DEPTH_MAX_HELP, depths);
        let waits = zones.iter();
        let waits = waits.map(|(zone, it)| (name(zone), it.oldest_wait.as_secs_f64()));
        gauge(out, ZONE_OLDEST_WAIT, ZONE_OLDEST_WAIT_HELP, waits);
        let peers = self.gateway.zones().iter().enumerate();
        let peers = peers.map(|(index, zone)| {
            let is_there = untrusted_proxies(&self.gateway, index).next().is_some();
            (name(zone.settings()), u8::from(is_there))
        });
        gauge(out, ZONE_UNTRUSTED_PROXY, ZONE_UNTRUSTED_PROXY_HELP, peers);
        let keys = zones.iter().flat_map(|(zone, stats)| {
            let names = KeyNames::of(zone);
            // Two keys may have the same name after it is cut off. The deeper key comes first.
            let mut seen = HashSet::new();
            stats.deepest.iter().filter_map(move |state| {
                let key = names.short(&state.key);
                let labels = vec![("zone", zone.name.clone()), ("key", key.clone())];
                seen.insert(key).then_some((labels, state.depth))
            })
        });
        gauge(out, ZONE_TOP_KEY, ZONE_TOP_KEY_HELP, keys);
    }

    fn write_gates(&self, out: &mut String) {
        let origins = self.gateway.origins().iter();
        let gates = origins.filter_map(|origin| Some((origin.settings(), origin.gate()?.state(0))));
        let gates: Vec<_> = gates.collect();
        if gates.is_empty() {
            return;
        }
        let name = |origin: &config::Origin| vec![("origin", origin.name.clone())];
        let with = |origin: &config::Origin, label, value: &str| {
            vec![("origin", origin.name.clone()), (label, value.to_owned())]
        };
        let depths = gates.iter().map(|(origin, it)| (name(origin), it.depth));
        gauge(out, ORIGIN_DEPTH, ORIGIN_DEPTH_HELP, depths);
        let classes = gates.iter().flat_map(|(origin, it)| {
            let classes = it.classes.iter();
            classes.map(move |(class, depth)| (with(origin, "class", &class.name), depth))
        });
        optional(out, ORIGIN_CLASS_DEPTH, ORIGIN_CLASS_DEPTH_HELP, classes);
        let rates = gates.iter().flat_map(|(origin, it)| {
            let FileAndNow { file, now } = gates::rate(origin, it, Rate::per_second);
            let rates = [("file", file), ("now", now)].into_iter();
            rates.filter_map(move |(of, rate)| Some((with(origin, "of", of), rate?)))
        });
        gauge(out, ORIGIN_RATE, ORIGIN_RATE_HELP, rates);
        let limits = gates.iter().flat_map(|(origin, it)| {
            let FileAndNow { file, now } = gates::max_in_flight(origin, it);
            let limits = [("file", file), ("now", now)].into_iter();
            limits.filter_map(move |(of, limit)| Some((with(origin, "of", of), limit?)))
        });
        gauge(
            out,
            ORIGIN_IN_FLIGHT_LIMIT,
            ORIGIN_IN_FLIGHT_LIMIT_HELP,
            limits,
        );
        let blocked = gates.iter().flat_map(|(origin, it)| {
            let times = BlockedBy::ALL.into_iter().zip(it.blocked);
            times.map(move |(by, time)| (with(origin, "by", by.label()), time.as_secs_f64()))
        });
        family(out, ORIGIN_BLOCKED, ORIGIN_BLOCKED_HELP, "counter", blocked);
        let shared = gates.iter();
        let shared = shared.filter_map(|(origin, it)| Some((*origin, it.sharing.as_ref()?)));
        let shared: Vec<_> = shared.collect();
        if shared.is_empty() {
            return;
        }
        let alone = shared.iter();
        let alone = alone.map(|(origin, it)| (name(origin), u8::from(!it.is_alone)));
        gauge(out, ORIGIN_SHARED, ORIGIN_SHARED_HELP, alone);
        let gateways = shared.iter();
        let gateways = gateways.filter_map(|(origin, it)| Some((name(origin), it.gateways?)));
        gauge(out, ORIGIN_GATEWAYS, ORIGIN_GATEWAYS_HELP, gateways);
        let parts = shared.iter().map(|(origin, it)| (name(origin), it.part));
        gauge(out, ORIGIN_PART, ORIGIN_PART_HELP, parts);
        let slots = shared.iter().flat_map(|(origin, it)| {
            let slots = [("used", it.slots.used), ("lapsed", it.slots.lapsed)].into_iter();
            slots.map(move |(result, count)| (with(origin, "result", result), count))
        });
        family(out, ORIGIN_SLOTS, ORIGIN_SLOTS_HELP, "counter", slots);
    }
}

/// The current state of a zone; `None` if a worker does not answer in time.
pub(crate) async fn stats(zone: &Zone) -> Option<ZoneStats> {
    timeout(STATS_TIMEOUT, zone.stats(TOP_KEYS)).await.ok()
}

type Labels = Vec<(&'static str, String)>;

/// Writes a gauge, which may have no series now.
fn gauge<V: Display>(
    out: &mut String,
    name: &str,
    help: &str,
    series: impl Iterator<Item = (Labels, V)>,
) {
    family(out, name, help, "gauge", series);
}

/// Writes a gauge if it has any series.
fn optional<V: Display>(
    out: &mut String,
    name: &str,
    help: &str,
    series: impl Iterator<Item = (Labels, V)>,
) {
    let mut series = series.peekable();
    if series.peek().is_some() {
        gauge(out, name, help, series);
    }
}

fn family<V: Display>(
    out: &mut String,
    name: &str,
    help: &str,
    kind: &str,
    series: impl Iterator<Item = (Labels, V)>,
) {
    // Writing to a string does not fail.
    let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}");
    for (labels, value) in series {
        sample(out, name, &labels, value);
    }
}

fn sample(out: &mut String, name: &str, labels: &[(&str, String)], value: impl Display) {
    out.push_str(name);
    for (nth, (label, value)) in labels.iter().enumerate() {
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
    let _ = writeln!(out, "}} {value}");
}

/// The first labels of the series that are in force.
///
/// The recorder never forgets a series. The series of something that left the file are left out
/// here. If it comes back, they continue from their last values.
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
        for origin in gateway.origins() {
            let name = &origin.settings().name;
            if origin.gate().is_some() {
                labels.insert(format!("origin=\"{name}\""));
                for class in &origin.settings().classes {
                    labels.insert(format!("origin=\"{name}\",class=\"{}\"", class.name));
                }
            }
            for server in &origin.settings().servers {
                let server = sanitize_label_value(&server.to_string());
                labels.insert(format!("origin=\"{name}\",server=\"{server}\""));
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
        let first = labels_end(labels, 1).unwrap_or_default();
        let second = labels.get(first + 1..).unwrap_or_default();
        let mut parts = ["plan=", "server=", "class="].into_iter();
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
        let mut out = String::new();
        sample(
            &mut out,
            "m",
            &[
                ("zone", "z".to_owned()),
                ("key", KeyNames::at_gate(None).short(b"a\"\\\n\xff<script>")),
            ],
            3,
        );
        assert_eq!(
            out,
            "m{zone=\"z\",key=\"a\\\"\\\\\\\\\\\\x0A\\\\xFF<script>\"} 3\n"
        );
    }

    #[test]
    fn what_left_the_file_is_left_out() {
        let labels = [
            "zone=\"a\"",
            "origin=\"o\",server=\"unix:/\\\"}\"",
            "route=\"/\"",
            "zone=\"a\",plan=\"p\"",
            "origin=\"o\",class=\"c\"",
        ];
        let in_force = CurrentNames(labels.map(str::to_owned).into());
        let kept = "# HELP drip_zone_rate x\ndrip_zone_rate{zone=\"a\"} 1\ndrip_zone_keys{zone=\"a\",state=\"x\"} 1\n\
                    drip_origin_healthy{origin=\"o\",server=\"unix:/\\\"}\"} 1\ndrip_requests_total{route=\"/\",code=\"200\"} 1\n\
                    drip_plan_requests_total{zone=\"a\",plan=\"p\",status=\"passed\"} 1\n\
                    drip_origin_class_requests_total{origin=\"o\",class=\"c\"} 1\n\
                    drip_build_info{version=\"1\"} 1\nprocess_threads 3\n";
        let gone = "drip_zone_rate{zone=\"b\"} 1\ndrip_zone_keys{zone=\"b\",state=\"a\"} 1\n\
                    drip_plan_requests_total{zone=\"a\",plan=\"q\",status=\"passed\"} 1\n\
                    drip_origin_class_requests_total{origin=\"o\",class=\"d\"} 1\n\
                    drip_origin_healthy{origin=\"o\",server=\"x\"} 1\ndrip_requests_total{route=\"/b\",code=\"200\"} 1\n";
        assert_eq!(in_force.select(&format!("{kept}{gone}")), kept);
    }
}
