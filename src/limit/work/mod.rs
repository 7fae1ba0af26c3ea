//! Duration that requests of one kind take at their origin, learned from earlier ones.
//!
//! A *permit* is the right to run one request at the origin. A duration is *quiet* if fewer than
//! half of the permits were in use, and *busy* otherwise. The goal is the time that a request needs
//! by itself. A duration that was measured while the origin was busy also contains the time for
//! which the request waited there. So:
//! - Quiet durations are taken as they are: [`QUIET_PERCENT`] of them are at most the learned
//!   value. The quantile is low, because other causes than the work (a pause of the origin, a slow
//!   client) make a duration longer, and nothing makes it shorter.
//! - Busy durations are only upper bounds of the work. They count while there are no quiet ones, by
//!   a lower quantile, [`BUSY_PERCENT`]: of many requests that waited, some waited very little.
//!
//! So a queue at the origin raises the learned value only if every request waits there. Then the
//! gate lets fewer requests through, which ends that queue.

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

/// Quantile of quiet durations that is learned.
const QUIET_PERCENT: usize = 25;
/// Quantile of busy durations that is learned.
const BUSY_PERCENT: usize = 10;
/// Minimum number of quiet durations to learn from.
const MIN_QUIET: usize = 4;
/// Minimum number of busy durations to learn from.
const MIN_BUSY: usize = 8;
/// Number of consecutive busy durations after which quiet ones are too old.
const MAX_BUSY_IN_ROW: u16 = 256;

/// Duration that requests of one kind take at their origin.
#[derive(Clone, Debug, Default)]
pub struct Work {
    quiet: Recent,
    busy: Recent,
    /// Number of busy durations since the last quiet one.
    busy_in_row: u16,
    learned: Option<LearnedWork>,
}

/// Learned duration of the requests of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct LearnedWork {
    /// Duration at the origin, in microseconds, at least 1.
    pub micros: u32,
    /// Whether it was learned from requests at a quiet origin, as [`Work::learn`] defines it.
    #[cfg_attr(feature = "serde", serde(rename = "quiet"))]
    pub is_quiet: bool,
}

impl Work {
    /// Learns from a request that took `took`. Returns whether the learned value has changed.
    ///
    /// `is_quiet`: fewer than half of the permits were in use when the request departed and when it
    /// ended. If this is unknown, it is false.
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
        let measured = self.measured();
        let is_changed = match (self.learned, measured) {
            (Some(before), Some(after)) => is_other(before, after),
            (before, after) => before != after,
        };
        if is_changed {
            self.learned = measured;
        }
        is_changed
    }

    /// Returns the learned value; `None` while too few requests have ended.
    pub fn learned(&self) -> Option<LearnedWork> {
        self.learned
    }

    /// Returns the value that the recent durations show. If they are too few: the learned one.
    fn measured(&self) -> Option<LearnedWork> {
        let is_recent = self.busy_in_row < MAX_BUSY_IN_ROW;
        let (micros, is_quiet) = if self.quiet.len() >= MIN_QUIET && is_recent {
            (self.quiet.quantile(QUIET_PERCENT)?, true)
        } else if self.busy.len() >= MIN_BUSY {
            (self.busy.quantile(BUSY_PERCENT)?, false)
        } else {
            return self.learned;
        };
        Some(LearnedWork { micros, is_quiet })
    }
}

/// Returns whether two values differ enough to be a change: by more than a tenth of the first.
///
/// Smaller changes would make costs flicker between two numbers.
fn is_other(before: LearnedWork, after: LearnedWork) -> bool {
    let difference = before.micros.abs_diff(after.micros);
    before.is_quiet != after.is_quiet || difference > (before.micros / 10).max(1)
}

/// Returns a duration in microseconds, at least 1.
fn micros(took: Duration) -> u32 {
    u32::try_from(took.as_micros()).unwrap_or(u32::MAX).max(1)
}

impl Cost {
    /// Returns the cost of a duration at the origin: the nearest whole number of units, 1 to `max`.
    ///
    /// `unit` is above zero.
    pub fn of_work(took: Duration, unit: Duration, max: Self) -> Self {
        let units = (took.as_nanos() + unit.as_nanos() / 2) / unit.as_nanos().max(1);
        let units = u32::try_from(units).unwrap_or(u32::MAX).max(1);
        Self::new(units).unwrap_or(max).min(max)
    }
}

impl LearnedWork {
    /// Returns the learned value as a duration.
    pub fn time(self) -> Duration {
        Duration::from_micros(self.micros.into())
    }

    /// Returns the name of its source in metrics and in the API.
    pub fn source(self) -> &'static str {
        if self.is_quiet { "quiet" } else { "busy" }
    }
}
