//! Turnover: measures how often permits of an origin become free while requests wait for them.
//!
//! A *permit* is the right to run one request at the origin. The *gap* is the time between two
//! instants at which a permit became free.

use std::time::Duration;

use crate::Moment;

/// Divisor of the smoothed mean: a new gap counts for one part in eight.
const SMOOTHING: u32 = 8;

/// A gap that was measured longer ago than this counts as unknown, or than twice the gap if longer.
///
/// With a gap above `max_wait` no request may wait, so no gap is measured. Without this bound that
/// would stay so.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(5);

/// How often permits become free while requests wait. Waits for permits are predicted by it.
#[derive(Debug, Default)]
pub(super) struct Turnover {
    /// Smoothed mean of the time between two instants at which a permit became free.
    gap: Option<Duration>,
    /// Instant of the last measurement.
    measured: Moment,
    /// Instant at which a permit last became free while requests waited.
    last: Option<Moment>,
}

impl Turnover {
    /// Records that a permit became free. `while_waiting`: requests waited for it.
    pub(super) fn permit_came_free(&mut self, while_waiting: bool, now: Moment) {
        let last = std::mem::replace(&mut self.last, while_waiting.then_some(now));
        if let (Some(last), true) = (last, while_waiting) {
            let gap = now.since(last);
            let smoothed = |known: Duration| (known * (SMOOTHING - 1) + gap) / SMOOTHING;
            self.gap = Some(self.gap_at(now).map_or(gap, smoothed));
            self.measured = now;
        }
    }

    /// Returns the gap, unless its measurement is too old.
    fn gap_at(&self, now: Moment) -> Option<Duration> {
        self.gap
            .filter(|gap| now.since(self.measured) <= FORGOTTEN_AFTER.max(*gap * 2))
    }

    /// Returns the number of permits that become free in `span` from `now` on. Zero: unknown.
    pub(super) fn permits_in(&self, span: Duration, now: Moment) -> u64 {
        let gap = self.gap_at(now).map(|gap| gap.as_nanos().max(1));
        u64::try_from(span.as_nanos() / gap.unwrap_or(u128::MAX)).unwrap_or(u64::MAX)
    }

    /// Returns the time in which `permits` permits become free from `now` on. Zero: unknown.
    pub(super) fn time_for(&self, permits: u64, now: Moment) -> Duration {
        let nanos = self.gap_at(now).map_or(0, |gap| gap.as_nanos());
        let all = nanos.saturating_mul(permits.into());
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
    fn an_old_gap_is_not_used() {
        let mut turnover = Turnover::default();
        for seconds in [0, 6, 12] {
            turnover.permit_came_free(true, at(seconds));
        }
        let wait = |turnover: &Turnover, seconds| turnover.time_for(2, at(seconds)).as_secs();
        assert_eq!(wait(&turnover, 12), 12);
        assert_eq!(wait(&turnover, 24), 12);
        assert_eq!(wait(&turnover, 25), 0, "requests may wait again");
        // No request waited, so the time before this is not part of the next gap.
        turnover.permit_came_free(false, at(26));
        turnover.permit_came_free(true, at(30));
        turnover.permit_came_free(true, at(31));
        assert_eq!(wait(&turnover, 31), 2);
    }
}
