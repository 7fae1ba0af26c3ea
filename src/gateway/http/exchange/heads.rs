//! Forwarded heads: which fields are forwarded, dropped, or added, in both directions.
//!
//! `rewrite` and `response_fields` apply the edits of the route. *Origination* fields describe the
//! client's own request, such as `X-Forwarded-For`: only trusted proxies may set them.

use std::borrow::Cow;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use config::{HostRule, Route, ServerUrl, is_same_field};
use http::header::{CONTENT_LENGTH, HeaderValue, TE};
use smallvec::SmallVec;

use super::cookies::Repeated;
use super::key::{MAX_ADDRESS, address_text};
use super::request_id::random;
use super::request_info::RequestInfo;
use super::rewrite;
use crate::http::http2::append;
use crate::http::message::{
    BodyLength, Buffer, FieldName, Put, RequestHead, ResponseHead, Version, put_field,
    put_number_field,
};

/// A request, and everything that its head for the origin depends on.
pub(super) struct OriginRequest<'a> {
    pub(super) info: &'a RequestInfo<'a>,
    pub(super) route: &'a Route,
    /// Server that gets the request.
    pub(super) server: &'a ServerUrl,
    /// Rule for the `Host` field.
    pub(super) host: &'a HostRule,
    /// Replaces the client's `traceparent`.
    pub(super) traceparent: Option<&'a [u8]>,
    /// Name of the request id field, and the id. They replace the client's.
    pub(super) request_id: Option<(&'a str, &'a str)>,
}

