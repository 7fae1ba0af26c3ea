//! Strict rules for the framing of a message's body: how its end is marked.
//!
//! See RFC 9112, section 6, and RFC 9110, section 8.6.
//!
//! The gateway rejects a request whose framing is ambiguous before any other part of the gateway
//! uses it: a server in front of or behind the gateway might read it differently (request
//! smuggling).

use super::error::{BadRequest, InvalidResponse};
use super::field_name::FieldName;
use super::fields::{Fields, decimal, without_blanks};
use super::version::Version;

/// Length of a message's body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyLength {
    /// No body, and no length in the head.
    None,
    /// A number of bytes.
    Length(u64),
    /// Chunks, each with its own size.
    Chunked,
    /// The body ends with the connection. Only responses have this.
    UntilClose,
}

impl BodyLength {
    /// Returns whether no byte of a body follows the head.
    pub fn is_empty(self) -> bool {
        matches!(self, Self::None | Self::Length(0))
    }

    /// Returns the number of bytes, if it is known.
    pub(crate) fn exact(self) -> Option<u64> {
        match self {
            Self::None => Some(0),
            Self::Length(length) => Some(length),
            Self::Chunked | Self::UntilClose => None,
        }
    }
}

/// Determines the framing of a request's body.
///
/// # Errors
///
/// Returns an error if the length is ambiguous: a length beside a transfer coding, lengths that
/// differ, a length that is not only digits, a coding other than `chunked`, or chunks in HTTP/1.0.
pub fn of_request(fields: Fields<'_>, version: Version) -> Result<BodyLength, BadRequest> {
    if !fields.has(FieldName::ContentLength) && !fields.has(FieldName::TransferEncoding) {
        return Ok(BodyLength::None);
    }
    let mut lengths = fields.all(FieldName::ContentLength);
    let length = match lengths.next() {
        // `3` and `03` differ, too: only one of them is forwarded.
        Some(first) if lengths.all(|other| other == first) => {
            Some(parse_number(first).ok_or(BadRequest::Length)?)
        }
        Some(_) => return Err(BadRequest::Length),
        None => None,
    };
    match (is_chunked(fields, version), length) {
        (Some(false), length) => Ok(length.map_or(BodyLength::None, BodyLength::Length)),
        (Some(true), None) => Ok(BodyLength::Chunked),
        _ => Err(BadRequest::Length),
    }
}

/// Returns whether a body is chunked; `None` for another coding, and for chunks in HTTP/1.0.
fn is_chunked(fields: Fields<'_>, version: Version) -> Option<bool> {
    let mut codings = fields.all(FieldName::TransferEncoding);
    let Some(coding) = codings.next() else {
        return Some(false);
    };
    let is_chunked = coding.eq_ignore_ascii_case(b"chunked") && codings.next().is_none();
    (is_chunked && version != Version::Http10).then_some(true)
}

/// Determines the framing of a response's body, and the length of a body that is not sent.
///
/// A response to `HEAD` or a 304 announces such a length in `Content-Length`.
/// `to_head`: the response is to a `HEAD` request.
///
/// # Errors
///
/// Returns an error if the head has several lengths, or a coding other than `chunked` (RFC 9112,
/// section 6.1). Chunks override a length (section 6.3), and a length that is repeated counts as
/// one.
pub fn of_response(
    fields: Fields<'_>,
    status: u16,
    to_head: bool,
    version: Version,
) -> Result<(BodyLength, Option<u64>), InvalidResponse> {
    let chunked = is_chunked(fields, version).ok_or(InvalidResponse::Coding)?;
    let mut length = None;
    if !chunked {
        for element in fields.elements(FieldName::ContentLength) {
            let announced = parse_number(element).ok_or(InvalidResponse::Length)?;
            if *length.get_or_insert(announced) != announced {
                return Err(InvalidResponse::Length);
            }
        }
    }
    Ok(match (status, length) {
        (100..200 | 204, _) => (BodyLength::None, None),
        (304, length) => (BodyLength::None, length),
        (_, length) if to_head => (BodyLength::None, length),
        _ if chunked => (BodyLength::Chunked, None),
        (_, Some(length)) => (BodyLength::Length(length), None),
        (_, None) => (BodyLength::UntilClose, None),
    })
}

/// Determines the framing of an HTTP/2 response's body, as [`of_response`] does for HTTP/1.
///
/// `ended`: the stream ended with the head. A body without a length is treated as chunked: its end
/// is marked, and trailers may follow it (RFC 9113, section 8.1).
///
/// # Errors
///
/// Returns an error if the head has several lengths, or a length without a body.
pub fn of_http2_response(
    fields: Fields<'_>,
    status: u16,
    to_head: bool,
    ended: bool,
) -> Result<(BodyLength, Option<u64>), InvalidResponse> {
    match of_response(fields, status, to_head, Version::Http2)? {
        (BodyLength::UntilClose, _) if ended => Ok((BodyLength::Length(0), None)),
        (BodyLength::UntilClose, announced) => Ok((BodyLength::Chunked, announced)),
        (BodyLength::Length(1..), _) if ended => Err(InvalidResponse::Length),
        framed => Ok(framed),
    }
}

/// Parses a whole number of digits only: no sign, no list, no overflow.
fn parse_number(text: &[u8]) -> Option<u64> {
    decimal(without_blanks(text))?.parse().ok()
}

/// Returns the bytes up to the first line feed.
pub(super) fn first_line(bytes: &[u8]) -> &[u8] {
    let end = memchr::memchr(b'\n', bytes).unwrap_or(bytes.len());
    &bytes[..end]
}

/// Returns the length of the head at the start of `bytes`, if the head is complete.
///
/// The head ends after its first empty line, whatever the line endings. `searched`: number of bytes
/// that an earlier call searched without finding the end.
pub fn end_of_head(bytes: &[u8], searched: usize) -> Option<usize> {
    // The end may begin with the last two bytes that were searched.
    let from = searched.saturating_sub(2);
    memchr::memchr_iter(b'\n', bytes.get(from..)?).find_map(|line_feed| {
        let next_line = from + line_feed + 1;
        match &bytes[next_line..] {
            [b'\n', ..] => Some(next_line + 1),
            [b'\r', b'\n', ..] => Some(next_line + 2),
            _ => None,
        }
    })
}

/// Returns the length of the empty lines before a request.
///
/// A server ignores an empty line that a client sends after a body (RFC 9112, section 2.2).
pub fn empty_lines(bytes: &[u8]) -> usize {
    let mut length = 0;
    while let [b'\r', b'\n', ..] = &bytes[length..] {
        length += 2;
    }
    length
}
