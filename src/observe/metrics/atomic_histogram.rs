use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Buckets for each doubling of a duration.
const PER_DOUBLING: u32 = 8;
/// Durations below this many microseconds have one bucket for each microsecond.
const EXACT: u32 = 8;
/// Doublings above [`EXACT`], up to 2^35 µs or nine hours; longer durations count as that.
const DOUBLINGS: u32 = 32;
const BUCKETS: usize = (EXACT + DOUBLINGS * PER_DOUBLING) as usize;

/// A histogram of durations that is cheap to record: one atomic addition.
///
/// Each bucket is an eighth of its power of two wide, so that a quantile read from it is off by at
/// most 6.25 % (or a microsecond).
#[derive(Debug)]
pub struct AtomicHistogram(Box<[AtomicU64; BUCKETS]>);

/// The counts of a [`AtomicHistogram`] at one moment.
#[derive(Clone, Debug)]
pub struct Counts(Box<[u64; BUCKETS]>);

impl Default for AtomicHistogram {
    fn default() -> Self {
        Self(Box::new([const { AtomicU64::new(0) }; BUCKETS]))
    }
}

impl Default for Counts {
    fn default() -> Self {
        Self(Box::new([0; BUCKETS]))
    }
}

impl AtomicHistogram {
    /// Counts one duration.
    pub fn record(&self, span: Duration) {
        self.0[bucket(span)].fetch_add(1, Ordering::Relaxed);
    }

    /// The counts so far.
    #[must_use]
    pub fn counts(&self) -> Counts {
        let mut counts = Counts::default();
        for (count, so_far) in counts.0.iter_mut().zip(self.0.iter()) {
            *count = so_far.load(Ordering::Relaxed);
        }
        counts
    }
}

impl Counts {
    /// Adds other counts to these.
    pub fn add(&mut self, other: &Self) {
        for (count, more) in self.0.iter_mut().zip(other.0.iter()) {
            *count = count.saturating_add(*more);
        }
    }

    /// The counts since `earlier`.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let mut counts = self.clone();
        for (count, before) in counts.0.iter_mut().zip(earlier.0.iter()) {
            *count = count.saturating_sub(*before);
        }
        counts
    }

    /// The counts of those of these durations that are not below `least`, which is rounded to a
    /// bucket.
    #[must_use]
    pub fn at_least(mut self, least: Duration) -> Self {
        self.0[..bucket(least)].fill(0);
        self
    }

    /// How many durations were counted.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    /// The duration that a share `q` of the counted durations does not exceed.
    ///
    /// `q` is from 0 to 1. Returns `None` if nothing was counted.
    #[must_use]
    #[allow(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss
    )]
    pub fn quantile(&self, q: f64) -> Option<Duration> {
        let wanted = ((self.total() as f64 * q).ceil() as u64).max(1);
        let mut seen = 0;
        let found = self.0.iter().position(|count| {
            seen += count;
            seen >= wanted
        });
        found.map(middle)
    }
}

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

/// The middle of a bucket.
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
        #![proptest_config(crate::testing::config())]

        #[test]
        fn a_quantile_is_off_by_a_sixteenth_at_most(micros in 0..(1u64 << 34), others in 0..20u64) {
            let atomic_histogram = AtomicHistogram::default();
            let before = atomic_histogram.counts();
            for _ in 0..others {
                atomic_histogram.record(Duration::ZERO);
            }
            let first = atomic_histogram.counts();
            atomic_histogram.record(Duration::from_micros(micros));
            let now = atomic_histogram.counts();
            prop_assert!(now.since(&now).quantile(0.5).is_none());
            let found = now.since(&first).quantile(0.5).expect("one");
            let off = found.abs_diff(Duration::from_micros(micros));
            prop_assert!(off.as_micros() * 16 <= u128::from(micros) + 1, "{found:?} for {micros} us");
            prop_assert_eq!(now.since(&before).quantile(1.0), Some(found));
        }
    }

    #[test]
    fn short_durations_can_be_left_out() {
        let atomic_histogram = AtomicHistogram::default();
        for millis in [0, 1, 99, 101, 1000] {
            atomic_histogram.record(Duration::from_millis(millis));
        }
        let long = |millis| {
            let counts = atomic_histogram.counts();
            counts.at_least(Duration::from_millis(millis)).total()
        };
        assert_eq!([0, 50, 500, 5000].map(long), [5, 3, 1, 0]);
    }

    #[test]
    fn quantiles_are_of_those_counted() {
        let atomic_histogram = AtomicHistogram::default();
        for millis in 1..=100 {
            atomic_histogram.record(Duration::from_millis(millis));
        }
        let counts = atomic_histogram.counts();
        let near = |q: f64, millis: f64| {
            let found = counts.quantile(q).expect("some").as_secs_f64() * 1e3;
            assert!(
                (found / millis - 1.0).abs() < 0.0625,
                "{found} ms, not {millis}"
            );
        };
        near(0.5, 50.0);
        near(0.95, 95.0);
        atomic_histogram.record(Duration::from_secs(1 << 40));
        assert!(atomic_histogram.counts().quantile(1.0) > Some(Duration::from_secs(3600)));
    }
}
