//! Head of a request: parsed once, stored as its bytes and ranges of them.
//!
//! `framing` determines the length of its body; `fields` has the table of its fields.

mod whole;

use std::mem::MaybeUninit;

use super::error::BadRequest;
use super::field_name::{FieldName, strip_start};
use super::fields::{self, Field, Fields, MAX_REQUEST_FIELDS, Span};
use super::framing::{self, BodyLength, first_line};
use super::version::Version;

/// Content type of gRPC messages. A suffix such as `+proto` may follow.
pub const GRPC: &[u8] = b"application/grpc";

/// Head of a request: its bytes as received, and the ranges of its parts.
#[derive(Debug)]
pub struct RequestHead {
    /// Bytes of the head. The ranges below refer to them.
    bytes: Box<[u8]>,
    /// Ranges of the fields in `bytes`.
    table: Box<[Field]>,
    /// Bit set of the names that occur.
    present: u32,
    version: Version,
    /// Framing of the body.
    length: BodyLength,
    method: Span,
    target: Span,
    /// Authority of an absolute target, or `:authority`.
    authority: Option<Span>,
    /// Path of the target with its query. Both may be empty.
    path: Span,
    /// Whether the client opens a WebSocket over HTTP/2 (RFC 8441).
    opens_websocket: bool,
}

/// Result of parsing: the head and its length, or `None` if more bytes are needed.
type Parsed = Result<Option<(RequestHead, usize)>, BadRequest>;

impl RequestHead {
    /// Parses the head at the start of `bytes`. Returns the head and its length.
    ///
    /// Returns `None` if the head is not complete yet. The caller must first remove empty lines
    /// before the head.
    ///
    /// # Errors
    ///
    /// Returns an error if the head is malformed or ambiguous.
    pub fn parse(bytes: &[u8]) -> Result<Option<(Self, usize)>, BadRequest> {
        match bytes {
            b"\r" => return Ok(None),
            // These bytes are rejected here, because the parser would skip them.
            [b'\r' | b'\n', ..] => return Err(BadRequest::Malformed),
            _ => {}
        }
        let parsed = match Self::parse_as(bytes, bytes) {
            Err(httparse::Error::Token) if !first_line(bytes).is_ascii() => {
                Self::parse_as(&with_ascii_target(bytes), bytes)
            }
            parsed => parsed,
        };
        parsed.unwrap_or_else(|error| match error {
            httparse::Error::TooManyHeaders => Err(BadRequest::HeadTooLarge),
            _ => Err(find_cause(bytes)),
        })
    }

    /// Parses `text`, and keeps `bytes`, which differ from it only in the target.
    ///
    /// The outer error is that of the parser, the inner one that of the checks.
    fn parse_as(text: &[u8], bytes: &[u8]) -> Result<Parsed, httparse::Error> {
        let mut fields = [const { MaybeUninit::uninit() }; MAX_REQUEST_FIELDS];
        let mut parsed = httparse::Request::new(&mut []);
        let end = match parsed.parse_with_uninit_headers(text, &mut fields)? {
            httparse::Status::Complete(end) => end,
            httparse::Status::Partial => return Ok(Ok(None)),
        };
        Ok(Self::of_parsed(&parsed, text, &bytes[..end]).map(|request| Some((request, end))))
    }

    /// Converts a parsed head, and checks its method, target and framing.
    ///
    /// `text`: the parsed bytes; `head`: the bytes to keep.
    fn of_parsed(
        parsed: &httparse::Request<'_, '_>,
        text: &[u8],
        head: &[u8],
    ) -> Result<Self, BadRequest> {
        let text = &text[..head.len()];
        let table = fields::strict_table(text, parsed.headers);
        let (table, present) = table.ok_or(BadRequest::Malformed)?;
        let span = |part: Option<&str>| Span::of(text, part.unwrap_or_default().as_bytes());
        check_method(parsed.method.unwrap_or_default().as_bytes())?;
        let (method, target) = (span(parsed.method), span(parsed.path));
        let (authority, path) = if parsed.method == Some("CONNECT") {
            (None, target)
        } else {
            split_target(head, target)?
        };
        let mut request = Self {
            bytes: head.into(),
            present,
            table,
            version: Version::of_minor(parsed.version),
            length: BodyLength::None,
            method,
            target,
            authority,
            path,
            opens_websocket: false,
        };
        request.length = framing::of_request(request.fields(), request.version)?;
        Ok(request)
    }

