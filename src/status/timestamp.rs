use jiff::Timestamp;

use super::views::Plain;
use crate::limit::Moment;

/// The time in UTC, with milliseconds.
pub(crate) fn timestamp(moment: Moment) -> Plain {
    let millis = i64::try_from(moment.as_nanos() / 1_000_000).unwrap_or(i64::MAX);
    let timestamp = Timestamp::from_millisecond(millis).unwrap_or(Timestamp::MAX);
    let text = timestamp.strftime("%Y-%m-%dT%H:%M:%S%.3fZ");
    Plain::new(&text.to_string())
}
