//! Selection of the part of a complete answer that a request gets: all, a range, 304 or 416.
//!
//! See RFC 9110, sections 13 and 14, and RFC 9111, section 4.3.2. A *validator* is an entity tag
//! (`ETag`) or a date (`Last-Modified`) of an answer.

use std::ops::Range;

use super::answer::AnswerHead;
use super::date::parse_date;
use crate::http::message::decimal;

/// Conditional fields of a request.
#[derive(Clone, Copy, Debug, Default)]
pub struct Preconditions<'a> {
    /// First line of `If-None-Match`.
    ///
    /// Further lines are ignored: at worst, the client gets an answer in full that it has already.
    pub if_none_match: Option<&'a [u8]>,
    /// `If-Modified-Since`.
    pub if_modified_since: Option<&'a [u8]>,
    /// `Range`.
    pub range: Option<&'a [u8]>,
    /// `If-Range`.
    pub if_range: Option<&'a [u8]>,
}

/// Part of an answer that a request gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Presented {
    /// The whole answer.
    Whole,
    /// A range of the body, with status 206.
    Part(Range<usize>),
    /// Status 304: the client already has the answer.
    NotModified,
    /// Status 416: the body has no such bytes.
    Unsatisfiable,
}

impl Preconditions<'_> {
    /// Decides what a `GET` request gets of an answer with a body of `length` bytes.
    pub fn present(&self, head: &AnswerHead, length: usize) -> Presented {
        // Preconditions count only for a response that would be a success (RFC 9110, section
        // 13.2.1).
        if head.status != 200 {
            return Presented::Whole;
        }
        if self.is_unmodified(head) {
            return Presented::NotModified;
        }
        match self.range.filter(|_| self.allows_range(head)) {
            Some(range) => part(range, length),
            None => Presented::Whole,
        }
    }

    /// Returns whether the client already has this answer, by `If-None-Match` or by date.
    fn is_unmodified(&self, head: &AnswerHead) -> bool {
        if let Some(tags) = self.if_none_match {
            let own = head.fields.first("etag").map(<[u8]>::trim_ascii);
            return is_listed(tags, own);
        }
        let date = |value| parse_date(value, head.arrived);
        let Some(since) = self.if_modified_since.and_then(date) else {
            return false;
        };
        let modified = head.fields.first("last-modified").and_then(date);
        modified.is_some_and(|modified| modified <= since)
    }

    /// Returns whether `If-Range` allows a range: only if it names exactly this answer.
    fn allows_range(&self, head: &AnswerHead) -> bool {
        let Some(validator) = self.if_range.map(<[u8]>::trim_ascii) else {
            return true;
        };
        if validator.starts_with(b"\"") {
            return head.fields.first("etag").map(<[u8]>::trim_ascii) == Some(validator);
        }
        if validator.starts_with(b"W/") {
            return false;
        }
        let parse = |value| parse_date(value, head.arrived);
        let modified = head.fields.first("last-modified").and_then(parse);
        let date = head.fields.first("date").and_then(parse);
        // A date is a strong validator only if it is before the answer's own date (section
        // 8.8.2.2). If the answer has none, the comparison fails: `Some` is above `None`.
        modified < date && modified.is_some() && modified == parse(validator)
    }
}

/// Returns whether a list of entity tags contains `own`, by weak comparison.
///
/// See RFC 9110, section 8.8.3.2.
fn is_listed(tags: &[u8], own: Option<&[u8]>) -> bool {
    if tags.trim_ascii() == b"*" {
        return true;
    }
    let weak = |tag: &[u8]| tag.strip_prefix(b"W/").unwrap_or(tag).to_vec();
    let Some(own) = own.map(weak) else {
        return false;
    };
    let mut rest = tags;
    // Search for quotes, because tags may contain commas.
    while let Some(start) = rest.iter().position(|byte| *byte == b'"') {
        let Some(length) = rest[start + 1..].iter().position(|byte| *byte == b'"') else {
            return false;
        };
        let end = start + length + 2;
        if rest[start..end] == own[..] {
            return true;
        }
        rest = &rest[end..];
    }
    false
}

/// Returns the part that `Range` selects. Several ranges, or an invalid one, get the whole answer.
fn part(range: &[u8], length: usize) -> Presented {
    let Some((unit, set)) = str::from_utf8(range).ok().and_then(|it| it.split_once('=')) else {
        return Presented::Whole;
    };
    let Some((first, last)) = set.trim().split_once('-') else {
        return Presented::Whole;
    };
    // `first-last`, `first-` or `-count`. A number with too many digits is beyond the end of every
    // body.
    let number = |text: &str| Some(decimal(text.as_bytes())?.parse().unwrap_or(usize::MAX));
    let (first, last) = (first.trim(), last.trim());
    let (start, end) = match (number(first), number(last)) {
        (Some(start), Some(last)) if start <= last => (start, last.saturating_add(1)),
        (Some(start), None) if last.is_empty() => (start, length),
        // `-0`: the last zero bytes, which cannot be satisfied.
        (None, Some(0)) if first.is_empty() => (length, length),
        // The last bytes of an empty body are the whole body, which 206 cannot express.
        (None, Some(count)) if first.is_empty() && length > 0 => {
            (length.saturating_sub(count), length)
        }
        _ => return Presented::Whole,
    };
    if !unit.trim().eq_ignore_ascii_case("bytes") {
        return Presented::Whole;
    }
    if start >= length {
        return Presented::Unsatisfiable;
    }
    Presented::Part(start..end.min(length))
}

#[cfg(test)]
mod tests;
