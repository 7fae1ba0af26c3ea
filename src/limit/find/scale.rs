//! Levels of an experiment as numbers, rounded to values that look well in the file.
//!
//! A *level* is a rate, or a number of permits. A [`Target`] is the range in which it is searched.

use super::report::Level;
use super::settings::Target;
use crate::{Rate, to_whole};

/// Here levels are numbers: requests per second, or concurrent requests.
impl Target {
    /// Returns the lower and the upper bound.
    fn bounds(self) -> (Level, Level) {
        match self {
            Target::Rate { from, to } => (Level::Rate(from), Level::Rate(to)),
            Target::Permits { from, to } => (Level::Permits(from), Level::Permits(to)),
        }
    }

    /// Returns the lower bound.
    pub(super) fn bottom(self) -> f64 {
        self.bounds().0.number()
    }

    /// Returns the upper bound.
    pub(super) fn top(self) -> f64 {
        self.bounds().1.number()
    }

    /// Returns a level that is higher by the share `part` of `from`, at most the upper bound.
    ///
    /// It is higher by at least one unit of rounding.
    pub(super) fn up(self, from: f64, part: f64) -> f64 {
        let next = self.rounded(from * (1.0 + part));
        next.max(from + self.unit(from)).min(self.top())
    }

    /// Returns a lower level: about the one from which [`up`](Self::up) leads to `from`.
    ///
    /// It is lower by at least one unit of rounding, but at least the lower bound.
    pub(super) fn down(self, from: f64, part: f64) -> f64 {
        let next = self.rounded(from / (1.0 + part));
        next.min(from - self.unit(from)).max(self.bottom())
    }

    /// Converts a number to a level, as written in the file.
    pub(super) fn level(self, number: f64) -> Level {
        match self {
            Target::Permits { to, .. } => {
                Level::Permits(u32::try_from(to_whole(number.round())).unwrap_or(to))
            }
            Target::Rate { from, .. } if number <= from.per_second() => Level::Rate(from),
            Target::Rate { to, .. } if number >= to.per_second() => Level::Rate(to),
            Target::Rate { from, .. } => Level::Rate(rate(number).unwrap_or(from)),
        }
    }

    /// Rounds a level to a whole number of units.
    fn rounded(self, number: f64) -> f64 {
        let unit = self.unit(number);
        // A unit below 1 is not exact, but its inverse is: so divide by the inverse.
        if unit < 1.0 {
            (number / unit).round() / (1.0 / unit).round()
        } else {
            (number / unit).round() * unit
        }
    }

    /// Returns the unit of rounding: one permit, or the third digit of a rate.
    ///
    /// A rounded rate is at most 0.5 % off.
    fn unit(self, number: f64) -> f64 {
        match self {
            Target::Permits { .. } => 1.0,
            Target::Rate { .. } => 10_f64.powf(number.max(1e-6).log10().floor() - 2.0),
        }
    }
}

/// Converts a number of requests per second to a rate.
pub(super) fn rate(number: f64) -> Option<Rate> {
    let text = format!("{number:.9}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    format!("{text}r/s").parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rates(from: &str, to: &str) -> Target {
        let (from, to) = (from.parse().unwrap(), to.parse().unwrap());
        Target::Rate { from, to }
    }

    fn shown(scale: Target, number: f64) -> String {
        match scale.level(number) {
            Level::Rate(rate) => rate.to_string(),
            Level::Permits(permits) => permits.to_string(),
        }
    }

    #[test]
    fn rates_have_three_digits_and_stay_within_their_bounds() {
        let scale = rates("50r/s", "400r/s");
        for (from, next) in [(50.0, "52.5r/s"), (211.0, "222r/s"), (395.0, "400r/s")] {
            assert_eq!(shown(scale, scale.up(from, 0.05)), next);
        }
        assert_eq!(shown(scale, scale.down(51.0, 0.05)), "50r/s");
        assert_eq!(shown(scale, scale.down(223.0, 0.05)), "212r/s");
        let slow = rates("30r/m", "90r/m");
        assert_eq!(shown(slow, slow.bottom()), "30r/m");
        assert_eq!(shown(slow, slow.up(0.5, 0.05)), "0.525r/s");
        assert_eq!(shown(slow, slow.up(1.49, 0.05)), "90r/m");
    }

    #[test]
    fn each_step_is_a_step_however_small() {
        let scale = Target::Permits { from: 1, to: 40 };
        let mut all = vec![1.0];
        while let Some(last) = all.last().copied().filter(|last| *last < 40.0) {
            all.push(scale.up(last, 0.05));
        }
        assert_eq!(all.len(), 35, "one more each, and two from 30 on: {all:?}");
        assert!(all.windows(2).all(|pair| pair[0] < pair[1]));
        assert_eq!(shown(scale, scale.down(4.0, 0.05)), "3");
    }
}
