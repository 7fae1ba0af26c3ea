//! What of an account outlives its process: the next one continues from it.

#[cfg(test)]
mod properties;

use super::bucket::line;
use super::{
    Account, Algorithm, Bucket, Cost, FixedWindow, Meter, Moment, Rate, SlidingWindowCounter,
    SlidingWindowLog, TokenBucket,
};

/// What a key was charged, relative to the moment at which it was saved.
///
/// So it can be continued on another clock.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(rename_all = "snake_case")
)]
pub enum SavedAccount {
    /// See [`Algorithm::LeakyBucket`].
    LeakyBucket {
        /// Ticks until the bucket is empty; negative if it has been empty for as long.
        ahead: i128,
    },
    /// See [`Algorithm::TokenBucket`].
    TokenBucket {
        /// Ticks until no token is missing; negative if none has been missing for as long.
        ahead: i128,
    },
    /// See [`Algorithm::FixedWindow`].
    FixedWindow {
        /// Requests in the present window.
        count: u32,
    },
    /// See [`Algorithm::SlidingWindowLog`].
    SlidingWindowLog {
        /// How many nanoseconds ago the requests were that still count, the oldest first.
        ages: Vec<u64>,
    },
    /// See [`Algorithm::SlidingWindowCounter`].
    SlidingWindowCounter {
        /// Requests in the window before the present one.
        previous: u32,
        /// Requests in the present window.
        current: u32,
    },
}

impl SavedAccount {
    /// The algorithm that it can be continued by.
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
    /// What has to be kept of it at `now`; `None` if forgetting it changes no later verdict.
    ///
    /// The charges of requests that wait are in it: who joins later waits behind them.
    pub fn save(&self, rate: Rate, now: Moment) -> Option<SavedAccount> {
        if self.drained_at(rate) <= now {
            return None;
        }
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

    /// Continues what was saved at `at` under `rate`.
    pub fn restored(saved: &SavedAccount, rate: Rate, at: Moment) -> Self {
        let bucket = |ahead| Bucket::until(line(rate, at) + bounded(ahead, rate));
        let window = super::meter::window(rate, at).0;
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

/// No level is above the highest burst, as many held back and the highest cost: a higher one was
/// not saved by a gateway, and must not overflow.
fn bounded(ahead: i128, rate: Rate) -> i128 {
    let most = (2 * i128::from(u32::MAX) + i128::from(Cost::MAX)) * rate.ticks_per_request();
    ahead.clamp(-most, most)
}
