//! The head of an answer, parsed where it was read.

use std::mem::MaybeUninit;

use thiserror::Error;

use super::fields::{self, FieldTable, Fields, MAX_RESPONSE_FIELDS, Span};
use super::framing::{self, BodyLength};
use super::request::{Version, keeps_alive};

/// What is wrong with an origin's answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum InvalidResponse {
    /// It is no HTTP/1.
    #[error("it is not HTTP/1")]
    Malformed,
    /// Its head is longer than `max_header_size`, or has too many fields.
    #[error("its head is too large")]
    HeadTooLarge,
    /// Its body is coded otherwise than in chunks: nobody asked for it (RFC 9112, section 6.1).
    #[error("its body is coded otherwise than in chunks")]
    Coding,
    /// It tells several lengths (RFC 9110, section 8.6).
    #[error("it tells several lengths")]
    Length,
    /// It changes to a protocol that was not asked for.
    #[error("it changes to a protocol that was not asked for")]
    Protocol,
    /// A chunk of its body is none, or a trailer is malformed.
    #[error("its body is not in chunks as it says")]
    Chunks,
}

/// An answer's head, in the buffer that it was read to.
#[derive(Debug)]
pub struct ResponseHead<'a> {
    head: &'a [u8],
    table: FieldTable,
    present: u32,
    reason: Span,
    /// From 100 to 999.
    pub status: u16,
    /// HTTP/1.0 or 1.1.
    pub version: Version,
    /// How the body after it is framed.
    pub length: BodyLength,
    /// The length that it tells of a body that does not follow, as after `HEAD` and with a 304.
    pub told_length: Option<u64>,
}

impl<'a> ResponseHead<'a> {
    /// Parses the head that `bytes` begin with, and says how long it is; `None` where it has not come whole. `to_head`:
    /// it answers `HEAD`. Line feeds alone are taken for ends of lines, since what goes on is written anew.
    ///
    /// # Errors
    ///
    /// Where it is malformed, or does not say how long its body is in one way.
    pub fn parse(bytes: &'a [u8], to_head: bool) -> Result<Option<(Self, usize)>, InvalidResponse> {
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
        let table =
            fields::lenient_table(head, parsed.headers).ok_or(InvalidResponse::HeadTooLarge)?;
        let status = parsed.code.filter(|code| *code >= 100);
        let mut response = Self {
            head,
            present: fields::present(&table),
            table,
            reason: Span::of(head, parsed.reason.unwrap_or_default().as_bytes()),
            status: status.ok_or(InvalidResponse::Malformed)?,
            version: Version::of_minor(parsed.version),
            length: BodyLength::None,
            told_length: None,
        };
        (response.length, response.told_length) = framing::of_response(
            response.fields(),
            response.status,
            to_head,
            response.version,
        )?;
        Ok(Some((response, end)))
    }

    /// Its fields.
    #[must_use]
    pub fn fields(&self) -> Fields<'_> {
        Fields {
            head: self.head,
            table: &self.table,
            present: self.present,
        }
    }

    /// The words behind the status; may be empty.
    #[must_use]
    pub fn reason(&self) -> &[u8] {
        self.reason.in_bytes(self.head)
    }

    /// Whether another answer follows it (RFC 9110, section 15.2); 101 is the last one.
    #[must_use]
    pub fn is_interim(&self) -> bool {
        matches!(self.status, 100..200) && self.status != 101
    }

    /// Whether its connection may carry another request.
    #[must_use]
    pub fn keeps_alive(&self) -> bool {
        keeps_alive(self.fields(), self.version) && self.length != BodyLength::UntilClose
    }
}

#[cfg(test)]
mod tests;
