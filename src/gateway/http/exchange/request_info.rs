//! Properties of a request that are computed once, and the checks that each request must pass.
//!
//! *Origination* fields describe the client's own request, such as `X-Forwarded-For`: they count
//! only from trusted proxies. *Inputs* are the parts of a request that limits and conditions read.

use std::borrow::Cow;
use std::net::Ipv6Addr;
use std::time::Duration;

use config::{MatcherInput, RequestInputs, Server, is_field, target};
use thiserror::Error;

use super::client::Client;
use super::cookies;
use super::grpc;
use crate::http::downstream::{ConnectionContext, Peer};
use crate::http::message::{FieldName, Fields, RequestHead, Version, only, strip_start};
use crate::observe::escape::escape;

/// Properties of a request that are computed once: its client and its target.
pub(super) struct RequestInfo<'a> {
    pub(super) head: &'a RequestHead,
    pub(super) context: &'a ConnectionContext,
    pub(super) client: Client,
    /// Host without a port, in lower case; empty if the request names no host.
    pub(super) host: Cow<'a, str>,
    /// Path in the form for comparisons: decoded and resolved.
    pub(super) path: Cow<'a, [u8]>,
    /// Whether `_` in a field's name is read as `-` (`underscores_in_headers`).
    pub(super) underscores: bool,
}

/// Reason why the gateway does not accept a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub(super) enum UnfitRequest {
    #[error("This gateway does not support CONNECT")]
    Connect,
    /// The request names no host, several hosts, or an invalid one (RFC 9112, section 3.2).
    #[error("One valid Host field is required")]
    Host,
    /// See RFC 9112, section 3.2.4.
    #[error("Only OPTIONS can have the target *")]
    Asterisk,
    #[error("A path must not contain %00")]
    Nul,
    #[error("A field that limits or routes read must occur only once")]
    FieldTwice,
    #[error("An argument that limits or routes read must occur only once")]
    ArgumentTwice,
    #[error("A cookie that limits or routes read is inside the value of another one")]
    Cookie,
    /// See RFC 9110, section 10.1.1.
    #[error("Expect must be 100-continue")]
    Expectation,
}

impl UnfitRequest {
    /// Returns the status of the response.
    pub(super) fn status(self) -> u16 {
        match self {
            Self::Connect => 405,
            Self::Expectation => 417,
            _ => 400,
        }
    }
}

impl<'a> RequestInfo<'a> {
    pub(super) fn new(
        head: &'a RequestHead,
        context: &'a ConnectionContext,
        server: &Server,
    ) -> Self {
        let (path, _) = split_query(head.path_and_query());
        // A request for the whole server belongs to the route for all paths.
        let path = match path {
            b"*" | b"" => b"/",
            path => path,
        };
        Self {
            head,
            context,
            client: Client::of(head.fields(), context.peer(), server),
            host: host(head),
            path: target::path(path),
            underscores: server.underscores_in_headers,
        }
    }

