use hdrhistogram::Histogram;

/// How some numbers are spread: right to a thousandth, whatever their size, and the largest exactly.
#[derive(Clone, Debug)]
pub struct Spread {
    numbers: Histogram<u64>,
    peak: u64,
}

impl Default for Spread {
    fn default() -> Self {
        Self {
            // Three digits are within what is allowed.
            numbers: Histogram::new(3).unwrap_or_else(|error| unreachable!("{error}")),
            peak: 0,
        }
    }
}

impl Spread {
    /// Counts a number.
    pub fn add(&mut self, number: u64) {
        // It grows as it needs to, so nothing is too large for it.
        let _ = self.numbers.record(number);
        self.peak = self.peak.max(number);
    }

    /// The number that this share of all, from 0 to 1, do not exceed; 0 of none.
    #[must_use]
    pub fn at(&self, share: f64) -> u64 {
        // Among equals the histogram tells the largest, which nobody may have had.
        self.numbers.value_at_quantile(share).min(self.peak)
    }

    /// The largest; 0 of none.
    #[must_use]
    pub fn peak(&self) -> u64 {
        self.peak
    }

    /// How many there are.
    #[must_use]
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
        assert!(spread.at(0.5).abs_diff(500_000) <= 500);
        assert_eq!(spread.at(1.0), 1_000_003);
    }

    #[test]
    fn of_none_all_is_zero() {
        let spread = Spread::default();
        assert_eq!((spread.at(0.99), spread.peak(), spread.count()), (0, 0, 0));
    }
}
