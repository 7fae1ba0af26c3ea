//! The advice for the gate in front of the origin.

use std::fmt::Write;

use super::origin_load::OriginLoad;
use super::pace::{FASTEST, per};
use super::seconds::Seconds;
use crate::limit::Rate;

/// The share of the seconds that the gate should not slow down.
const SHARE: f64 = 0.999;

/// The fewest places that are advised. With one, each request waits for the one before it.
const MIN_PLACES: u64 = 2;

/// The fewest requests in a second, or at once, that make one that stands out.
const MIN_OUTLIER: u64 = 10;
const MILLION: u64 = 1_000_000;

/// The recommended rate and places of the gate in front of the origin.
#[derive(Debug, PartialEq)]
pub(super) struct GateAdvice {
    /// The most requests in a second, except in a few seconds.
    in_second: u64,
    rate: Rate,
    /// The seconds for which the rate is not made, and the rate that would be made for them, too.
    outliers: Option<(Vec<u64>, Rate)>,
    /// `None` if the log does not tell how long requests were at the origin.
    places: Option<Places>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Places {
    /// The most requests at the origin at once, on average over a second, except in a few seconds.
    at_once: f64,
    max_in_flight: u64,
}

impl GateAdvice {
    /// `None` if the log has no requests to judge by. `for_all`: also for seconds that stand out.
    pub(super) fn new(load: &OriginLoad, for_all: bool) -> Option<Self> {
        let in_second = most(load.of_second(), 1, for_all);
        if in_second == 0 {
            return None;
        }
        let places = load.is_timed().then(|| {
            let millionths = most(load.at_once(), MILLION, for_all);
            Places {
                at_once: at_once(millionths),
                max_in_flight: millionths
                    .saturating_mul(2)
                    .div_ceil(MILLION)
                    .max(MIN_PLACES),
            }
        });
        let of_all = load.of_second().spread().at(SHARE);
        let outliers = load.of_second().outliers(MIN_OUTLIER);
        let outliers = outliers.filter(|_| of_all > in_second);
        Some(Self {
            in_second,
            rate: rate(in_second),
            outliers: outliers.map(|(seconds, _)| (seconds.to_vec(), rate(of_all))),
            places,
        })
    }

    /// The fields of the origin's table. `zone` is the zone whose keys should share the gate.
    pub(super) fn fields(&self, zone: Option<&str>) -> String {
        let mut text = String::new();
        // Writing to a string does not fail.
        if let Some((seconds, with)) = &self.outliers {
            let numbers: Vec<String> = seconds.iter().map(ToString::to_string).collect();
            let (these, them) = match seconds.len() {
                1 => ("One second stands out,".to_owned(), "it"),
                several => (format!("{several} seconds stand out,"), "them"),
            };
            let _ = writeln!(
                text,
                "# {these} with {} requests: a burst, which would wait here. The numbers are made\n\
                 # without {them}; with {them} rate would be \"{with}\" (--all-keys).",
                numbers.join(", ")
            );
        }
        let _ = write!(
            text,
            "# In 99.9 % of the seconds at most {} requests came. The rate is a quarter more.\n\
             rate = \"{}\"\n",
            self.in_second, self.rate
        );
        if let Some(places) = &self.places {
            let _ = write!(
                text,
                "# In 99.9 % of the seconds at most {:.1} were at the origin on average. This is twice \
                 that.\n\
                 max_in_flight = {}\n",
                places.at_once, places.max_in_flight
            );
        }
        if let Some(zone) = zone {
            let _ = writeln!(text, "share = {zone}");
        }
        text
    }
}

/// The most that came in a second, or were there, but for a few seconds that stand out.
fn most(seconds: &Seconds, unit: u64, for_all: bool) -> u64 {
    let most = seconds.spread().at(SHARE);
    let outliers = seconds.outliers(MIN_OUTLIER.saturating_mul(unit));
    match outliers.filter(|_| !for_all) {
        Some((_, next)) => most.min(next),
        None => most,
    }
}

/// A quarter more than the most requests of a second.
fn rate(in_second: u64) -> Rate {
    per(in_second.saturating_mul(5).div_ceil(4).min(FASTEST), 1, 's')
}

#[expect(clippy::cast_precision_loss, reason = "shown to people")]
fn at_once(millionths: u64) -> f64 {
    millionths as f64 / 1_000_000.0
}
