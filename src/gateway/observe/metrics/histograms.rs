use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ::metrics::{Histogram, HistogramFn, Key};
use indexmap::IndexMap;
use metrics_exporter_prometheus::LabelSet;
use metrics_exporter_prometheus::formatting::{
    write_help_line, write_metric_line, write_type_line,
};

use super::SECONDS;
use super::sharded::Sharded;

/// The histograms of this process but for those of servers. Each has the edges of [`SECONDS`].
///
/// The exporter's own histograms keep every value until they are rendered or a timer folds them.
/// Under load that takes megabytes, and time for each value twice. Here a value costs two
/// additions and no memory.
#[derive(Debug, Default)]
pub struct Histograms {
    families: Mutex<BTreeMap<String, Family>>,
}

/// The histograms of one name.
#[derive(Debug, Default)]
struct Family {
    help: String,
    series: HashMap<Key, Arc<DurationHistogram>>,
}

/// A histogram for Prometheus. It takes no memory before the first duration.
#[derive(Debug, Default)]
pub struct DurationHistogram(Sharded<Values>);

#[derive(Debug, Default)]
struct Values {
    /// Counts by the first edge that a value does not exceed; `above` counts the other values.
    counts: [AtomicU64; SECONDS.len()],
    above: AtomicU64,
    /// The sum of all values, in nanoseconds.
    nanos: AtomicU64,
}

/// The edges in nanoseconds.
const EDGES: [u64; SECONDS.len()] = {
    let mut edges = [0; SECONDS.len()];
    let mut at = 0;
    while at < edges.len() {
        edges[at] = nanos(SECONDS[at]);
        at += 1;
    }
    edges
};

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "what no duration is saturates"
)]
const fn nanos(seconds: f64) -> u64 {
    (seconds * 1e9 + 0.5) as u64
}

impl HistogramFn for DurationHistogram {
    fn record(&self, seconds: f64) {
        self.record_nanos(nanos(seconds));
    }
}

impl Histograms {
    fn families(&self) -> MutexGuard<'_, BTreeMap<String, Family>> {
        self.families.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the help text of the histograms of this name.
    pub fn describe(&self, name: &str, help: &str) {
        help.clone_into(&mut self.families().entry(name.to_owned()).or_default().help);
    }

    /// The histogram of this name and these labels; each call returns the same one.
    pub fn register(&self, key: &Key) -> Histogram {
        let mut families = self.families();
        let family = families.entry(key.name().to_owned()).or_default();
        let series = family.series.entry(key.clone()).or_default();
        Histogram::from_arc(Arc::clone(series))
    }

    /// Appends all histograms to `out`, in the text format of Prometheus.
    pub fn render(&self, out: &mut String) {
        for (name, family) in self.families().iter() {
            if family.series.is_empty() {
                continue;
            }
            write_help_line(out, name, None, None, &family.help);
            write_type_line(out, name, None, None, "histogram");
            for (key, series) in &family.series {
                series.render(key, out);
            }
        }
    }
}

impl DurationHistogram {
    /// Counts a duration.
    pub fn record(&self, span: Duration) {
        self.record_nanos(u64::try_from(span.as_nanos()).unwrap_or(u64::MAX));
    }

    fn record_nanos(&self, nanos: u64) {
        let values = self.0.here();
        let first = EDGES.iter().position(|edge| nanos <= *edge);
        let count = first.map_or(&values.above, |first| &values.counts[first]);
        count.fetch_add(1, Ordering::Relaxed);
        values.nanos.fetch_add(nanos, Ordering::Relaxed);
    }

    /// How many durations were counted.
    #[must_use]
    pub fn count(&self) -> u64 {
        let counts = self
            .0
            .iter()
            .flat_map(|it| it.counts.iter().chain([&it.above]));
        counts.map(|count| count.load(Ordering::Relaxed)).sum()
    }

    /// Appends its lines to `out`, with the name and the labels of `key`.
    #[expect(
        clippy::cast_precision_loss,
        reason = "a sum of seconds needs no 64 bits"
    )]
    pub fn render(&self, key: &Key, out: &mut String) {
        let (name, labels) = (
            key.name(),
            &LabelSet::from_key_and_global(key, &IndexMap::new()),
        );
        let sum = |part: &dyn Fn(&Values) -> &AtomicU64| -> u64 {
            let parts = self.0.iter().map(part);
            parts.map(|part| part.load(Ordering::Relaxed)).sum()
        };
        let mut so_far = 0;
        for (index, edge) in SECONDS.iter().enumerate() {
            so_far += sum(&|values| &values.counts[index]);
            let le = Some(("le", edge));
            write_metric_line(out, name, Some("bucket"), labels, le, so_far, None);
        }
        so_far += sum(&|values| &values.above);
        let le = Some(("le", "+Inf"));
        write_metric_line(out, name, Some("bucket"), labels, le, so_far, None);
        let seconds = sum(&|values| &values.nanos) as f64 / 1e9;
        let none = None::<(_, f64)>;
        write_metric_line(out, name, Some("sum"), labels, none, seconds, None);
        write_metric_line(out, name, Some("count"), labels, none, so_far, None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_counted_at_every_edge_that_it_does_not_exceed() {
        let histograms = Histograms::default();
        histograms.describe("wait_seconds", "How long.");
        let key = Key::from_parts("wait_seconds", vec![::metrics::Label::new("zone", "a\"b")]);
        for seconds in [0.0001, 0.0002, 2.5, 100.0] {
            histograms.register(&key).record(seconds);
        }
        let direct = DurationHistogram::default();
        for micros in [100, 101] {
            direct.record(Duration::from_micros(micros));
        }
        assert_eq!(direct.count(), 2);
        let mut out = String::new();
        direct.render(&Key::from_name("direct"), &mut out);
        histograms.render(&mut out);
        let labels = "zone=\"a\\\"b\"";
        for line in [
            "# HELP wait_seconds How long.".to_owned(),
            "# TYPE wait_seconds histogram".to_owned(),
            format!("wait_seconds_bucket{{{labels},le=\"0.0001\"}} 1"),
            format!("wait_seconds_bucket{{{labels},le=\"0.00025\"}} 2"),
            format!("wait_seconds_bucket{{{labels},le=\"1\"}} 2"),
            format!("wait_seconds_bucket{{{labels},le=\"2.5\"}} 3"),
            format!("wait_seconds_bucket{{{labels},le=\"60\"}} 3"),
            format!("wait_seconds_bucket{{{labels},le=\"+Inf\"}} 4"),
            format!("wait_seconds_sum{{{labels}}} 102.5003"),
            format!("wait_seconds_count{{{labels}}} 4"),
            "direct_bucket{le=\"0.0001\"} 1".to_owned(),
            "direct_sum 0.000201".to_owned(),
        ] {
            assert!(out.lines().any(|told| told == line), "{line}\n{out}");
        }
    }

    #[test]
    fn from_one_to_ten_seconds_an_edge_is_at_most_half_above_the_one_before() {
        let near = SECONDS.iter().filter(|edge| (1.0..=10.0).contains(*edge));
        let near: Vec<f64> = near.copied().collect();
        assert_eq!((near.first(), near.last()), (Some(&1.0), Some(&10.0)));
        // Where nobody waits longer than 3 s, no quantile is read above 3 s.
        assert!(near.contains(&3.0));
        for pair in near.windows(2) {
            assert!(pair[1] > pair[0] && pair[1] <= pair[0] * 1.5, "{pair:?}");
        }
    }
}
