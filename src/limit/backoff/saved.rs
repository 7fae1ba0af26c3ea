use std::time::Duration;

use super::{Backoff, Moment};
use crate::limit::Percent;

/// What of a back-off outlives its process, relative to the moment at which it was saved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SavedBackoff {
    /// The part of the file's rate that is in force.
    pub share: Percent,
    /// Answers in the window of the last cut.
    pub answers: u64,
    /// Those of them that were trouble.
    pub bad: u64,
    /// How much longer the rate does not grow.
    pub held: Duration,
    /// How much longer nothing leaves.
    pub paused: Duration,
}

impl Backoff {
    /// What has to be kept of it at `at`; `None` if it is as at the start.
    ///
    /// A lower number in flight is not kept: it is learned from answers within seconds.
    #[must_use]
    pub fn save(&self, at: Moment) -> Option<SavedBackoff> {
        let paused = self
            .paused_until
            .map_or(Duration::ZERO, |until| until.since(at));
        let cut = self.rate_share.last_cut();
        if cut.is_none() && paused.is_zero() {
            return None;
        }
        let held_until = cut.and_then(|cut| cut.held_until);
        Some(SavedBackoff {
            share: self.rate_share.share(),
            answers: cut.map_or(0, |cut| cut.answers),
            bad: cut.map_or(0, |cut| cut.bad),
            held: held_until.map_or(Duration::ZERO, |until| until.since(at)),
            paused,
        })
    }

    /// Continues what was saved at `at`, within the limits of the file now.
    pub fn restore(&mut self, saved: &SavedBackoff, at: Moment, now: Moment) {
        if self.file_rate.is_some() {
            self.rate_share.restore(saved, at, now);
            self.rate_share.raise_to(self.limits.floor);
        }
        let until = at + saved.paused.min(self.limits.max_pause);
        self.paused_until = Some(until).filter(|until| *until > now);
        self.show_rate();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limit::BackoffLimits;

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
    fn a_lowered_rate_and_a_pause_go_on_and_the_rate_grows_back() {
        assert_eq!(backoff().save(START), None);
        let saved = SavedBackoff {
            share: "40%".parse().unwrap(),
            answers: 20,
            bad: 9,
            held: Duration::from_secs(3),
            paused: Duration::from_secs(2),
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
    fn what_is_restored_keeps_to_the_file() {
        let saved = SavedBackoff {
            share: Percent::from_millionths(1),
            answers: 1,
            bad: 1,
            held: Duration::MAX,
            paused: Duration::MAX,
        };
        let mut next = backoff();
        next.restore(&saved, START, START);
        assert_eq!(next.rate(), Some("10r/s".parse().unwrap()));
        assert_eq!(next.paused_until(), Some(START + Duration::from_secs(30)));
    }
}
