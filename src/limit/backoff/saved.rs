//! The part of a back-off that is saved for the next process.
//!
//! A back-off lowers the rate of an origin in trouble, and the number of requests in flight. A
//! *cut* is a lowering. Answers are counted in *windows* of time, and *trouble* is an answer that
//! counts as a failure.

use std::time::Duration;

use super::{Backoff, Moment};
use crate::Percent;

/// State of a back-off that is saved for the next process. Durations count from the time of saving.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct SavedBackoff {
    /// Share of the configured rate that is in force.
    pub share: Percent,
    /// Number of answers in the window of the last cut.
    pub answers: u64,
    /// Number of those answers that were trouble.
    pub bad: u64,
    /// Time until the rate may grow again. The state file calls it `held`.
    #[cfg_attr(
        feature = "serde",
        serde(rename = "held", with = "crate::whole_numbers::nanos")
    )]
    pub steady: Duration,
    /// Rest of the pause.
    #[cfg_attr(feature = "serde", serde(with = "crate::whole_numbers::nanos"))]
    pub paused: Duration,
    /// The limit of requests in flight, if it is lower than configured.
    ///
    /// State files of earlier versions call it `places`.
    #[cfg_attr(feature = "serde", serde(alias = "places"))]
    pub permits: Option<SavedInFlight>,
}

/// Saved state of a lowered limit of requests in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct SavedInFlight {
    /// Current limit, in millionths of a permit.
    pub limit: u64,
    /// Number of permits up to which the limit grows back.
    pub of: u64,
    /// Number of answers in the window of the last cut.
    pub answers: u64,
    /// Number of those answers that were slow.
    pub bad: u64,
}

impl Backoff {
    /// Returns the state to save at `at`. `None`: nothing is lowered.
    pub fn save(&self, at: Moment) -> Option<SavedBackoff> {
        let paused_until = self.paused_for_all();
        let paused = paused_until.map_or(Duration::ZERO, |until| until.since(at));
        let (cut, permits) = (self.rate_share.last_cut(), self.in_flight_limit.save());
        if cut.is_none() && paused.is_zero() && permits.is_none() {
            return None;
        }
        let steady_until = cut.and_then(|cut| cut.steady_until);
        Some(SavedBackoff {
            share: self.rate_share.share(),
            answers: cut.map_or(0, |cut| cut.answers),
            bad: cut.map_or(0, |cut| cut.bad),
            steady: steady_until.map_or(Duration::ZERO, |until| until.since(at)),
            paused,
            permits,
        })
    }

    /// Restores the state that was saved at `at`, within the configured limits.
    pub fn restore(&mut self, saved: &SavedBackoff, at: Moment, now: Moment) {
        if self.configured_rate.is_some() {
            self.rate_share.restore(saved, at, now);
            self.rate_share.raise_to(self.limits.floor);
        }
        if let (Some(permits), true) = (&saved.permits, self.limits.slow.is_some()) {
            self.in_flight_limit.restore(permits, at);
        }
        let until = at + saved.paused.min(self.limits.max_pause);
        // Only a pause for all keys is saved. `changed` makes the next `update` report the restored
        // values.
        self.paused_key = None;
        self.paused_until = Some(until).filter(|until| *until > now);
        self.changed = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backoff::tests::{limits, slow};
    use crate::fixtures::{START, at, rate, secs};

    /// Nothing is lowered.
    const NOTHING: SavedBackoff = SavedBackoff {
        share: Percent::ALL,
        answers: 0,
        bad: 0,
        steady: Duration::ZERO,
        paused: Duration::ZERO,
        permits: None,
    };

    /// Returns a back-off of 100r/s that was restored at the start.
    fn restored(saved: &SavedBackoff) -> Backoff {
        let mut backoff = Backoff::new(limits(), Some(rate("100r/s")), None, START);
        assert_eq!(backoff.save(START), None);
        backoff.restore(saved, START, START);
        backoff
    }

    #[test]
    fn a_restored_rate_and_pause_continue_and_the_rate_grows_back() {
        let saved = SavedBackoff {
            share: "40%".parse().unwrap(),
            answers: 20,
            bad: 9,
            steady: secs(3),
            paused: secs(2),
            permits: None,
        };
        let mut next = restored(&saved);
        assert_eq!(next.rate(), Some(rate("40r/s")));
        assert_eq!(next.save(START), Some(saved));
        assert!(next.update(START).is_some() && next.may_change());
        next.update(at(2000));
        assert_eq!(next.paused_until(), None);
        assert_eq!(next.rate(), Some(rate("40r/s")));
        for seconds in 3..60 {
            next.update(START + secs(seconds));
        }
        assert_eq!(next.rate(), Some(rate("100r/s")));
    }

    #[test]
    fn restored_limits_stay_within_the_configured_ones() {
        let next = restored(&SavedBackoff {
            share: Percent::from_millionths(1),
            steady: Duration::MAX,
            paused: Duration::MAX,
            ..NOTHING
        });
        assert_eq!(next.rate(), Some(rate("10r/s")));
        assert_eq!(next.paused_until(), Some(START + secs(30)));
    }

    #[test]
    fn a_restored_number_in_flight_keeps_its_share_and_grows_back() {
        let permits = SavedInFlight {
            limit: 10_500_000,
            of: 40,
            answers: 20,
            bad: 9,
        };
        let saved = SavedBackoff {
            permits: Some(permits),
            ..NOTHING
        };
        // Configured limit, restored limit, and whether the saved state is the same again.
        for (configured, lowered, is_same) in [
            (Some(40), Some(10), true),
            (Some(80), Some(21), false),
            (None, Some(10), true),
        ] {
            let mut next = Backoff::new(slow(1000), None, configured, START);
            next.restore(&saved, START, START);
            assert_eq!(next.max_in_flight(), lowered, "of {configured:?}");
            assert_eq!(next.save(START) == Some(saved), is_same);
            for seconds in 0..60 {
                next.update(START + secs(seconds));
            }
            assert_eq!(next.max_in_flight(), configured);
            assert_eq!(next.save(START + secs(60)), None);
        }
        // `slow` is no longer configured.
        let mut next = Backoff::new(limits(), None, Some(40), START);
        next.restore(&saved, START, START);
        assert_eq!(next.max_in_flight(), Some(40));
        for (limit, of) in [(u64::MAX, u64::MAX), (0, 0), (u64::MAX, 1), (1, u64::MAX)] {
            let permits = Some(SavedInFlight {
                limit,
                of,
                ..permits
            });
            let mut next = Backoff::new(slow(1000), None, None, START);
            next.restore(&SavedBackoff { permits, ..saved }, START, START);
            next.update(at(1000));
            // The limit never falls below 2, whatever the file says.
            assert!(next.max_in_flight().is_none_or(|most| most >= 2));
        }
    }
}
