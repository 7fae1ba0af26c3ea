//! The bodies of requests.

use serde::de::DeserializeOwned;

use crate::admin::reply::{self, Refusal};

/// Reads a body, or says what one looks like.
pub(super) fn parse<T: DeserializeOwned>(body: &[u8], example: &str) -> Result<T, Refusal> {
    serde_json::from_slice(body).map_err(|error| {
        reply::bad_query(format!("the body must be JSON such as {example}: {error}"))
    })
}
