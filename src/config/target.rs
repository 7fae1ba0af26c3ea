//! Normalizes the path of a request for comparison, and escapes it again for the origin.
//!
//! `query` reads the arguments of a query.

mod query;

use std::borrow::Cow;

use percent_encoding::{percent_decode, percent_encode_byte};

pub use query::{argument, given_argument, has_several};

/// Returns the path as routes and `$uri` see it, normalized as in nginx.
///
/// Escapes are decoded, `//` is merged, `.` and `..` are resolved. Otherwise `/%6Cogin` would
/// bypass the limits of `/login`. The origin gets the target as it was sent, unless its route
/// rewrites paths: then it gets the normalized form.
pub fn path(bytes: &[u8]) -> Cow<'_, [u8]> {
    let is_normal = memchr::memchr(b'%', bytes).is_none()
        && !bytes.windows(2).any(|two| two == b"//" || two == b"/.");
    if is_normal {
        Cow::Borrowed(bytes)
    } else {
        Cow::Owned(resolve(&unescape(bytes)))
    }
}

/// Returns whether a path has a zero byte once it is decoded.
///
/// Most programs that use such a path as a file name stop reading at the zero byte. A regular
/// expression with `$`, or an exact path, does not see that end.
pub fn has_nul(path: &[u8]) -> bool {
    // An escape never contains another `%`, so `%00` is always a zero byte.
    let mut percents = memchr::memchr_iter(b'%', path);
    percents.any(|at| path[at..].starts_with(b"%00")) || memchr::memchr(0, path).is_some()
}

/// Returns whether a path, once it is decoded, has neither empty segments nor `.` or `..`.
pub(crate) fn is_resolved(path: &[u8]) -> bool {
    let decoded = unescape(path);
    resolve(&decoded) == *decoded
}

/// Returns whether a byte may stand in a path without an escape (RFC 3986, section 3.3).
fn is_path_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"/-._~!$&'()*+,;=:@".contains(&byte)
}

/// Returns whether a path can be sent unchanged: it has only bytes of a path, and escapes.
pub(crate) fn is_sendable(path: &[u8]) -> bool {
    let mut parts = path.split(|byte| *byte == b'%').enumerate();
    parts.all(|(index, part)| {
        // Each part except the first one begins with the two digits of an escape.
        let digit_count = if index == 0 { 0 } else { 2 };
        let split = part.split_at_checked(digit_count);
        split.is_some_and(|(digits, rest)| {
            digits.iter().all(u8::is_ascii_hexdigit) && rest.iter().all(|byte| is_path_byte(*byte))
        })
    })
}

/// Escapes a decoded path for sending. Calls `put` with its pieces, one after another.
///
/// Every byte that may not stand in a path is escaped. So the origin reads the path exactly as drip
/// compared it.
pub fn encode(path: &[u8], put: &mut dyn FnMut(&[u8])) {
    // A piece is a run of bytes that are sent unchanged, or one byte that is escaped.
    let are_sendable = |one: &u8, next: &u8| is_path_byte(*one) && is_path_byte(*next);
    for piece in path.chunk_by(are_sendable) {
        match piece {
            [byte] if !is_path_byte(*byte) => put(percent_encode_byte(*byte).as_bytes()),
            sendable => put(sendable),
        }
    }
}

/// Decodes all escapes of the form `%XX`.
pub fn unescape(raw: &[u8]) -> Cow<'_, [u8]> {
    percent_decode(raw).into()
}

/// Removes empty segments and `.` from a decoded path, and applies `..`.
fn resolve(path: &[u8]) -> Vec<u8> {
    let mut kept: Vec<&[u8]> = Vec::new();
    let mut segments = path.split(|byte| *byte == b'/').skip(1).peekable();
    let mut ends_in_slash = false;
    while let Some(segment) = segments.next() {
        match segment {
            b"." | b"" => {}
            b".." => {
                kept.pop();
            }
            named => kept.push(named),
        }
        // The last segment decides: the paths `/a/`, `/a/.` and `/a/b/..` all become `/a/`.
        ends_in_slash = segments.peek().is_none() && matches!(segment, b"" | b"." | b"..");
    }
    let mut resolved = Vec::with_capacity(path.len());
    for segment in kept {
        resolved.push(b'/');
        resolved.extend_from_slice(segment);
    }
    if ends_in_slash || resolved.is_empty() {
        resolved.push(b'/');
    }
    resolved
}

#[cfg(test)]
mod properties;
