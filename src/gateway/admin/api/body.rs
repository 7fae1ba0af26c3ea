//! The bodies of requests.

use std::time::Duration;

use limit::parse_duration;
use serde::de::DeserializeOwned;

use crate::admin::reply::{self, Refusal};

/// Reads a body, or says what one looks like.
pub(super) fn parse<T: DeserializeOwned>(body: &[u8], example: &str) -> Result<T, Refusal> {
    serde_json::from_slice(body).map_err(|error| {
        reply::bad_query(format!("the body must be JSON such as {example}: {error}"))
    })
}

/// The shortest time that can be given.
const MIN_SPAN: Duration = Duration::from_secs(1);

/// The longest of what lasts for a while.
const MAX_SPAN: Duration = Duration::from_secs(24 * 60 * 60);

/// Reads the field `for` of a body.
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

/// Reads a time; `None` if it is none, or not from a second to the `longest`.
pub(super) fn from_1s_to(longest: Duration, text: &str) -> Option<Duration> {
    parse_duration(text).filter(|span| (MIN_SPAN..=longest).contains(span))
}
