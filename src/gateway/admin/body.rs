//! Bodies of requests to the API.

use std::fmt::Display;
use std::str::FromStr;
use std::time::Duration;

use limit::parse_duration;
use serde::de::DeserializeOwned;

use crate::admin::reply::{self, Refusal};

/// Parses a body. The error contains an example of a valid one.
pub(crate) fn parse<T: DeserializeOwned>(body: &[u8], example: &str) -> Result<T, Refusal> {
    serde_json::from_slice(body).map_err(|error| {
        reply::bad_request(format!("the body must be JSON such as {example}: {error}"))
    })
}

/// Minimum duration in a body.
const MIN_SPAN: Duration = Duration::from_secs(1);

/// Maximum duration of an act that expires, such as an override, and its text.
const MAX_SPAN: (Duration, &str) = (Duration::from_secs(24 * 60 * 60), "24h");

/// Parses a field. The error names the field and its value.
pub(crate) fn value<T: FromStr<Err: Display>>(field: &str, text: &str) -> Result<T, Refusal> {
    let value = text.parse();
    value.map_err(|error| reply::bad_request(format!("{field} is {text:?}: {error}")))
}

/// Checks that a field is one line of at most this number of characters.
pub(crate) fn check_line(field: &str, text: &str, max_length: usize) -> Result<(), Refusal> {
    let length = text.chars().count();
    if (1..=max_length).contains(&length) && !text.contains(char::is_control) {
        return Ok(());
    }
    Err(reply::bad_request(format!(
        "{field} must be one line of 1 to {max_length} characters; it has {length}"
    )))
}

/// Parses the field `for` of a body: for how long an act shall apply.
pub(crate) fn span(text: Option<String>) -> Result<Duration, Refusal> {
    let text = text.ok_or_else(|| {
        reply::bad_request("for is missing: the duration, such as \"for\": \"10m\"")
    })?;
    duration("for", &text, MAX_SPAN, "10m")
}

/// Parses a field with a duration from a second to `max`. `max_text`: the maximum as text.
pub(crate) fn duration(
    field: &str,
    text: &str,
    (max, max_text): (Duration, &str),
    example: &str,
) -> Result<Duration, Refusal> {
    let duration = parse_duration(text).filter(|duration| (MIN_SPAN..=max).contains(duration));
    duration.ok_or_else(|| {
        reply::bad_request(format!(
            "{field} is {text:?}; it must be from 1s to {max_text}, such as {example:?}"
        ))
    })
}
