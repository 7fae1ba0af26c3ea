use crate::replay::Spread;

/// How many times the next second one that stands out has.
const FACTOR: u64 = 3;
/// The fewest seconds among which one can stand out.
const MIN_SECONDS: u64 = 5;
/// The most seconds that stand out.
const MAX_OUTLIERS: usize = 4;
/// One second in so many may stand out.
const ONE_IN: u64 = 10;

/// A number for each second of a log, such as that of the requests that came in it.
#[derive(Debug, Default)]
pub(super) struct Seconds {
    spread: Spread,
    /// The largest numbers, the largest first.
    top: Vec<u64>,
}

impl Seconds {
    pub(super) fn add(&mut self, number: u64) {
        self.add_many(number, 1);
    }

    /// Adds so many seconds with a number.
    pub(super) fn add_many(&mut self, number: u64, times: u64) {
        self.spread.add_many(number, times);
        let times = usize::try_from(times)
            .unwrap_or(usize::MAX)
            .min(MAX_OUTLIERS + 1);
        if self.top.len() > MAX_OUTLIERS && self.top.last() >= Some(&number) {
            return;
        }
        let place = self.top.partition_point(|top| *top >= number);
        self.top
            .splice(place..place, std::iter::repeat_n(number, times));
        self.top.truncate(MAX_OUTLIERS + 1);
    }

    /// The distribution of the numbers.
    pub(super) fn spread(&self) -> &Spread {
        &self.spread
    }

    /// The seconds that have much more than all others, as one burst makes them, and the most of
    /// the others. `least`: less is no burst.
    pub(super) fn outliers(&self, least: u64) -> Option<(&[u64], u64)> {
        let count = self.spread.count();
        if count < MIN_SECONDS {
            return None;
        }
        let most = usize::try_from((count / ONE_IN).max(1)).unwrap_or(MAX_OUTLIERS);
        let most = most.min(MAX_OUTLIERS).min(self.top.len().saturating_sub(1));
        let stands_out = |of: &usize| {
            let (number, next) = (self.top[*of - 1], self.top[*of]);
            number >= least && number >= FACTOR.saturating_mul(next)
        };
        let of = (1..=most).rev().find(stands_out)?;
        Some((&self.top[..of], self.top[of]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_seconds_may_stand_out_among_many() {
        for (numbers, expected) in [
            (&[4, 5, 4, 30, 5][..], Some((&[30][..], 5))),
            (&[4, 5, 30, 5][..], None),
            (&[4, 5, 4, 14, 5][..], None),
            (&[1, 1, 1, 9, 1][..], None),
            // Two of five are no exception.
            (&[4, 40, 4, 30, 5][..], None),
        ] {
            let mut seconds = Seconds::default();
            for number in numbers {
                seconds.add(*number);
            }
            assert_eq!(seconds.outliers(10), expected, "{numbers:?}");
            seconds.add_many(1, 15);
            if numbers.len() == 5 && numbers[1] == 40 {
                assert_eq!(seconds.outliers(10), Some((&[40, 30][..], 5)));
            }
        }
    }
}
