//! Which header fields go on to the origin and back, and which end here.

use http::header::{
    AUTHORIZATION, CONNECTION, CONTENT_LENGTH, COOKIE, FORWARDED, HOST, HeaderMap, HeaderName,
    HeaderValue, TE, TRAILER, TRANSFER_ENCODING, UPGRADE,
};
use http::request::Parts;
use hyper::Version;

use super::client::Client;
use crate::clients::Visit;

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const X_FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
const X_FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");

/// The fields of one hop (RFC 9110, section 7.6.1, and what history added): they go no further.
static HOP: [HeaderName; 8] = [
    CONNECTION,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    TE,
    TRAILER,
    TRANSFER_ENCODING,
    UPGRADE,
    HeaderName::from_static("http2-settings"),
];

/// Fields that `Connection` cannot name away: without them the message would mean something else.
static KEPT: [HeaderName; 8] = [
    HOST,
    CONTENT_LENGTH,
    AUTHORIZATION,
    COOKIE,
    FORWARDED,
    X_FORWARDED_FOR,
    X_FORWARDED_PROTO,
    X_FORWARDED_HOST,
];

/// Whether a field tells the origin where a request came from: kept from a trusted peer, anybody else's word is
/// discarded. Some origins read `_` for `-`.
fn tells(name: &HeaderName) -> bool {
    let name = name.as_str().as_bytes();
    let is = |start: &[u8]| {
        let same = |(one, other): (&u8, &u8)| one == other || (*one == b'_' && *other == b'-');
        name.len() >= start.len() && name.iter().zip(start).all(same)
    };
    name == b"forwarded" || is(b"x-forwarded-") || (name.len() == 9 && is(b"x-real-ip"))
}

/// Makes the fields of a request those that the origin gets. A wish to change protocols is among them where `upgrades`.
pub(super) fn to_origin(head: &mut Parts, client: &Client, visit: &Visit, upgrades: bool) {
    let headers = &mut head.headers;
    end_hop(headers, upgrades);
    if !client.trusted {
        let told: Vec<HeaderName> = headers.keys().filter(|name| tells(name)).cloned().collect();
        for name in &told {
            headers.remove(name);
        }
    }
    // The authority of an absolute target goes before the field (RFC 9112, section 3.2.2).
    let authority = head
        .uri
        .authority()
        .map(|named| HeaderValue::from_str(named.as_str()));
    let host = match authority {
        Some(Ok(named)) => named,
        _ => headers
            .get(HOST)
            .cloned()
            .unwrap_or(const { HeaderValue::from_static("") }),
    };
    if head.version == Version::HTTP_2 {
        join_crumbs(headers);
        // It also lets a client tell the same length twice.
        if let Some(length) = headers.get(CONTENT_LENGTH).cloned() {
            headers.insert(CONTENT_LENGTH, length);
        }
    }
    if let Some(chain) = forwarded_for(headers, visit) {
        headers.insert(X_FORWARDED_FOR, chain);
    }
    let scheme = HeaderValue::from_static(visit.peer().scheme());
    headers.entry(X_FORWARDED_PROTO).or_insert(scheme);
    headers
        .entry(X_FORWARDED_HOST)
        .or_insert_with(|| host.clone());
    headers.insert(HOST, host);
}

/// Joins the cookies that HTTP/2 lets a client send in several fields (RFC 9113, section 8.2.3).
fn join_crumbs(headers: &mut HeaderMap) {
    let mut crumbs = headers.get_all(COOKIE).iter();
    let (Some(first), Some(_)) = (crumbs.next(), crumbs.next()) else {
        return;
    };
    let mut joined = first.as_bytes().to_vec();
    for crumb in headers.get_all(COOKIE).iter().skip(1) {
        joined.extend_from_slice(b"; ");
        joined.extend_from_slice(crumb.as_bytes());
    }
    if let Ok(joined) = HeaderValue::from_maybe_shared(bytes::Bytes::from(joined)) {
        headers.insert(COOKIE, joined);
    }
}

/// What a trusted peer says of whom it forwards for, and the peer after it; of any other peer, the peer alone.
fn forwarded_for(headers: &HeaderMap, visit: &Visit) -> Option<HeaderValue> {
    let peer = visit.address()?;
    let mut lines = headers.get_all(&X_FORWARDED_FOR).iter().peekable();
    if lines.peek().is_none() {
        return Some(peer.clone());
    }
    let mut chain = lines.fold(Vec::new(), |mut chain, line| {
        chain.extend_from_slice(line.as_bytes());
        chain.extend_from_slice(b", ");
        chain
    });
    chain.extend_from_slice(peer.as_bytes());
    HeaderValue::from_maybe_shared(bytes::Bytes::from(chain)).ok()
}

/// Makes the fields of the origin's answer those that the client gets.
pub(super) fn to_client(headers: &mut HeaderMap, upgrades: bool) {
    end_hop(headers, upgrades);
}

/// Removes the fields of one hop, and those that `Connection` names; where the protocol changes, all but that.
fn end_hop(headers: &mut HeaderMap, upgrades: bool) {
    // There are few fields: to look at each once is cheaper than to look for each of these.
    let found: Vec<HeaderName> = headers
        .keys()
        .filter(|name| HOP.contains(name))
        .cloned()
        .collect();
    if found.is_empty() {
        return;
    }
    let upgrade = headers.get(UPGRADE).filter(|_| upgrades).cloned();
    let named: Vec<HeaderName> = options(headers)
        .filter_map(|option| option.parse().ok())
        .collect();
    let named = named.iter().filter(|name| !KEPT.contains(name));
    for name in found.iter().chain(named) {
        headers.remove(name);
    }
    if let Some(protocol) = upgrade {
        headers.insert(UPGRADE, protocol);
        headers.insert(CONNECTION, const { HeaderValue::from_static("upgrade") });
    }
}

/// Whether a request asks for another protocol on its connection (RFC 9110, section 7.8). HTTP/2 is none that is spoken so.
pub(super) fn is_upgrade(version: Version, headers: &HeaderMap) -> bool {
    let protocol = headers
        .get(UPGRADE)
        .and_then(|protocol| protocol.to_str().ok());
    version == Version::HTTP_11
        && options(headers).any(|option| option.eq_ignore_ascii_case("upgrade"))
        && protocol.is_some_and(|protocol| {
            let mut named = protocol.split([',', '/']).map(str::trim);
            !named.any(|name| name.eq_ignore_ascii_case("h2c"))
        })
}

fn options(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    let lines = headers.get_all(CONNECTION).iter();
    lines
        .filter_map(|line| line.to_str().ok())
        .flat_map(|line| line.split(','))
        .map(str::trim)
}