    /// Returns the two ends of the client's connection.
    pub(super) fn peer(&self) -> &'a Peer {
        self.context.peer()
    }

    /// Returns the token in `Authorization` (RFC 6750, section 2.1).
    ///
    /// If there are several fields, none counts, because the origin may read another one.
    pub(super) fn bearer_token(&self) -> Option<&'a [u8]> {
        let token = strip_start(only(self.named("authorization"))?, b"Bearer ")?;
        Some(token.trim_ascii())
    }

    /// Returns whether the client uses TLS, as far as this gateway or a trusted peer knows.
    pub(super) fn is_over_tls(&self) -> bool {
        let mut schemes = self.fields().all(FieldName::XForwardedProto);
        let is_reported =
            self.client.via_proxy && schemes.any(|scheme| scheme.eq_ignore_ascii_case(b"https"));
        self.peer().is_encrypted || is_reported
    }

    /// Returns the fields of the head.
    pub(super) fn fields(&self) -> Fields<'a> {
        self.head.fields()
    }

    /// Returns the values of the fields that limits and conditions read as `name`, in order.
    pub(super) fn named(&self, name: &str) -> impl Iterator<Item = &'a [u8]> {
        let is_named = move |found: &[u8]| is_field(name, found, self.underscores);
        self.fields().named_by(name.len(), is_named)
    }

    /// Returns the values of all fields of a name, joined as nginx joins them for keys.
    ///
    /// Returns `None` if there is no such field.
    pub(super) fn joined(&self, name: &str) -> Option<Cow<'a, [u8]>> {
        let mut values = self.named(name).map(without_odd_blanks);
        let first = values.next()?;
        let mut joined = Cow::Borrowed(first);
        for value in values {
            let all = joined.to_mut();
            all.extend_from_slice(b", ");
            all.extend_from_slice(value);
        }
        Some(joined)
    }

    /// Returns the value of a field as the origin gets it, unless the route changes it.
    ///
    /// The value is that of [`Self::joined`], except for origination fields. The origin gets these
    /// only from trusted proxies. For other peers the gateway sets three of them, and drops the
    /// rest.
    pub(super) fn as_forwarded(&self, name: &str) -> Option<Cow<'a, [u8]>> {
        let known = FieldName::of(name.as_bytes());
        if self.client.via_proxy || !known.describes_origination() {
            return self.joined(name);
        }
        match known {
            FieldName::XForwardedFor => {
                let address = self.client.address?;
                Some(Cow::Owned(address.to_string().into_bytes()))
            }
            FieldName::XForwardedHost => self.head.named_host().map(Cow::Borrowed),
            FieldName::XForwardedProto => Some(Cow::Borrowed(self.peer().scheme().as_bytes())),
            _ => None,
        }
    }

    /// Rejects a request if programs read one of the `inputs` in different ways.
    pub(super) fn check_inputs(&self, inputs: &RequestInputs) -> Result<(), UnfitRequest> {
        let mut fields = inputs.single_fields();
        if fields.any(|name| self.has_field_twice(name)) {
            return Err(UnfitRequest::FieldTwice);
        }
        let mut arguments = inputs.arguments().iter();
        if arguments.any(|name| target::has_several(self.query(), name)) {
            return Err(UnfitRequest::ArgumentTwice);
        }
        let mut cookies = inputs.cookies().iter();
        if cookies.any(|name| self.has_cookie_inside(name)) {
            return Err(UnfitRequest::Cookie);
        }
        Ok(())
    }

    /// Returns whether programs read this part of the request in different ways.
    pub(super) fn is_ambiguous(&self, input: &MatcherInput) -> bool {
        match input {
            MatcherInput::Header(name) => {
                RequestInputs::is_single(name) && self.has_field_twice(name)
            }
            MatcherInput::Query(name) => target::has_several(self.query(), name),
            MatcherInput::Cookie(name) => self.has_cookie_inside(name),
        }
    }

    /// Returns whether a field occurs more than once.
    fn has_field_twice(&self, name: &str) -> bool {
        self.named(name).nth(1).is_some()
    }

    /// Returns whether a cookie is hidden in the value of another one.
    fn has_cookie_inside(&self, name: &str) -> bool {
        cookies::is_inside_another(self.fields().all(FieldName::Cookie), name)
    }

    /// Returns the time that the client waits for the response: the deadline of a gRPC call.
    pub(super) fn call_timeout(&self) -> Option<Duration> {
        grpc::timeout(self.head)
    }

    /// Returns the query of the target, without the question mark; empty if there is none.
    pub(super) fn query(&self) -> &'a [u8] {
        split_query(self.head.path_and_query()).1
    }

    /// Returns the number of requests per key that may wait above the configured limits.
    ///
    /// Only over HTTP/2: there a client sends all its requests at once, and a waiting request does
    /// not block the rest of its connection.
    pub(super) fn above_burst(&self, server: &Server) -> u32 {
        match self.head.version() {
            Version::Http2 => server.above_burst(),
            _ => 0,
        }
    }

    /// Rejects a request that the gateway accepts for no route.
    pub(super) fn check_fitness(&self) -> Result<(), UnfitRequest> {
        if self.head.method() == b"CONNECT" {
            return Err(UnfitRequest::Connect);
        }
        if !self.names_a_host() {
            return Err(UnfitRequest::Host);
        }
        if self.head.path_and_query() == b"*" && self.head.method() != b"OPTIONS" {
            return Err(UnfitRequest::Asterisk);
        }
        // A path without an escape was borrowed unchanged, so it cannot contain %00.
        let is_decoded = matches!(self.path, Cow::Owned(_));
        if is_decoded && target::has_nul(split_query(self.head.path_and_query()).0) {
            return Err(UnfitRequest::Nul);
        }
        let mut expected = self.fields().all(FieldName::Expect);
        if !expected.all(|it| it.eq_ignore_ascii_case(b"100-continue")) {
            return Err(UnfitRequest::Expectation);
        }
        Ok(())
    }

    /// Returns whether the request names exactly one valid host, as its HTTP version requires.
    fn names_a_host(&self) -> bool {
        let mut fields = self.fields().all(FieldName::Host);
        let authority = self.head.authority();
        let is_field_valid = match (fields.next(), fields.next()) {
            // Over HTTP/2 both must name the same host (RFC 9113, section 8.3.1). Over HTTP/1 an
            // absolute target overrides the field.
            (Some(field), None) if self.head.version() == Version::Http2 => {
                is_authority(field) && authority.is_none_or(|it| it.eq_ignore_ascii_case(field))
            }
            (Some(field), None) => is_authority(field),
            (None, _) => match self.head.version() {
                // HTTP/1.0 has no such field, and HTTP/2 has a pseudo-header instead.
                Version::Http10 => true,
                Version::Http2 => authority.is_some(),
                Version::Http11 => false,
            },
            (Some(_), Some(_)) => false,
        };
        is_field_valid && authority.is_none_or(is_authority)
    }
}

