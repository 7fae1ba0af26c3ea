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
    pub fn of_work(took: Duration, unit: Duration, max: Self) -> Self {
        let units = (took.as_nanos() + unit.as_nanos() / 2) / unit.as_nanos().max(1);
        let units = u32::try_from(units).unwrap_or(u32::MAX).max(1);
        Self::new(units).unwrap_or(max).min(max)
    }
}

impl LearnedWork {
    /// The time as a duration.
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
    pub fn label(self) -> &'static str {
        match self {
            Self::Quiet => "quiet",
            Self::Busy => "busy",
        }
    }
}
