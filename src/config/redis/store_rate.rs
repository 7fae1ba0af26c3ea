//! Rates in the units of the scripts that run in Redis.
//!
//! A bucket measures its level in ticks: fractions of a request so small that a whole number of
//! them leaks per nanosecond. The scripts count in doubles, which are exact only for numbers below
//! 2^53. So for some rates the tick of the scripts is a multiple of the tick in memory.

use std::time::Duration;

use limit::{Algorithm, Moment, Rate};

/// Upper bound of script ticks per request. Numbers of ticks below it are exact in doubles.
const MAX_EXACT: i128 = 1 << 51;

/// A rate in the units of the scripts, and the instant since which this gateway's file has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreRate {
    rate: Rate,
    /// Form that the scripts read: four doubles, and the rate as text.
    ///
    /// The doubles are ticks per request, ticks per microsecond, microseconds per period, and
    /// requests per period.
    packed: Vec<u8>,
    /// Instant since which this gateway's file has the rate, in microseconds since the Unix epoch.
    since: u64,
}

/// Error of a rate whose count has too many decimals for its period.
const DECIMALS: &str = "the count of this rate has too many decimals for a period this long to be kept exactly in Redis";
/// Error of a window whose period is not a whole number of microseconds.
const PERIOD: &str =
    "a window in Redis is a whole number of microseconds long, the resolution of its clock";

impl StoreRate {
    /// Converts a rate. `algorithm`: how its zone counts.
    ///
    /// `since`: instant since which this gateway's file has the rate, by the gateway's own clock.
    /// If two gateways have different rates, the file that changed later decides.
    ///
    /// # Errors
    ///
    /// Returns an error if a script could not count the rate exactly.
    pub fn new(rate: Rate, algorithm: Algorithm, since: Moment) -> Result<Self, &'static str> {
        let [_, per_request, per_micro] = script_ticks(rate);
        if per_request >= MAX_EXACT {
            return Err(DECIMALS);
        }
        let nanos = rate.period().as_nanos();
        if algorithm.has_windows() && !nanos.is_multiple_of(1000) {
            return Err(PERIOD);
        }
        let (micros, count) = (nanos / 1000, rate.whole_count().unwrap_or(0));
        let mut packed = Vec::new();
        let micros = micros.try_into().unwrap_or(0);
        for number in [per_request, per_micro, micros, count.into()] {
            // All are below 2^53: no rate leaks more than a request per microsecond.
            let number = limit::to_float(u64::try_from(number).unwrap_or(0));
            packed.extend_from_slice(&number.to_le_bytes());
        }
        packed.extend_from_slice(rate.to_string().as_bytes());
        Ok(Self {
            rate,
            packed,
            since: since.as_nanos() / 1000,
        })
    }

    /// Returns the rate.
    pub fn rate(&self) -> Rate {
        self.rate
    }

    /// Returns the form that the scripts read: four doubles, and the rate as text.
    pub fn packed(&self) -> &[u8] {
        &self.packed
    }

    /// Returns the instant since which this gateway's file has the rate, in whole microseconds.
    pub fn since(&self) -> Moment {
        Moment::from_nanos(self.since.saturating_mul(1000))
    }
}

/// Returns three numbers: ticks in memory per script tick, script ticks per request, and script
/// ticks per microsecond.
fn script_ticks(rate: Rate) -> [i128; 3] {
    let (per_request, per_micro) = (rate.ticks_per_request(), rate.ticks_per_nano() * 1000);
    // Uses the rate's own ticks where they fit, so that a retune rounds as in memory.
    let scale = if per_request < MAX_EXACT {
        1
    } else {
        greatest_common_divisor(per_request, per_micro)
    };
    [scale, per_request / scale, per_micro / scale]
}

/// Converts a level that a script reported to ticks in memory.
///
/// `requests`: the whole requests of the level. `ticks`: its rest, in script ticks.
pub fn ticks(rate: Rate, requests: u64, ticks: u64) -> i128 {
    let [rate_ticks, ..] = script_ticks(rate);
    i128::from(requests) * rate.ticks_per_request() + i128::from(ticks) * rate_ticks
}

/// Truncates a `max_wait` to whole microseconds.
pub fn whole_micros(span: Duration) -> Duration {
    Duration::from_micros(u64::try_from(span.as_micros()).unwrap_or(u64::MAX))
}

/// Returns the greatest common divisor, by Euclid's algorithm.
fn greatest_common_divisor(a: i128, b: i128) -> i128 {
    if b == 0 {
        a
    } else {
        greatest_common_divisor(b, a % b)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Converts a rate of a zone that counts by fixed windows.
    fn convert(rate: &str) -> Result<StoreRate, &'static str> {
        let algorithm = Algorithm::FixedWindow;
        StoreRate::new(rate.parse().unwrap(), algorithm, Moment::default())
    }

    #[test]
    fn ordinary_rates_have_their_own_ticks_and_long_ones_the_fewest() {
        // Ticks per request and per microsecond, microseconds per period, requests per period.
        let numbers = [1e9, 1e4, 1e6, 10.0].map(f64::to_le_bytes);
        let expected = [numbers.as_flattened(), b"10r/s"].concat();
        assert_eq!(convert("10r/s").unwrap().packed, expected);
        assert!(convert("0.5r/d").is_ok());
        assert_eq!(script_ticks("0.5r/d".parse().unwrap())[0], 1);
        assert!(convert("2.5r/366d").is_ok());
        assert!(script_ticks("2.5r/366d".parse().unwrap())[0] > 1);
        assert!(convert("0.000000001r/1s").is_ok());
    }

    #[test]
    fn rates_that_would_be_rounded_are_refused() {
        assert_eq!(convert("0.123456789r/d"), Err(DECIMALS));
        assert_eq!(convert("1r/1500ns"), Err(PERIOD));
    }
}