    /// Builds the head of an HTTP/2 request.
    ///
    /// `body_follows`: the stream did not end with the head. An extended CONNECT for a WebSocket
    /// becomes the equivalent GET. Its stream is the connection, not a body.
    ///
    /// # Errors
    ///
    /// Returns an error if the method has a lower-case letter, if the head has two different
    /// lengths or is too large, or if a WebSocket is opened with a length.
    pub fn of_http2(head: &http::request::Parts, body_follows: bool) -> Result<Self, BadRequest> {
        check_method(head.method.as_str().as_bytes())?;
        let protocol = head.extensions.get::<h2::ext::Protocol>();
        let opens_websocket = head.method == http::Method::CONNECT
            && protocol.is_some_and(|protocol| protocol.as_str() == "websocket");
        let mut bytes = Vec::with_capacity(256);
        let mut put = |part: &[u8]| Span::append(&mut bytes, part);
        // The same request over HTTP/1 is a GET with `Upgrade` (RFC 8441, section 5).
        let method = put(if opens_websocket {
            b"GET"
        } else {
            head.method.as_str().as_bytes()
        });
        let uri = &head.uri;
        let path = uri.path_and_query().map_or("/", |path| path.as_str());
        let target = put(path.as_bytes());
        let authority = uri.authority().map(|named| put(named.as_str().as_bytes()));
        let mut table = Vec::with_capacity(head.headers.len());
        let mut add = |name: &[u8], value: &[u8]| {
            let field = Field::append(&mut bytes, name, value);
            table.push(field.ok_or(BadRequest::HeadTooLarge)?);
            Ok(())
        };
        for name in head.headers.keys() {
            let values = head.headers.get_all(name);
            let text = name.as_str().as_bytes();
            if name == http::header::COOKIE {
                // A client may send its cookies in several fields (RFC 9113, section 8.2.3).
                let pieces: Vec<&[u8]> = values.iter().map(http::HeaderValue::as_bytes).collect();
                add(text, &pieces.join(&b"; "[..]))?;
                continue;
            }
            for value in values {
                add(text, value.as_bytes())?;
            }
        }
        let mut request = Self {
            present: fields::present_names(&table),
            bytes: bytes.into(),
            table: table.into(),
            version: Version::Http2,
            length: BodyLength::None,
            method,
            target,
            authority,
            path: target,
            opens_websocket,
        };
        request.length = match framing::of_request(request.fields(), Version::Http2)? {
            // The origin would take the first bytes of the WebSocket for a body.
            BodyLength::Length(_) if opens_websocket => return Err(BadRequest::Length),
            BodyLength::None if body_follows && !opens_websocket => BodyLength::Chunked,
            length => length,
        };
        Ok(request)
    }

    /// Returns the method.
    pub fn method(&self) -> &[u8] {
        self.method.in_bytes(&self.bytes)
    }

    /// Returns whether the method is `HEAD`.
    pub(crate) fn is_head(&self) -> bool {
        self.method() == b"HEAD"
    }

    /// Returns the target as sent.
    pub fn target(&self) -> &[u8] {
        self.target.in_bytes(&self.bytes)
    }

    /// Returns the path and query of the target, as sent. Both may be empty.
    pub fn path_and_query(&self) -> &[u8] {
        self.path.in_bytes(&self.bytes)
    }

    /// Returns the authority of an absolute target, or of an HTTP/2 request.
    pub fn authority(&self) -> Option<&[u8]> {
        self.authority.map(|it| it.in_bytes(&self.bytes))
    }

    /// Returns the host that the client names, with its port.
    ///
    /// The authority of an absolute target overrides the field (RFC 9112, section 3.2.2).
    pub(crate) fn named_host(&self) -> Option<&[u8]> {
        self.authority()
            .or_else(|| self.fields().first(FieldName::Host))
    }

    /// Returns the HTTP version.
    pub fn version(&self) -> Version {
        self.version
    }

    /// Returns whether the request is a gRPC call over HTTP/2.
    pub(crate) fn is_grpc(&self) -> bool {
        let has_kind = |content_type| match strip_start(content_type, GRPC) {
            Some(rest) => matches!(rest, [] | [b'+' | b';', ..]),
            None => false,
        };
        let content_type = || self.fields().first(FieldName::ContentType);
        self.version == Version::Http2 && content_type().is_some_and(has_kind)
    }

    /// Returns whether the client opens a WebSocket over HTTP/2 (RFC 8441).
    pub(crate) fn opens_websocket(&self) -> bool {
        self.opens_websocket
    }

    /// Returns how the body is framed.
    pub fn length(&self) -> BodyLength {
        self.length
    }

