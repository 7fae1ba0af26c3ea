//! How long requests of one kind take their origin, learned from earlier ones.
//!
//! What is wanted is the time that a request needs by itself. A time that was measured while the
//! origin was busy also has the time for which the request waited there. So:
//!
//! - While fewer than half of the places are taken, times are taken as they are: [`QUIET_PERCENT`]
//!   of them are at most what is learned. A low quantile, because what makes a time longer than the
//!   work (a pause of the origin, a slow client) is no work, and nothing makes it shorter.
//! - Other times are only upper bounds of the work. They count while there are no quiet ones, by a
//!   lower quantile, [`BUSY_PERCENT`]: of many that waited, some waited least.
//!
//! So a queue at the origin raises what is learned only if no request passes it any more, and then
//! the gate lets fewer through, which ends that queue.

#[cfg(test)]
mod properties;
mod recent;
mod saved;
#[cfg(test)]
mod simulation;

use std::time::Duration;

use recent::Recent;
pub use saved::SavedWork;

use super::Cost;

/// The quantile of quiet times.
const QUIET_PERCENT: usize = 25;
/// The quantile of busy times.
const BUSY_PERCENT: usize = 10;
/// How many quiet times it takes to learn from them.
const MIN_QUIET: usize = 4;
/// How many busy times it takes to learn from them.
const MIN_BUSY: usize = 8;
/// After so many busy times in a row, quiet ones are too old.
const MAX_BUSY_IN_ROW: u16 = 256;

/// How long requests of one kind take their origin.
#[derive(Clone, Debug, Default)]
pub struct Work {
    quiet: Recent,
    busy: Recent,
    /// How many busy times there were since the last quiet one.
    busy_in_row: u16,
    learned: Option<LearnedWork>,
}

/// What was learned of the requests of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct LearnedWork {
    /// Time at the origin, in microseconds, at least 1.
    pub micros: u32,
    /// What it was learned from.
    #[cfg_attr(feature = "serde", serde(rename = "quiet"))]
    pub source: WorkSource,
}

/// What a time was learned from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(from = "bool", into = "bool")
)]
pub enum WorkSource {
    /// Requests that came while fewer than half of the places were taken.
    Quiet,
    /// Requests that came while more were, or while nobody knows.
    Busy,
}

impl Work {
    /// Learns from a request that took so long. `is_quiet`: whether fewer than half of the places
    /// were taken when it left and when it ended.
    ///
    /// Returns whether what is known has changed.
    pub fn learn(&mut self, took: Duration, is_quiet: bool) -> bool {
        let micros = micros(took);
        if is_quiet {
            if self.busy_in_row >= MAX_BUSY_IN_ROW {
                self.quiet.clear();
            }
            self.quiet.push(micros);
            self.busy_in_row = 0;
        } else {
            self.busy.push(micros);
            self.busy_in_row = self.busy_in_row.saturating_add(1);
        }
        let now = self.now();
        let is_changed = match (self.learned, now) {
            (Some(before), Some(now)) => is_other(before, now),
            (before, now) => before != now,
        };
        if is_changed {
            self.learned = now;
        }
        is_changed
    }

    /// What is known; `None` while too few requests have ended.
    #[must_use]
    pub fn learned(&self) -> Option<LearnedWork> {
        self.learned
    }

    fn now(&self) -> Option<LearnedWork> {
        let is_recent = self.busy_in_row < MAX_BUSY_IN_ROW;
        let (micros, source) = if self.quiet.len() >= MIN_QUIET && is_recent {
            (self.quiet.quantile(QUIET_PERCENT)?, WorkSource::Quiet)
        } else if self.busy.len() >= MIN_BUSY {
            (self.busy.quantile(BUSY_PERCENT)?, WorkSource::Busy)
        } else {
            return self.learned;
        };
        Some(LearnedWork { micros, source })
    }
}

/// Whether two values differ by more than a tenth of the first: smaller changes would make costs
/// flicker between two numbers.
fn is_other(before: LearnedWork, now: LearnedWork) -> bool {
    before.source != now.source || before.micros.abs_diff(now.micros) > (before.micros / 10).max(1)
}

