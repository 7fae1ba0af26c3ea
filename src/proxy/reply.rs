//! The answers that the gateway gives itself, and the fields that it adds to the origin's.

use std::time::Duration;

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::http::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};

use super::origin::OriginError;
use crate::actors::{Outlook, Rejection};
use crate::config::Route;
use crate::limit::Limit;
use crate::metrics::Rejected;

/// What one limit says to the client: `X-RateLimit-*`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Allowance {
    limit: u32,
    outlook: Outlook,
}

impl Allowance {
    pub(super) fn new(limit: Limit, outlook: Outlook) -> Self {
        Self {
            limit: limit.burst.saturating_add(1),
            outlook,
        }
    }

    pub(super) fn used_up(limit: Limit, rejection: &Rejection) -> Self {
        Self::new(
            limit,
            Outlook {
                remaining: 0,
                retry_after: rejection.retry_after,
            },
        )
    }

    /// The tighter of two: the one that lets fewer through, or that makes them wait longer.
    pub(super) fn tighter(self, other: Self) -> Self {
        let tightness = |allowance: &Self| {
            (
                allowance.outlook.remaining,
                std::cmp::Reverse(allowance.outlook.retry_after),
            )
        };
        if tightness(&other) < tightness(&self) {
            other
        } else {
            self
        }
    }

    pub(super) fn write(&self, headers: &mut HeaderMap) {
        let mut set = |name, value: u64| {
            headers.insert(HeaderName::from_static(name), HeaderValue::from(value))
        };
        set("x-ratelimit-limit", self.limit.into());
        set("x-ratelimit-remaining", self.outlook.remaining.into());
        set(
            "x-ratelimit-retry-after",
            whole_seconds(self.outlook.retry_after),
        );
    }
}

/// The answer to a request that its limits refused.
pub(super) fn rejected(route: &Route, rejection: &Rejection, allowance: Allowance) -> HttpResponse {
    let (status, body) = match rejection.reason {
        Rejected::Burst | Rejected::MaxWait => (route.reject_status, route.reject_body.clone()),
        Rejected::Keys | Rejected::Stopping => (503, "Service unavailable\n".to_owned()),
    };
    let mut response = plain(status, body);
    let retry_after = HeaderValue::from(whole_seconds(rejection.retry_after).max(1));
    response.headers_mut().insert(RETRY_AFTER, retry_after);
    if route.headers.x_ratelimit {
        allowance.write(response.headers_mut());
    }
    response
}

/// The answer where the origin gave none.
pub(super) fn origin_failed(error: &OriginError) -> HttpResponse {
    let status = error.status();
    let reason = StatusCode::from_u16(status)
        .ok()
        .and_then(|status| status.canonical_reason());
    plain(status, format!("{}\n", reason.unwrap_or("Bad gateway")))
}

/// A short answer in plain text.
pub(super) fn plain(status: u16, body: String) -> HttpResponse {
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::SERVICE_UNAVAILABLE);
    let mut response = HttpResponse::with_body(status, body).map_into_boxed_body();
    response.headers_mut().insert(
        CONTENT_TYPE,
        HeaderValue::from_static("text/plain; charset=utf-8"),
    );
    response
}

/// Whole seconds, rounded up: a client that waits this long does not come too early.
fn whole_seconds(span: Duration) -> u64 {
    span.as_secs() + u64::from(span.subsec_nanos() > 0)
}
