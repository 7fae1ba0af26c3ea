//! Who may read and change something, and the security headers for browsers.
//!
//! The port listens on loopback by default, but a browser on this host sends it the requests of
//! any page. So a request that changes something is refused if the browser says that a page of
//! another site sent it. A page can also point its own name at this host (DNS rebinding), is then
//! not another site, and may read the answers. Its `Host` shows that, so a request that names a
//! host that is not this one is refused, unless it has the token: no such page knows it.

use actix_web::body::{BoxBody, MessageBody};
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::http::header::{
    AUTHORIZATION, CONTENT_SECURITY_POLICY, HOST, HeaderMap, HeaderName, HeaderValue, ORIGIN,
    REFERRER_POLICY, WWW_AUTHENTICATE, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use actix_web::http::{Method, StatusCode};
use actix_web::middleware::Next;
use actix_web::web::Data;
use actix_web::{Error, HttpResponse};
use subtle::ConstantTimeEq;

use super::own_names::OwnNames;
use super::{Admin, reply};
use crate::observe::throttle::Throttle;
use crate::time::clock;

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Headers of every response: only our own files, no frames, no guessed types, no referrer.
const HEADERS: [(HeaderName, &str); 4] = [
    (CONTENT_SECURITY_POLICY, "default-src 'self'"),
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (X_FRAME_OPTIONS, "DENY"),
    (REFERRER_POLICY, "no-referrer"),
];

pub(super) async fn protect(
    request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse<BoxBody>, Error> {
    let mut response = match refusal_of(&request) {
        Some(refusal) => request.into_response(refusal),
        None => next.call(request).await?.map_into_boxed_body(),
    };
    for (name, value) in HEADERS {
        let value = HeaderValue::from_static(value);
        response.headers_mut().insert(name, value);
    }
    Ok(response)
}

/// Paths that tell nothing but whether the gateway serves.
const OPEN: [&str; 2] = ["/healthz", "/readyz"];

fn refusal_of(request: &ServiceRequest) -> Option<HttpResponse> {
    if OPEN.contains(&request.path()) {
        return None;
    }
    let admin = request.app_data::<Data<Admin>>()?;
    let names = request.app_data::<Data<OwnNames>>()?;
    let is_own = |host: &str| {
        let gateway = admin.gateway();
        let more = gateway
            .as_ref()
            .map(|it| &*it.settings().server.admin_hosts);
        names.contain(host, more.unwrap_or_default())
    };
    let token = admin.token.as_deref();
    refusal(request.method(), request.headers(), token, is_own)
}

/// The response to a request that is not allowed. `is_own`: whether a `Host` is this one.
fn refusal(
    method: &Method,
    headers: &HeaderMap,
    token: Option<&[u8]>,
    is_own: impl Fn(&str) -> bool,
) -> Option<HttpResponse> {
    let is_change = !matches!(*method, Method::GET | Method::HEAD);
    if is_change && is_of_another_site(headers) {
        return Some(reply::error(
            StatusCode::FORBIDDEN,
            "this request comes from a page of another site; open the gateway's own page, at its address or localhost",
        ));
    }
    let is_right = |wanted| bearer(headers).is_some_and(|given| bool::from(given.ct_eq(wanted)));
    match token {
        Some(wanted) if is_right(wanted) => None,
        Some(_) if is_change => Some(unauthorized()),
        // Only a request over HTTP/1.0 has none, and no browser sends one.
        _ => headers
            .get_all(HOST)
            .map(|host| host.to_str().unwrap_or(""))
            .find(|host| !is_own(host))
            .map(misdirected),
    }
}

/// The response to a request that names another host.
fn misdirected(host: &str) -> HttpResponse {
    static TOLD: Throttle = Throttle::new();
    let host: String = host.chars().take(128).collect();
    if let Some(hidden) = TOLD.show(clock::now()) {
        tracing::warn!(
            host,
            hidden,
            "the admin port refuses a request for another host; if this is a name of the gateway, add it to server.admin_hosts"
        );
    }
    reply::error(
        StatusCode::MISDIRECTED_REQUEST,
        format!(
            "{host:?} is no known name of this gateway; use its address or localhost, or add the name to admin_hosts in [server]"
        ),
    )
}

fn unauthorized() -> HttpResponse {
    let mut refusal = reply::error(
        StatusCode::UNAUTHORIZED,
        "this needs Authorization: Bearer with the token in DRIP_ADMIN_TOKEN",
    );
    refusal
        .headers_mut()
        .insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    refusal
}

/// The token of a request. The case of the scheme's name is ignored (RFC 9110).
fn bearer(headers: &HeaderMap) -> Option<&[u8]> {
    let value = headers.get(AUTHORIZATION)?.as_bytes();
    let (scheme, token) = value.split_at_checked("Bearer ".len())?;
    scheme
        .eq_ignore_ascii_case(b"Bearer ")
        .then(|| token.trim_ascii())
}

fn is_of_another_site(headers: &HeaderMap) -> bool {
    let text = |name| headers.get(name).map(|value| value.to_str().unwrap_or(""));
    let host = text(HOST).unwrap_or("");
    let fetched = text(SEC_FETCH_SITE);
    let by_fetch = fetched.is_some_and(|site| !matches!(site, "same-origin" | "none"));
    let by_origin = text(ORIGIN).is_some_and(|origin| {
        let from = origin.split_once("://").map(|(_, host)| host);
        !from.is_some_and(|from| !from.is_empty() && from.eq_ignore_ascii_case(host))
    });
    by_fetch || by_origin
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(method: &Method, fields: &[(HeaderName, &str)], token: Option<&str>) -> u16 {
        let mut headers = HeaderMap::new();
        for (name, value) in fields {
            headers.insert(name.clone(), HeaderValue::from_str(value).unwrap());
        }
        let is_own = |host: &str| host.starts_with("127.0.0.1:") || host.contains("localhost");
        let refusal = refusal(method, &headers, token.map(str::as_bytes), is_own);
        refusal.map_or(200, |it| it.status().as_u16())
    }

    #[test]
    fn only_our_own_page_and_programs_change_something() {
        let cases: [(&[(HeaderName, &str)], u16); 12] = [
            (&[], 200),
            (&[(HOST, "gateway.internal:9090")], 421),
            (
                &[(HOST, "localhost:9090"), (ORIGIN, "http://localhost:9090")],
                200,
            ),
            (
                &[
                    (HOST, "127.0.0.1:9090"),
                    (ORIGIN, "http://127.0.0.1:9090"),
                    (SEC_FETCH_SITE, "same-origin"),
                ],
                200,
            ),
            (&[(HOST, "127.0.0.1:9090"), (SEC_FETCH_SITE, "none")], 200),
            (
                &[(HOST, "127.0.0.1:9090"), (SEC_FETCH_SITE, "same-site")],
                403,
            ),
            (
                &[(HOST, "127.0.0.1:9090"), (SEC_FETCH_SITE, "cross-site")],
                403,
            ),
            (
                &[(HOST, "127.0.0.1:9090"), (ORIGIN, "https://evil.example")],
                403,
            ),
            (
                &[(HOST, "127.0.0.1:9090"), (ORIGIN, "http://127.0.0.1:3000")],
                403,
            ),
            (&[(HOST, "127.0.0.1:9090"), (ORIGIN, "null")], 403),
            (&[(HOST, "127.0.0.1:9090"), (ORIGIN, "")], 403),
            // A page that has pointed its own name at this host.
            (
                &[
                    (HOST, "evil.example:9090"),
                    (ORIGIN, "http://evil.example:9090"),
                ],
                421,
            ),
        ];
        for (fields, expected) in cases {
            assert_eq!(status(&Method::POST, fields, None), expected, "{fields:?}");
            // No site reads the answer of another site's request.
            let read = if expected == 421 { 421 } else { 200 };
            for token in [None, Some("t")] {
                assert_eq!(status(&Method::GET, fields, token), read, "{fields:?}");
            }
        }
    }

    #[test]
    fn who_has_the_token_reads_by_any_name() {
        let fields = [(HOST, "gw:9090"), (AUTHORIZATION, "Bearer secret")];
        assert_eq!(status(&Method::GET, &fields, Some("secret")), 200);
        assert_eq!(status(&Method::GET, &fields, Some("other")), 421);
        assert_eq!(status(&Method::GET, &fields, None), 421);
        assert_eq!(status(&Method::HEAD, &fields[..1], Some("secret")), 421);
    }

    #[test]
    fn the_token_is_needed_where_there_is_one() {
        let own = [
            (HOST, "gw:9090"),
            (ORIGIN, "http://gw:9090"),
            (AUTHORIZATION, "Bearer secret"),
        ];
        assert_eq!(status(&Method::POST, &own, Some("secret")), 200);
        for (given, expected) in [
            ("Bearer secret", 200),
            ("bearer  secret", 200),
            ("Bearer secre", 401),
            ("Bearer secrets", 401),
            ("Bearer", 401),
            ("Basic secret", 401),
            ("", 401),
        ] {
            let fields = [(AUTHORIZATION, given)];
            assert_eq!(
                status(&Method::DELETE, &fields, Some("secret")),
                expected,
                "{given}"
            );
        }
        assert_eq!(status(&Method::DELETE, &[], Some("secret")), 401);
    }
}
