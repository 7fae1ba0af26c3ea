use std::time::Duration;

use crate::limit::Moment;

/// How long a sample counts, at least.
///
/// Synchronized clocks drift less than a microsecond in this time.
const KEPT: Duration = Duration::from_secs(10);

/// How far the gateway's clock is ahead of the store's.
///
/// An answer arrives later than the time it reports, by its travel time. So the fastest of several
/// answers is the most exact: the smallest difference of the last seconds counts.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Offset {
    /// The smallest differences in nanoseconds, of the present span and of the one before it.
    present: Option<i128>,
    before: Option<i128>,
    began: Moment,
}

impl Offset {
    /// Converts `told` on the store's clock to the gateway's clock.
    ///
    /// The answer was received at `received` and took less than `most`.
    pub(super) fn own(&mut self, told: Moment, received: Moment, most: Duration) -> Moment {
        let sample = i128::from(received.as_nanos()) - i128::from(told.as_nanos());
        let most = i128::try_from(most.as_nanos()).unwrap_or(i128::MAX);
        // No answer takes that long: one of the clocks was changed.
        if self.least().is_some_and(|least| sample - least > most) {
            *self = Self::default();
        }
        if received.since(self.began) > KEPT {
            self.before = self.present.take();
            self.began = received;
        }
        self.present = Some(self.present.map_or(sample, |least| least.min(sample)));
        let own = i128::from(told.as_nanos()) + self.least().unwrap_or(sample);
        Moment::from_nanos(u64::try_from(own.max(0)).unwrap_or(u64::MAX))
    }

    fn least(&self) -> Option<i128> {
        self.present.into_iter().chain(self.before).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOST: Duration = Duration::from_millis(50);

    fn at(micros: u64) -> Moment {
        Moment::from_nanos(1_000_000_000_000_000_000 + micros * 1000)
    }

    #[test]
    fn the_fastest_answer_tells_how_the_clocks_stand() {
        let mut offset = Offset::default();
        // The store is 5 s behind; answers take 300, 100 and 900 us.
        assert_eq!(offset.own(at(0), at(5_000_300), MOST), at(5_000_300));
        assert_eq!(offset.own(at(1000), at(5_001_100), MOST), at(5_001_100));
        assert_eq!(offset.own(at(2000), at(5_002_900), MOST), at(5_002_100));
    }

    #[test]
    fn an_old_sample_is_forgotten_and_a_clock_that_was_set_is_followed() {
        let mut offset = Offset::default();
        offset.own(at(0), at(0), MOST);
        assert_eq!(
            offset.own(at(11_000_000), at(11_000_400), MOST),
            at(11_000_000)
        );
        assert_eq!(
            offset.own(at(22_000_000), at(22_000_400), MOST),
            at(22_000_400)
        );
        // The store's clock is set forward, then far back.
        assert_eq!(
            offset.own(at(33_000_000), at(23_000_000), MOST),
            at(23_000_000)
        );
        assert_eq!(
            offset.own(at(1_000_000), at(24_000_000), MOST),
            at(24_000_000)
        );
    }
}
