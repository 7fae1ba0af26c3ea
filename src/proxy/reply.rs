//! The answers that the gateway gives itself.

use std::time::Duration;

use http::header::{ALLOW, CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use hyper::{Response, StatusCode};

use super::answer::Body;
use super::arrival::Unfit;
use super::dialects::whole_seconds;
use crate::actors::Rejection;
use crate::config::Route;
use crate::metrics::Rejected;
use crate::origin::OriginError;

/// The answer to a request that is not taken.
pub(super) fn unfit(unfit: Unfit) -> Response<Body> {
    match unfit {
        Unfit::Connect => {
            let mut response = plain(405, "This gateway opens no tunnels\n".to_owned());
            let others = HeaderValue::from_static("GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS");
            response.headers_mut().insert(ALLOW, others);
            response
        }
        Unfit::Target => plain(400, "Only OPTIONS can be asked of *\n".to_owned()),
        Unfit::Host => plain(400, "One valid Host is needed\n".to_owned()),
        Unfit::Length => plain(400, "One length is needed\n".to_owned()),
        Unfit::Expectation => plain(417, "Only 100-continue can be expected\n".to_owned()),
    }
}

/// The answer to a request that its limits refused.
pub(super) fn rejected(route: &Route, rejection: &Rejection) -> Response<Body> {
    let mut response = match rejection.reason {
        Rejected::Burst | Rejected::MaxWait => {
            plain(route.reject_status, route.reject_body.clone())
        }
        Rejected::Keys | Rejected::Store | Rejected::Stopping => unavailable(),
    };
    set_retry_after(&mut response, rejection.retry_after);
    response
}

/// The answer where the origin gave none.
pub(super) fn unanswered(error: &OriginError) -> Response<Body> {
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

fn set_retry_after(response: &mut Response<Body>, span: Duration) {
    let seconds = HeaderValue::from(whole_seconds(span).max(1));
    response.headers_mut().insert(RETRY_AFTER, seconds);
}

/// The answer while there is no gateway in force, at the very start and the very end.
pub(super) fn unavailable() -> Response<Body> {
    plain(503, "Service Unavailable\n".to_owned())
}

/// A short answer in plain text.
pub(super) fn plain(status: u16, body: String) -> Response<Body> {
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::SERVICE_UNAVAILABLE);
    let mut response = Response::new(Body::text(body));
    *response.status_mut() = status;
    response.headers_mut().insert(
        CONTENT_TYPE,
        HeaderValue::from_static("text/plain; charset=utf-8"),
    );
    response
}