fn micros(took: Duration) -> u32 {
    u32::try_from(took.as_micros()).unwrap_or(u32::MAX).max(1)
}

impl Cost {
    /// What a request costs that takes its origin so long: the nearest whole number of units, at
    /// least 1 and at most `max`.
    ///
    /// `unit` is above zero.
    #[must_use]
    pub fn of_work(took: Duration, unit: Duration, max: Self) -> Self {
        let units = (took.as_nanos() + unit.as_nanos() / 2) / unit.as_nanos().max(1);
        let units = u32::try_from(units).unwrap_or(u32::MAX).max(1);
        Self::new(units).unwrap_or(max).min(max)
    }
}

impl LearnedWork {
    /// The time as a duration.
    #[must_use]
    pub fn time(self) -> Duration {
        Duration::from_micros(self.micros.into())
    }
}

/// Whether it was quiet.
impl From<WorkSource> for bool {
    fn from(source: WorkSource) -> Self {
        source == WorkSource::Quiet
    }
}

impl From<bool> for WorkSource {
    fn from(is_quiet: bool) -> Self {
        if is_quiet { Self::Quiet } else { Self::Busy }
    }
}

impl WorkSource {
    /// Its name in metrics and in the API.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Quiet => "quiet",
            Self::Busy => "busy",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    fn max(max: u32) -> Cost {
        Cost::new(max).expect("a cost")
    }

    #[test]
    fn work_costs_the_nearest_whole_number_of_units() {
        let cases = [
            (0, 1),
            (4, 1),
            (14, 1),
            (15, 2),
            (20, 2),
            (634, 63),
            (2000, 64),
        ];
        for (took, cost) in cases {
            assert_eq!(
                Cost::of_work(ms(took), ms(10), max(64)),
                max(cost),
                "{took} ms"
            );
        }
        assert_eq!(Cost::of_work(ms(2000), ms(10), max(200)), max(200));
        assert_eq!(
            Cost::of_work(Duration::MAX, Duration::from_nanos(1), max(9)),
            max(9)
        );
    }

    #[test]
    fn a_few_requests_teach_what_they_take() {
        let mut work = Work::default();
        for _ in 0..3 {
            assert!(!work.learn(ms(20), true));
        }
        assert_eq!(work.learned(), None);
        assert!(work.learn(ms(20), true));
        let learned = work.learned().expect("four are enough");
        assert_eq!(
            (learned.time(), learned.source),
            (ms(20), WorkSource::Quiet)
        );
        // A tenth more is no news; a fifth is.
        for _ in 0..32 {
            assert!(!work.learn(ms(22), true));
        }
        assert!((0..32).any(|_| work.learn(ms(25), true)));
        assert_eq!(work.learned().map(LearnedWork::time), Some(ms(25)));
    }

    #[test]
    fn what_waits_at_a_busy_origin_teaches_nothing_beside_quiet_times() {
        let mut work = Work::default();
        for _ in 0..4 {
            work.learn(ms(20), true);
        }
        for _ in 0..255 {
            assert!(!work.learn(ms(900), false));
        }
        // It may be another page since.
        assert!(work.learn(ms(900), false));
        let learned = work.learned().expect("it learned before");
        assert_eq!(
            (learned.time(), learned.source),
            (ms(900), WorkSource::Busy)
        );
        // What was known of quiet times long ago does not come back with a single one.
        assert!(!work.learn(ms(30), true));
        for _ in 0..3 {
            work.learn(ms(30), true);
        }
        assert_eq!(work.learned().map(LearnedWork::time), Some(ms(30)));
    }

    #[test]
    fn a_busy_origin_teaches_by_those_who_waited_least() {
        let mut work = Work::default();
        for nth in 0..40 {
            work.learn(ms(if nth % 6 == 0 { 20 } else { 300 }), false);
        }
        assert_eq!(work.learned().map(LearnedWork::time), Some(ms(20)));
    }
}
