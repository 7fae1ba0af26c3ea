//! Estimate of the difference between the clock of the store, Redis, and this gateway's.

use std::cell::Cell;
use std::time::Duration;

use limit::Moment;

/// Minimum time for which an answer counts. It counts for up to twice as long.
///
/// Synchronized clocks drift by less than a microsecond in this time.
const KEPT: Duration = Duration::from_secs(10);
/// Maximum drift in nanoseconds. Answers that differ by more mean that a clock was set.
const MAX_DRIFT: i128 = 1_000_000;

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
/// answer is a lower and an upper bound of the difference. The narrowest bounds count: those of the
/// fastest answers.
#[derive(Debug, Default)]
pub struct StoreClock(Cell<Known>);

/// Bounds from the answers of the present period and of the previous one.
#[derive(Clone, Copy, Debug, Default)]
struct Known {
    present: Option<Bounds>,
    previous: Option<Bounds>,
    /// Start of the present period.
    began: Moment,
}

/// Lower and upper bound of the difference, in nanoseconds.
#[derive(Clone, Copy, Debug)]
struct Bounds {
    min: i128,
    max: i128,
}

impl StoreClock {
    /// Records an answer: the store's clock showed `store_time` within this round trip.
    pub fn note(&self, Trip { sent, received }: Trip, store_time: Moment) {
        let ahead = |own: Moment| i128::from(own.as_nanos()) - i128::from(store_time.as_nanos());
        let new = Bounds {
            min: ahead(sent),
            max: ahead(received),
        };
        let mut known = self.0.get();
        if known.bounds().is_some_and(|bounds| bounds.contradict(new)) {
            known = Known::default();
        }
        if received.since(known.began) > KEPT {
            known.previous = known.present.take();
            known.began = received;
        }
        let narrowed = known.present.map_or(new, |bounds| bounds.narrowed(new));
        known.present = Some(narrowed);
        self.0.set(known);
    }

    /// Returns the instant on the gateway's clock at which the store's clock shows `store_time`.
    ///
    /// Assumes that both directions take equally long (RFC 5905, section 8). The error is at most
    /// half of the fastest round trip.
    pub fn own(&self, store_time: Moment) -> Moment {
        let bounds = self.0.get().bounds();
        let middle = bounds.map_or(0, |bounds| i128::midpoint(bounds.min, bounds.max));
        shifted(store_time, middle)
    }

    /// Returns the latest instant on the gateway's clock at which the store's can show
    /// `store_time`.
    ///
    /// It is late by the time that the fastest answer took from the store to here.
    pub fn latest(&self, store_time: Moment) -> Moment {
        let bounds = self.0.get().bounds();
        shifted(store_time, bounds.map_or(0, |bounds| bounds.max))
    }
}

impl Known {
    /// Returns the bounds from both periods; `None`: no answer yet.
    fn bounds(self) -> Option<Bounds> {
        match (self.present, self.previous) {
            (Some(one), Some(other)) => Some(one.narrowed(other)),
            (one, other) => one.or(other),
        }
    }
}

impl Bounds {
    /// Returns the narrower bounds of both.
    fn narrowed(self, other: Self) -> Self {
        Self {
            min: self.min.max(other.min),
            max: self.max.min(other.max),
        }
    }

    /// Returns whether no difference fits both bounds, even if the clocks have drifted.
    fn contradict(self, other: Self) -> bool {
        let both = self.narrowed(other);
        both.min - both.max > MAX_DRIFT
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

    /// Returns an instant this number of microseconds after a recent one of the Unix epoch.
    fn at(micros: u64) -> Moment {
        Moment::from_nanos(1_000_000_000_000_000_000 + micros * 1000)
    }

    /// Records answers: sent, the store's time, and received, in microseconds.
    fn note(clock: &StoreClock, answers: &[[u64; 3]]) {
        for [sent, store_time, received] in answers.iter().map(|answer| answer.map(at)) {
            clock.note(Trip { sent, received }, store_time);
        }
    }

    /// Checks the own and the latest own time at a time of the store, in microseconds.
    fn check(clock: &StoreClock, [store_time, own, latest]: [u64; 3]) {
        let found = [clock.own(at(store_time)), clock.latest(at(store_time))];
        assert_eq!(found, [own, latest].map(at), "{store_time}");
    }

    #[test]
    fn the_fastest_ways_determine_the_difference() {
        let clock = StoreClock::default();
        // The store is 5 s behind. Each way takes 300 us, then 100, then one way takes 900.
        note(&clock, &[[5_000_000, 300, 5_000_600]]);
        check(&clock, [0, 5_000_000, 5_000_300]);
        note(&clock, &[[5_001_000, 1100, 5_001_200]]);
        note(&clock, &[[5_002_000, 2100, 5_003_000]]);
        check(&clock, [10_000, 5_010_000, 5_010_100]);
        // The first and the last answer of a batch that took 4 ms.
        let clock = StoreClock::default();
        note(&clock, &[[0, 100, 4200], [0, 4100, 4200]]);
        check(&clock, [5000, 5000, 5100]);
    }

    #[test]
    fn an_old_answer_is_forgotten_and_a_clock_that_was_set_is_followed() {
        let clock = StoreClock::default();
        note(&clock, &[[0, 100, 200]]);
        for now in [11_000_000, 22_000_000] {
            note(&clock, &[[now, now + 300, now + 600]]);
        }
        check(&clock, [23_000_000, 23_000_000, 23_000_300]);
        // The store's clock is set forward, then far back.
        note(&clock, &[[23_000_000, 33_000_250, 23_000_500]]);
        assert_eq!(clock.own(at(33_000_000)), at(23_000_000));
        note(&clock, &[[24_000_000, 1_000_250, 24_000_500]]);
        assert_eq!(clock.own(at(1_000_000)), at(24_000_000));
    }
}
