use std::borrow::Cow;

use super::unescape;
use crate::spelling::is_same_variable;

/// The value of an argument in a query, decoded; empty if the query does not have it.
///
/// The first one counts. Names are compared decoded, without regard to case, and as PHP compares
/// them: otherwise `?%6Bey=1` would bypass a limit by `key`. A semicolon ends an argument, as `&`
/// does: it does so in some programs, and clients escape it in values.
pub fn argument<'a>(query: &'a [u8], name: &str) -> Cow<'a, [u8]> {
    let value = all(query, name).find_map(|value| value);
    value.map_or(Cow::Borrowed(&[]), decoded)
}

/// The value of an argument as [`argument`] has it; `None` if the query has no such argument.
pub fn given_argument<'a>(query: &'a [u8], name: &str) -> Option<Cow<'a, [u8]>> {
    all(query, name).next()?;
    Some(argument(query, name))
}

/// Whether a query has several arguments of this name.
///
/// Some programs read the first then, others the last, or all of them.
pub fn has_several(query: &[u8], name: &str) -> bool {
    all(query, name).nth(1).is_some()
}

/// The values of all arguments of this name, not decoded; `None`: one has no `=`.
fn all<'a>(query: &'a [u8], name: &str) -> impl Iterator<Item = Option<&'a [u8]>> {
    let pairs = query.split(|byte| matches!(byte, b'&' | b';'));
    pairs.filter_map(move |pair| {
        let (found, value) = match memchr::memchr(b'=', pair) {
            Some(at) => (&pair[..at], Some(&pair[at + 1..])),
            None => (pair, None),
        };
        is_named(found, name).then_some(value)
    })
}

fn is_named(found: &[u8], name: &str) -> bool {
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    if found.iter().all(is_plain) {
        return found.eq_ignore_ascii_case(name.as_bytes());
    }
    // Nothing makes a name longer.
    found.len() >= name.len() && is_same_variable(name, &decoded(found))
}

/// A name or a value as programs read it: `+` is a blank.
fn decoded(raw: &[u8]) -> Cow<'_, [u8]> {
    if memchr::memchr(b'+', raw).is_none() {
        return unescape(raw);
    }
    let blank = |byte: &u8| if *byte == b'+' { b' ' } else { *byte };
    let with_blanks: Vec<u8> = raw.iter().map(blank).collect();
    Cow::Owned(unescape(&with_blanks).into_owned())
}
