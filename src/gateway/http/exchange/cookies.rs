//! Parses cookies for keys and conditions of routes, as common programs do.
//!
//! Programs differ in how they read unusual cookies. So only the first cookie of a name counts, and
//! only that one is forwarded to the origin.

use std::borrow::Cow;

use config::{is_same_variable, target};
use smallvec::SmallVec;

use crate::http::message::without_blanks;

/// Returns the value of the first cookie with this name; `None` if there is none.
///
/// Names are compared without regard to case, and as PHP compares them. A value is decoded as far
/// as any common program decodes it: quotes are removed, escapes are resolved, blanks and
/// everything after them are cut. Otherwise a client could write one session in many ways, and each
/// would have its own limit.
pub(super) fn first<'a>(
    lines: impl Iterator<Item = &'a [u8]>,
    name: &str,
) -> Option<Cow<'a, [u8]>> {
    let found = lines
        .flat_map(split)
        .find_map(|piece| value_if_named(piece, name));
    found.map(decode)
}

/// Returns the undecoded values of the cookies with exactly this name in a line.
pub(super) fn exact_values<'a>(line: &'a [u8], name: &str) -> impl Iterator<Item = &'a [u8]> {
    split(line).filter_map(move |piece| {
        let value = without_blanks(piece).strip_prefix(name.as_bytes())?;
        value.strip_prefix(b"=")
    })
}

/// Returns whether the value of another cookie contains a cookie with this name.
///
/// It comes after a comma or a blank there. Only some programs read such a cookie.
pub(super) fn is_inside_another<'a>(lines: impl Iterator<Item = &'a [u8]>, name: &str) -> bool {
    let begins_with_cookie = |text: &[u8]| match text.split_at_checked(name.len()) {
        Some((start, rest)) => {
            is_same_variable(name, start) && without_blanks(rest).starts_with(b"=")
        }
        None => false,
    };
    lines.flat_map(split).any(|piece| {
        let piece = without_blanks(piece);
        let mut separators = memchr::memchr3_iter(b',', b' ', b'\t', piece);
        separators.any(|index| begins_with_cookie(&piece[index + 1..]))
    })
}

/// Splits a `Cookie` line at its semicolons.
fn split(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(|byte| *byte == b';')
}

/// Returns the undecoded value of the cookie in `piece`, if it has this name.
fn value_if_named<'a>(piece: &'a [u8], name: &str) -> Option<&'a [u8]> {
    let equals = memchr::memchr(b'=', piece)?;
    is_same_variable(name, &piece[..equals]).then(|| without_blanks(&piece[equals + 1..]))
}

/// Decodes the value of a cookie as far as any common program does.
fn decode(value: &[u8]) -> Cow<'_, [u8]> {
    if let Some(text) = unquote(value) {
        return Cow::Owned(target::unescape(&text).into_owned());
    }
    let end = memchr::memchr2(b' ', b'\t', value).unwrap_or(value.len());
    target::unescape(&value[..end])
}

/// Decodes a quoted text as Python does: `\"` is a quote, `\101` (octal) is an A.
///
/// Returns `None` if the text does not begin with a quote, or does not end with one.
fn unquote(value: &[u8]) -> Option<Vec<u8>> {
    let mut rest = value.strip_prefix(b"\"")?;
    let mut text = Vec::new();
    loop {
        let (byte, behind) = match rest {
            // The closing quote. What follows it does not count.
            [b'"', ..] => return Some(text),
            [
                b'\\',
                high @ b'0'..=b'3',
                mid @ b'0'..=b'7',
                low @ b'0'..=b'7',
                behind @ ..,
            ] => (
                (high - b'0') << 6 | (mid - b'0') << 3 | (low - b'0'),
                behind,
            ),
            [b'\\', byte, behind @ ..] | [byte, behind @ ..] => (*byte, behind),
            [] => return None,
        };
        text.push(byte);
        rest = behind;
    }
}

/// Finds repeated cookies in the `Cookie` lines of a request, in order.
///
/// Some programs read the last cookie of a name. Others read the first, as keys do. So the origin
/// gets only the first.
pub(super) struct Repeated<'a> {
    /// Names of the cookies to watch.
    names: [&'a [String]; 2],
    /// Indices of the names seen so far.
    seen: SmallVec<[usize; 2]>,
}

