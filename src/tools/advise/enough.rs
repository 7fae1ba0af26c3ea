//! Whether a log is long enough to size limits by.

use std::time::Duration;

use super::group::Counted;
use super::survey::Surveyed;

/// The fewest requests of which a peak tells something.
const LEAST_REQUESTS: u64 = 1000;
/// The shortest log that shows more than one moment of the traffic.
const LEAST_TIME: Duration = Duration::from_secs(60 * 60);

/// What to tell of a log that is too short for its numbers to be right; `None` for others.
pub(super) fn caution(survey: &Surveyed) -> Option<String> {
    let count: u64 = survey.groups().map(Counted::requests).sum();
    let (first, last) = survey.span();
    let time = last.since(first);
    if count >= LEAST_REQUESTS && time >= LEAST_TIME {
        return None;
    }
    let plural = if count == 1 { "" } else { "s" };
    Some(format!(
        "CAUTION: {count} request{plural} in {} s are too few to size limits by: take at least {LEAST_REQUESTS}\n\
         requests over an hour, better a day that has the busiest hour.\n",
        time.as_secs()
    ))
}
