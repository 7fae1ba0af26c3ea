//! Reads the arguments of a query, such as `page` in `?page=2`.

use std::borrow::Cow;

use super::unescape;
use crate::spelling::is_same_variable;

/// Returns the decoded value of an argument in a query; empty if the query does not have it.
///
/// The first argument of the name counts. Names are compared decoded, without case, and as PHP
/// compares them: otherwise `?%6Bey=1` would bypass a limit by `key`. A semicolon ends an argument
/// like `&`: some programs treat it so, and clients escape it in values.
pub fn argument<'a>(query: &'a [u8], name: &str) -> Cow<'a, [u8]> {
    // Skips arguments without `=`, which have no value.
    let value = values_of(query, name).find_map(|value| value);
    value.map_or(Cow::Borrowed(&[]), decoded)
}

/// Returns an argument as [`argument`] does; `None` if the query does not have it.
pub fn given_argument<'a>(query: &'a [u8], name: &str) -> Option<Cow<'a, [u8]>> {
    values_of(query, name).next()?;
    Some(argument(query, name))
}

/// Returns whether a query has several arguments of this name.
///
/// Then some programs read the first one, others the last one or all of them.
pub fn has_several(query: &[u8], name: &str) -> bool {
    values_of(query, name).nth(1).is_some()
}

/// Returns the encoded values of all arguments of this name; `None` for one without `=`.
fn values_of<'a>(query: &'a [u8], name: &str) -> impl Iterator<Item = Option<&'a [u8]>> {
    let pairs = query.split(|byte| matches!(byte, b'&' | b';'));
    pairs.filter_map(move |pair| {
        let (found, value) = match memchr::memchr(b'=', pair) {
            Some(equals) => (&pair[..equals], Some(&pair[equals + 1..])),
            None => (pair, None),
        };
        is_named(found, name).then_some(value)
    })
}

/// Returns whether an encoded name in a query is `name`, as [`argument`] compares them.
fn is_named(found: &[u8], name: &str) -> bool {
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    if found.iter().all(is_plain) {
        return found.eq_ignore_ascii_case(name.as_bytes());
    }
    // Fast path: decoding never makes a name longer.
    found.len() >= name.len() && is_same_variable(name, &decoded(found))
}

/// Decodes a name or a value as programs do: `+` is a blank.
fn decoded(raw: &[u8]) -> Cow<'_, [u8]> {
    if memchr::memchr(b'+', raw).is_none() {
        return unescape(raw);
    }
    let blank = |byte: &u8| if *byte == b'+' { b' ' } else { *byte };
    let with_blanks: Vec<u8> = raw.iter().map(blank).collect();
    Cow::Owned(unescape(&with_blanks).into_owned())
}
