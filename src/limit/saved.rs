//! Accounts in the state file: the next process continues from them.
//!
//! An [`Account`] is what a key was charged. A level of a bucket is saved in *ticks* of its
//! [`Rate`]. A *window* is a period of a rate, and begins at a multiple of its length.

#[cfg(test)]
mod properties;

use super::bucket::line;
use super::{
    Account, Algorithm, Bucket, Cost, FixedWindow, Meter, Moment, Rate, SlidingWindowCounter,
    SlidingWindowLog, TokenBucket,
};

/// Account of a key, relative to the instant at which it was saved.
///
/// So it can continue on another clock.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(rename_all = "snake_case")
)]
pub enum SavedAccount {
    /// See [`Algorithm::LeakyBucket`].
    LeakyBucket {
        /// Ticks until the bucket is empty; negative: ticks since it became empty.
        ahead: i128,
    },
    /// See [`Algorithm::TokenBucket`].
    TokenBucket {
        /// Ticks until no token is missing; negative: ticks since the last one was missing.
        ahead: i128,
    },
    /// See [`Algorithm::FixedWindow`].
    FixedWindow {
        /// Requests in the current window.
        count: u32,
    },
    /// See [`Algorithm::SlidingWindowLog`].
    SlidingWindowLog {
        /// Ages in nanoseconds of the requests that still count, the oldest first.
        ages: Vec<u64>,
    },
    /// See [`Algorithm::SlidingWindowCounter`].
    SlidingWindowCounter {
        /// Requests in the previous window.
        previous: u32,
        /// Requests in the current window.
        current: u32,
    },
}

impl SavedAccount {
    /// Returns the algorithm that can continue from it.
    pub fn algorithm(&self) -> Algorithm {
        match self {
            Self::LeakyBucket { .. } => Algorithm::LeakyBucket,
            Self::TokenBucket { .. } => Algorithm::TokenBucket,
            Self::FixedWindow { .. } => Algorithm::FixedWindow,
            Self::SlidingWindowLog { .. } => Algorithm::SlidingWindowLog,
            Self::SlidingWindowCounter { .. } => Algorithm::SlidingWindowCounter,
        }
    }
}

impl Account {
    /// Returns the account for the state file; `None` if forgetting it changes no later verdict.
    ///
    /// It includes the charges of waiters, because a later request waits behind them.
    pub fn save(&self, rate: Rate, now: Moment) -> Option<SavedAccount> {
        if self.drained_at(rate) <= now {
            return None;
        }
        // Ticks from now until the bucket is empty.
        let ahead = |bucket: &Bucket| bucket.tail() - line(rate, now);
        Some(match self {
            Self::Bucket(bucket) => SavedAccount::LeakyBucket {
                ahead: ahead(bucket),
            },
            Self::Meter(meter) => match &**meter {
                Meter::TokenBucket(meter) => SavedAccount::TokenBucket {
                    ahead: ahead(meter.bucket()),
                },
                Meter::FixedWindow(meter) => SavedAccount::FixedWindow {
                    count: meter.count(rate, now),
                },
                Meter::SlidingWindowLog(meter) => SavedAccount::SlidingWindowLog {
                    ages: meter.ages(rate, now),
                },
                Meter::SlidingWindowCounter(meter) => {
                    let (previous, current) = meter.counts(rate, now);
                    SavedAccount::SlidingWindowCounter { previous, current }
                }
            },
        })
    }

    /// Continues an account that was saved at `at` under `rate`.
    pub fn restored(saved: &SavedAccount, rate: Rate, at: Moment) -> Self {
        let bucket = |ahead| Bucket::until(line(rate, at) + bounded(ahead, rate));
        let window = super::meter::window_index(rate, at);
        let meter = match saved {
            SavedAccount::LeakyBucket { ahead } => return Self::Bucket(bucket(*ahead)),
            SavedAccount::TokenBucket { ahead } => {
                Meter::TokenBucket(TokenBucket::missing(bucket(*ahead)))
            }
            SavedAccount::FixedWindow { count } => {
                Meter::FixedWindow(FixedWindow::counted(window, *count))
            }
            SavedAccount::SlidingWindowLog { ages } => {
                Meter::SlidingWindowLog(SlidingWindowLog::aged(ages, at))
            }
            SavedAccount::SlidingWindowCounter { previous, current } => {
                let meter = SlidingWindowCounter::counted(window, *previous, *current);
                Meter::SlidingWindowCounter(meter)
            }
        };
        Self::Meter(Box::new(meter))
    }
}

/// Bounds a level that was read from a file, so that it cannot overflow.
///
/// The highest level that a gateway saves is the sum of the largest burst, the largest number of
/// requests above the burst, and the largest cost.
fn bounded(ahead: i128, rate: Rate) -> i128 {
    let highest = (2 * i128::from(u32::MAX) + i128::from(Cost::MAX)) * rate.ticks_per_request();
    ahead.clamp(-highest, highest)
}
