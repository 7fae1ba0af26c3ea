//! Which header fields go on to the origin and back, and which end here.

use actix_web::HttpRequest;
use actix_web::http::header as web;
use http::header::{HeaderMap, HeaderName, HeaderValue};

use super::client;

/// The fields of one hop (RFC 9110, section 7.6.1, and what history added): they go no further.
const HOP: [&str; 8] = [
    "connection",
    "keep-alive",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "http2-settings",
];

/// Fields that `Connection` cannot name away: without them the message would mean something else.
const KEPT: [&str; 3] = ["host", "content-length", "authorization"];

/// Fields that tell the origin of the client. What a client sends of these is its own word, and is replaced.
const FORWARDED: [&str; 4] = [
    "forwarded",
    "x-forwarded-for",
    "x-forwarded-proto",
    "x-forwarded-host",
];

/// The request's fields as the origin gets them, but for those that frame the body.
pub(super) fn to_origin(request: &HttpRequest) -> HeaderMap {
    let from = request.headers();
    let named: Vec<&str> = from
        .get_all(web::CONNECTION)
        .filter_map(|value| value.to_str().ok())
        .collect();
    let mut headers = HeaderMap::with_capacity(from.len() + 4);
    for (name, value) in from {
        let name = name.as_str();
        if is_hop(name, &named)
            || FORWARDED.contains(&name)
            || name == "content-length"
            || name == "host"
        {
            continue;
        }
        if let Some((name, value)) = convert(name, value.as_bytes()) {
            headers.append(name, value);
        }
    }
    let mut set = |name, value: &str| {
        if let Ok(value) = HeaderValue::from_str(value) {
            headers.insert(HeaderName::from_static(name), value);
        }
    };
    if let Some(host) = authority(request) {
        set("host", host);
        set("x-forwarded-host", host);
    }
    if let Some(peer) = client::address(request) {
        set("x-forwarded-for", &peer.to_string());
    }
    set(
        "x-forwarded-proto",
        request.uri().scheme_str().unwrap_or("http"),
    );
    headers
}

/// The authority of an absolute target goes before the field (RFC 9112, section 3.2.2).
fn authority(request: &HttpRequest) -> Option<&str> {
    let named = request
        .uri()
        .authority()
        .map(actix_web::http::uri::Authority::as_str);
    named.or_else(|| request.headers().get(web::HOST)?.to_str().ok())
}

/// The answer's fields as the client gets them.
pub(super) fn to_client(
    from: &HeaderMap,
) -> impl Iterator<Item = (web::HeaderName, web::HeaderValue)> {
    let named: Vec<&str> = from
        .get_all(http::header::CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .collect();
    from.iter().filter_map(move |(name, value)| {
        if is_hop(name.as_str(), &named) {
            return None;
        }
        let name = web::HeaderName::from_bytes(name.as_str().as_bytes()).ok()?;
        Some((name, web::HeaderValue::from_bytes(value.as_bytes()).ok()?))
    })
}

/// Whether a field is of this hop alone. `named` are the values of `Connection`.
fn is_hop(name: &str, named: &[&str]) -> bool {
    let is_named = |line: &&str| {
        line.split(',')
            .any(|option| option.trim().eq_ignore_ascii_case(name))
    };
    HOP.contains(&name)
        || (!named.is_empty() && !KEPT.contains(&name) && named.iter().any(is_named))
}

fn convert(name: &str, value: &[u8]) -> Option<(HeaderName, HeaderValue)> {
    Some((
        HeaderName::from_bytes(name.as_bytes()).ok()?,
        HeaderValue::from_bytes(value).ok()?,
    ))
}
