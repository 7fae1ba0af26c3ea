//! The answers that the gateway gives itself.

use std::time::Duration;

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::http::header::{CONTENT_TYPE, HeaderValue, RETRY_AFTER};

use super::answer::Body;
use super::dialects::whole_seconds;
use crate::actors::Rejection;
use crate::config::Route;
use crate::metrics::Rejected;
use crate::origin::OriginError;

/// The answer to a request that its limits refused.
pub(super) fn rejected(route: &Route, rejection: &Rejection) -> HttpResponse<Body> {
    let mut response = match rejection.reason {
        Rejected::Burst | Rejected::MaxWait => {
            plain(route.reject_status, route.reject_body.clone())
        }
        Rejected::Keys | Rejected::Stopping => unavailable(),
    };
    set_retry_after(&mut response, rejection.retry_after);
    response
}

/// The answer where the origin gave none.
pub(super) fn origin_failed(error: &OriginError) -> HttpResponse<Body> {
    let status = error.status();
    let reason = StatusCode::from_u16(status)
        .ok()
        .and_then(|status| status.canonical_reason());
    let mut response = plain(status, format!("{}\n", reason.unwrap_or("Bad Gateway")));
    if let Some(retry_after) = error.retry_after() {
        set_retry_after(&mut response, retry_after);
    }
    response
}

fn set_retry_after(response: &mut HttpResponse<Body>, span: Duration) {
    let seconds = HeaderValue::from(whole_seconds(span).max(1));
    response.headers_mut().insert(RETRY_AFTER, seconds);
}

/// The answer while there is no gateway in force, at the very start and the very end.
pub(super) fn unavailable() -> HttpResponse<Body> {
    plain(503, "Service Unavailable\n".to_owned())
}

/// A short answer in plain text.
pub(super) fn plain(status: u16, body: String) -> HttpResponse<Body> {
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::SERVICE_UNAVAILABLE);
    let mut response = HttpResponse::with_body(status, Body::text(body));
    response.headers_mut().insert(
        CONTENT_TYPE,
        HeaderValue::from_static("text/plain; charset=utf-8"),
    );
    response
}
