//! Which header fields go on to the origin and back, and which end here.

use actix_web::http::header::{self as web, HeaderMap as WebHeaders};
use http::header::{HeaderMap, HeaderName, HeaderValue};

use super::arrival::Arrival;

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

/// Fields that the gateway writes itself.
const OURS: [&str; 3] = ["host", "content-length", "x-forwarded-for"];

/// Fields that tell the origin where a request came from: kept from a trusted peer, anybody else's word is discarded.
const FORWARDED: [&str; 3] = ["forwarded", "x-forwarded-proto", "x-forwarded-host"];

/// The request's fields as the origin gets them, but for those that frame the body.
pub(super) fn to_origin(arrival: &Arrival) -> HeaderMap {
    let from = arrival.request.headers();
    let named = connection_options(
        from.get_all(web::CONNECTION)
            .filter_map(|value| value.to_str().ok()),
    );
    let mut headers = HeaderMap::with_capacity(from.len() + 4);
    for (name, value) in from {
        let name = name.as_str();
        let untold = FORWARDED.contains(&name) && !arrival.client.trusted;
        if untold || is_hop(name, &named) || OURS.contains(&name) {
            continue;
        }
        if let Some((name, value)) = convert(name, value.as_bytes()) {
            headers.append(name, value);
        }
    }
    let host = authority(arrival).unwrap_or_default();
    set(&mut headers, "host", host);
    if let Some(chain) = forwarded_for(arrival) {
        set(&mut headers, "x-forwarded-for", &chain);
    }
    for (name, value) in [
        ("x-forwarded-proto", arrival.scheme()),
        ("x-forwarded-host", host),
    ] {
        if !headers.contains_key(name) {
            set(&mut headers, name, value);
        }
    }
    headers
}

fn set(headers: &mut HeaderMap, name: &'static str, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        headers.insert(HeaderName::from_static(name), value);
    }
}

/// What a trusted peer says of whom it forwards for, and the peer after it; of any other peer, the peer alone.
fn forwarded_for(arrival: &Arrival) -> Option<String> {
    let peer = arrival.client.peer?.to_string();
    if !arrival.client.trusted {
        return Some(peer);
    }
    let lines = arrival.request.headers().get_all(web::X_FORWARDED_FOR);
    let mut chain: Vec<&str> = lines.filter_map(|line| line.to_str().ok()).collect();
    chain.push(&peer);
    Some(chain.join(", "))
}

/// The authority of an absolute target goes before the field (RFC 9112, section 3.2.2).
fn authority<'a>(arrival: &Arrival<'a>) -> Option<&'a str> {
    let named = arrival.request.uri().authority().map(web_authority);
    named.or_else(|| arrival.field("host"))
}

fn web_authority(authority: &actix_web::http::uri::Authority) -> &str {
    authority.as_str()
}

/// Adds the fields of the origin's answer that go on to the client.
pub(super) fn to_client(from: &HeaderMap, to: &mut WebHeaders) {
    let values = from.get_all(http::header::CONNECTION).iter();
    let named = connection_options(values.filter_map(|value| value.to_str().ok()));
    for (name, value) in from {
        let name = name.as_str();
        if is_hop(name, &named) {
            continue;
        }
        let name = web::HeaderName::from_bytes(name.as_bytes());
        if let (Ok(name), Ok(value)) = (name, web::HeaderValue::from_bytes(value.as_bytes())) {
            to.append(name, value);
        }
    }
}

fn connection_options<'a>(lines: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    lines
        .flat_map(|line| line.split(','))
        .map(str::trim)
        .collect()
}

/// Whether a field is of this hop alone; `named` is what `Connection` names.
fn is_hop(name: &str, named: &[&str]) -> bool {
    HOP.contains(&name)
        || (!KEPT.contains(&name) && named.iter().any(|option| option.eq_ignore_ascii_case(name)))
}

fn convert(name: &str, value: &[u8]) -> Option<(HeaderName, HeaderValue)> {
    Some((
        HeaderName::from_bytes(name.as_bytes()).ok()?,
        HeaderValue::from_bytes(value).ok()?,
    ))
}