    /// Returns the fields.
    pub fn fields(&self) -> Fields<'_> {
        Fields {
            head: &self.bytes,
            table: &self.table,
            present: self.present,
        }
    }

    /// Returns whether sending the request twice has the same effect as sending it once.
    ///
    /// See RFC 9110, section 9.2.2.
    pub(crate) fn is_idempotent(&self) -> bool {
        let method = self.method();
        let idempotent: [&[u8]; 6] = [b"GET", b"HEAD", b"OPTIONS", b"TRACE", b"PUT", b"DELETE"];
        idempotent.contains(&method)
    }

    /// Returns whether the client waits for an interim response before it sends the body.
    ///
    /// See RFC 9110, section 10.1.1.
    pub fn expects_continue(&self) -> bool {
        self.version != Version::Http10 && self.fields().has(FieldName::Expect)
    }

    /// Returns whether the client accepts trailers (RFC 9110, section 10.1.4).
    ///
    /// Every HTTP/2 client does.
    pub fn takes_trailers(&self) -> bool {
        match self.version {
            Version::Http10 => false,
            Version::Http2 => true,
            Version::Http11 => self.fields().lists(FieldName::Te, b"trailers"),
        }
    }

    /// Returns whether the connection may carry another request (RFC 9112, section 9.3).
    pub fn keeps_alive(&self) -> bool {
        keeps_alive(self.fields(), self.version)
    }
}

/// Returns whether the sender of these fields keeps its connection open (RFC 9112, section 9.3).
pub(super) fn keeps_alive(fields: Fields<'_>, version: Version) -> bool {
    if !fields.has(FieldName::Connection) {
        return version != Version::Http10;
    }
    let lists = |option| fields.lists(FieldName::Connection, option);
    !lists(b"close") && (version != Version::Http10 || lists(b"keep-alive"))
}

/// Splits a target into its authority, if it is absolute, and its path with the query.
///
/// See RFC 9112, section 3.2.
fn split_target(head: &[u8], target: Span) -> Result<(Option<Span>, Span), BadRequest> {
    let bytes = target.in_bytes(head);
    if memchr::memchr(b'#', bytes).is_some() {
        return Err(BadRequest::TargetByte);
    }
    if bytes.first() == Some(&b'/') || bytes == b"*" {
        return Ok((None, target));
    }
    let scheme = bytes.iter().position(|byte| *byte == b':');
    let (scheme, rest) = bytes.split_at(scheme.ok_or(BadRequest::Target)?);
    let may_follow = |byte: &u8| byte.is_ascii_alphanumeric() || b"+-.".contains(byte);
    let is_scheme =
        scheme.first().is_some_and(u8::is_ascii_alphabetic) && scheme.iter().all(may_follow);
    let rest = rest.strip_prefix(b"://").filter(|_| is_scheme);
    let rest = rest.ok_or(BadRequest::Target)?;
    let end = rest.iter().position(|byte| b"/?".contains(byte));
    let (authority, path) = rest.split_at(end.unwrap_or(rest.len()));
    if authority.is_empty() {
        return Err(BadRequest::Target);
    }
    Ok((Some(Span::of(head, authority)), Span::of(head, path)))
}

/// Rejects a method that some origins take for another one.
///
/// Methods are case-sensitive (RFC 9110, section 9.1). But some servers read `post` as `POST`,
/// while a route for `POST` does not match `post`. No registered method has lower-case letters.
fn check_method(method: &[u8]) -> Result<(), BadRequest> {
    if method.iter().any(u8::is_ascii_lowercase) {
        return Err(BadRequest::Method);
    }
    Ok(())
}

/// Returns a copy of a head in which bytes above ASCII in the target are replaced.
///
/// httparse accepts only ASCII in a target.
fn with_ascii_target(head: &[u8]) -> Vec<u8> {
    let mut text = head.to_vec();
    let after_method = text.iter_mut().skip_while(|byte| **byte != b' ');
    let line = after_method.take_while(|byte| **byte != b'\n');
    line.filter(|byte| !byte.is_ascii())
        .for_each(|byte| *byte = b'x');
    text
}

/// Finds the reason why the parser rejected a head: bytes of its target, or anything else.
fn find_cause(bytes: &[u8]) -> BadRequest {
    let line = first_line(bytes);
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let is_token = |byte: &u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte);
    let method = line.iter().position(|byte| !is_token(byte));
    let (method, rest) = line.split_at(method.unwrap_or(line.len()));
    let rest = rest.strip_prefix(b" ").unwrap_or_default();
    let versions = [b" HTTP/1.1", b" HTTP/1.0"];
    let target = versions
        .iter()
        .find_map(|version| rest.strip_suffix(*version));
    let is_wrong = |byte: &u8| *byte <= b' ' || *byte == 0x7f;
    match target {
        Some(target) if !method.is_empty() && target.iter().any(is_wrong) => BadRequest::TargetByte,
        _ => BadRequest::Malformed,
    }
}

#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;
