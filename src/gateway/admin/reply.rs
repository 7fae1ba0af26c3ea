//! Responses of the admin port in JSON, and refusals with their status.

use actix_web::http::StatusCode;
use actix_web::http::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, HeaderValue, WWW_AUTHENTICATE};
use actix_web::web::Query;
use actix_web::{HttpRequest, HttpResponse, ResponseError};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use thiserror::Error;

/// Result of a handler: a response, or a refusal.
pub(crate) type Answer = Result<HttpResponse, Refusal>;

/// A refusal: its status, and a text with the error and a correct value.
#[derive(Debug, Error)]
#[error("{1}")]
pub(crate) struct Refusal(StatusCode, String);

impl ResponseError for Refusal {
    fn error_response(&self) -> HttpResponse {
        let Self(status, message) = self;
        let mut response = json(*status, &json!({ "error": message }));
        if *status == StatusCode::UNAUTHORIZED {
            let bearer = HeaderValue::from_static("Bearer");
            response.headers_mut().insert(WWW_AUTHENTICATE, bearer);
        }
        response
    }
}

/// Refuses a request with this status.
pub(crate) fn refusal(status: StatusCode, message: impl Into<String>) -> Refusal {
    Refusal(status, message.into())
}

/// Refuses a malformed request with status 400.
pub(crate) fn bad_request(message: impl Into<String>) -> Refusal {
    refusal(StatusCode::BAD_REQUEST, message)
}

/// Refuses a request for an unknown thing with status 404.
pub(crate) fn not_found(message: impl Into<String>) -> Refusal {
    refusal(StatusCode::NOT_FOUND, message)
}

/// Refuses a request that the present settings or state do not permit with status 409.
pub(crate) fn conflict(message: impl Into<String>) -> Refusal {
    refusal(StatusCode::CONFLICT, message)
}

/// Refuses a request that may succeed later with status 503.
pub(crate) fn unavailable(message: impl Into<String>) -> Refusal {
    refusal(StatusCode::SERVICE_UNAVAILABLE, message)
}

/// Refuses a request for an unknown zone or origin, and names the known ones.
pub(crate) fn unknown<'n>(kind: &str, name: &str, known: impl Iterator<Item = &'n str>) -> Refusal {
    let known = known.collect::<Vec<_>>().join(", ");
    not_found(format!(
        "there is no {kind} {name:?}; the {kind}s are: {known}"
    ))
}

/// Parses a query string. `expected`: its parameters, for the error.
pub(crate) fn query<T: DeserializeOwned>(
    request: &HttpRequest,
    expected: &str,
) -> Result<T, Refusal> {
    let query = Query::<T>::from_query(request.query_string());
    let query = query.map_err(|error| bad_request(format!("{expected}: {error}")))?;
    Ok(query.into_inner())
}

/// Builds a JSON response that must not be cached.
pub(crate) fn json(status: StatusCode, body: &impl Serialize) -> HttpResponse {
    // Strings, numbers and lists of them always have a JSON form.
    let text = serde_json::to_string(body).unwrap_or_default();
    HttpResponse::build(status)
        .insert_header((CONTENT_TYPE, "application/json"))
        .insert_header((CACHE_CONTROL, "no-store"))
        .body(text)
}

/// Builds a response with status 200.
pub(crate) fn ok(body: &impl Serialize) -> HttpResponse {
    json(StatusCode::OK, body)
}

/// Adds a field, or leaves it out if it has no value.
pub(crate) fn add(object: &mut Value, name: &str, value: Option<impl Serialize>) {
    if let (Some(value), Some(fields)) = (value, object.as_object_mut()) {
        fields.insert(name.to_owned(), json!(value));
    }
}

/// Refuses a request for an unknown path.
pub(crate) async fn no_such_path() -> Answer {
    Err(not_found(
        "there is nothing at this path; see / for the live page, /metrics, /healthz, /readyz, /api/zones, /api/config, /api/origins, /api/routes, /api/store, /api/headline, /api/live",
    ))
}

/// Response to a method that the path does not have.
pub(crate) fn not_allowed(allowed: &str) -> HttpResponse {
    let message = format!("this path takes {allowed} only");
    let mut response = refusal(StatusCode::METHOD_NOT_ALLOWED, message).error_response();
    if let Ok(value) = HeaderValue::from_str(allowed) {
        response.headers_mut().insert(ALLOW, value);
    }
    response
}

/// Refusal before the gateway serves, and after it ends.
pub(crate) fn not_now() -> Refusal {
    unavailable("the gateway is starting or stopping; try again when /readyz answers 200")
}
