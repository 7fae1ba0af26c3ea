//! State of a zone's key in Redis after a decision, and its conversion to an account of `limit`.
//!
//! A *tick* is the unit in which [`Rate`] counts levels exactly.

use limit::{Account, Bucket, Meter, Moment, Rate, SlidingWindowLog, TokenBucket};

/// State of a key in the store.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum StoredState {
    /// Level that the next request would make, in ticks.
    Level(i128),
    /// Number of tokens missing before the next request, in ticks.
    Missing(i128),
    /// Complete state of windows that begin at multiples of their length.
    Window(Meter),
    /// Number of counted requests of a log, and when one more is accepted, on Redis's clock.
    Log { count: u32, one_more_at: Moment },
}

impl StoredState {
    /// Converts the state to an account on this gateway's clock.
    ///
    /// The gateway's clock shows `own_now` when Redis's clock shows `now`.
    pub(super) fn account(&self, rate: Rate, now: Moment, own_now: Moment) -> Account {
        let bucket = |ticks| Bucket::next_at_level(rate, ticks, own_now);
        let meter = match self {
            Self::Level(ticks) => return Account::Bucket(bucket(*ticks)),
            Self::Missing(ticks) => Meter::TokenBucket(TokenBucket::missing(bucket(*ticks))),
            Self::Window(meter) => meter.clone(),
            Self::Log { count, one_more_at } => {
                let one_more_at = own_now + one_more_at.since(now);
                Meter::SlidingWindowLog(SlidingWindowLog::counted(*count, own_now, one_more_at))
            }
        };
        Account::Meter(Box::new(meter))
    }
}
