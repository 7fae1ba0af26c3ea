//! The part of a back-off that is saved for the next process.

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
    /// Time until the rate may grow again.
    #[cfg_attr(
        feature = "serde",
        serde(rename = "held", with = "crate::whole_numbers::nanos")
    )]
    pub steady: Duration,
    /// Rest of the pause.
    #[cfg_attr(feature = "serde", serde(with = "crate::whole_numbers::nanos"))]
    pub paused: Duration,
    /// The number in flight, if it is lower than configured.
    #[cfg_attr(feature = "serde", serde(alias = "places"))]
    pub permits: Option<SavedInFlight>,
}

/// Saved state of a lowered number in flight.
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
        self.paused_key = None;
        self.paused_until = Some(until).filter(|until| *until > now);
        self.changed = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::BackoffLimits;

    const START: Moment = Moment::from_nanos(1_700_000_000_000_000_000);

    fn backoff() -> Backoff {
        let limits = BackoffLimits {
            slow: None,
            trip: "10%".parse().unwrap(),
            floor: "10%".parse().unwrap(),
            max_pause: Duration::from_secs(30),
        };
        Backoff::new(limits, Some("100r/s".parse().unwrap()), None, START)
    }

    #[test]
    fn a_restored_rate_and_pause_continue_and_the_rate_grows_back() {
        assert_eq!(backoff().save(START), None);
        let saved = SavedBackoff {
            share: "40%".parse().unwrap(),
            answers: 20,
            bad: 9,
            steady: Duration::from_secs(3),
            paused: Duration::from_secs(2),
            permits: None,
        };
        let mut next = backoff();
        next.restore(&saved, START, START);
        assert_eq!(next.rate(), Some("40r/s".parse().unwrap()));
        assert_eq!(next.save(START), Some(saved));
        assert!(next.update(START).is_some() && next.may_change());
        let second = |seconds| START + Duration::from_secs(seconds);
        next.update(second(2));
        assert_eq!(next.paused_until(), None);
        assert_eq!(next.rate(), Some("40r/s".parse().unwrap()));
        for seconds in 3..60 {
            next.update(second(seconds));
        }
        assert_eq!(next.rate(), Some("100r/s".parse().unwrap()));
    }

    #[test]
    fn restored_limits_stay_within_the_configured_ones() {
        let saved = SavedBackoff {
            share: Percent::from_millionths(1),
            answers: 1,
            bad: 1,
            steady: Duration::MAX,
            paused: Duration::MAX,
            permits: None,
        };
        let mut next = backoff();
        next.restore(&saved, START, START);
        assert_eq!(next.rate(), Some("10r/s".parse().unwrap()));
        assert_eq!(next.paused_until(), Some(START + Duration::from_secs(30)));
    }

    fn with_slow(slow: Option<Duration>, most: Option<usize>) -> Backoff {
        let limits = BackoffLimits {
            slow,
            ..backoff().limits
        };
        Backoff::new(limits, None, most, START)
    }

    #[test]
    fn a_restored_number_in_flight_keeps_its_share_and_grows_back() {
        let saved = SavedBackoff {
            share: Percent::from_millionths(1_000_000),
            answers: 0,
            bad: 0,
            steady: Duration::ZERO,
            paused: Duration::ZERO,
            permits: Some(SavedInFlight {
                limit: 10_500_000,
                of: 40,
                answers: 20,
                bad: 9,
            }),
        };
        let slow = Some(Duration::from_secs(1));
        for (most, is, then) in [
            (Some(40), Some(10), Some(40)),
            (Some(80), Some(21), Some(80)),
            (None, Some(10), None),
        ] {
            let mut next = with_slow(slow, most);
            next.restore(&saved, START, START);
            assert_eq!(next.max_in_flight(), is, "of {most:?}");
            if most != Some(80) {
                assert_eq!(next.save(START), Some(saved));
            }
            for seconds in 0..60 {
                next.update(START + Duration::from_secs(seconds));
            }
            assert_eq!(next.max_in_flight(), then, "of {most:?}");
            assert_eq!(next.save(START + Duration::from_secs(60)), None);
        }
        // `slow` is no longer configured.
        let mut next = with_slow(None, Some(40));
        next.restore(&saved, START, START);
        assert_eq!(next.max_in_flight(), Some(40));
        for (limit, of) in [(u64::MAX, u64::MAX), (0, 0), (u64::MAX, 1), (1, u64::MAX)] {
            let permits = Some(SavedInFlight {
                limit,
                of,
                answers: 1,
                bad: 1,
            });
            let mut next = with_slow(slow, None);
            next.restore(&SavedBackoff { permits, ..saved }, START, START);
            next.update(START + Duration::from_secs(1));
            assert!(next.max_in_flight().is_none_or(|most| most >= 2));
        }
    }
}
