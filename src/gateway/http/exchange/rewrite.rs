//! Changes that a route makes: the path for the origin, and header fields.
//!
//! `heads` and `response_fields` call it. Values of fields may contain variables, as keys do.

use std::borrow::Cow;

use config::{FieldEdits, KeyTemplate, PathRewrite, Route, target};

use super::cors;
use super::key;
use super::request_info::RequestInfo;
use crate::http::message::Put;

/// Calls `put` with the parts of the target of a request whose path the route changes.
///
/// The rest of the path is forwarded as it was sent, if it means the same path that routes were
/// matched with: the origin may distinguish `%2F` from `/`. Otherwise it is built from that path,
/// so that the origin never sees another one. The query is forwarded as it was sent.
pub(super) fn each_target_part(
    info: &RequestInfo<'_>,
    rewrite: &PathRewrite,
    put: &mut dyn FnMut(&[u8]),
) {
    let sent = info.head.path_and_query();
    if sent == b"*" {
        return put(sent);
    }
    let (sent_path, query) = sent.split_at(memchr::memchr(b'?', sent).unwrap_or(sent.len()));
    let (prefix, rest) = rewrite.apply(&info.path);
    put(prefix.as_bytes());
    match info.path {
        // The path was sent in the form for comparisons.
        Cow::Borrowed(_) => put(rest),
        Cow::Owned(_) => match rewrite.rest_as_sent(&info.path, sent_path) {
            Some(rest) => put(rest),
            None => target::encode(rest, put),
        },
    }
    put(query);
}

/// Calls `put` with the fields that `each` puts, and forbids all caches to store the response.
///
/// Some caches prefer a field of their own to `Cache-Control` (RFC 9213).
pub(super) fn put_uncached(put: Put<'_>, each: impl FnOnce(Put<'_>)) {
    each(&mut |name, value| {
        if !is_for_caches(name) {
            put(name, value);
        }
    });
    put(b"Cache-Control", b"no-store");
}

/// Returns whether a field may let some caches store a response despite `Cache-Control: no-store`.
fn is_for_caches(name: &[u8]) -> bool {
    const SUFFIX: &[u8] = b"-cache-control";
    const OTHERS: [&[u8]; 4] = [
        b"expires",
        b"surrogate-control",
        b"edge-control",
        b"x-accel-expires",
    ];
    let end = name.len().saturating_sub(SUFFIX.len());
    name[end..].eq_ignore_ascii_case(SUFFIX)
        || OTHERS.iter().any(|known| name.eq_ignore_ascii_case(known))
}

/// Calls `put` with the fields that `each` puts, after the edits.
///
/// Later edits override earlier ones. Variables have the values of the request.
pub(super) fn put_edited(
    info: &RequestInfo<'_>,
    route: &Route,
    edits: &[&FieldEdits],
    put: Put<'_>,
    each: impl FnOnce(Put<'_>),
) {
    let cors = route.cors.as_deref();
    if edits.iter().all(|edits| edits.is_empty()) && cors.is_none() {
        return each(put);
    }
    let is_in = |edits: &[&FieldEdits], name: &[u8]| edits.iter().any(|edits| edits.has(name));
    each(&mut |name, value| {
        if !(is_in(edits, name) || cors.is_some() && cors::replaces(name)) {
            put(name, value);
        }
    });
    if let Some(cors) = cors {
        cors::put(cors, &route.headers, info, &mut |name, value| {
            if !is_in(edits, name) {
                put(name, value);
            }
        });
    }
    for (index, edit) in edits.iter().enumerate() {
        let later = edits.get(index + 1..).unwrap_or_default();
        for (name, value) in edit.set() {
            if !is_in(later, name.as_bytes()) {
                put_value(name, value, info, route, put);
            }
        }
    }
}

/// Calls `put` with a field that a route sets. As in nginx, an empty value removes the field.
pub(super) fn put_value(
    name: &str,
    value: &KeyTemplate,
    info: &RequestInfo<'_>,
    route: &Route,
    put: Put<'_>,
) {
    if let Some(text) = value.as_text() {
        return put(name.as_bytes(), text.as_bytes());
    }
    let value = value.fill(|variable, out| key::append(out, variable, info, route));
    let value = make_valid(value);
    if !value.is_empty() {
        put(name.as_bytes(), &value);
    }
}

/// Turns any bytes into a valid field value (RFC 9110, section 5.5).
///
/// Control characters become blanks, and blanks at both ends are removed. Cookies and arguments are
/// decoded, so a client can put line breaks there.
fn make_valid(mut value: Vec<u8>) -> Vec<u8> {
    for byte in &mut value {
        if byte.is_ascii_control() {
            *byte = b' ';
        }
    }
    match value.trim_ascii() {
        trimmed if trimmed.len() == value.len() => value,
        trimmed => trimmed.to_vec(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_for_caches_of_any_kind_are_known() {
        let names = "CDN-Cache-Control|Cloudflare-CDN-Cache-Control|Surrogate-Control|\
            edge-control|Expires|X-Accel-Expires";
        for name in names.split('|') {
            assert!(is_for_caches(name.as_bytes()), "{name}");
        }
        for name in ["Cache-Control", "Cache-Control-X", "ETag", "Set-Cookie", ""] {
            assert!(!is_for_caches(name.as_bytes()), "{name}");
        }
    }
}