impl<'a> OriginRequest<'a> {
    /// Returns the `Host` for the origin.
    fn host(&self) -> Cow<'a, [u8]> {
        match (self.host, self.info.head.named_host()) {
            (HostRule::Preserve, Some(named)) => Cow::Borrowed(named),
            (HostRule::Literal(name), _) => Cow::Borrowed(name.as_bytes()),
            (HostRule::Origin, _) | (HostRule::Preserve, None) => {
                Cow::Owned(self.server.authority().into_bytes())
            }
        }
    }

    /// Calls `put` with the parts of the target for the origin.
    fn each_target_part(&self, put: &mut dyn FnMut(&[u8])) {
        if let Some(rewrite) = &self.route.rewrite {
            return rewrite::each_target_part(self.info, rewrite, put);
        }
        let target = self.info.head.path_and_query();
        if matches!(target, [] | [b'?', ..]) {
            put(b"/");
        }
        put(target);
    }

    /// Calls `put` with each field for the origin, except `Host` and fields for framing.
    ///
    /// `put` gets the name and the parts of the value. Hop-by-hop fields are not forwarded. Fields
    /// in which an untrusted peer claims an origination are not forwarded either. The route may set
    /// and remove fields.
    fn each_field(&self, mut put: impl FnMut(&[u8], &[&[u8]])) {
        let edits = &self.route.request_fields;
        if edits.is_empty() {
            return self.each_passing_field(put);
        }
        self.each_passing_field(|name, value| {
            if !edits.has(name) {
                put(name, value);
            }
        });
        for (name, value) in edits.set() {
            let mut put = |name: &[u8], value: &[u8]| put(name, &[value]);
            rewrite::put_value(name, value, self.info, self.route, &mut put);
        }
    }

    /// Calls `put` with the fields of [`Self::each_field`], before the route edits them.
    fn each_passing_field(&self, mut put: impl FnMut(&[u8], &[&[u8]])) {
        let (info, head) = (self.info, self.info.head);
        let fields = head.fields();
        let via_proxy = info.client.via_proxy;
        let is_chunked = head.length() == BodyLength::Chunked;
        // Of the cookies that limits or routes read, only the first of a name is forwarded.
        let mut cookies = Repeated::new(self.route.inputs.single_cookies());
        for (known, name, value) in fields.iter() {
            let passes = match known {
                FieldName::Host | FieldName::ContentLength | FieldName::XForwardedFor => false,
                FieldName::Trailer => is_chunked,
                FieldName::Expect => head.version() != Version::Http10,
                FieldName::Other if head.opens_websocket() => {
                    !name.eq_ignore_ascii_case(b"sec-websocket-key")
                }
                known if known.describes_origination() => via_proxy,
                FieldName::Other if self.is_request_id(name) => false,
                known => !known.is_hop_by_hop(),
            };
            if known == FieldName::Cookie
                && let Some(parts) = cookies.without_repeated(value)
            {
                if !parts.is_empty() {
                    put(name, &parts);
                }
            } else if passes && !self.is_hidden(known, name) {
                let is_replaced = |_: &&[u8]| name.eq_ignore_ascii_case(b"traceparent");
                let value = self.traceparent.filter(is_replaced).unwrap_or(value);
                put(name, &[value]);
            }
        }
        if let Some((name, id)) = self.request_id {
            put(name.as_bytes(), &[id.as_bytes()]);
        }
        self.put_forwarded_for(&mut put);
        if !via_proxy || !fields.has(FieldName::XForwardedProto) {
            put(b"X-Forwarded-Proto", &[info.peer().scheme().as_bytes()]);
        }
        if let Some(named) = self.info.head.named_host()
            && (!via_proxy || !fields.has(FieldName::XForwardedHost))
        {
            put(b"X-Forwarded-Host", &[named]);
        }
    }

    /// Returns whether some programs would read this field as the request id.
    fn is_request_id(&self, name: &[u8]) -> bool {
        self.request_id
            .is_some_and(|(own, _)| is_same_field(own, name))
    }

    /// Returns whether a field is not forwarded, although it is not a hop-by-hop field.
    ///
    /// Either `Connection` lists it, or some programs would take it for a field that the gateway
    /// reads or sets. A field that limits or routes read is forwarded even if `Connection` lists
    /// it.
    fn is_hidden(&self, known: FieldName, name: &[u8]) -> bool {
        let (inputs, underscores) = (&self.route.inputs, self.info.underscores);
        if self.info.fields().is_listed_in_connection(known, name)
            && !inputs.reads(name, underscores)
        {
            return true;
        }
        match known {
            FieldName::Origination => has_odd_character(name, underscores),
            FieldName::Other | FieldName::Precondition => {
                !inputs.reads(name, underscores) && inputs.reads_similar_name(name)
            }
            _ => false,
        }
    }

    /// Puts `X-Forwarded-For`: the peer, preceded by the list that a trusted peer sent.
    fn put_forwarded_for(&self, put: &mut impl FnMut(&[u8], &[&[u8]])) {
        const NAME: &[u8] = b"X-Forwarded-For";
        let lines = || self.info.fields().all(FieldName::XForwardedFor);
        let via_proxy = self.info.client.via_proxy;
        let buffer = &mut [0; MAX_ADDRESS];
        let peer = self.info.peer().ip();
        let peer = peer.map(move |peer| address_text(peer, buffer));
        match peer {
            None if via_proxy => lines().for_each(|line| put(NAME, &[line])),
            None => {}
            Some(peer) if via_proxy && self.info.fields().has(FieldName::XForwardedFor) => {
                let mut parts: SmallVec<[&[u8]; 4]> = SmallVec::new();
                for line in lines() {
                    parts.extend([line, b", "]);
                }
                parts.push(peer);
                put(NAME, &parts);
            }
            Some(peer) => put(NAME, &[peer]),
        }
    }
}

/// Returns whether a name has a character that some programs read as `-`.
///
/// `underscores`: whether `_` is read as `-` here, too, so that it is not odd.
fn has_odd_character(name: &[u8], underscores: bool) -> bool {
    let is_plain =
        |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'-' || underscores && *byte == b'_';
    !name.iter().all(is_plain)
}

/// Writes the head of a request for the origin.
pub(super) fn write_request(out: &mut Buffer, origin_request: &OriginRequest<'_>) {
    let head = origin_request.info.head;
    out.put(head.method());
    out.put(b" ");
    origin_request.each_target_part(&mut |part| out.put(part));
    out.put(b" HTTP/1.1\r\n");
    put_field(out, b"Host", &origin_request.host());
    origin_request.each_field(|name, value| match value {
        [value] => put_field(out, name, value),
        parts => {
            out.put_all([name, b": "]);
            for part in parts {
                out.put(part);
            }
            out.put(b"\r\n");
        }
    });
    match head.length() {
        BodyLength::None | BodyLength::UntilClose => {}
        BodyLength::Length(length) => put_number_field(out, b"Content-Length", length),
        BodyLength::Chunked => out.put(b"Transfer-Encoding: chunked\r\n"),
    }
    if head.opens_websocket() {
        put_field(out, b"Sec-WebSocket-Key", websocket_key().as_bytes());
    }
    if let Some(protocol) = requested_upgrade(head) {
        out.put(b"Connection: upgrade\r\n");
        put_field(out, b"Upgrade", protocol);
    }
    out.put(b"\r\n");
}

