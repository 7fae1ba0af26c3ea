//! CORS: answers preflight requests of browsers, and adds fields for scripts of other sites.
//!
//! A *preflight* is an `OPTIONS` request that asks whether a script may send another request. The
//! protocol is part of the Fetch standard. In this file, `Origin` is the site of the script.

use config::{Cors, RatelimitHeader};

use super::request_info::RequestInfo;
use crate::http::message::{Put, only, put_number};

const ORIGIN: &str = "origin";
const REQUESTED_METHOD: &str = "access-control-request-method";
const REQUESTED_FIELDS: &str = "access-control-request-headers";

const ALLOW_ORIGIN: &[u8] = b"Access-Control-Allow-Origin";
const ALLOW_CREDENTIALS: &[u8] = b"Access-Control-Allow-Credentials";

/// Returns the method that a preflight requests; `None` if the request is not a preflight.
pub(super) fn requested_method<'a>(info: &RequestInfo<'a>) -> Option<&'a [u8]> {
    if info.head.method() != b"OPTIONS" {
        return None;
    }
    single_value(info, ORIGIN)?;
    single_value(info, REQUESTED_METHOD)
}

/// Returns whether the gateway replaces this field of a response from the server behind it.
pub(super) fn replaces(name: &[u8]) -> bool {
    name.eq_ignore_ascii_case(ALLOW_ORIGIN) || name.eq_ignore_ascii_case(ALLOW_CREDENTIALS)
}

/// Writes the CORS fields of a response. `headers`: rate limit fields that the response may have.
pub(super) fn put(cors: &Cors, headers: &[RatelimitHeader], info: &RequestInfo<'_>, put: Put<'_>) {
    // A cache must not give the response for one site to a script of another site.
    if !cors.allows_any() {
        put(b"Vary", b"Origin");
    }
    let Some(allowed) = allowed_origin(cors, info) else {
        return;
    };
    put(ALLOW_ORIGIN, allowed);
    if cors.credentials {
        put(ALLOW_CREDENTIALS, b"true");
    }
    put(b"Access-Control-Expose-Headers", b"Retry-After");
    if headers.contains(&RatelimitHeader::XRatelimit) {
        put(
            b"Access-Control-Expose-Headers",
            b"X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Retry-After",
        );
    }
    if headers.contains(&RatelimitHeader::Ratelimit) {
        put(
            b"Access-Control-Expose-Headers",
            b"RateLimit, RateLimit-Policy",
        );
    }
}

/// Writes the additional fields of the response to a preflight.
pub(super) fn put_preflight(cors: &Cors, info: &RequestInfo<'_>, put: Put<'_>) {
    put(
        b"Vary",
        b"Access-Control-Request-Method, Access-Control-Request-Headers",
    );
    if allowed_origin(cors, info).is_none() {
        return;
    }
    // The gateway only checks the script's site. The server behind it decides which methods and
    // fields it accepts.
    if let Some(method) = single_value(info, REQUESTED_METHOD) {
        put(b"Access-Control-Allow-Methods", method);
    }
    if let Some(fields) = single_value(info, REQUESTED_FIELDS) {
        put(b"Access-Control-Allow-Headers", fields);
    }
    put_number(put, b"Access-Control-Max-Age", cors.max_age.as_secs());
}

/// Returns the value of `Access-Control-Allow-Origin`; `None` if the script's site is not allowed.
fn allowed_origin<'a>(cors: &Cors, info: &RequestInfo<'a>) -> Option<&'a [u8]> {
    let origin = single_value(info, ORIGIN)?;
    if cors.allows_any() {
        return Some(b"*");
    }
    let is_known = cors.origins.iter().any(|known| known.as_bytes() == origin);
    is_known.then_some(origin)
}

/// Returns the value of a field that occurs exactly once.
fn single_value<'a>(info: &RequestInfo<'a>, name: &str) -> Option<&'a [u8]> {
    only(info.fields().named(name))
}
