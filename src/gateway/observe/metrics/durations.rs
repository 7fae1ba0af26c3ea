//! Histograms of durations, for Prometheus and for the samples of each second.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::SECONDS;
use super::atomic_histogram::{AtomicHistogram, Counts};
use super::count::Sharded;

/// Histogram for Prometheus. It takes no memory before the first duration.
#[derive(Debug, Default)]
pub struct DurationHistogram(Sharded<Values>);

/// Counts of one shard.
#[derive(Debug, Default)]
struct Values {
    /// Counts by the first bound that a value does not exceed; `above` counts the other values.
    counts: [AtomicU64; SECONDS.len()],
    /// Count of values above all bounds.
    above: AtomicU64,
    /// Sum of all values, in nanoseconds.
    nanos: AtomicU64,
}

/// Upper bounds of the buckets, in nanoseconds.
const EDGES: [u64; SECONDS.len()] = {
    let mut edges = [0; SECONDS.len()];
    let mut index = 0;
    while index < edges.len() {
        edges[index] = nanos(SECONDS[index]);
        index += 1;
    }
    edges
};

/// Converts seconds to nanoseconds.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "edges are small and positive"
)]
const fn nanos(seconds: f64) -> u64 {
    (seconds * 1e9 + 0.5) as u64
}

impl DurationHistogram {
    /// Counts a duration.
    pub fn record(&self, span: Duration) {
        let nanos = u64::try_from(span.as_nanos()).unwrap_or(u64::MAX);
        let values = self.0.here();
        let first = EDGES.iter().position(|edge| nanos <= *edge);
        let count = first.map_or(&values.above, |first| &values.counts[first]);
        count.fetch_add(1, Ordering::Relaxed);
        values.nanos.fetch_add(nanos, Ordering::Relaxed);
    }

    /// Returns the number of counted durations.
    pub fn count(&self) -> u64 {
        let counts = self
            .0
            .iter()
            .flat_map(|values| values.counts.iter().chain([&values.above]));
        counts.map(|count| count.load(Ordering::Relaxed)).sum()
    }

    /// Returns the number of durations up to each bound, and the number of all.
    pub fn cumulative(&self) -> ([u64; SECONDS.len()], u64) {
        let mut up_to_bound = 0;
        let counts = std::array::from_fn(|index| {
            up_to_bound += self.sum(|values| &values.counts[index]);
            up_to_bound
        });
        (counts, up_to_bound + self.sum(|values| &values.above))
    }

    /// Returns the sum of all durations, in seconds.
    pub fn seconds(&self) -> f64 {
        self.sum(|values| &values.nanos) as f64 / 1e9
    }

    /// Sums a part over all shards.
    fn sum(&self, part: impl Fn(&Values) -> &AtomicU64) -> u64 {
        let parts = self.0.iter().map(part);
        parts.map(|part| part.load(Ordering::Relaxed)).sum()
    }
}

/// Durations for two readers: Prometheus, and samples, which need quantiles each second.
#[derive(Debug, Default)]
pub struct Durations {
    /// For Prometheus.
    pub histogram: DurationHistogram,
    /// For quantiles.
    quantiles: AtomicHistogram,
}

impl Durations {
    /// Counts a duration.
    pub fn record(&self, span: Duration) {
        self.histogram.record(span);
        self.quantiles.record(span);
    }

    /// Counts a duration for the quantiles alone.
    pub fn record_quantile(&self, span: Duration) {
        self.quantiles.record(span);
    }

    /// Returns the durations counted so far, for quantiles.
    pub fn counts(&self) -> Counts {
        self.quantiles.counts()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn from_one_to_ten_seconds_an_edge_is_at_most_half_above_the_one_before() {
        let edges = SECONDS.iter().filter(|edge| (1.0..=10.0).contains(*edge));
        let edges: Vec<f64> = edges.copied().collect();
        assert_eq!((edges.first(), edges.last()), (Some(&1.0), Some(&10.0)));
        // If no wait is longer than 3 s, no quantile is above 3 s.
        assert!(edges.contains(&3.0));
        for pair in edges.windows(2) {
            assert!(pair[1] > pair[0] && pair[1] <= pair[0] * 1.5, "{pair:?}");
        }
    }
}
