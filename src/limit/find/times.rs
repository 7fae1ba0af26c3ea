//! Histogram of durations of responses, with buckets 3 % apart.

use std::time::Duration;

use crate::{to_float, to_whole};

/// Shortest duration with a bucket of its own.
const MIN_NANOS: f64 = 100_000.0;

/// Ratio of a bucket's durations to those of the bucket before.
const GROWTH: f64 = 1.03;

/// Number of buckets: 100 µs times 1.03 to the power of 550 is 20 minutes.
const BUCKETS: usize = 550;

/// Histogram of the durations of responses, within 3 %: from 100 µs to 20 minutes.
#[derive(Debug)]
pub(super) struct Times {
    /// Number of durations in each bucket. The first and the last bucket have all that are outside.
    counts: Vec<u32>,
    total: u64,
}

impl Default for Times {
    fn default() -> Self {
        Self {
            counts: vec![0; BUCKETS],
            total: 0,
        }
    }
}

impl Times {
    /// Counts a duration.
    pub fn add(&mut self, took: Duration) {
        let ratio = (took.as_secs_f64() * 1e9 / MIN_NANOS).max(1.0);
        let index = usize::try_from(to_whole(ratio.ln() / GROWTH.ln())).unwrap_or(BUCKETS);
        self.counts[index.min(BUCKETS - 1)] += 1;
        self.total += 1;
    }

    /// Returns the duration below which a share `part` of all durations is; `None` without any.
    pub fn quantile(&self, part: f64) -> Option<Duration> {
        let rank = (to_float(self.total) * part).max(1.0);
        let mut below = 0_u64;
        for (index, count) in (0..).zip(&self.counts) {
            below += u64::from(*count);
            if *count > 0 && to_float(below) >= rank {
                // The middle of the bucket.
                let nanos = MIN_NANOS * GROWTH.powi(index) * GROWTH.sqrt();
                return Some(Duration::from_secs_f64(nanos / 1e9));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_within_three_percent_of_those_of_all_times() {
        let mut times = Times::default();
        assert_eq!(times.quantile(0.5), None);
        let mut all: Vec<u64> = (0..5000).map(|nth| 200 + nth * nth % 7919 * 100).collect();
        for micros in &all {
            times.add(Duration::from_micros(*micros));
        }
        all.sort_unstable();
        for (part, index) in [(0.5, 2499), (0.95, 4749), (0.99, 4949), (1.0, 4999)] {
            let exact = Duration::from_micros(all[index]).as_secs_f64();
            let found = times.quantile(part).unwrap().as_secs_f64();
            let is_near = (found / exact - 1.0).abs() < 0.03;
            assert!(is_near, "{part}: {found} {exact}");
        }
    }

    #[test]
    fn times_out_of_range_take_the_nearest_bucket() {
        let mut times = Times::default();
        times.add(Duration::ZERO);
        assert!(times.quantile(0.5).unwrap() < Duration::from_micros(110));
        times.add(Duration::from_secs(1_000_000));
        assert!(times.quantile(1.0).unwrap() > Duration::from_secs(1000));
    }
}
