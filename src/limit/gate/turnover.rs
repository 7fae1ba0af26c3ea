use std::time::Duration;

use crate::Moment;

/// New gaps count for one part in so many.
const SMOOTHING: u32 = 8;

/// The gap is forgotten if none was measured for this time, or for twice the gap if that is longer.
///
/// A gap above `max_wait` lets nobody wait. Then none would be measured ever again.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(5);

/// How often places at an origin come free while requests wait for one.
///
/// It is a smoothed mean of the time between two of them, and the only thing known about the time
/// that a request without a pace will wait.
#[derive(Debug, Default)]
pub(super) struct Turnover {
    gap: Option<Duration>,
    /// When the gap was measured last.
    measured: Moment,
    /// When a place last came free while requests waited.
    last: Option<Moment>,
}

impl Turnover {
    pub(super) fn place_came_free(&mut self, while_waiting: bool, now: Moment) {
        let last = std::mem::replace(&mut self.last, while_waiting.then_some(now));
        if let (Some(last), true) = (last, while_waiting) {
            let gap = now.since(last);
            let smoothed = |known: Duration| (known * (SMOOTHING - 1) + gap) / SMOOTHING;
            self.gap = Some(self.gap_at(now).map_or(gap, smoothed));
            self.measured = now;
        }
    }

    /// The gap, unless it was measured too long ago.
    fn gap_at(&self, now: Moment) -> Option<Duration> {
        self.gap
            .filter(|gap| now.since(self.measured) <= FORGOTTEN_AFTER.max(*gap * 2))
    }

    /// How many places come free in such a time from `now` on; none if it is not known.
    pub(super) fn places_in(&self, span: Duration, now: Moment) -> u64 {
        let gap = self.gap_at(now).map(|gap| gap.as_nanos().max(1));
        u64::try_from(span.as_nanos() / gap.unwrap_or(u128::MAX)).unwrap_or(u64::MAX)
    }

    /// The time in which so many places come free from `now` on; zero if it is not known.
    pub(super) fn time_for(&self, places: u64, now: Moment) -> Duration {
        let nanos = self.gap_at(now).map_or(0, |gap| gap.as_nanos());
        let all = nanos.saturating_mul(places.into());
        Duration::from_nanos(u64::try_from(all).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Moment {
        Moment::from_nanos((100 + seconds) * 1_000_000_000)
    }

    #[test]
    fn a_gap_is_forgotten_once_none_was_measured_for_a_while() {
        let mut turnover = Turnover::default();
        for seconds in [0, 6, 12] {
            turnover.place_came_free(true, at(seconds));
        }
        let wait = |turnover: &Turnover, seconds| turnover.time_for(2, at(seconds)).as_secs();
        assert_eq!(wait(&turnover, 12), 12);
        assert_eq!(wait(&turnover, 24), 12);
        assert_eq!(wait(&turnover, 25), 0, "requests may wait again");
        // Nothing of it is in the next one.
        turnover.place_came_free(false, at(26));
        turnover.place_came_free(true, at(30));
        turnover.place_came_free(true, at(31));
        assert_eq!(wait(&turnover, 31), 2);
    }
}
