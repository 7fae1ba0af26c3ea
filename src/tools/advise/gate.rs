//! Computes the advice for the gate in front of the origin.

use std::fmt::Write;

use limit::{Rate, to_float};

use super::fit::{FASTEST, per};
use super::origin_load::OriginLoad;

/// Share of the seconds in which the gate should delay no request.
const SHARE: f64 = 0.999;

/// Minimum number of permits advised.
///
/// With one permit, each request waits for the previous one.
const MIN_PERMITS: u64 = 2;

const MILLION: u64 = 1_000_000;

/// Recommended rate and number of permits of the gate in front of the origin.
#[derive(Debug, PartialEq)]
pub(super) struct GateAdvice {
    /// Peak of requests per second, ignoring the busiest few seconds.
    in_second: u64,
    rate: Rate,
    /// `None` if the log does not say how long requests were at the origin.
    permits: Option<Permits>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Permits {
    /// Peak of requests at the origin at once, averaged over a second, without the busiest seconds.
    at_once: f64,
    max_in_flight: u64,
}

impl GateAdvice {
    /// Computes the advice; `None` if the log has no requests to judge by.
    pub(super) fn new(load: &OriginLoad) -> Option<Self> {
        let in_second = load.of_second().at(SHARE);
        if in_second == 0 {
            return None;
        }
        let permits = load.is_timed().then(|| {
            let millionths = load.at_once().at(SHARE);
            Permits {
                at_once: to_float(millionths) / to_float(MILLION),
                max_in_flight: millionths
                    .saturating_mul(2)
                    .div_ceil(MILLION)
                    .max(MIN_PERMITS),
            }
        });
        Some(Self {
            in_second,
            rate: per(in_second.saturating_mul(5).div_ceil(4).min(FASTEST), 1, 's'),
            permits,
        })
    }

    /// Returns the fields of the origin's table. `zone`: zone whose keys should share the gate.
    pub(super) fn fields(&self, zone: Option<&str>) -> String {
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = write!(
            text,
            "# In 99.9 % of the seconds at most {} requests came. The rate is a quarter more.\n\
             rate = \"{}\"\n",
            self.in_second, self.rate
        );
        if let Some(permits) = &self.permits {
            let _ = write!(
                text,
                "# In 99.9 % of the seconds at most {:.1} were at the origin on average. This is twice \
                 that.\n\
                 max_in_flight = {}\n",
                permits.at_once, permits.max_in_flight
            );
        }
        if let Some(zone) = zone {
            let _ = writeln!(text, "share = {zone}");
        }
        text
    }
}
