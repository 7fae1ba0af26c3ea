//! Access rules of the admin port, and the security headers for browsers.
//!
//! The port listens on loopback by default, but a browser on this host sends it the requests of any
//! page. So a request that changes something is refused if the browser reports that a page of
//! another site sent it.
//!
//! A page can also point the name of its own site at this host (DNS rebinding). For the browser the
//! gateway is then the same site, and the page may read the responses. But the field `Host` of its
//! requests has that name. So a request that names another host is refused, unless it has a token:
//! no such page knows one.

use std::sync::atomic::Ordering::Relaxed;

use actix_web::body::{BoxBody, MessageBody};
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::http::header::{
    AUTHORIZATION, CONTENT_SECURITY_POLICY, HOST, HeaderMap, HeaderName, ORIGIN, REFERRER_POLICY,
    X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use actix_web::http::{Method, StatusCode};
use actix_web::middleware::{DefaultHeaders, Next};
use actix_web::web::Data;
use actix_web::{Error, HttpMessage, ResponseError};
use config::{AdminTokens, MetricsAccess, TokenRole};
use percent_encoding::percent_decode_str;

use super::author::TokenName;
use super::own_names::OwnNames;
use super::reply::{self, Refusal};
use super::{Admin, page};
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

/// Middleware: checks the access of a request.
pub(super) async fn protect(
    request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse<BoxBody>, Error> {
    Ok(match check(&request) {
        Err(refusal) => request.into_response(refusal.error_response()),
        Ok(()) => next.call(request).await?.map_into_boxed_body(),
    })
}

/// Middleware: adds the security headers.
pub(super) fn headers() -> DefaultHeaders {
    HEADERS
        .into_iter()
        .fold(DefaultHeaders::new(), DefaultHeaders::add)
}

/// Paths that show only whether the gateway serves. Anybody may read them.
const OPEN_PATHS: [&str; 2] = ["/healthz", "/readyz"];

/// Access class of a request, for its need of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Access {
    /// Reads public data: the files of the live page, or metrics that are open. Needs no token.
    ReadOpen,
    /// Reads other data. Needs a token if there is one for reading.
    Read,
    /// Reads metrics. Needs a token if there is any.
    ReadMetrics,
    /// Any other method than GET and HEAD.
    Change,
}

/// Accepts a request with the name of its token, or refuses it.
fn check(request: &ServiceRequest) -> Result<(), Refusal> {
    if OPEN_PATHS.contains(&request.path()) {
        return Ok(());
    }
    let (Some(admin), Some(names)) = (
        request.app_data::<Data<Admin>>(),
        request.app_data::<Data<OwnNames>>(),
    ) else {
        return Err(reply::not_now());
    };
    let gateway = admin.gateway();
    let server = gateway.as_ref().map(|gateway| &gateway.settings().server);
    if let Some(server) = server {
        let needs_token = server.metrics == MetricsAccess::Token;
        admin.metrics_need_token.store(needs_token, Relaxed);
    }
    let is_own = |host: &str| {
        let hosts = server.map(|server| &*server.admin_hosts);
        names.contain(host, hosts.unwrap_or_default())
    };
    // Routes are found by the decoded path, too.
    let path = percent_decode_str(request.path()).decode_utf8_lossy();
    let access = match &*path {
        _ if !matches!(*request.method(), Method::GET | Method::HEAD) => Access::Change,
        "/metrics" if admin.metrics_need_token.load(Relaxed) => Access::ReadMetrics,
        path if path == "/metrics" || page::has_file(path) => Access::ReadOpen,
        _ => Access::Read,
    };
    let name = authorize(access, request.headers(), &admin.tokens, is_own)?;
    request.extensions_mut().insert(name);
    Ok(())
}

/// Returns the token name of an allowed request, or refuses it.
///
/// `is_own`: returns whether a `Host` names this gateway.
fn authorize(
    access: Access,
    headers: &HeaderMap,
    tokens: &AdminTokens,
    is_own: impl Fn(&str) -> bool,
) -> Result<TokenName, Refusal> {
    let is_change = access == Access::Change;
    if is_change && is_of_another_site(headers) {
        return Err(forbidden(
            "this request comes from a page of another site; open the gateway's own page, at its address or localhost",
        ));
    }
    let role = bearer_token(headers).map_or(TokenRole::Unknown, |token| tokens.role(token));
    let is_protected = match access {
        Access::ReadOpen => false,
        Access::Read => tokens.protects_reading(),
        Access::ReadMetrics | Access::Change => !tokens.is_empty(),
    };
    match role {
        TokenRole::Admin(name) => return Ok(TokenName(name)),
        TokenRole::Reader if !is_change => return Ok(TokenName(None)),
        _ if is_change && is_protected && !tokens.permits_changes() => {
            return Err(forbidden(
                "this gateway has no token for changes; set DRIP_ADMIN_TOKEN beside DRIP_ADMIN_READ_TOKEN, and restart it",
            ));
        }
        TokenRole::Reader => {
            return Err(forbidden(
                "the token in DRIP_ADMIN_READ_TOKEN only reads; this needs Authorization: Bearer with a token in DRIP_ADMIN_TOKEN",
            ));
        }
        TokenRole::Unknown if is_protected => return Err(unauthorized(is_change)),
        TokenRole::Unknown => {}
    }
    // Only a request over HTTP/1.0 has no `Host`, and no browser sends such a request.
    let mut hosts = headers
        .get_all(HOST)
        .map(|host| host.to_str().unwrap_or(""));
    match hosts.find(|host| !is_own(host)) {
        Some(host) => Err(misdirected(host)),
        None => Ok(TokenName(None)),
    }
}

fn forbidden(message: &str) -> Refusal {
    reply::refusal(StatusCode::FORBIDDEN, message)
}

/// Refuses a request that names another host.
fn misdirected(host: &str) -> Refusal {
    static LOG_THROTTLE: Throttle = Throttle::new();
    let host: String = host.chars().take(128).collect();
    if let Some(hidden) = LOG_THROTTLE.show(clock::now()) {
        tracing::warn!(
            host,
            hidden,
            "the admin port refuses a request for another host; if this is a name of the gateway, add it to server.admin_hosts"
        );
    }
    reply::refusal(
        StatusCode::MISDIRECTED_REQUEST,
        format!(
            "{host:?} is no known name of this gateway; use its address or localhost, or add the name to admin_hosts in [server]"
        ),
    )
}

/// Refuses a request without a valid token.
fn unauthorized(is_change: bool) -> Refusal {
    let message = if is_change {
        "this needs Authorization: Bearer with a token in DRIP_ADMIN_TOKEN"
    } else {
        "this needs Authorization: Bearer with the token in DRIP_ADMIN_READ_TOKEN, or one in DRIP_ADMIN_TOKEN"
    };
    reply::refusal(StatusCode::UNAUTHORIZED, message)
}

/// Returns the token of a request. The case of the scheme's name is ignored (RFC 9110).
fn bearer_token(headers: &HeaderMap) -> Option<&[u8]> {
    let value = headers.get(AUTHORIZATION)?.as_bytes();
    let (scheme, token) = value.split_at_checked("Bearer ".len())?;
    scheme
        .eq_ignore_ascii_case(b"Bearer ")
        .then(|| token.trim_ascii())
}

/// Returns whether the browser reports that a page of another site sent the request.
fn is_of_another_site(headers: &HeaderMap) -> bool {
    let text = |name| headers.get(name).map(|value| value.to_str().unwrap_or(""));
    let host = text(HOST).unwrap_or("");
    let fetch_site = text(SEC_FETCH_SITE);
    // `none`: a person opened the address, and no page.
    let by_fetch_site = fetch_site.is_some_and(|site| !matches!(site, "same-origin" | "none"));
    let by_origin = text(ORIGIN).is_some_and(|origin| {
        let from = origin.split_once("://").map(|(_, host)| host);
        !from.is_some_and(|from| !from.is_empty() && from.eq_ignore_ascii_case(host))
    });
    by_fetch_site || by_origin
}

#[cfg(test)]
mod tests {
    use actix_web::http::header::HeaderValue;

    use super::*;

    /// Returns the status of the refusal; 200 if the request is allowed.
    fn status_of(access: Access, fields: &[(HeaderName, &str)], tokens: &AdminTokens) -> u16 {
        let mut headers = HeaderMap::new();
        for (name, value) in fields {
            headers.insert(name.clone(), HeaderValue::from_str(value).unwrap());
        }
        let is_own = |host: &str| host.starts_with("127.0.0.1:") || host.contains("localhost");
        let refusal = authorize(access, &headers, tokens, is_own).err();
        refusal.map_or(200, |refusal| refusal.error_response().status().as_u16())
    }

    fn tokens(admin: &str, read: &str) -> AdminTokens {
        let tokens = AdminTokens::parse(admin.as_bytes(), read.as_bytes());
        tokens.unwrap_or_else(|error| panic!("{error}"))
    }

    fn status(access: Access, fields: &[(HeaderName, &str)], token: Option<&str>) -> u16 {
        status_of(access, fields, &tokens(token.unwrap_or_default(), ""))
    }

    #[test]
    fn reading_needs_a_token_where_there_is_one_for_it() {
        let with = |token: &'static str| [(HOST, "gw:9090"), (AUTHORIZATION, token)];
        let (both, reading) = (tokens("ops:SECRET1", "reader"), tokens("", "reader"));
        for (sent, open, read, change) in [
            ("Bearer reader", 200, 200, 403),
            ("Bearer SECRET1", 200, 200, 200),
            ("Bearer reade", 421, 401, 401),
            ("Bearer readers", 421, 401, 401),
            ("Basic reader", 421, 401, 401),
        ] {
            let status = |access| status_of(access, &with(sent), &both);
            let found = [Access::ReadOpen, Access::Read, Access::Change].map(status);
            assert_eq!(found, [open, read, change], "{sent}");
        }
        for sent in ["Bearer reader", "Bearer SECRET1", ""] {
            let changed = status_of(Access::Change, &with(sent), &reading);
            assert_eq!(changed, 403, "there is no token for changes");
        }
    }

    #[test]
    fn only_our_own_page_and_programs_change_something() {
        let own = Some("127.0.0.1:9090");
        let own_page = Some("http://127.0.0.1:9090");
        let localhost_page = Some("http://localhost:9090");
        let other_page = Some("http://evil.example:9090");
        // Fields of the request, and the status of a change.
        for (host, origin, fetch_site, expected) in [
            (None, None, None, 200),
            (Some("gateway.internal:9090"), None, None, 421),
            (Some("localhost:9090"), localhost_page, None, 200),
            (own, own_page, Some("same-origin"), 200),
            (own, None, Some("none"), 200),
            (own, None, Some("same-site"), 403),
            (own, None, Some("cross-site"), 403),
            (own, Some("https://evil.example"), None, 403),
            (own, Some("http://127.0.0.1:3000"), None, 403),
            (own, Some("null"), None, 403),
            (own, Some(""), None, 403),
            // A page that has pointed its own name at this host.
            (Some("evil.example:9090"), other_page, None, 421),
        ] {
            let fields = [(HOST, host), (ORIGIN, origin), (SEC_FETCH_SITE, fetch_site)];
            let fields = fields.into_iter();
            let fields = fields.filter_map(|(name, value)| Some((name, value?)));
            let fields: Vec<_> = fields.collect();
            let found = status(Access::Change, &fields, None);
            assert_eq!(found, expected, "{fields:?}");
            // No site reads the response to another site's request.
            let read = if expected == 421 { 421 } else { 200 };
            for token in [None, Some("t")] {
                assert_eq!(status(Access::Read, &fields, token), read, "{fields:?}");
            }
        }
    }

    #[test]
    fn a_request_with_the_token_may_use_any_host_name() {
        let fields = [(HOST, "gw:9090"), (AUTHORIZATION, "Bearer secret")];
        assert_eq!(status(Access::Read, &fields, Some("secret")), 200);
        assert_eq!(status(Access::Read, &fields, Some("other")), 421);
        assert_eq!(status(Access::Read, &fields, None), 421);
        assert_eq!(status(Access::Read, &fields[..1], Some("secret")), 421);
    }

    #[test]
    fn the_token_is_needed_where_there_is_one() {
        let own = [
            (HOST, "gw:9090"),
            (ORIGIN, "http://gw:9090"),
            (AUTHORIZATION, "Bearer secret"),
        ];
        assert_eq!(status(Access::Change, &own, Some("secret")), 200);
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
            let found = status(Access::Change, &fields, Some("secret"));
            assert_eq!(found, expected, "{given}");
        }
        assert_eq!(status(Access::Change, &[], Some("secret")), 401);
    }
}
