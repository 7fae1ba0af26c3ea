use std::time::Duration;

use crate::limit::Moment;

/// New gaps count for one part in so many.
const SMOOTHING: u32 = 8;

/// How often places at an origin come free while requests wait for one.
///
/// It is a smoothed mean of the time between two of them, and the only thing known about the time
/// that a request without a pace will wait.
#[derive(Debug, Default)]
pub(super) struct Turnover {
    gap: Option<Duration>,
    /// When a place last came free while requests waited.
    last: Option<Moment>,
}

impl Turnover {
    pub(super) fn place_came_free(&mut self, while_waiting: bool, now: Moment) {
        let last = std::mem::replace(&mut self.last, while_waiting.then_some(now));
        if let (Some(last), true) = (last, while_waiting) {
            let gap = now.since(last);
            let smoothed = |known: Duration| (known * (SMOOTHING - 1) + gap) / SMOOTHING;
            self.gap = Some(self.gap.map_or(gap, smoothed));
        }
    }

    /// How many places come free in such a time; none if it is not known yet.
    pub(super) fn places_in(&self, span: Duration) -> u64 {
        let gap = self.gap.map_or(u128::MAX, |gap| gap.as_nanos().max(1));
        u64::try_from(span.as_nanos() / gap).unwrap_or(u64::MAX)
    }

    /// The time in which so many places come free; zero if it is not known yet.
    pub(super) fn time_for(&self, places: u64) -> Duration {
        let nanos = self.gap.map_or(0, |gap| gap.as_nanos());
        let all = nanos.saturating_mul(places.into());
        Duration::from_nanos(u64::try_from(all).unwrap_or(u64::MAX))
    }
}
