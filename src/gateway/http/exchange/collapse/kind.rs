//! Decides whether a request may share an answer, and builds its key for that.
//!
//! Two requests are of the same *kind* if the origin may give them the same answer. A request may
//! *lead* if its own answer may be shared.

use std::cell::Cell;

use config::{Collapse, Route, is_field};
use smallvec::SmallVec;

use super::super::client::split_unquoted;
use super::super::cookies;
use super::super::heads;
use super::super::key;
use super::super::request_info::RequestInfo;
use crate::collapse::Preconditions;
use crate::http::message::{FieldName, is_like};

/// Properties of a request that decide which answers it may share.
pub(super) struct Kind {
    /// Cache key. Two requests have the same key only if they may get the same answer.
    pub(super) key: Vec<u8>,
    /// Whether the request's own answer may be shared: it is the full answer to a `GET`.
    pub(super) may_lead: bool,
}

thread_local! {
    /// Buffer of the last key, reused for the next one.
    static SCRATCH: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// Maximum capacity of a key buffer that is reused, in bytes.
const MAX_KEPT: usize = 4096;

impl Drop for Kind {
    fn drop(&mut self) {
        if self.key.capacity() <= MAX_KEPT {
            SCRATCH.set(std::mem::take(&mut self.key));
        }
    }
}

/// Fields in which some programs look for another method, scheme, host or path.
///
/// All begin with `f` or `x`, and have at least 6 characters.
const OVERRIDING: [&[u8]; 16] = [
    b"front-end-https",
    b"x-envoy-original-path",
    b"x-host",
    b"x-http-host-override",
    b"x-http-method",
    b"x-http-method-override",
    b"x-http-path-override",
    b"x-method-override",
    b"x-original-host",
    b"x-original-uri",
    b"x-original-url",
    b"x-override-url",
    b"x-rewrite-uri",
    b"x-rewrite-url",
    b"x-scheme",
    b"x-url-scheme",
];

/// Returns whether a field, which has no [`FieldName`] of its own, prevents sharing.
///
/// Some origins take another method, path or host from a field. Their answer must not be given to
/// requests without that field. Some origins also read another character, such as `_`, as `-`.
fn prevents_sharing(name: &[u8], value: &[u8]) -> bool {
    let is = |known: &[u8]| name.len() == known.len() && is_like(name, known);
    // Length and first letter (in lower case by `| 0x20`) exclude most names at once.
    match name.len() {
        13 if is(b"cache-control") => forbids_storing(value),
        19 if is(b"proxy-authorization") => true,
        6.. => matches!(name[0] | 0x20, b'x' | b'f') && OVERRIDING.iter().any(|known| is(known)),
        _ => false,
    }
}

/// Returns whether `Cache-Control` of a request has `no-store` (RFC 9111, section 5.2.1.5).
///
/// The other directives of a request are only advice, and are ignored.
fn forbids_storing(value: &[u8]) -> bool {
    let mut directives = value.split(|byte| *byte == b',');
    directives.any(|it| it.trim_ascii().eq_ignore_ascii_case(b"no-store"))
}

/// Returns the properties of a request that may share an answer; `None` if it may not.
pub(super) fn kind_of(collapse: &Collapse, route: &Route, info: &RequestInfo<'_>) -> Option<Kind> {
    let head = info.head;
    let is_get = head.method() == b"GET";
    if !is_get && !head.is_head() || !head.length().is_empty() {
        return None;
    }
    if heads::requested_upgrade(head).is_some() || head.expects_continue() {
        return None;
    }
    // After a login on the connection (NTLM), requests carry no credentials.
    if info.peer().certificate().is_some() || info.context.tied().is_some() {
        return None;
    }
    let mut varying = Varying::new();
    for (known, name, value) in info.fields().iter() {
        match known {
            FieldName::Authorization | FieldName::ProxyAuthorization => return None,
            FieldName::Cookie if has_personal_cookie(collapse, value) => return None,
            // A trusted proxy reports the certificate of its client.
            FieldName::Origination if info.client.via_proxy && is_cert_field(name) => {
                return None;
            }
            FieldName::Precondition if is_for_origin_only(name) => return None,
            FieldName::Other if prevents_sharing(name, value) => return None,
            _ => {}
        }
        let is_expected = |expected: &String| is_field(expected, name, info.underscores);
        if let Some(expected) = collapse.vary.iter().position(is_expected) {
            varying.push((expected, value));
        }
    }
    Some(Kind {
        key: kind_key(collapse, route, info, &varying),
        // The answer to a conditional request, or to one for a range, may not be a full one.
        may_lead: is_get && !info.fields().has(FieldName::Precondition),
    })
}

/// Returns whether only the origin can check a precondition: one that guards a change.
fn is_for_origin_only(name: &[u8]) -> bool {
    is_like(name, b"if-match") || is_like(name, b"if-unmodified-since")
}

/// Returns whether a `Cookie` line has a cookie that prevents sharing.
fn has_personal_cookie(collapse: &Collapse, line: &[u8]) -> bool {
    let Some(personal) = &collapse.cookies else {
        return true;
    };
    let (mut personal, lines) = (personal.iter(), || [line].into_iter());
    // Some programs also find a cookie after a blank or a comma.
    personal.any(|name| {
        cookies::first(lines(), name).is_some() || cookies::is_inside_another(lines(), name)
    })
}

/// Values of the fields that are in `vary`, each with the index of its name in `vary`.
type Varying<'a> = SmallVec<[(usize, &'a [u8]); 4]>;

