use std::time::Duration;

use limit::{Algorithm, Moment, Rate};

/// Ticks below this are exact in the scripts' doubles.
const EXACT: i128 = 1 << 51;

/// A rate in the scripts' units, and when this gateway's file got it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pace {
    rate: Rate,
    /// How many of the rate's ticks make one tick of the script.
    scale: i128,
    /// The form that the scripts read: four doubles, and the rate as written.
    packed: Vec<u8>,
    /// In microseconds since the Unix epoch.
    since: u64,
}

/// Why a rate cannot be kept in Redis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnsupportedRate {
    /// Its count has too many decimals for so long a period.
    #[error(
        "the count of this rate has too many decimals for a period this long to be kept exactly in Redis"
    )]
    Decimals,
    /// Its period is not a whole number of microseconds, as a window's period must be.
    #[error(
        "a window in Redis is a whole number of microseconds long, the resolution of its clock"
    )]
    Period,
}

impl Pace {
    /// The rate that a zone of `algorithm` has in this gateway's file.
    ///
    /// `since` is when the file got this rate, on the gateway's own clock. If two gateways have
    /// different rates, the one whose file changed later decides.
    ///
    /// # Errors
    ///
    /// Returns an error if a script could not count the rate exactly.
    pub fn new(rate: Rate, algorithm: Algorithm, since: Moment) -> Result<Self, UnsupportedRate> {
        let (scale, request, leak) = steps(rate);
        if request >= EXACT {
            return Err(UnsupportedRate::Decimals);
        }
        let nanos = rate.period().as_nanos();
        if algorithm.has_windows() && !nanos.is_multiple_of(1000) {
            return Err(UnsupportedRate::Period);
        }
        let (micros, count) = (nanos / 1000, rate.whole_count().unwrap_or(0));
        let mut packed = Vec::new();
        for number in [request, leak, micros.try_into().unwrap_or(0), count.into()] {
            // All are below 2^53: no rate leaks more than a request in a microsecond.
            let number = double(u64::try_from(number).unwrap_or(0));
            packed.extend_from_slice(&number.to_le_bytes());
        }
        packed.extend_from_slice(rate.to_string().as_bytes());
        Ok(Self {
            rate,
            scale,
            packed,
            since: since.as_nanos() / 1000,
        })
    }

    /// The rate.
    pub fn rate(&self) -> Rate {
        self.rate
    }

    /// The form that the scripts read: four doubles, and the rate as written.
    pub fn packed(&self) -> &[u8] {
        &self.packed
    }

    /// When this gateway's file got this rate, in whole microseconds.
    pub fn since(&self) -> Moment {
        Moment::from_nanos(self.since.saturating_mul(1000))
    }
}

/// Ticks of `rate` per script tick, script ticks per request, script ticks leaked per microsecond.
fn steps(rate: Rate) -> (i128, i128, i128) {
    let (request, leak) = (rate.ticks_per_request(), rate.ticks_per_nano() * 1000);
    // Use the rate's own ticks where they fit, so that a retune rounds as in memory.
    let scale = if request < EXACT {
        1
    } else {
        greatest_common_divisor(request, leak)
    };
    (scale, request / scale, leak / scale)
}

/// Converts a level reported by a script to ticks of the rate.
pub fn ticks(rate: Rate, requests: u64, ticks: u64) -> i128 {
    i128::from(requests) * rate.ticks_per_request() + i128::from(ticks) * steps(rate).0
}

/// Cuts a `max_wait` to whole microseconds.
pub fn whole_micros(span: Duration) -> Duration {
    Duration::from_micros(u64::try_from(span.as_micros()).unwrap_or(u64::MAX))
}

/// A whole number as the scripts have it: exact below 2^53.
pub fn double(whole: u64) -> f64 {
    limit::to_float(whole)
}

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

    fn pace(rate: &str) -> Result<Pace, UnsupportedRate> {
        let zone = Algorithm::FixedWindow;
        Pace::new(rate.parse().unwrap(), zone, Moment::default())
    }

    #[test]
    fn ordinary_rates_have_their_own_ticks_and_long_ones_the_fewest() {
        let numbers = [1e9, 1e4, 1e6, 10.0].map(f64::to_le_bytes);
        assert_eq!(
            pace("10r/s").unwrap().packed,
            [numbers.as_flattened(), b"10r/s"].concat()
        );
        assert_eq!(pace("0.5r/d").unwrap().scale, 1);
        let year = pace("2.5r/366d").unwrap();
        assert!(year.scale > 1);
        assert!(pace("0.000000001r/1s").is_ok());
    }

    #[test]
    fn rates_that_would_be_rounded_are_refused() {
        assert_eq!(pace("0.123456789r/d"), Err(UnsupportedRate::Decimals));
        assert_eq!(pace("1r/1500ns"), Err(UnsupportedRate::Period));
    }
}