impl<'a> Repeated<'a> {
    /// Watches the cookies with these names: those used in keys, and those used in conditions.
    pub(super) fn new(names: [&'a [String]; 2]) -> Self {
        let seen = SmallVec::new();
        Self { names, seen }
    }

    /// Returns the parts of a line without its repeated cookies; `None` if no cookie is repeated.
    ///
    /// The parts together are the line to forward.
    pub(super) fn without_repeated<'l>(
        &mut self,
        line: &'l [u8],
    ) -> Option<SmallVec<[&'l [u8]; 8]>> {
        if self.names.iter().all(|names| names.is_empty()) {
            return None;
        }
        let mut parts = SmallVec::new();
        let mut has_repeated = false;
        for piece in split(line) {
            if self.is_repeated(piece) {
                has_repeated = true;
                continue;
            }
            if !parts.is_empty() {
                parts.push(&b";"[..]);
            }
            parts.push(piece);
        }
        has_repeated.then_some(parts)
    }

    /// Returns whether a cookie of a watched name occurred before. Remembers its name.
    fn is_repeated(&mut self, piece: &[u8]) -> bool {
        let is_named = |name: &String| value_if_named(piece, name).is_some();
        let Some(index) = self.names.into_iter().flatten().position(is_named) else {
            return false;
        };
        let is_known = self.seen.contains(&index);
        if !is_known {
            self.seen.push(index);
        }
        is_known
    }
}

#[cfg(test)]
mod properties;

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str, name: &str) -> Option<String> {
        let found = first([line.as_bytes()].into_iter(), name)?;
        Some(String::from_utf8(found.into_owned()).unwrap())
    }

    #[test]
    fn a_cookie_is_read_as_programs_read_it() {
        // `-`: there is no such cookie.
        for (expected, lines) in [
            (
                "abc",
                "session=abc|a=b;session=abc|a=b;   SESSION   =   abc ;c|session=a%62c|\
                 session=\"abc\"|session=\"a\\142c\"|session=abc x=1",
            ),
            ("x", "session; session=x"),
            (
                "1",
                "session\t=\t1\t; session=2|session=1; session=2|session[a]=1",
            ),
            ("2", "xsession=1; session=2|session_id=1; session=2"),
            ("", "session=; session=2"),
            ("a+b", "session=a+b"),
            ("a\"b", "session=\"a\\\"%62\" x"),
            ("\"abc", "session=\"abc"),
            ("-", "a=1,session=2|%73ession=1"),
        ] {
            for line in lines.split('|') {
                let found = read(line, "session");
                assert_eq!(found.as_deref().unwrap_or("-"), expected, "{line}");
            }
        }
        for line in ["my.key=1", "my key=1", "my[key=1"] {
            assert_eq!(read(line, "my_key").as_deref(), Some("1"), "{line}");
        }
    }

    #[test]
    fn a_cookie_inside_another_one_is_found() {
        let is_inside = |line: &str| is_inside_another([line.as_bytes()].into_iter(), "session");
        let inside = "x=1,session=2|x=1 session=2|session=1 session=2|x=1\tSession =2|\
            a=b; x=1, session=2";
        let others = "session=1| session=1; \tsession=2|x=1,session;=2|x=1,xsession=2|x=1,2 3";
        for (lines, expected) in [(inside, true), (others, false)] {
            for line in lines.split('|') {
                assert_eq!(is_inside(line), expected, "{line}");
            }
        }
    }

    #[test]
    fn only_the_first_cookie_of_a_name_passes() {
        let names = ["session".to_owned(), "user".to_owned()];
        // Lines are separated by `|`.
        for (lines, expected) in [
            ("a=1; session=2; b=3", "a=1; session=2; b=3"),
            ("session=1; session=2", "session=1"),
            ("session=1;user=2; SESSION=3; b=4", "session=1;user=2; b=4"),
            ("session=1|session=2|user=1; user=2", "session=1||user=1"),
            ("b=1; b=2", "b=1; b=2"),
        ] {
            let mut repeated = Repeated::new([&names[..1], &names]);
            let passing = lines.split('|').map(|line| {
                let parts = repeated.without_repeated(line.as_bytes());
                parts.map_or(line.as_bytes().to_vec(), |parts| parts.concat())
            });
            let passing: Vec<_> = passing.collect();
            assert_eq!(passing.join(&b'|'), expected.as_bytes(), "{lines}");
        }
    }
}
