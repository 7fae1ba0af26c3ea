use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ::metrics::{Counter, Gauge, Key};
use indexmap::IndexMap;
use metrics_exporter_prometheus::LabelSet;
use metrics_exporter_prometheus::formatting::{
    write_help_line, write_metric_line, write_type_line,
};

use super::held::{HeldSeries, is_of_server};
use crate::time::clock;

/// The counters and gauges of servers. The exporter would never forget one.
#[derive(Debug, Default)]
pub struct ServerSeries {
    families: Mutex<BTreeMap<String, Family>>,
}

/// The counters or gauges of one name.
#[derive(Debug, Default)]
struct Family {
    help: String,
    is_gauge: bool,
    /// The counts, or the bits of the gauges' values.
    series: HeldSeries<AtomicU64>,
}

impl ServerSeries {
    /// Sets the help text of the counters or gauges of this name.
    pub fn describe(&self, name: &str, help: &str) {
        help.clone_into(&mut self.families().entry(name.to_owned()).or_default().help);
    }

    /// The counter of this name and these labels; `None` if it is not one of a server.
    pub fn counter(&self, key: &Key) -> Option<Counter> {
        self.series(key, false).map(Counter::from_arc)
    }

    /// The gauge of this name and these labels; `None` if it is not one of a server.
    pub fn gauge(&self, key: &Key) -> Option<Gauge> {
        self.series(key, true).map(Gauge::from_arc)
    }

    fn series(&self, key: &Key, is_gauge: bool) -> Option<Arc<AtomicU64>> {
        is_of_server(key).then(|| {
            let mut families = self.families();
            let family = families.entry(key.name().to_owned()).or_default();
            family.is_gauge = is_gauge;
            family.series.get(key, clock::now())
        })
    }

    /// Appends all to `out`, in the text format of Prometheus.
    pub fn render(&self, out: &mut String) {
        let now = clock::now();
        for (name, family) in self.families().iter_mut() {
            let series = family.series.iter(now);
            if series.len() == 0 {
                continue;
            }
            let kind = if family.is_gauge { "gauge" } else { "counter" };
            write_help_line(out, name, None, None, &family.help);
            write_type_line(out, name, None, None, kind);
            for (key, series) in series {
                let labels = LabelSet::from_key_and_global(key, &IndexMap::new());
                let (none, value) = (None::<(_, f64)>, series.load(Ordering::Acquire));
                if family.is_gauge {
                    let value = f64::from_bits(value);
                    write_metric_line(out, name, None, &labels, none, value, None);
                } else {
                    write_metric_line(out, name, None, &labels, none, value, None);
                }
            }
        }
    }

    fn families(&self) -> MutexGuard<'_, BTreeMap<String, Family>> {
        self.families.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use ::metrics::Label;

    use super::*;

    #[test]
    fn counters_and_gauges_of_servers_are_rendered_and_others_are_left_to_the_exporter() {
        let all = ServerSeries::default();
        let key = |name: &'static str, label: &'static str| {
            Key::from_parts(name, vec![Label::new(label, "a\"b")])
        };
        for (name, help) in [("requests", "Sent."), ("healthy", "Healthy."), ("c", "No.")] {
            all.describe(name, help);
        }
        assert!(all.counter(&key("c", "zone")).is_none());
        assert!(all.gauge(&key("c", "zone")).is_none());
        all.counter(&key("requests", "server"))
            .expect("one of a server")
            .increment(3);
        all.gauge(&key("healthy", "server"))
            .expect("one of a server")
            .set(0.5);
        let mut out = String::new();
        all.render(&mut out);
        assert_eq!(
            out,
            "# HELP healthy Healthy.\n# TYPE healthy gauge\nhealthy{server=\"a\\\"b\"} 0.5\n\
             # HELP requests Sent.\n# TYPE requests counter\nrequests{server=\"a\\\"b\"} 3\n"
        );
    }
}
