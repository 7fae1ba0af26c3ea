//! Spread: the distribution of numbers, for quantiles.

use hdrhistogram::Histogram;

/// Distribution of numbers, with three significant digits. The maximum is exact.
#[derive(Clone, Debug)]
pub struct Spread {
    numbers: Histogram<u64>,
    /// Largest number.
    peak: u64,
}

impl Default for Spread {
    fn default() -> Self {
        Self {
            // Three digits are within the allowed range.
            numbers: Histogram::new(3).unwrap_or_else(|error| unreachable!("{error}")),
            peak: 0,
        }
    }
}

impl Spread {
    /// Adds a number.
    pub fn add(&mut self, number: u64) {
        self.add_many(number, 1);
    }

    /// Adds a number `times` times.
    pub fn add_many(&mut self, number: u64, times: u64) {
        if times > 0 {
            // The histogram grows as needed, so no number is too large.
            let _ = self.numbers.record_n(number, times);
            self.peak = self.peak.max(number);
        }
    }

    /// Returns a quantile, from 0 to 1; 0 if there are no numbers.
    pub fn quantile(&self, quantile: f64) -> u64 {
        // The histogram returns the upper end of a bin, which may exceed every recorded number.
        self.numbers.value_at_quantile(quantile).min(self.peak)
    }

    /// Returns the largest number; 0 if there are none.
    pub fn peak(&self) -> u64 {
        self.peak
    }

    /// Returns the number of added numbers.
    pub fn count(&self) -> u64 {
        self.numbers.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spread_knows_its_peak_exactly() {
        let mut spread = Spread::default();
        for number in 1..=1_000_003 {
            spread.add(number);
        }
        assert_eq!(spread.peak(), 1_000_003);
        assert!(spread.quantile(0.5).abs_diff(500_000) <= 500);
        assert_eq!(spread.quantile(1.0), 1_000_003);
    }

    #[test]
    fn an_empty_spread_is_zero() {
        let spread = Spread::default();
        let numbers = (spread.quantile(0.99), spread.peak(), spread.count());
        assert_eq!(numbers, (0, 0, 0));
    }
}
