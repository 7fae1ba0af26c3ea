//! Lines of a head, before it is parsed.

pub(super) fn first_line(bytes: &[u8]) -> &[u8] {
    let end = memchr::memchr(b'\n', bytes).unwrap_or(bytes.len());
    &bytes[..end]
}

/// Returns where the head at the start of `bytes` ends, if it is complete.
///
/// The head ends after its first empty line, whatever the line endings. `searched`: how many bytes
/// an earlier call searched without finding the end.
pub fn end_of_head(bytes: &[u8], searched: usize) -> Option<usize> {
    let from = searched.saturating_sub(2);
    memchr::memchr_iter(b'\n', bytes.get(from..)?).find_map(|at| match &bytes[from + at + 1..] {
        [b'\n', ..] => Some(from + at + 2),
        [b'\r', b'\n', ..] => Some(from + at + 3),
        _ => None,
    })
}

/// Counts the bytes of empty lines before a request.
///
/// A server ignores an empty line that a client sends after a body (RFC 9112, section 2.2).
pub fn empty_lines(bytes: &[u8]) -> usize {
    let mut at = 0;
    while let [b'\r', b'\n', ..] = &bytes[at..] {
        at += 2;
    }
    at
}
