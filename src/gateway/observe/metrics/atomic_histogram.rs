//! Histogram for quantiles that are read each second.
//!
//! Below 8 µs each microsecond has a bucket. Above, each doubling of the duration has 8 buckets of
//! equal width.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Number of buckets for each doubling of a duration.
const PER_DOUBLING: u32 = 8;
/// Upper bound of durations with one bucket for each microsecond, in microseconds.
const EXACT: u32 = 8;
/// Number of doublings above [`EXACT`], up to 2^35 µs or nine hours. Longer durations count as
/// that.
const DOUBLINGS: u32 = 32;
/// Number of all buckets.
const BUCKETS: usize = (EXACT + DOUBLINGS * PER_DOUBLING) as usize;

/// Histogram of durations that is cheap to record: one atomic addition.
///
/// Each bucket is an eighth of its power of two wide. So the error of a quantile is at most 6.25 %
/// (or a microsecond). It takes no memory before the first duration.
#[derive(Debug, Default)]
pub struct AtomicHistogram(OnceLock<Box<[AtomicU64; BUCKETS]>>);

/// Counts of an [`AtomicHistogram`] at one instant.
///
/// Several of them are kept for each server, so empty buckets below and above the others take no
/// memory.
#[derive(Clone, Debug, Default)]
pub struct Counts {
    /// Index of the bucket of the first element of `counts`.
    first: usize,
    /// Counts from the first to the last bucket that is not empty.
    counts: Box<[u64]>,
}

impl AtomicHistogram {
    /// Counts one duration.
    pub fn record(&self, span: Duration) {
        let counts = self
            .0
            .get_or_init(|| Box::new([const { AtomicU64::new(0) }; BUCKETS]));
        counts[bucket(span)].fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the counts so far.
    pub fn counts(&self) -> Counts {
        let counts = self.0.get();
        counts.map_or_else(Counts::default, |counts| {
            Counts::of(|bucket| counts[bucket].load(Ordering::Relaxed))
        })
    }
}

impl Counts {
    /// Collects the counts of all buckets.
    fn of(count: impl Fn(usize) -> u64) -> Self {
        let mut filled = (0..BUCKETS).filter(|bucket| count(*bucket) > 0);
        let Some(first) = filled.next() else {
            return Self::default();
        };
        let last = filled.next_back().unwrap_or(first);
        Self {
            first,
            counts: (first..=last).map(count).collect(),
        }
    }

    /// Returns the count of one bucket.
    fn count(&self, bucket: usize) -> u64 {
        let index = bucket.checked_sub(self.first);
        let count = index.and_then(|index| self.counts.get(index));
        count.copied().unwrap_or_default()
    }

    /// Adds other counts to these.
    pub fn add(&mut self, other: &Self) {
        if !other.counts.is_empty() {
            *self = Self::of(|bucket| self.count(bucket).saturating_add(other.count(bucket)));
        }
    }

    /// Returns the counts since `earlier`.
    pub fn since(&self, earlier: &Self) -> Self {
        if self.counts.is_empty() {
            return Self::default();
        }
        Self::of(|bucket| self.count(bucket).saturating_sub(earlier.count(bucket)))
    }

    /// Returns the counts of the durations from `least` on. `least` is rounded to a bucket.
    pub fn at_least(mut self, least: Duration) -> Self {
        let below = bucket(least).saturating_sub(self.first);
        self.counts
            .iter_mut()
            .take(below)
            .for_each(|count| *count = 0);
        self
    }

    /// Returns the number of counted durations.
    pub fn total(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Returns the quantile `q` of the counted durations.
    ///
    /// `q` is from 0 to 1. A share `q` of the durations is at most the result. `None` if nothing
    /// was counted.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    pub fn quantile(&self, q: f64) -> Option<Duration> {
        let rank = ((self.total() as f64 * q).ceil() as u64).max(1);
        // The first bucket up to which at least `rank` durations are counted.
        let mut summed = 0;
        let found = self.counts.iter().position(|count| {
            summed += count;
            summed >= rank
        });
        found.map(|index| middle(self.first + index))
    }
}

/// Returns the index of the bucket of a duration.
fn bucket(span: Duration) -> usize {
    let micros = u64::try_from(span.as_micros()).unwrap_or(u64::MAX);
    if micros < EXACT.into() {
        return usize::try_from(micros).unwrap_or_default();
    }
    let doubling = micros.ilog2() - EXACT.ilog2();
    let eighth = (micros >> doubling) - u64::from(EXACT);
    let bucket = u64::from(EXACT + doubling * PER_DOUBLING) + eighth;
    usize::try_from(bucket).unwrap_or(BUCKETS).min(BUCKETS - 1)
}

/// Returns the middle of a bucket.
fn middle(bucket: usize) -> Duration {
    let (bucket, exact) = (bucket as u64, u64::from(EXACT));
    let Some(above) = bucket.checked_sub(exact) else {
        return Duration::from_micros(bucket);
    };
    let per_doubling = u64::from(PER_DOUBLING);
    let (doubling, eighth) = (above / per_doubling, above % per_doubling);
    Duration::from_micros(((exact + eighth) << doubling) + ((1 << doubling) / 2))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(testing::config())]

        #[test]
        fn a_quantile_is_off_by_a_sixteenth_at_most(micros in 0..(1u64 << 34), others in 0..20u64) {
            let histogram = AtomicHistogram::default();
            let before = histogram.counts();
            for _ in 0..others {
                histogram.record(Duration::ZERO);
            }
            let first = histogram.counts();
            histogram.record(Duration::from_micros(micros));
            let now = histogram.counts();
            prop_assert!(now.since(&now).quantile(0.5).is_none());
            let found = now.since(&first).quantile(0.5).expect("one");
            let error = found.abs_diff(Duration::from_micros(micros));
            prop_assert!(error.as_micros() * 16 <= u128::from(micros) + 1, "{found:?} for {micros} us");
            prop_assert_eq!(now.since(&before).quantile(1.0), Some(found));
        }
    }

    #[test]
    fn short_durations_can_be_left_out() {
        let histogram = AtomicHistogram::default();
        for millis in [0, 1, 99, 101, 1000] {
            histogram.record(Duration::from_millis(millis));
        }
        let long = |millis| {
            let counts = histogram.counts();
            counts.at_least(Duration::from_millis(millis)).total()
        };
        assert_eq!([0, 50, 500, 5000].map(long), [5, 3, 1, 0]);
    }

    #[test]
    fn quantiles_are_computed_from_the_counted_durations() {
        let histogram = AtomicHistogram::default();
        for millis in 1..=100 {
            histogram.record(Duration::from_millis(millis));
        }
        let counts = histogram.counts();
        let near = |q: f64, millis: f64| {
            let found = counts.quantile(q).expect("some").as_secs_f64() * 1e3;
            let is_near = (found / millis - 1.0).abs() < 0.0625;
            assert!(is_near, "{found} ms, not {millis}");
        };
        near(0.5, 50.0);
        near(0.95, 95.0);
        histogram.record(Duration::from_secs(1 << 40));
        assert!(histogram.counts().quantile(1.0) > Some(Duration::from_secs(3600)));
    }
}
