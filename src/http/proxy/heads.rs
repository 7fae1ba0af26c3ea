//! Forwarded heads: which fields pass to the origin and back, which end here, which are added.

use super::request_info::RequestInfo;
use super::rewrite;
use crate::config::{HostRule, Route, ServerUrl};
use crate::http::downstream::ConnectionContext;
use crate::http::message::body::put_field;
use crate::http::message::{
    BodyLength, Buffer, FieldName, Fields, RequestHead, ResponseHead, Version,
};

/// A request, and what its head for the origin depends on.
pub(super) struct RequestOnward<'a> {
    pub(super) info: &'a RequestInfo<'a>,
    pub(super) route: &'a Route,
    pub(super) context: &'a ConnectionContext,
    pub(super) server: &'a ServerUrl,
    pub(super) host: &'a HostRule,
    /// Replaces the client's.
    pub(super) traceparent: Option<&'a [u8]>,
}

/// Writes the head of a request for the origin.
///
/// Hop-by-hop fields end here, and so do the fields in which an untrusted peer says where the
/// request came from. `upgrade`: the protocols that the request asks to switch to. The route may
/// change the path, and set and remove fields.
pub(super) fn write_request(out: &mut Buffer, onward: &RequestOnward<'_>, upgrade: Option<&[u8]>) {
    let &RequestOnward {
        info,
        route,
        context,
        server,
        host,
        traceparent,
    } = onward;
    let head = info.head;
    let fields = head.fields();
    out.put(head.method());
    out.put(b" ");
    if let Some(rewrite) = &route.rewrite {
        rewrite::put_target(out, info, rewrite);
    } else {
        let target = head.path_and_query();
        if matches!(target, [] | [b'?', ..]) {
            out.put(b"/");
        }
        out.put(target);
    }
    out.put(b" HTTP/1.1\r\n");
    // The authority of an absolute target overrides the field (RFC 9112, section 3.2.2).
    let named = head.authority().or_else(|| fields.first(FieldName::Host));
    match (host, named) {
        (HostRule::Preserve, Some(named)) => put_field(out, b"Host", named),
        (HostRule::Literal(name), _) => put_field(out, b"Host", name.as_bytes()),
        (HostRule::Origin, _) | (HostRule::Preserve, None) => {
            put_field(out, b"Host", server.authority().as_bytes());
        }
    }
    let edits = Some(&route.request_fields).filter(|edits| !edits.is_empty());
    let edited = |name: &[u8]| edits.is_some_and(|edits| edits.has(name));
    let (trusted, chunked) = (info.client.trusted, head.length() == BodyLength::Chunked);
    for (known, name, value) in fields.iter() {
        let passes = match known {
            FieldName::Host | FieldName::ContentLength | FieldName::XForwardedFor => false,
            FieldName::Trailer => chunked,
            FieldName::Expect => head.version() != Version::Http10,
            known if known.tells_origination() => trusted,
            known => !known.is_of_one_hop(),
        };
        if passes && !fields.names_away(known, name) && !edited(name) {
            let replaced = traceparent.filter(|_| name.eq_ignore_ascii_case(b"traceparent"));
            put_field(out, name, replaced.unwrap_or(value));
        }
    }
    if !edited(b"x-forwarded-for") {
        put_forwarded_for(out, info, context);
    }
    if (!trusted || !fields.has(FieldName::XForwardedProto)) && !edited(b"x-forwarded-proto") {
        put_field(out, b"X-Forwarded-Proto", info.peer.scheme().as_bytes());
    }
    if let Some(named) = named
        && (!trusted || !fields.has(FieldName::XForwardedHost))
        && !edited(b"x-forwarded-host")
    {
        put_field(out, b"X-Forwarded-Host", named);
    }
    if let Some(edits) = edits {
        rewrite::put_fields(out, edits);
    }
    match head.length() {
        BodyLength::None | BodyLength::UntilClose => {}
        BodyLength::Length(length) => put_number_field(out, b"Content-Length", length),
        BodyLength::Chunked => out.put(b"Transfer-Encoding: chunked\r\n"),
    }
    if let Some(protocol) = upgrade {
        out.put(b"Connection: upgrade\r\n");
        put_field(out, b"Upgrade", protocol);
    }
    out.put(b"\r\n");
}

pub(super) fn put_number_field(out: &mut Buffer, name: &[u8], number: u64) {
    put_field(out, name, itoa::Buffer::new().format(number).as_bytes());
}

/// Writes `X-Forwarded-For`: a trusted peer's own list and then the peer.
///
/// For any other peer, only the peer.
fn put_forwarded_for(out: &mut Buffer, info: &RequestInfo<'_>, context: &ConnectionContext) {
    let Some(peer) = context.address() else {
        if info.client.trusted {
            for line in info.fields().all(FieldName::XForwardedFor) {
                put_field(out, b"X-Forwarded-For", line);
            }
        }
        return;
    };
    out.put(b"X-Forwarded-For: ");
    if info.client.trusted {
        for line in info.fields().all(FieldName::XForwardedFor) {
            out.put(line);
            out.put(b", ");
        }
    }
    out.put(peer);
    out.put(b"\r\n");
}

/// Calls `put` with each field of a response that is forwarded to the client.
///
/// `trailers`: the client gets the trailer fields, too.
pub(super) fn each_passing(
    head: &ResponseHead<'_>,
    trailers: bool,
    replaced: impl Fn(FieldName) -> bool,
    put: &mut dyn FnMut(&[u8], &[u8]),
) {
    let fields = head.fields();
    for (known, name, value) in fields.iter() {
        let passes = match known {
            FieldName::ContentLength => false,
            FieldName::Trailer => trailers,
            known => !known.is_of_one_hop() && !replaced(known),
        };
        if passes && !fields.names_away(known, name) {
            put(name, value);
        }
    }
}

/// Returns the protocols that a request asks to switch to (RFC 9110, section 7.8).
///
/// Returns `None` if one of them is HTTP/2, which the gateway does not speak this way.
pub(super) fn asked_upgrade(head: &RequestHead) -> Option<&[u8]> {
    let fields = head.fields();
    let is_asked = head.version() == Version::Http11 && fields.has(FieldName::Upgrade);
    if !is_asked || !asks_to_upgrade(fields) {
        return None;
    }
    let protocols = fields.first(FieldName::Upgrade)?;
    let is_http2 = |name: &[u8]| name.trim_ascii().eq_ignore_ascii_case(b"h2c");
    let mut names = protocols.split(|byte| b",/".contains(byte));
    (!names.any(is_http2)).then_some(protocols)
}

fn asks_to_upgrade(fields: Fields<'_>) -> bool {
    let mut options = fields.elements(FieldName::Connection);
    options.any(|option| option.eq_ignore_ascii_case(b"upgrade"))
}

/// Returns whether a response switches to a protocol that the request `asked` for.
pub(super) fn is_switched_as_asked(head: &ResponseHead<'_>, asked: Option<&[u8]>) -> bool {
    let Some(asked) = asked else { return false };
    let mut chosen = head.fields().elements(FieldName::Upgrade).peekable();
    let is_asked = |protocol: &[u8]| {
        let mut offered = asked.split(|byte| *byte == b',');
        offered.any(|offered| offered.trim_ascii().eq_ignore_ascii_case(protocol))
    };
    chosen.peek().is_some() && chosen.all(is_asked)
}
