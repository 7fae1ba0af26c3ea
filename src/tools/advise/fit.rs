//! Computes the rate and burst that fit a set of keys: at them, no request is rejected.
//!
//! A slot is the number of a key (see `keys`). A window is a part of the time, in one of three
//! widths. A peak is the highest number of requests of a key in a window.

use std::io;
use std::time::Duration;

use limit::{Bucket, Cost, Delay, Limit, Moment, Rate, Verdict, to_whole};

use super::spool::Event;
use super::survey::Survey;

/// Highest rate that the configuration allows, in requests per second.
pub(super) const MAX_RATE: u64 = 1_000_000;

/// Widths of the windows in seconds, with their names.
pub(super) const WIDTHS: [(u64, &str); 3] = [(1, "1 s"), (10, "10 s"), (60, "1 min")];

/// Highest number of requests of one key within a window, for each of [`WIDTHS`].
pub(super) type Peaks = [u32; 3];

/// Rate and burst at which no request of a set of keys is rejected.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fit {
    /// Peaks of the busiest key in each width.
    pub(super) peaks: Peaks,
    pub(super) rate: Rate,
    pub(super) burst: u32,
}

/// The requests of a survey, with the peaks of each key.
pub(super) struct Fitter<'a> {
    survey: &'a Survey,
    /// Peaks of each key, by slot.
    peaks: Vec<Peaks>,
    /// Number of widths that the log is long enough for.
    widths: usize,
}

impl<'a> Fitter<'a> {
    /// Counts the requests of each key. `widths`: number of usable [`WIDTHS`].
    ///
    /// # Errors
    ///
    /// Returns an error if the temporary file cannot be read.
    pub(super) fn new(survey: &'a Survey, widths: usize) -> io::Result<Self> {
        let mut counts = vec![Counts::default(); survey.keys.slot_count()];
        survey.spool.each(|event| {
            if let Some(counts) = counts.get_mut(event.slot as usize) {
                counts.add(event);
            }
        })?;
        Ok(Self {
            survey,
            peaks: counts.into_iter().map(|it| it.peaks).collect(),
            widths,
        })
    }

    /// Returns the rate and burst that fit the keys whose slots `includes` accepts.
    ///
    /// Returns `None` if these keys have no requests.
    ///
    /// The rate is the highest number of requests of one key in the widest window. The burst is the
    /// highest level that a key reaches at this rate.
    ///
    /// # Errors
    ///
    /// Returns an error if the temporary file cannot be read.
    pub(super) fn fit(&self, includes: impl Fn(u32) -> bool) -> io::Result<Option<Fit>> {
        let mut peaks = Peaks::default();
        for (_, key_peaks) in (0..).zip(&self.peaks).filter(|(slot, _)| includes(*slot)) {
            for (peak, count) in peaks.iter_mut().zip(key_peaks) {
                *peak = (*peak).max(*count);
            }
        }
        if peaks[0] == 0 {
            return Ok(None);
        }
        let widest = self.widths - 1;
        let rate = rate(peaks[widest].into(), WIDTHS[widest].0);
        let burst = min_burst(self.survey, rate, includes)?;
        Ok(Some(Fit { peaks, rate, burst }))
    }
}

/// Returns the number of [`WIDTHS`] for which a log of this duration is long enough; at least 1.
pub(super) fn widths_in(duration: Duration) -> usize {
    let fits = |(width, _): &&(u64, &str)| duration.as_secs() >= *width;
    WIDTHS.iter().filter(fits).count().max(1)
}

/// Requests of one key in the current window of each width, and the peaks so far.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    /// Number of the current window, counted from 1970.
    windows: [u64; 3],
    /// Requests in the current window.
    in_window: Peaks,
    /// Highest number of requests in any window so far.
    peaks: Peaks,
}

impl Counts {
    /// Counts a request of the key.
    fn add(&mut self, event: Event) {
        for (nth, (width, _)) in WIDTHS.iter().enumerate() {
            let window = event.time / 1_000_000_000 / width;
            // A slot may have belonged to another key before.
            if event.is_first || self.windows[nth] != window {
                (self.windows[nth], self.in_window[nth]) = (window, 0);
            }
            self.in_window[nth] = self.in_window[nth].saturating_add(1);
            self.peaks[nth] = self.peaks[nth].max(self.in_window[nth]);
        }
    }
}

/// Returns the smallest burst that rejects no request of the included keys at this rate.
///
/// It is the highest level that a bucket reaches if its burst has no limit.
fn min_burst(survey: &Survey, rate: Rate, includes: impl Fn(u32) -> bool) -> io::Result<u32> {
    let limit = Limit {
        burst: u32::MAX,
        ..Limit::unlimited(Delay::Above(0), Cost::ONE)
    };
    let mut buckets = vec![Bucket::new(); survey.keys.slot_count()];
    let mut highest: f64 = 0.0;
    survey.spool.each(|event| {
        let bucket = buckets.get_mut(event.slot as usize);
        let Some(bucket) = bucket.filter(|_| includes(event.slot)) else {
            return;
        };
        if event.is_first {
            *bucket = Bucket::new();
        }
        let verdict = bucket.decide(rate, limit, Moment::from_nanos(event.time));
        if let Verdict::Pass { excess } | Verdict::Delay { excess, .. } = verdict {
            highest = highest.max(excess.requests());
        }
    })?;
    Ok(u32::try_from(to_whole(highest.ceil())).unwrap_or(u32::MAX))
}

/// Returns the rate of `count` requests in `seconds`, rounded up.
///
/// A rate below one request per second is written per minute.
fn rate(count: u64, seconds: u64) -> Rate {
    if count >= seconds {
        rounded_rate(count.min(MAX_RATE * seconds), seconds, 's')
    } else {
        rounded_rate(count * 60, seconds, 'm')
    }
}

/// Returns the rate `count / divisor`, rounded up. `unit`: `s` for seconds or `m` for minutes.
///
/// Rates below 10 have at most one decimal, higher ones none.
pub(super) fn rounded_rate(count: u64, divisor: u64, unit: char) -> Rate {
    let tenths = (count * 10).div_ceil(divisor).max(1);
    let text = match tenths % 10 {
        0 => format!("{}r/{unit}", tenths / 10),
        tenth if tenths < 100 => format!("{}.{tenth}r/{unit}", tenths / 10),
        _ => format!("{}r/{unit}", tenths.div_ceil(10)),
    };
    text.parse()
        .unwrap_or_else(|_| unreachable!("a whole number of tenths is a rate"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_rounded_up_to_short_numbers() {
        let cases = [
            (3000, 60, "50r/s"),
            (61, 60, "1.1r/s"),
            (59, 60, "59r/m"),
            (7, 10, "42r/m"),
            (75, 10, "7.5r/s"),
            (u64::from(u32::MAX), 1, "1000000r/s"),
        ];
        for (count, seconds, expected) in cases {
            assert_eq!(rate(count, seconds).to_string(), expected);
        }
        assert_eq!(rounded_rate(5, 2, 'm').to_string(), "2.5r/m");
    }
}
