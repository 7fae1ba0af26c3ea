//! Warns of a log that is too short to compute limits from it.

use std::time::Duration;

use super::survey::Survey;

/// Minimum number of requests for a meaningful peak.
const MIN_REQUESTS: u64 = 1000;
/// Minimum time from the first to the last request: an hour, minus a minute.
///
/// In a log of an hour, the first and the last request are less than an hour apart.
const MIN_DURATION: Duration = Duration::from_secs(59 * 60);

/// Returns a warning for a log that is too short for reliable numbers; `None` for others.
pub(super) fn caution(survey: &Survey) -> Option<String> {
    let (first, last) = survey.spool.span();
    let (count, duration) = (survey.spool.count, last.since(first));
    let seconds = duration.as_secs();
    let what = match (count < MIN_REQUESTS, duration < MIN_DURATION) {
        (false, false) => return None,
        (true, _) => {
            let plural = if count == 1 { "" } else { "s" };
            format!("{count} request{plural} in {seconds} s are too few")
        }
        (false, true) => format!("{seconds} s of traffic are too short a time"),
    };
    Some(format!(
        "CAUTION: {what} to compute limits: use at least {MIN_REQUESTS}\n\
         requests of an hour or more, better a day with the busiest hour.\n"
    ))
}
