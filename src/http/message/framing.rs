//! How the body of a message is framed, read strictly (RFC 9112, section 6; RFC 9110, section 8.6).
//!
//! A request that two readers could take for two different ones is refused before anybody acts on it: whatever stands
//! before or behind the gateway may pick the other reading.

use super::fields::{FieldName, Fields, without_blanks};
use super::request::{BadRequest, Version};
use super::response::InvalidResponse;

/// How long the body of a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyLength {
    /// There is none, and nothing in the head says so.
    None,
    /// That many bytes.
    Length(u64),
    /// Chunks say so as they come.
    Chunked,
    /// It ends with the connection; of answers only.
    UntilClose,
}

impl BodyLength {
    /// Whether no byte of a body follows the head.
    #[must_use]
    pub fn is_empty(self) -> bool {
        matches!(self, Self::None | Self::Length(0))
    }

    /// The number of bytes, where it is known.
    #[must_use]
    pub fn exact(self) -> Option<u64> {
        match self {
            Self::None => Some(0),
            Self::Length(length) => Some(length),
            Self::Chunked | Self::UntilClose => None,
        }
    }
}

/// How the body of a request is framed.
///
/// # Errors
///
/// Where its length could be read in two ways: a length beside a transfer coding, lengths that differ, one that is more
/// than digits, a coding other than `chunked`, or chunks in HTTP/1.0.
pub fn of_request(fields: Fields<'_>, version: Version) -> Result<BodyLength, BadRequest> {
    if !fields.has(FieldName::ContentLength) && !fields.has(FieldName::TransferEncoding) {
        return Ok(BodyLength::None);
    }
    let mut lengths = fields.all(FieldName::ContentLength);
    let length = match lengths.next() {
        // Also `3` and `03` are two: what goes on is one of them.
        Some(first) if lengths.all(|other| other == first) => {
            Some(number(first).ok_or(BadRequest::Length)?)
        }
        Some(_) => return Err(BadRequest::Length),
        None => None,
    };
    let mut codings = fields.all(FieldName::TransferEncoding);
    let Some(coding) = codings.next() else {
        return Ok(length.map_or(BodyLength::None, BodyLength::Length));
    };
    let is_chunked = coding.eq_ignore_ascii_case(b"chunked") && codings.next().is_none();
    if !is_chunked || length.is_some() || version == Version::Http10 {
        return Err(BadRequest::Length);
    }
    Ok(BodyLength::Chunked)
}

/// How the body of an answer with this `status` is framed, and the length that it tells of a body that does not follow;
/// `to_head`: it answers `HEAD`.
///
/// # Errors
///
/// Where it tells several lengths, or is coded otherwise than in chunks (RFC 9112, section 6.1). Chunks overrule a length
/// (section 6.3), and a length told several times is one.
pub fn of_response(
    fields: Fields<'_>,
    status: u16,
    to_head: bool,
    version: Version,
) -> Result<(BodyLength, Option<u64>), InvalidResponse> {
    let mut codings = fields.all(FieldName::TransferEncoding);
    let chunked = match codings.next() {
        None => false,
        Some(coding) => {
            let is_chunked = coding.eq_ignore_ascii_case(b"chunked") && codings.next().is_none();
            if !is_chunked || version == Version::Http10 {
                return Err(InvalidResponse::Coding);
            }
            true
        }
    };
    let mut length = None;
    if !chunked {
        for told in fields.elements(FieldName::ContentLength) {
            let told = number(told).ok_or(InvalidResponse::Length)?;
            if length.is_some_and(|before| before != told) {
                return Err(InvalidResponse::Length);
            }
            length = Some(told);
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

/// A whole number in digits alone: no sign, no list, nothing that overflows.
fn number(text: &[u8]) -> Option<u64> {
    let text = without_blanks(text);
    let is_number = !text.is_empty() && text.iter().all(u8::is_ascii_digit);
    let text = str::from_utf8(text).ok().filter(|_| is_number)?;
    text.parse().ok()
}
