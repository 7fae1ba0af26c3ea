//! Times in JSON: points of time as text in UTC, durations as seconds.

use std::time::Duration;

use jiff::Timestamp;
use limit::Moment;

use super::plain::Plain;
use crate::time::clock;

/// Formats an instant in UTC, as the wall clock shows it, with milliseconds.
pub(crate) fn timestamp(moment: Moment) -> Plain {
    let millis = i64::try_from(clock::to_wall(moment).as_nanos() / 1_000_000).unwrap_or(i64::MAX);
    let timestamp = Timestamp::from_millisecond(millis).unwrap_or(Timestamp::MAX);
    let text = timestamp.strftime("%Y-%m-%dT%H:%M:%S%.3fZ");
    Plain::new(&text.to_string())
}

/// Converts to seconds, rounded down to microseconds: more digits only make each sample larger.
pub(crate) fn seconds(span: Duration) -> f64 {
    span.as_micros() as f64 / 1e6
}
