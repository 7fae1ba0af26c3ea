//! Estimate of the difference between the store's clock and this gateway's.

use std::cell::Cell;
use std::time::Duration;

use limit::Moment;

/// Least time for which an answer counts.
///
/// Synchronized clocks drift by less than a microsecond in this time.
const KEPT: Duration = Duration::from_secs(10);
/// Drift in nanoseconds: a larger contradiction between answers means that a clock was set.
const DRIFT: i128 = 1_000_000;

/// Round trip of a request to the store, on the gateway's clock.
#[derive(Clone, Copy, Debug)]
pub struct Trip {
    /// Time of sending.
    pub sent: Moment,
    /// Time at which the answer was received or given up.
    pub received: Moment,
}

/// Difference of this gateway's clock to the store's, from the answers of the last seconds.
///
/// The store read its clock after the request was sent and before its answer was received. So each
/// answer bounds the difference on both sides. The narrowest bounds count, which come from the
/// fastest answers.
#[derive(Debug, Default)]
pub struct StoreClock(Cell<Known>);

/// Bounds of the difference, and the start of the present span of time.
#[derive(Clone, Copy, Debug, Default)]
struct Known {
    /// Bounds from the present span of time, and from the span before it.
    present: Option<Bounds>,
    before: Option<Bounds>,
    began: Moment,
}

/// Least and largest possible difference, in nanoseconds.
#[derive(Clone, Copy, Debug)]
struct Bounds {
    least: i128,
    most: i128,
}

impl StoreClock {
    /// Records an answer: the store's clock showed `store_time` within this round trip.
    pub fn note(&self, Trip { sent, received }: Trip, store_time: Moment) {
        let ahead = |own: Moment| i128::from(own.as_nanos()) - i128::from(store_time.as_nanos());
        let new = Bounds {
            least: ahead(sent),
            most: ahead(received),
        };
        let mut known = self.0.get();
        if known.bounds().is_some_and(|it| it.contradicts(new)) {
            known = Known::default();
        }
        if received.since(known.began) > KEPT {
            known.before = known.present.take();
            known.began = received;
        }
        known.present = Some(known.present.map_or(new, |it| it.narrowed(new)));
        self.0.set(known);
    }

    /// Returns the instant on the gateway's clock at which the store's clock shows `store_time`.
    ///
    /// Assumes that both directions take equally long (RFC 5905, section 8). The error is at most
    /// half of the fastest round trip.
    pub fn own(&self, store_time: Moment) -> Moment {
        let bounds = self.0.get().bounds();
        shifted(
            store_time,
            bounds.map_or(0, |it| i128::midpoint(it.least, it.most)),
        )
    }

    /// Returns the latest instant on the gateway's clock at which the store's can show
    /// `store_time`.
    ///
    /// It is late by the duration of the fastest way back.
    pub fn latest(&self, store_time: Moment) -> Moment {
        shifted(store_time, self.0.get().bounds().map_or(0, |it| it.most))
    }
}

impl Known {
    fn bounds(self) -> Option<Bounds> {
        match (self.present, self.before) {
            (Some(one), Some(other)) => Some(one.narrowed(other)),
            (one, other) => one.or(other),
        }
    }
}

impl Bounds {
    /// Returns the narrower bounds of both.
    fn narrowed(self, other: Self) -> Self {
        Self {
            least: self.least.max(other.least),
            most: self.most.min(other.most),
        }
    }

    /// Returns whether no difference fits both bounds.
    fn contradicts(self, other: Self) -> bool {
        let both = self.narrowed(other);
        both.least - both.most > DRIFT
    }
}

/// Returns `store_time` on a clock that is ahead by `ahead` nanoseconds.
fn shifted(store_time: Moment, ahead: i128) -> Moment {
    let own = i128::from(store_time.as_nanos()) + ahead;
    Moment::from_nanos(u64::try_from(own.max(0)).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(micros: u64) -> Moment {
        Moment::from_nanos(1_000_000_000_000_000_000 + micros * 1000)
    }

    /// Records an answer of the store between two instants of the gateway's clock.
    fn note(clock: &StoreClock, [sent, store_time, received]: [u64; 3]) {
        let (sent, received) = (at(sent), at(received));
        clock.note(Trip { sent, received }, at(store_time));
    }

    #[test]
    fn the_fastest_answers_determine_the_clocks_difference() {
        let clock = StoreClock::default();
        // The store is 5 s behind. Each way takes 300 us, then 100, then one way takes 900.
        note(&clock, [5_000_000, 300, 5_000_600]);
        assert_eq!(clock.own(at(0)), at(5_000_000));
        assert_eq!(clock.latest(at(0)), at(5_000_300));
        note(&clock, [5_001_000, 1100, 5_001_200]);
        note(&clock, [5_002_000, 2100, 5_003_000]);
        assert_eq!(clock.own(at(10_000)), at(5_010_000));
        assert_eq!(clock.latest(at(10_000)), at(5_010_100));
    }

    #[test]
    fn the_fastest_ways_there_and_back_count() {
        let clock = StoreClock::default();
        // The first and the last answer of a batch that took 4 ms.
        note(&clock, [0, 100, 4200]);
        note(&clock, [0, 4100, 4200]);
        assert_eq!(clock.own(at(5000)), at(5000));
        assert_eq!(clock.latest(at(5000)), at(5100));
    }

    #[test]
    fn an_old_answer_is_forgotten_and_a_clock_that_was_set_is_followed() {
        let clock = StoreClock::default();
        note(&clock, [0, 100, 200]);
        for seconds in [11, 22] {
            let now = seconds * 1_000_000;
            note(&clock, [now, now + 300, now + 600]);
        }
        assert_eq!(clock.own(at(23_000_000)), at(23_000_000));
        assert_eq!(clock.latest(at(23_000_000)), at(23_000_300));
        // The store's clock is set forward, then far back.
        note(&clock, [23_000_000, 33_000_250, 23_000_500]);
        assert_eq!(clock.own(at(33_000_000)), at(23_000_000));
        note(&clock, [24_000_000, 1_000_250, 24_000_500]);
        assert_eq!(clock.own(at(1_000_000)), at(24_000_000));
    }
}
