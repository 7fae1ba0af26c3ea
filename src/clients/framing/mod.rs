//! Where one request of a connection ends and the next begins, read strictly (RFC 9112, sections 2.2, 5 and 6).
//!
//! hyper parses what is let through here. It is more lenient than a proxy may be: it takes a bare line feed for the end
//! of a line, and where a length and a transfer coding contradict each other it picks one. Whoever stands before or
//! behind might pick the other, and see other requests than we do; so a request that could be read in two ways is
//! refused before anybody reads it.

mod chunks;

#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;

use memchr::{memchr, memchr_iter};

use chunks::Chunks;

/// Lines of a head, the first not counted, past which it is too large.
pub(super) const MOST_FIELDS: usize = 96;

/// Why a request is not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// It is malformed, or could be read in two ways.
    Malformed,
    /// It did not come in time.
    TooSlow,
    /// Its head is too large.
    HeadTooLarge,
}

impl Refusal {
    pub(super) fn status(self) -> u16 {
        match self {
            Self::Malformed => 400,
            Self::TooSlow => 408,
            Self::HeadTooLarge => 431,
        }
    }
}

/// What still belongs to a request after its head.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Body {
    /// So many bytes.
    Length(u64),
    Chunked(Chunks),
}

impl Body {
    pub(super) fn is_over(&self) -> bool {
        match self {
            Self::Length(left) => *left == 0,
            Self::Chunked(chunks) => chunks.is_over(),
        }
    }

    /// How many of `bytes`, which come next on the connection, belong to this body. From there on it is over.
    ///
    /// # Errors
    ///
    /// Where they are no proper chunks.
    pub(super) fn take(&mut self, bytes: &[u8]) -> Result<usize, Refusal> {
        match self {
            Self::Length(left) => {
                let taken = usize::try_from(*left)
                    .unwrap_or(usize::MAX)
                    .min(bytes.len());
                *left -= taken as u64;
                Ok(taken)
            }
            Self::Chunked(chunks) => chunks.take(bytes),
        }
    }
}

/// Where the head that `bytes` begin with ends, if it does yet: after its first empty line, however lines end.
/// The first `searched` bytes were looked through before, in vain.
pub(super) fn end_of_head(bytes: &[u8], searched: usize) -> Option<usize> {
    let from = searched.saturating_sub(2);
    memchr_iter(b'\n', bytes.get(from..)?).find_map(|at| match &bytes[from + at + 1..] {
        [b'\n', ..] => Some(from + at + 2),
        [b'\r', b'\n', ..] => Some(from + at + 3),
        _ => None,
    })
}

/// How many bytes of empty lines stand before a request; one that a client sends after a body is to be ignored (RFC
/// 9112, section 2.2).
pub(super) fn empty_lines(bytes: &[u8]) -> usize {
    let mut at = 0;
    while let [b'\r', b'\n', ..] = &bytes[at..] {
        at += 2;
    }
    at
}

/// Reads what a whole head says of the body after it.
///
/// # Errors
///
/// Where it can be read in more than one way, or has too many lines. That each of its fields is proper otherwise is left
/// to the parser.
pub(super) fn body_after(head: &[u8]) -> Result<Body, Refusal> {
    let mut lines = Lines(head);
    let first = lines.next().ok_or(Refusal::Malformed)??;
    if memchr(b'#', first).is_some() {
        // A target has no fragment (RFC 9112, section 3.2), and the parser would cut it off.
        return Err(Refusal::Malformed);
    }
    let is_http_10 = first.ends_with(b"HTTP/1.0");
    let (mut length, mut chunked) = (None, false);
    for (index, line) in lines.enumerate() {
        let line = line?;
        if line.is_empty() {
            break;
        }
        if index == MOST_FIELDS {
            return Err(Refusal::HeadTooLarge);
        }
        let colon = memchr(b':', line).ok_or(Refusal::Malformed)?;
        let (name, value) = (&line[..colon], &line[colon + 1..]);
        // Of an obsolete fold, or a space before the colon, each reader makes something else.
        if name.first().is_none_or(u8::is_ascii_whitespace)
            || name.last().is_some_and(u8::is_ascii_whitespace)
        {
            return Err(Refusal::Malformed);
        }
        if name.eq_ignore_ascii_case(b"content-length") {
            let told = number(without_blanks(value))?;
            if length.is_some_and(|before| before != told) {
                return Err(Refusal::Malformed);
            }
            length = Some(told);
        } else if name.eq_ignore_ascii_case(b"transfer-encoding") {
            if chunked || is_http_10 || !without_blanks(value).eq_ignore_ascii_case(b"chunked") {
                return Err(Refusal::Malformed);
            }
            chunked = true;
        }
    }
    match (length, chunked) {
        (Some(_), true) => Err(Refusal::Malformed),
        (None, true) => Ok(Body::Chunked(Chunks::default())),
        (length, false) => Ok(Body::Length(length.unwrap_or(0))),
    }
}

/// The lines of a head, each without the carriage return and line feed that it must end with.
struct Lines<'a>(&'a [u8]);

impl<'a> Iterator for Lines<'a> {
    type Item = Result<&'a [u8], Refusal>;

    fn next(&mut self) -> Option<Self::Item> {
        let end = memchr(b'\n', self.0)?;
        let line = &self.0[..end];
        self.0 = &self.0[end + 1..];
        Some(line.strip_suffix(b"\r").ok_or(Refusal::Malformed))
    }
}

/// A field's value without the blanks around it (RFC 9112, section 5): a form feed, or a carriage return without its line
/// feed, is not one of them.
fn without_blanks(mut value: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] | [rest @ .., b' ' | b'\t'] = value {
        value = rest;
    }
    value
}

/// A whole number in digits alone: no sign, no list, nothing that overflows.
fn number(text: &[u8]) -> Result<u64, Refusal> {
    let digits = text.iter().all(u8::is_ascii_digit);
    let text = str::from_utf8(text).ok().filter(|_| digits);
    text.and_then(|text| text.parse().ok())
        .ok_or(Refusal::Malformed)
}
