//! Who may change something, and the security headers for browsers.
//!
//! The port listens on loopback by default, but a browser on this host sends it the requests of
//! any page. So a request that changes something is refused if the browser says that a page of
//! another site sent it. A page can also point its own name at this host (DNS rebinding), and is
//! then not another site. Its `Host` shows that. If a token is set, the token decides, because no
//! such page knows it.

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

use super::{Admin, reply};

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
    let admin = request.app_data::<Data<Admin>>();
    let token = admin.and_then(|admin| admin.token.as_deref());
    let mut response = match refusal(request.method(), request.headers(), token) {
        Some(refusal) => request.into_response(refusal),
        None => next.call(request).await?.map_into_boxed_body(),
    };
    for (name, value) in HEADERS {
        let value = HeaderValue::from_static(value);
        response.headers_mut().insert(name, value);
    }
    Ok(response)
}

/// The response to a request that is not allowed.
fn refusal(method: &Method, headers: &HeaderMap, token: Option<&[u8]>) -> Option<HttpResponse> {
    if matches!(*method, Method::GET | Method::HEAD) {
        return None;
    }
    if is_of_another_site(headers, token.is_some()) {
        return Some(reply::error(
            StatusCode::FORBIDDEN,
            "this request comes from a page of another site; open the gateway's own page, at its address or localhost",
        ));
    }
    let wanted = token?;
    if bearer(headers).is_some_and(|given| bool::from(given.ct_eq(wanted))) {
        return None;
    }
    let mut refusal = reply::error(
        StatusCode::UNAUTHORIZED,
        "this needs Authorization: Bearer with the token in DRIP_ADMIN_TOKEN",
    );
    refusal
        .headers_mut()
        .insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    Some(refusal)
}

/// The token of a request. The case of the scheme's name is ignored (RFC 9110).
fn bearer(headers: &HeaderMap) -> Option<&[u8]> {
    let value = headers.get(AUTHORIZATION)?.as_bytes();
    let (scheme, token) = value.split_at_checked("Bearer ".len())?;
    scheme
        .eq_ignore_ascii_case(b"Bearer ")
        .then(|| token.trim_ascii())
}

fn is_of_another_site(headers: &HeaderMap, has_token: bool) -> bool {
    let text = |name| headers.get(name).map(|value| value.to_str().unwrap_or(""));
    let host = text(HOST).unwrap_or("");
    let fetched = text(SEC_FETCH_SITE);
    let by_fetch = fetched.is_some_and(|site| !matches!(site, "same-origin" | "none"));
    let by_origin = text(ORIGIN).is_some_and(|origin| {
        let from = origin.split_once("://").map(|(_, host)| host);
        !from.is_some_and(|from| !from.is_empty() && from.eq_ignore_ascii_case(host))
    });
    let by_browser = fetched.is_some() || headers.contains_key(ORIGIN);
    by_fetch || by_origin || (by_browser && !has_token && !is_unmistakable(host))
}

/// Whether a host is an address or `localhost`.
///
/// No other site can make these names lead here.
fn is_unmistakable(host: &str) -> bool {
    let bare = match host.strip_prefix('[') {
        Some(v6) => v6.split(']').next().unwrap_or(""),
        None => host.rsplit_once(':').map_or(host, |(bare, _)| bare),
    };
    bare.eq_ignore_ascii_case("localhost") || bare.parse::<std::net::IpAddr>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(method: &Method, fields: &[(HeaderName, &str)], token: Option<&str>) -> u16 {
        let mut headers = HeaderMap::new();
        for (name, value) in fields {
            headers.insert(name.clone(), HeaderValue::from_str(value).unwrap());
        }
        refusal(method, &headers, token.map(str::as_bytes)).map_or(200, |it| it.status().as_u16())
    }

    #[test]
    fn only_our_own_page_and_programs_change_something() {
        let cases: [(&[(HeaderName, &str)], u16); 12] = [
            (&[], 200),
            (&[(HOST, "gateway.internal:9090")], 200),
            (
                &[(HOST, "localhost:9090"), (ORIGIN, "http://localhost:9090")],
                200,
            ),
            (
                &[
                    (HOST, "[::1]:9090"),
                    (ORIGIN, "http://[::1]:9090"),
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
                403,
            ),
        ];
        for (fields, expected) in cases {
            assert_eq!(status(&Method::POST, fields, None), expected, "{fields:?}");
            assert_eq!(status(&Method::GET, fields, Some("t")), 200);
        }
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
