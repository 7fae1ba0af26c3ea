//! Head of a response, parsed in the buffer that it was read into.
//!
//! `framing` determines the length of its body.

use std::mem::MaybeUninit;

use super::error::InvalidResponse;
use super::fields::{self, Field, FieldTable, Fields, MAX_RESPONSE_FIELDS, Span};
use super::framing::{self, BodyLength};
use super::request::keeps_alive;
use super::version::Version;

/// Head of a response, in the buffer that it was read into.
#[derive(Debug)]
pub struct ResponseHead<'a> {
    /// Bytes of the head. The ranges below refer to them.
    head: &'a [u8],
    /// Ranges of the fields.
    table: &'a [Field],
    /// Bit set of the names that occur.
    present: u32,
    /// Range of the reason phrase.
    reason: Span,
    /// Status code, from 100 to 999.
    pub status: u16,
    /// HTTP/1.0, 1.1 or 2.
    pub version: Version,
    /// Framing of the body.
    pub length: BodyLength,
    /// `Content-Length` of a body that is not sent, as with `HEAD` and a 304.
    pub announced_length: Option<u64>,
}

impl<'a> ResponseHead<'a> {
    /// Parses the head at the start of `bytes`. Returns the head and its length.
    ///
    /// Returns `None` if the head is not complete yet. `table`: buffer for its fields. `to_head`:
    /// the response is to a `HEAD` request. A bare line feed also ends a line: this is safe because
    /// the gateway writes a new head.
    ///
    /// # Errors
    ///
    /// Returns an error if the head is malformed, or if the length of the body is ambiguous.
    pub fn parse(
        bytes: &'a [u8],
        table: &'a mut FieldTable,
        to_head: bool,
    ) -> Result<Option<(Self, usize)>, InvalidResponse> {
        let mut fields = [const { MaybeUninit::uninit() }; MAX_RESPONSE_FIELDS];
        let mut parsed = httparse::Response::new(&mut []);
        let mut parser = httparse::ParserConfig::default();
        parser.allow_multiple_spaces_in_response_status_delimiters(false);
        let end = match parser.parse_response_with_uninit_headers(&mut parsed, bytes, &mut fields) {
            Ok(httparse::Status::Complete(end)) => end,
            Ok(httparse::Status::Partial) => return Ok(None),
            Err(httparse::Error::TooManyHeaders) => return Err(InvalidResponse::HeadTooLarge),
            Err(_) => return Err(InvalidResponse::Malformed),
        };
        let head = &bytes[..end];
        let present = fields::fill(table, head, parsed.headers);
        let present = present.ok_or(InvalidResponse::HeadTooLarge)?;
        let status = parsed.code.filter(|code| *code >= 100);
        let mut response = Self {
            head,
            present,
            table,
            reason: Span::of(head, parsed.reason.unwrap_or_default().as_bytes()),
            status: status.ok_or(InvalidResponse::Malformed)?,
            version: Version::of_minor(parsed.version),
            length: BodyLength::None,
            announced_length: None,
        };
        (response.length, response.announced_length) = framing::of_response(
            response.fields(),
            response.status,
            to_head,
            response.version,
        )?;
        Ok(Some((response, end)))
    }

    /// Builds the head of an HTTP/2 response. Its fields are written to the empty `bytes`.
    ///
    /// `table`: buffer for its fields. `ended`: the stream ended with the head.
    ///
    /// # Errors
    ///
    /// Returns an error if the length of the body is ambiguous, or if the response is a 101, which
    /// HTTP/2 does not have (RFC 9113, section 8.6).
    pub fn of_http2(
        response: &http::Response<()>,
        bytes: &'a mut Vec<u8>,
        table: &'a mut FieldTable,
        to_head: bool,
        ended: bool,
    ) -> Result<Self, InvalidResponse> {
        let status = response.status().as_u16();
        if status == 101 {
            return Err(InvalidResponse::Protocol);
        }
        if response.headers().len() > MAX_RESPONSE_FIELDS {
            return Err(InvalidResponse::HeadTooLarge);
        }
        table.clear();
        for (name, value) in response.headers() {
            let field = Field::append(bytes, name.as_str().as_bytes(), value.as_bytes());
            table.push(field.ok_or(InvalidResponse::HeadTooLarge)?);
        }
        let mut response = Self {
            head: bytes,
            present: fields::present_names(table),
            table,
            reason: Span::new(0, 0),
            status,
            version: Version::Http2,
            length: BodyLength::None,
            announced_length: None,
        };
        (response.length, response.announced_length) =
            framing::of_http2_response(response.fields(), status, to_head, ended)?;
        Ok(response)
    }

    /// Returns the fields.
    pub fn fields(&self) -> Fields<'_> {
        Fields {
            head: self.head,
            table: self.table,
            present: self.present,
        }
    }

    /// Returns the reason phrase, which may be empty.
    pub fn reason(&self) -> &[u8] {
        self.reason.in_bytes(self.head)
    }

    /// Returns whether another response follows this one (RFC 9110, section 15.2).
    ///
    /// A 101 is the last response.
    pub fn is_interim(&self) -> bool {
        matches!(self.status, 100..200) && self.status != 101
    }

    /// Returns whether the connection may carry another request.
    pub fn keeps_alive(&self) -> bool {
        keeps_alive(self.fields(), self.version) && self.length != BodyLength::UntilClose
    }
}

#[cfg(test)]
mod tests;
