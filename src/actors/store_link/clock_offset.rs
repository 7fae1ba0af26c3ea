use std::time::Duration;

use crate::limit::Moment;

/// How long a sample counts, at least.
const KEPT: Duration = Duration::from_secs(10);

/// How the store's clock stands to the gateway's, from round trips.
///
/// The store is taken to have told its time halfway between sending and receiving. The fastest
/// round trip of the last seconds counts: its error is at most half of what it took, and zero if
/// both ways take equally long (RFC 5905, section 8).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ClockOffset {
    /// The fastest of the present span and of the one before it.
    present: Option<Sample>,
    before: Option<Sample>,
    began: Moment,
    /// How long answers take to arrive, most of them.
    lead: Duration,
}

#[derive(Clone, Copy, Debug)]
struct Sample {
    /// How far the gateway's clock is ahead, in nanoseconds.
    ahead: i128,
    trip: Duration,
}

impl ClockOffset {
    /// Notes a round trip: the store told `told` between these two moments on the gateway's clock.
    pub(super) fn note(&mut self, sent: Moment, told: Moment, received: Moment) {
        let trip = received.since(sent);
        let halfway = i128::from(sent.as_nanos()) + nanos(trip) / 2;
        let sample = Sample {
            ahead: halfway - i128::from(told.as_nanos()),
            trip,
        };
        // Each is right to half of its trip, unless one of the clocks was set.
        let most = |best: Sample| nanos(best.trip + trip) / 2 + 1_000_000;
        let is_off = |best: Sample| (sample.ahead - best.ahead).abs() > most(best);
        if self.best().is_some_and(is_off) {
            *self = Self::default();
        }
        if received.since(self.began) > KEPT {
            self.before = self.present.take();
            self.began = received;
        }
        if self.present.is_none_or(|best| trip < best.trip) {
            self.present = Some(sample);
        }
        // Up at once, and down slowly: an answer that takes longer brings slots that have passed.
        let took = received.since(self.own(told));
        self.lead = took.max((self.lead * 7 + took) / 8);
    }

    /// The moment on the gateway's clock at which the store's clock shows `told`.
    pub(super) fn own(&self, told: Moment) -> Moment {
        let ahead = self.best().map_or(0, |best| best.ahead);
        let own = i128::from(told.as_nanos()) + ahead;
        Moment::from_nanos(u64::try_from(own.max(0)).unwrap_or(u64::MAX))
    }

    /// How long an answer takes to arrive, as the last ones did; zero before the first one.
    pub(super) fn lead(&self) -> Duration {
        self.lead
    }

    fn best(&self) -> Option<Sample> {
        let samples = self.present.into_iter().chain(self.before);
        samples.min_by_key(|sample| sample.trip)
    }
}

fn nanos(span: Duration) -> i128 {
    i128::try_from(span.as_nanos()).unwrap_or(i128::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(micros: u64) -> Moment {
        Moment::from_nanos(1_000_000_000_000_000_000 + micros * 1000)
    }

    #[test]
    fn the_fastest_round_trip_tells_how_the_clocks_stand() {
        let mut offset = ClockOffset::default();
        assert_eq!(offset.lead(), Duration::ZERO);
        // The store is 5 s behind; one way takes 300 us, then 100, then one of them 900.
        offset.note(at(5_000_000), at(300), at(5_000_600));
        assert_eq!(offset.own(at(0)), at(5_000_000));
        offset.note(at(5_001_000), at(1100), at(5_001_200));
        offset.note(at(5_002_000), at(2100), at(5_003_000));
        assert_eq!(offset.own(at(10_000)), at(5_010_000));
        // The last answer took 900, and counts for a while.
        assert_eq!(offset.lead(), Duration::from_micros(900));
        for nth in 1..100 {
            let now = nth * 10_000;
            offset.note(at(5_000_000 + now), at(now + 100), at(5_000_200 + now));
        }
        assert!(offset.lead() < Duration::from_micros(102));
    }

    #[test]
    fn an_old_sample_is_forgotten_and_a_clock_that_was_set_is_followed() {
        let mut offset = ClockOffset::default();
        offset.note(at(0), at(100), at(200));
        for seconds in [11, 22] {
            let now = seconds * 1_000_000;
            offset.note(at(now), at(now + 300), at(now + 600));
        }
        assert_eq!(offset.own(at(23_000_000)), at(23_000_000));
        // The store's clock is set far back.
        offset.note(at(23_000_000), at(1_000_250), at(23_000_500));
        assert_eq!(offset.own(at(1_000_000)), at(23_000_000));
    }
}
