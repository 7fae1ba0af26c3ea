//! Times in bodies of requests, such as how long an override lasts.

use std::time::Duration;

use crate::admin::reply::{self, Refusal};
use crate::limit::parse_duration;

const MIN_SPAN: Duration = Duration::from_secs(1);
const MAX_SPAN: Duration = Duration::from_secs(24 * 60 * 60);

/// Reads the field `for` of a body.
pub(super) fn span(text: Option<String>) -> Result<Duration, Refusal> {
    let text = text.ok_or_else(|| {
        reply::bad_query("for is missing: how long it lasts, such as \"for\": \"10m\"")
    })?;
    let span = parse_duration(&text).filter(|span| (MIN_SPAN..=MAX_SPAN).contains(span));
    span.ok_or_else(|| {
        reply::bad_query(format!(
            "for is {text:?}; it must be from 1s to 24h, such as \"10m\""
        ))
    })
}