/// Builds the key. Each part has its length before it, so different parts give different keys.
fn kind_key(
    collapse: &Collapse,
    route: &Route,
    info: &RequestInfo<'_>,
    varying: &[(usize, &[u8])],
) -> Vec<u8> {
    let mut bytes = SCRATCH.take();
    bytes.clear();
    bytes.extend_from_slice(&route.collapse_stamp.to_le_bytes());
    collapse.key.fill_into(&mut bytes, |variable, bytes| {
        put_with_length(bytes, |bytes| key::append(bytes, variable, info, route));
    });
    // The host that the origin receives.
    let named = info.head.named_host().unwrap_or_default();
    put_with_length(&mut bytes, |bytes| put_lower(bytes, named));
    if info.client.via_proxy {
        put_origination(&mut bytes, info);
    }
    for name_index in 0..collapse.vary.len() {
        // An empty field differs from an absent one.
        let mut count = 0_u32;
        for (_, value) in varying.iter().filter(|(index, _)| *index == name_index) {
            put_with_length(&mut bytes, |bytes| bytes.extend_from_slice(value));
            count += 1;
        }
        bytes.extend_from_slice(&count.to_le_bytes());
    }
    bytes
}

/// Appends the bytes that `part` appends, preceded by their length.
#[inline]
fn put_with_length(bytes: &mut Vec<u8>, part: impl FnOnce(&mut Vec<u8>)) {
    let start = bytes.len();
    bytes.extend_from_slice(&[0; 4]);
    part(bytes);
    let length = u32::try_from(bytes.len() - start - 4).unwrap_or(u32::MAX);
    bytes[start..start + 4].copy_from_slice(&length.to_le_bytes());
}

/// Appends a text in lower case.
fn put_lower(bytes: &mut Vec<u8>, text: &[u8]) {
    let start = bytes.len();
    bytes.extend_from_slice(text);
    bytes[start..].make_ascii_lowercase();
}

/// Appends the fields in which a trusted proxy describes the client's own request, without its
/// address.
fn put_origination(bytes: &mut Vec<u8>, info: &RequestInfo<'_>) {
    for (known, name, value) in info.fields().iter() {
        if known == FieldName::Forwarded {
            put_with_length(bytes, |bytes| {
                for pair in pairs_beside_client(value) {
                    put_with_length(bytes, |bytes| bytes.extend_from_slice(pair));
                }
            });
        }
        let is_same_for_all = matches!(
            known,
            FieldName::XForwardedHost | FieldName::XForwardedProto | FieldName::Origination
        );
        if is_same_for_all && !names_client(name) {
            put_with_length(bytes, |bytes| put_lower(bytes, name));
            put_with_length(bytes, |bytes| bytes.extend_from_slice(value));
        }
    }
}

/// Returns whether a field of a trusted proxy names the client, as `X-Real-IP` does.
///
/// Such a field differs between clients, so it is not part of the key.
fn names_client(name: &[u8]) -> bool {
    let name = name.to_ascii_lowercase();
    name.ends_with(b"-ip") || name.ends_with(b"for")
}

/// Returns whether a field has a client certificate, as Envoy's `X-Forwarded-Client-Cert`.
fn is_cert_field(name: &[u8]) -> bool {
    const END: &[u8] = b"-client-cert";
    let start = name.len().checked_sub(END.len());
    start.is_some_and(|start| is_like(&name[start..], END))
}

/// Returns the pairs of a `Forwarded` line, except `for` and `by` (RFC 7239, section 4).
///
/// These two name the client and the proxy. They differ between clients that may share an answer.
fn pairs_beside_client(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    let elements = split_unquoted(line, b',').into_iter();
    let pairs = elements.flat_map(|element| split_unquoted(element, b';'));
    pairs.map(<[u8]>::trim_ascii).filter(|pair| {
        let name = pair.split(|byte| *byte == b'=').next();
        let name = name.unwrap_or_default().trim_ascii();
        !pair.is_empty() && !name.eq_ignore_ascii_case(b"for") && !name.eq_ignore_ascii_case(b"by")
    })
}

/// Returns the preconditions and the range of a request.
pub(super) fn preconditions<'a>(info: &RequestInfo<'a>) -> Preconditions<'a> {
    if !info.fields().has(FieldName::Precondition) {
        return Preconditions::default();
    }
    let first = |name: &str| info.named(name).next();
    Preconditions {
        if_none_match: first("if-none-match"),
        if_modified_since: first("if-modified-since"),
        range: first("range").filter(|_| !info.head.is_head()),
        if_range: first("if-range"),
    }
}
