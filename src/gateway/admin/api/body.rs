//! Bodies of requests to the API.

use std::time::Duration;

use limit::parse_duration;
use serde::de::DeserializeOwned;

use crate::admin::reply::{self, Refusal};

/// Parses a body. The error contains an example of a valid one.
pub(super) fn parse<T: DeserializeOwned>(body: &[u8], example: &str) -> Result<T, Refusal> {
    serde_json::from_slice(body).map_err(|error| {
        reply::bad_query(format!("the body must be JSON such as {example}: {error}"))
    })
}

/// Minimum duration in a body.
const MIN_SPAN: Duration = Duration::from_secs(1);

/// Maximum duration of an act that expires.
const MAX_SPAN: Duration = Duration::from_secs(24 * 60 * 60);

/// Parses the field `for` of a body.
pub(super) fn span(text: Option<String>) -> Result<Duration, Refusal> {
    let text = text.ok_or_else(|| {
        reply::bad_query("for is missing: how long it lasts, such as \"for\": \"10m\"")
    })?;
    from_1s_to(MAX_SPAN, &text).ok_or_else(|| {
        reply::bad_query(format!(
            "for is {text:?}; it must be from 1s to 24h, such as \"10m\""
        ))
    })
}

/// Parses a duration; `None` if it is not one from a second to `longest`.
pub(super) fn from_1s_to(longest: Duration, text: &str) -> Option<Duration> {
    parse_duration(text).filter(|span| (MIN_SPAN..=longest).contains(span))
}
