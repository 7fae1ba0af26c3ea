//! Maps values to positions on the paper, and chooses the round values of an axis.

/// The approximate number of values written at an axis.
const APPROXIMATE_TICKS: f64 = 6.0;

/// One axis: the values of its two ends, and the positions of these ends.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scale {
    /// The values of the ends: as given, or their logarithms.
    low: f64,
    high: f64,
    log: bool,
    /// The positions of the ends.
    from: f64,
    to: f64,
}

/// The smallest and the largest of some values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Range {
    pub(super) low: f64,
    pub(super) high: f64,
}

impl Range {
    /// The range of no values.
    pub(super) const NONE: Self = Self {
        low: f64::INFINITY,
        high: f64::NEG_INFINITY,
    };

    pub(super) fn with(self, value: f64) -> Self {
        Self {
            low: self.low.min(value),
            high: self.high.max(value),
        }
    }

    pub(super) fn and(self, other: Self) -> Self {
        Self {
            low: self.low.min(other.low),
            high: self.high.max(other.high),
        }
    }

    fn is_none(self) -> bool {
        self.low > self.high
    }
}

impl Scale {
    /// An axis that covers `range`, with its ends at `from` and `to`.
    pub(super) fn new(range: Range, log: bool, from: f64, to: f64) -> Self {
        let range = match (range.is_none(), log) {
            (true, true) => range.with(1.0).with(10.0),
            (true, false) => range.with(0.0).with(1.0),
            _ => range,
        };
        let (mut low, mut high) = if log {
            (range.low.log10(), range.high.log10())
        } else {
            (range.low, range.high)
        };
        // A single value lies in the middle.
        if high - low <= f64::EPSILON * high.abs().max(1.0) {
            let room = if log || low == 0.0 {
                1.0
            } else {
                low.abs() / 2.0
            };
            low -= room;
            high += room;
        }
        Self {
            low,
            high,
            log,
            from,
            to,
        }
    }

    /// The same axis, extended at both ends to round values.
    pub(super) fn rounded(self) -> Self {
        let step = if self.log { 1.0 } else { self.step() };
        Self {
            low: (self.low / step + 1e-9).floor() * step,
            high: (self.high / step - 1e-9).ceil() * step,
            ..self
        }
    }

    /// Returns the position of `value`; `None` if it is outside the axis.
    pub(super) fn position(&self, value: f64) -> Option<f64> {
        let value = if self.log { value.log10() } else { value };
        let share = (value - self.low) / (self.high - self.low);
        share
            .is_finite()
            .then_some(self.from + share * (self.to - self.from))
    }

    /// The position of zero, limited to the axis; the low end if zero has no position.
    pub(super) fn base(&self) -> f64 {
        let zero = if self.log { None } else { self.position(0.0) };
        zero.unwrap_or(self.from)
            .clamp(self.from.min(self.to), self.from.max(self.to))
    }

    /// The round values of this axis.
    pub(super) fn ticks(&self) -> Vec<f64> {
        let decades = self.high - self.low;
        if !self.log || decades < 1.0 {
            return self.even_ticks();
        }
        // Three values in a decade if there is room for them.
        let (every, steps): (f64, &[f64]) = if decades <= 2.5 {
            (1.0, &[1.0, 2.0, 5.0])
        } else {
            ((decades / APPROXIMATE_TICKS).ceil(), &[1.0])
        };
        let mut ticks = Vec::new();
        let mut decade = (self.low / every - 1e-9).floor() * every;
        while decade <= self.high + 1e-9 {
            ticks.extend(steps.iter().map(|step| step * 10f64.powf(decade)));
            decade += every;
        }
        ticks.retain(|tick| self.covers(tick.log10()));
        ticks
    }

    fn even_ticks(&self) -> Vec<f64> {
        let (low, high, step) = if self.log {
            let (low, high) = (10f64.powf(self.low), 10f64.powf(self.high));
            (low, high, round_step((high - low) / APPROXIMATE_TICKS))
        } else {
            (self.low, self.high, self.step())
        };
        let mut ticks = Vec::new();
        let mut index = (low / step - 1e-9).ceil();
        while index * step <= high + step * 1e-9 {
            ticks.push(index * step);
            index += 1.0;
        }
        ticks
    }