/// Splits a target into its path and its query.
fn split_query(target: &[u8]) -> (&[u8], &[u8]) {
    match memchr::memchr(b'?', target) {
        Some(mark) => (&target[..mark], &target[mark + 1..]),
        None => (target, &[]),
    }
}

/// Returns whether `text` is a host with or without a port, and nothing else.
///
/// The syntax is that of RFC 3986, section 3.2.2. The text may be empty (RFC 9112, section 3.2).
fn is_authority(text: &[u8]) -> bool {
    if is_plain_authority(text) {
        return true;
    }
    let Ok(text) = str::from_utf8(text) else {
        return false;
    };
    // `rest`: the colon and the port, or nothing.
    let (is_host, rest) = if let Some(literal) = text.strip_prefix('[') {
        let (address, rest) = literal.split_once(']').unwrap_or_default();
        (address.parse::<Ipv6Addr>().is_ok(), rest)
    } else {
        let (name, rest) = text.split_at(text.find(':').unwrap_or(text.len()));
        (is_name(name.as_bytes()), rest)
    };
    let port = rest.strip_prefix(':').unwrap_or(rest);
    let is_port = port.bytes().all(|byte| byte.is_ascii_digit());
    is_host && is_port && (rest.is_empty() || rest.starts_with(':'))
}

/// Returns whether `text` is an unescaped name or IPv4 address, with or without a port.
///
/// Most hosts are of this kind: this check is the fast path.
fn is_plain_authority(text: &[u8]) -> bool {
    /// For each byte: whether it may occur in such a name.
    const IS_PLAIN: [bool; 256] = {
        let (mut table, mut byte) = ([false; 256], 0_u8);
        while byte.is_ascii() {
            table[byte as usize] = byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.');
            byte += 1;
        }
        table
    };
    let is_plain = |byte: &u8| IS_PLAIN[usize::from(*byte)];
    let name = text.iter().position(|byte| !is_plain(byte));
    let (name, rest) = text.split_at(name.unwrap_or(text.len()));
    if name.windows(2).any(|two| two == b"..") {
        return false;
    }
    match rest {
        [] => true,
        [b':', port @ ..] => port.iter().all(u8::is_ascii_digit),
        _ => false,
    }
}

/// Returns whether `name` is a valid host name, percent-encoded or not.
///
/// Empty labels inside the name are not allowed. Commas are not allowed either, because they join
/// fields.
fn is_name(name: &[u8]) -> bool {
    // Each part after the first must begin with the two digits of an escape.
    let mut parts = name.split(|byte| *byte == b'%');
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._~!$&'()*+;=".contains(byte);
    let are_hex = |digits: &[u8]| digits.iter().all(u8::is_ascii_hexdigit);
    let is_escape = |part: &[u8]| part.get(..2).is_some_and(are_hex);
    let first = parts.next().unwrap_or_default();
    first.iter().all(is_plain)
        && parts.all(|part| is_escape(part) && part.iter().all(is_plain))
        && !name.windows(2).any(|two| two == b"..")
}

/// Returns the host of a request, without its port or a final dot, in lower case.
///
/// Empty if the request names no host. Bytes that are not UTF-8 are escaped: two hosts that differ
/// in them stay different, so that each has its own key.
fn host(head: &RequestHead) -> Cow<'_, str> {
    let named = head.named_host();
    let named = match named.map(str::from_utf8) {
        None => return Cow::Borrowed(""),
        Some(Ok(named)) => Cow::Borrowed(named),
        Some(Err(_)) => Cow::Owned(escape(named.unwrap_or_default())),
    };
    match named {
        Cow::Borrowed(named) => match without_port(named) {
            name if name.bytes().any(|byte| byte.is_ascii_uppercase()) => {
                Cow::Owned(name.to_ascii_lowercase())
            }
            name => Cow::Borrowed(name),
        },
        Cow::Owned(named) => Cow::Owned(without_port(&named).to_ascii_lowercase()),
    }
}

/// Removes the port and a final dot from a host.
fn without_port(named: &str) -> &str {
    let name = match named.rsplit_once(':') {
        Some((name, port)) if !port.contains(']') => name,
        _ => named,
    };
    name.strip_suffix('.').unwrap_or(name)
}

/// Removes Latin-1 blanks around a value. HTTP itself does not treat them as blanks.
///
/// Some programs, such as Python's `wsgiref`, remove them.
pub(super) fn without_odd_blanks(mut value: &[u8]) -> &[u8] {
    while let [b'\x85' | b'\xa0' | b' ' | b'\t', rest @ ..]
    | [rest @ .., b'\x85' | b'\xa0' | b' ' | b'\t'] = value
    {
        value = rest;
    }
    value
}

#[cfg(test)]
mod properties;
