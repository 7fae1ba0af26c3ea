//! Responses in JSON.

use std::fmt::Display;

use actix_web::http::StatusCode;
use actix_web::http::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use actix_web::{HttpResponse, ResponseError};
use serde::Serialize;
use serde_json::{Value, json};
use thiserror::Error;

/// Result of a handler: a response, or a refusal.
pub(super) type Answer = Result<HttpResponse, Refusal>;

/// A refusal: its status, and a text with the error and a correct value.
#[derive(Debug, Error)]
#[error("{1}")]
pub(super) struct Refusal(StatusCode, String);

impl Refusal {
    pub(super) fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self(status, message.into())
    }
}

impl ResponseError for Refusal {
    fn error_response(&self) -> HttpResponse {
        error(self.0, self)
    }
}

/// Builds a JSON response that must not be cached.
pub(super) fn json(status: StatusCode, body: &impl Serialize) -> HttpResponse {
    // Strings, numbers and lists of them always have a JSON form.
    let text = serde_json::to_string(body).unwrap_or_default();
    HttpResponse::build(status)
        .insert_header((CONTENT_TYPE, "application/json"))
        .insert_header((CACHE_CONTROL, "no-store"))
        .body(text)
}

/// Builds a response with status 200.
pub(super) fn ok(body: &impl Serialize) -> HttpResponse {
    json(StatusCode::OK, body)
}

/// Builds an error response: the error, and a correct value.
pub(super) fn error(status: StatusCode, message: impl Display) -> HttpResponse {
    json(status, &json!({ "error": message.to_string() }))
}

/// Adds a field, or leaves it out if it has no value.
pub(super) fn add(object: &mut Value, name: &str, value: Option<impl Serialize>) {
    if let (Some(value), Some(fields)) = (value, object.as_object_mut()) {
        fields.insert(name.to_owned(), json!(value));
    }
}

/// Refuses a wrong request with status 400.
pub(super) fn bad_query(message: impl Into<String>) -> Refusal {
    Refusal::new(StatusCode::BAD_REQUEST, message)
}

/// Response to an unknown path.
pub(super) fn no_such_path() -> HttpResponse {
    error(
        StatusCode::NOT_FOUND,
        "there is nothing at this path; see / for the live page, /metrics, /healthz, /readyz, /api/zones, /api/config, /api/origins, /api/routes, /api/store, /api/headline, /api/live",
    )
}

/// Response to a method that the path does not have.
pub(super) fn not_allowed(allowed: &str) -> HttpResponse {
    let message = format!("this path takes {allowed} only");
    let mut response = error(StatusCode::METHOD_NOT_ALLOWED, message);
    if let Ok(value) = HeaderValue::from_str(allowed) {
        response.headers_mut().insert(ALLOW, value);
    }
    response
}

/// Refusal before the gateway serves, and after it ends.
pub(super) fn not_now() -> Refusal {
    Refusal::new(
        StatusCode::SERVICE_UNAVAILABLE,
        "the gateway is starting or stopping; try again when /readyz answers 200",
    )
}
