//! `/metrics`: the recorder's metrics and those that are collected from the zones.
//!
//! The series of zones, origins and routes that are no longer in the file are left out.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use metrics_exporter_prometheus::formatting::sanitize_label_value;
use tokio::time::timeout;

use super::Recorder;
use super::sampler::shared_key::untrusted_proxies;
use crate::actors::{Zone, ZoneStats};
use crate::http::gateway::Gateway;
use crate::http::upstream::{BlockedBy, GateSharing};
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

/// How many keys of a zone have a series of their own.
pub(super) const TOP_KEYS: usize = 10;
/// How long the workers may take to report the state of their zones.
const STATS_TIMEOUT: Duration = Duration::from_secs(1);

/// The current state of a gateway's zones.
pub(super) struct Exposition {
    gateway: Arc<Gateway>,
    /// Those that answered in time, by their indices.
    zones: Vec<(usize, ZoneStats)>,
}

impl Exposition {
    pub(super) async fn of(gateway: &Arc<Gateway>) -> Self {
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
    pub(super) fn render(&self, recorder: &Recorder) -> String {
        self.gateway.show_metrics();
        let mut text = CurrentNames::of(&self.gateway).select(&recorder.render());
        family(&mut text, GATEWAY, GATEWAY_HELP);
        let name = &self.gateway.settings().server.name;
        sample(&mut text, GATEWAY, &[("name", name)], 1);
        self.write_zones(&mut text);
        self.write_gates(&mut text);
        text
    }

    fn write_gates(&self, out: &mut String) {
        let origins = self.gateway.origins().iter();
        let gates = origins.filter_map(|origin| Some((origin.settings(), origin.gate()?.state(0))));
        let gates: Vec<_> = gates.collect();
        if gates.is_empty() {
            return;
        }
        family(out, ORIGIN_DEPTH, ORIGIN_DEPTH_HELP);
        for (origin, state) in &gates {
            sample(out, ORIGIN_DEPTH, &[("origin", &origin.name)], state.depth);
        }
        if gates.iter().any(|(_, state)| !state.classes.is_empty()) {
            family(out, ORIGIN_CLASS_DEPTH, ORIGIN_CLASS_DEPTH_HELP);
        }
        for (origin, state) in &gates {
            for (class, depth) in &state.classes {
                let labels = [("origin", origin.name.as_str()), ("class", &*class.name)];
                sample(out, ORIGIN_CLASS_DEPTH, &labels, depth);
            }
        }
        family(out, ORIGIN_RATE, ORIGIN_RATE_HELP);
        for (origin, state) in &gates {
            for (of, rate) in [("file", origin.rate), ("now", state.rate)] {
                if let Some(rate) = rate {
                    let labels = [("origin", origin.name.as_str()), ("of", of)];
                    sample(out, ORIGIN_RATE, &labels, rate.per_second());
                }
            }
        }
        family(out, ORIGIN_IN_FLIGHT_LIMIT, ORIGIN_IN_FLIGHT_LIMIT_HELP);
        for (origin, state) in &gates {
            let of_file = origin.max_in_flight.map(NonZeroUsize::get);
            for (of, limit) in [("file", of_file), ("now", state.max_in_flight)] {
                if let Some(limit) = limit {
                    let labels = [("origin", origin.name.as_str()), ("of", of)];
                    sample(out, ORIGIN_IN_FLIGHT_LIMIT, &labels, limit);
                }
            }
        }
        typed(out, ORIGIN_BLOCKED, ORIGIN_BLOCKED_HELP, "counter");
        for (origin, state) in &gates {
            for (by, time) in BlockedBy::ALL.into_iter().zip(state.blocked) {
                let labels = [("origin", origin.name.as_str()), ("by", by.label())];
                sample(out, ORIGIN_BLOCKED, &labels, time.as_secs_f64());
            }
        }
        let shared = gates.iter().filter_map(|(origin, state)| {
            let sharing = state.sharing.as_ref()?;
            Some((origin.name.as_str(), sharing))
        });
        write_sharing(out, &shared.collect::<Vec<_>>());
    }

    fn write_zones(&self, out: &mut String) {
        let settings = |index| self.gateway.zone(index).settings();
        let zones = self.zones.iter();
        let zones: Vec<_> = zones.map(|it| (settings(it.0), &it.1)).collect();
        family(out, ZONE_DEPTH_MAX, ZONE_DEPTH_MAX_HELP);
        for (zone, stats) in &zones {
            sample(
                out,
                ZONE_DEPTH_MAX,
                &[("zone", &zone.name)],
                stats.depth_max,
            );
        }
        family(out, ZONE_OLDEST_WAIT, ZONE_OLDEST_WAIT_HELP);
        for (zone, stats) in &zones {
            let seconds = stats.oldest_wait.as_secs_f64();
            sample(out, ZONE_OLDEST_WAIT, &[("zone", &zone.name)], seconds);
        }
        family(out, ZONE_UNTRUSTED_PROXY, ZONE_UNTRUSTED_PROXY_HELP);
        for (index, zone) in self.gateway.zones().iter().enumerate() {
            let mut peers = untrusted_proxies(&self.gateway, index);
            let labels = [("zone", zone.settings().name.as_str())];
            let is_there = u8::from(peers.next().is_some());
            sample(out, ZONE_UNTRUSTED_PROXY, &labels, is_there);
        }
        family(out, ZONE_TOP_KEY, ZONE_TOP_KEY_HELP);
        for (zone, stats) in &zones {
            let names = KeyNames::of(zone);
            // Two keys may have the same name after it is cut off. The deeper key comes first.
            let mut seen = HashSet::new();
            for state in &stats.deepest {
                let key = names.short(&state.key);
                if seen.insert(key.clone()) {
                    let labels = [("zone", zone.name.as_str()), ("key", key.as_str())];
                    sample(out, ZONE_TOP_KEY, &labels, state.depth);
                }
            }
        }
    }
}

/// Writes how the rates of these origins are shared.
fn write_sharing(out: &mut String, origins: &[(&str, &GateSharing)]) {
    if origins.is_empty() {
        return;
    }
    family(out, ORIGIN_SHARED, ORIGIN_SHARED_HELP);
    for (origin, sharing) in origins {
        let is_shared = u8::from(!sharing.is_alone);
        sample(out, ORIGIN_SHARED, &[("origin", origin)], is_shared);
    }
    family(out, ORIGIN_GATEWAYS, ORIGIN_GATEWAYS_HELP);
    for (origin, sharing) in origins {
        if let Some(gateways) = sharing.gateways {
            sample(out, ORIGIN_GATEWAYS, &[("origin", origin)], gateways);
        }
    }
    family(out, ORIGIN_PART, ORIGIN_PART_HELP);
    for (origin, sharing) in origins {
        sample(out, ORIGIN_PART, &[("origin", origin)], sharing.part);
    }
    typed(out, ORIGIN_SLOTS, ORIGIN_SLOTS_HELP, "counter");
    for (origin, sharing) in origins {
        let slots = sharing.slots;
        for (result, count) in [("used", slots.used), ("lapsed", slots.lapsed)] {
            let labels = [("origin", *origin), ("result", result)];
            sample(out, ORIGIN_SLOTS, &labels, count);
        }
    }
}

/// The current state of a zone; `None` if a worker does not answer in time.
pub(super) async fn stats(zone: &Zone) -> Option<ZoneStats> {
    timeout(STATS_TIMEOUT, zone.stats(TOP_KEYS)).await.ok()
}

fn family(out: &mut String, name: &str, help: &str) {
    typed(out, name, help, "gauge");
}

fn typed(out: &mut String, name: &str, help: &str, kind: &str) {
    // Writing to a string does not fail.
    let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}");
}

fn sample(out: &mut String, name: &str, labels: &[(&str, &str)], value: impl std::fmt::Display) {
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

    fn has(&self, line: &str) -> bool {
        let Some((name, labels)) = line.split_once('{') else {
            return true;
        };
        let first = match name {
            name if GATE.iter().any(|prefix| name.starts_with(prefix)) => 1,
            name if name.starts_with("drip_origin_") => 2,
            name if name.starts_with("drip_zone_") => 1,
            name if name.starts_with("drip_plan_") => 2,
            name if name.starts_with("drip_request") => 1,
            _ => return true,
        };
        labels_end(labels, first).is_none_or(|end| self.0.contains(&labels[..end]))
    }
}

/// How the names of a gate's metrics begin: these have no label `server`.
const GATE: [&str; 4] = [
    "drip_origin_queue_wait_seconds",
    "drip_origin_rejections_total",
    "drip_origin_lost_slots_total",
    "drip_origin_backoffs_total",
];

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
                ("zone", "z"),
                (
                    "key",
                    &KeyNames::at_gate(None).short(b"a\"\\\n\xff<script>"),
                ),
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