    /// Returns whether the axis covers a value, or its logarithm.
    fn covers(&self, value: f64) -> bool {
        let slack = 1e-9 * (self.high - self.low);
        value >= self.low - slack && value <= self.high + slack
    }

    fn step(&self) -> f64 {
        round_step((self.high - self.low) / APPROXIMATE_TICKS)
    }
}

/// The round step closest to `approximate`: 1, 2 or 5 of a decimal place.
fn round_step(approximate: f64) -> f64 {
    let power = 10f64.powf(approximate.log10().floor());
    let steps = [1.0, 2.0, 5.0, 10.0];
    let step = steps
        .into_iter()
        .find(|step| step * power >= approximate * 0.999)
        .unwrap_or(10.0);
    step * power
}

/// Formats a value for an axis.
///
/// It has as few digits as possible. Thousands are written as `k`, millions as `M`.
pub(super) fn format_value(value: f64) -> String {
    let size = value.abs();
    let (scaled, unit) = match size {
        _ if size >= 1e9 => (value / 1e9, "G"),
        _ if size >= 1e6 => (value / 1e6, "M"),
        _ if size >= 1e4 => (value / 1e3, "k"),
        _ => (value, ""),
    };
    if size > 0.0 && size < 1e-4 {
        return format!("{value:.0e}");
    }
    let text = format!("{scaled:.5}");
    format!("{}{unit}", without_zeros(&text))
}

/// A number with decimals without the last ones that are zero.
pub(super) fn without_zeros(text: &str) -> &str {
    match text.trim_end_matches('0').trim_end_matches('.') {
        "-0" => "0",
        text => text,
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "numbers of letters, names and bars"
)]
pub(super) fn count(number: usize) -> f64 {
    number as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ticks(low: f64, high: f64, log: bool) -> String {
        let scale = Scale::new(Range { low, high }, log, 0.0, 100.0);
        let ticks: Vec<String> = scale.ticks().into_iter().map(format_value).collect();
        ticks.join(" ")
    }

    #[test]
    fn ticks_are_round_and_a_handful() {
        let cases = [
            (0.0, 10.0, false, "0 2 4 6 8 10"),
            (0.0, 1.0, false, "0 0.2 0.4 0.6 0.8 1"),
            (0.0, 0.3, false, "0 0.05 0.1 0.15 0.2 0.25 0.3"),
            (-7.0, 7.0, false, "-5 0 5"),
            (0.0, 30000.0, false, "0 5000 10k 15k 20k 25k 30k"),
            (0.0, 3e6, false, "0 500k 1M 1.5M 2M 2.5M 3M"),
            (1.0, 100.0, true, "1 2 5 10 20 50 100"),
            (1.0, 1e5, true, "1 10 100 1000 10k 100k"),
            (0.001, 1e9, true, "0.01 1 100 10k 1M 100M"),
            (20.0, 50.0, true, "20 25 30 35 40 45 50"),
        ];
        for (low, high, log, expected) in cases {
            assert_eq!(ticks(low, high, log), expected, "{low} to {high}");
        }
    }

    #[test]
    fn values_outside_the_axis_have_no_position() {
        let range = Range::NONE.with(1.0).with(100.0);
        let scale = Scale::new(range, true, 0.0, 100.0);
        assert_eq!(scale.position(10.0), Some(50.0));
        assert_eq!(scale.position(0.0), None);
        assert_eq!(scale.position(f64::NAN), None);
        assert_eq!(scale.base().to_bits(), 0f64.to_bits());
    }

    #[test]
    fn one_value_lies_in_the_middle_and_none_are_no_harm() {
        for (value, log) in [(5.0, false), (0.0, false), (5.0, true)] {
            let range = Range::NONE.with(value);
            let scale = Scale::new(range, log, 0.0, 100.0);
            let position = scale.position(value).unwrap();
            assert!((position - 50.0).abs() < 1e-6, "{value}: {position}");
        }
        assert!(!Scale::new(Range::NONE, false, 0.0, 1.0).ticks().is_empty());
        assert!(!Scale::new(Range::NONE, true, 0.0, 1.0).ticks().is_empty());
    }
}
