//! Times as text.

use jiff::Timestamp;
use limit::Moment;

use super::views::Plain;
use crate::time::clock;

/// Formats a time of the wall clock in UTC, with milliseconds.
pub(crate) fn timestamp(moment: Moment) -> Plain {
    let millis = i64::try_from(clock::to_wall(moment).as_nanos() / 1_000_000).unwrap_or(i64::MAX);
    let timestamp = Timestamp::from_millisecond(millis).unwrap_or(Timestamp::MAX);
    let text = timestamp.strftime("%Y-%m-%dT%H:%M:%S%.3fZ");
    Plain::new(&text.to_string())
}
