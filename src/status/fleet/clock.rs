use crate::limit::Moment;
use crate::time::clock;

/// How many seconds the clock of a gateway is ahead of the one here: at least, and at most.
///
/// A gateway tells its time at some moment between the request and the end of its answer. So a
/// round trip that takes longer bounds the offset less.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct ClockOffset {
    pub(super) at_least: f64,
    pub(super) at_most: f64,
}

impl ClockOffset {
    /// From the Unix time in seconds that was told, and when it was asked and answered here.
    pub(crate) fn of(told: f64, asked: Moment, answered: Moment) -> Self {
        Self {
            at_least: told - seconds(answered),
            at_most: told - seconds(asked),
        }
    }

    /// The middle of both bounds, to the millisecond.
    pub(super) fn likely(self) -> f64 {
        let middle = f64::midpoint(self.at_least, self.at_most);
        (middle * 1e3).round() / 1e3
    }

    /// How far this clock is surely ahead of another one; negative if it need not be.
    pub(super) fn surely_ahead_of(self, other: Self) -> f64 {
        self.at_least - other.at_most
    }
}

/// The time of the wall clock, to the microsecond.
#[expect(clippy::cast_precision_loss, reason = "a Unix time in microseconds")]
fn seconds(moment: Moment) -> f64 {
    (clock::to_wall(moment).as_nanos() / 1000) as f64 / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Moment {
        Moment::from_nanos(1_700_000_000_000_000_000 + millis * 1_000_000)
    }

    #[test]
    fn a_round_trip_explains_as_much_as_it_took() {
        let told = |millis: f64| 1_700_000_000.0 + millis / 1e3;
        let quick = ClockOffset::of(told(5.0), at(0), at(10));
        assert!(quick.likely().abs() < 0.001, "{quick:?}");
        let slow = ClockOffset::of(told(0.0), at(0), at(3000));
        assert!(slow.at_least < -2.9 && slow.at_most.abs() < 0.001);
        // It may just have answered late.
        assert!(quick.surely_ahead_of(slow) < 0.1);
        let ahead = ClockOffset::of(told(5005.0), at(0), at(10));
        assert!((ahead.surely_ahead_of(quick) - 4.99).abs() < 0.001);
        assert!((ahead.likely() - 5.0).abs() < 0.001);
    }
}