/// Returns the head of a request for an origin over HTTP/2.
///
/// # Errors
///
/// Returns an error if the target or the host cannot be sent over HTTP/2.
pub(super) fn http2_request(
    origin_request: &OriginRequest<'_>,
) -> Result<http::Request<()>, http::Error> {
    let head = origin_request.info.head;
    let mut target = Vec::new();
    origin_request.each_target_part(&mut |part| target.extend_from_slice(part));
    let target = match (&*target, head.method()) {
        // A request for the whole server (RFC 9113, section 8.3.1).
        (b"*" | b"/", b"OPTIONS") if head.path_and_query() == b"*" => &b"*"[..],
        (target, _) => target,
    };
    let is_encrypted = origin_request.server.is_encrypted();
    let uri = http::Uri::builder().scheme(if is_encrypted { "https" } else { "http" });
    let uri = uri
        .authority(&*origin_request.host())
        .path_and_query(target);
    let request = http::Request::builder().version(http::Version::HTTP_2);
    let mut request = request.method(head.method()).uri(uri.build()?).body(())?;
    let fields = request.headers_mut();
    origin_request.each_field(|name, value| match value {
        [value] => append(fields, name, value),
        parts => append(fields, name, &parts.concat()),
    });
    if let BodyLength::Length(length) = head.length() {
        fields.insert(CONTENT_LENGTH, length.into());
    }
    // Over HTTP/2 every response may have trailers, but gRPC servers require `te: trailers`.
    if head.takes_trailers() && head.fields().has(FieldName::Te) {
        fields.insert(TE, HeaderValue::from_static("trailers"));
    }
    Ok(request)
}

/// Returns a new value of `Sec-WebSocket-Key`, which a client over HTTP/2 does not send.
///
/// It proves that the response is not an old one from a cache (RFC 6455, section 1.3).
fn websocket_key() -> String {
    BASE64.encode(random().to_be_bytes())
}

/// Calls `put` with each field of a response that is forwarded to the client.
///
/// `has_trailers`: trailers follow the body, so `Trailer` is forwarded. `is_dropped`: returns true
/// for fields that are not forwarded.
pub(super) fn put_passing_fields(
    head: &ResponseHead<'_>,
    has_trailers: bool,
    is_dropped: impl Fn(FieldName, &[u8]) -> bool,
    put: Put<'_>,
) {
    let fields = head.fields();
    for (known, name, value) in fields.iter() {
        let passes = match known {
            FieldName::ContentLength => false,
            FieldName::Trailer => has_trailers,
            known => !known.is_hop_by_hop() && !is_dropped(known, name),
        };
        if passes && !fields.is_listed_in_connection(known, name) {
            put(name, value);
        }
    }
}

/// Returns the protocols that a request offers to switch to (RFC 9110, section 7.8).
///
/// Returns `None` if one of them is HTTP/2, which the gateway does not support this way.
pub(super) fn requested_upgrade(head: &RequestHead) -> Option<&[u8]> {
    if head.opens_websocket() {
        return Some(b"websocket");
    }
    let fields = head.fields();
    let is_requested = head.version() == Version::Http11 && fields.has(FieldName::Upgrade);
    if !is_requested || !fields.lists(FieldName::Connection, b"upgrade") {
        return None;
    }
    let protocols = fields.first(FieldName::Upgrade)?;
    let is_http2 = |name: &[u8]| name.trim_ascii().eq_ignore_ascii_case(b"h2c");
    let mut names = protocols.split(|byte| b",/".contains(byte));
    (!names.any(is_http2)).then_some(protocols)
}

/// Returns whether a response switches only to protocols that are `requested`.
pub(super) fn switches_as_requested(head: &ResponseHead<'_>, requested: Option<&[u8]>) -> bool {
    let Some(requested) = requested else {
        return false;
    };
    let mut chosen = head.fields().elements(FieldName::Upgrade).peekable();
    let is_offered = |protocol: &[u8]| {
        let mut offered = requested.split(|byte| *byte == b',');
        offered.any(|offered| offered.trim_ascii().eq_ignore_ascii_case(protocol))
    };
    chosen.peek().is_some() && chosen.all(is_offered)
}
