//! Regular expressions of nginx, which are those of PCRE, in the syntax of drip's.

use regex_syntax::ParserBuilder;
use regex_syntax::hir::{Hir, HirKind, Look};

use crate::config::{ByteRegex, PathPattern};

/// A regular expression for paths in drip's syntax.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::tools::import) struct Translated {
    pub(in crate::tools::import) text: String,
    /// Whether it matches the same paths. If not, it matches these and more.
    pub(in crate::tools::import) is_exact: bool,
}

/// Translates the expression of a location; `ignores_case`: of `~*`.
///
/// Returns `None` if drip has no expression for it. Look-around is left out, which makes the
/// expression match more.
pub(in crate::tools::import) fn translate(pattern: &str, ignores_case: bool) -> Option<Translated> {
    let mut reader = Reader {
        rest: pattern,
        text: String::new(),
        is_exact: true,
    };
    if ignores_case {
        reader.text.push_str("(?i)");
    }
    while !reader.rest.is_empty() {
        reader.step()?;
    }
    let Reader { text, is_exact, .. } = reader;
    ByteRegex::new(&text).ok()?;
    Some(Translated { text, is_exact })
}

/// The same expression for the paths that begin with `prefix`.
///
/// Returns `None` if it cannot be written so.
pub(super) fn beneath(prefix: &str, text: &str) -> Option<String> {
    let mut parser = ParserBuilder::new().unicode(false).utf8(false).build();
    let parsed = parser.parse(text).ok()?;
    let parts = match parsed.kind() {
        HirKind::Concat(parts) => parts.iter().map(Hir::kind).collect(),
        whole => vec![whole],
    };
    let written = match parts.as_slice() {
        [HirKind::Look(Look::Start), HirKind::Literal(first), ..]
            if first.0.starts_with(prefix.as_bytes()) =>
        {
            text.to_owned()
        }
        // No match can begin within the prefix.
        [HirKind::Literal(first), ..] if !prefix.as_bytes().contains(first.0.first()?) => {
            format!("^{}(?s:.*)(?:{text})", regex::escape(prefix))
        }
        _ => return None,
    };
    ByteRegex::new(&written).ok()?;
    Some(written)
}

/// The expression of all paths that begin with `prefix`.
pub(super) fn prefix(prefix: &str) -> String {
    format!("^{}", regex::escape(prefix))
}

/// The expression of one path.
pub(super) fn whole(path: &str) -> String {
    format!("^{}\\z", regex::escape(path))
}

/// Whether an expression in drip's syntax matches a path.
pub(super) fn matches(text: &str, path: &str) -> bool {
    ByteRegex::new(text).is_ok_and(|regex| PathPattern::Regex(regex).matches(path.as_bytes()))
}

struct Reader<'p> {
    rest: &'p str,
    text: String,
    is_exact: bool,
}

impl Reader<'_> {
    /// Takes the next part of the expression. `None` if drip cannot have it.
    fn step(&mut self) -> Option<()> {
        let first = self.rest.chars().next()?;
        match first {
            '\\' => self.escape(),
            '[' => self.class(),
            '(' => self.group(),
            // PCRE finds the end before a last line feed, too.
            '$' => {
                self.rest = &self.rest[1..];
                self.text.push_str("\\n?$");
                Some(())
            }
            '*' | '+' | '?' | '}' => {
                self.take(1);
                // A possessive quantifier matches less than this one.
                if let Some(rest) = self.rest.strip_prefix('+') {
                    self.rest = rest;
                    self.is_exact = false;
                }
                Some(())
            }
            '{' => {
                let inside = self.rest[1..].split_once('}')?.0;
                let is_count = inside.starts_with(|c: char| c.is_ascii_digit())
                    && inside.bytes().all(|b| b.is_ascii_digit() || b == b',');
                is_count.then(|| self.take(1 + inside.len()))
            }
            _ => {
                self.take(first.len_utf8());
                // PCRE repeats the last byte of such a character, and drip all of it.
                let is_repeated = self.rest.starts_with(['*', '+', '?', '{']);
                (first.is_ascii() || !is_repeated).then_some(())
            }
        }
    }

    fn take(&mut self, length: usize) {
        let (taken, rest) = self.rest.split_at(length);
        self.text.push_str(taken);
        self.rest = rest;
    }

    fn escape(&mut self) -> Option<()> {
        let escaped = self.rest.chars().nth(1)?;
        match escaped {
            // Words have other bounds in drip with these, and `\v` is one character.
            '<' | '>' => {
                self.text.push(escaped);
                self.rest = &self.rest[2..];
            }
            'v' => return None,
            _ if escaped.is_ascii() => self.take(2),
            _ => return None,
        }
        Some(())
    }

    fn group(&mut self) -> Option<()> {
        for look in ["(?=", "(?!", "(?<=", "(?<!"] {
            if self.rest.starts_with(look) {
                let end = closing(self.rest)?;
                self.rest = &self.rest[end + 1..];
                self.is_exact = false;
                self.text.push_str("(?:)");
                return Some(());
            }
        }
        if let Some(inside) = self.rest.strip_prefix("(?") {
            let end = inside.find([':', ')', '<', '\''])?;
            let flags = inside[..end].strip_prefix('P').unwrap_or(&inside[..end]);
            if !flags.chars().all(|c| "imsU-".contains(c)) {
                return None;
            }
            self.take(2 + end);
            return Some(());
        }
        // `(*...)` is a command of PCRE.
        (!self.rest.starts_with("(*")).then(|| self.take(1))
    }

    /// Takes a class such as `[a-z]`, if its parts mean the same in drip.
    fn class(&mut self) -> Option<()> {
        let (class, is_plain) = class(self.rest)?;
        let length = class.len();
        is_plain.then(|| self.take(length))
    }
}

/// The class at the beginning of an expression, and whether it means the same in drip.
fn class(text: &str) -> Option<(&str, bool)> {
    let mut at = 1 + usize::from(text[1..].starts_with('^'));
    let mut is_plain = text.is_ascii();
    // A bracket at the beginning is one of the characters.
    at += usize::from(text[at..].starts_with(']'));
    loop {
        let rest = text.get(at..)?;
        if rest.starts_with("[:") {
            at += rest.find(":]")? + 2;
            continue;
        }
        match rest.chars().next()? {
            ']' => return Some((&text[..=at], is_plain)),
            '\\' => {
                let escaped = rest.chars().nth(1)?;
                // `\b` is a backspace here, and drip has no such class.
                is_plain &= escaped.is_ascii() && !"bv<>".contains(escaped);
                at += 1 + escaped.len_utf8();
            }
            c => {
                let is_operator = ["&&", "--", "~~"].iter().any(|it| rest.starts_with(it));
                is_plain &= c != '[' && !is_operator;
                at += c.len_utf8();
            }
        }
    }
}

/// Where the group at the beginning of an expression ends.
fn closing(text: &str) -> Option<usize> {
    let (mut depth, mut at) = (0usize, 0);
    loop {
        let rest = text.get(at..)?;
        match rest.chars().next()? {
            '\\' => at += 1 + rest.chars().nth(1)?.len_utf8(),
            '[' => at += class(rest)?.0.len(),
            c => {
                match c {
                    '(' => depth += 1,
                    ')' if depth == 1 => return Some(at),
                    ')' => depth -= 1,
                    _ => {}
                }
                at += c.len_utf8();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn translated(pattern: &str) -> Option<(String, bool)> {
        translate(pattern, false).map(|it| (it.text, it.is_exact))
    }

    #[test]
    fn what_means_the_same_is_kept() {
        for pattern in [
            r"^/u/[0-9]+/",
            r"\.php(/|\z)",
            r"^/(?:a|b){2,3}/[^/]*?x",
            r"^/(?<name>[[:alpha:]_-]+)/",
            r"(?i)\.PNG",
            r"[]a]|[^]b]|[\]c]",
            "^/caf\u{e9}/",
        ] {
            let expected = Some((pattern.to_owned(), true));
            assert_eq!(translated(pattern), expected, "{pattern}");
        }
        let ended = Some((r"\.php\n?$".to_owned(), true));
        assert_eq!(translated(r"\.php$"), ended);
        let free = translate(r"\.php", true).unwrap();
        assert_eq!(free.text, r"(?i)\.php");
    }

    #[test]
    fn what_drip_cannot_look_at_is_left_out_and_told() {
        for (pattern, expected) in [
            (r"/\.(?!well-known)", r"/\.(?:)"),
            (r"/\.(?!well-known(/|[)]\)))x", r"/\.(?:)x"),
            (r"(?<=/)admin", r"(?:)admin"),
            (r"^/a++b", r"^/a+b"),
        ] {
            assert_eq!(
                translated(pattern),
                Some((expected.to_owned(), false)),
                "{pattern}"
            );
        }
    }

    #[test]
    fn what_would_mean_something_else_is_refused() {
        for pattern in [
            r"(a)\1",
            "(?>a)",
            "(?|a|b)",
            "(?R)",
            "(?x) a",
            "[a&&b]",
            "[[]",
            "[a-b--c]",
            "(*UTF8)a",
            "a{",
            "a{,3}",
            r"\v",
            r"[\b]",
            r"\Qa\E",
            r"\h",
            "(",
            "[a",
            "\\",
            "\u{e9}?",
            "[\u{e9}]",
            "(?=a",
            "a{500}{500}",
            "a.{20}b",
        ] {
            assert_eq!(translated(pattern), None, "{pattern}");
        }
    }

    #[test]
    fn an_expression_is_confined_to_a_prefix_if_none_of_its_matches_begins_there() {
        for (prefix, text, expected) in [
            ("/a.b/", r"\.php$", None),
            ("/a/", r"\.php$", Some(r"^/a/(?s:.*)(?:\.php$)")),
            ("/a/", r"(?i)\.php$", Some(r"^/a/(?s:.*)(?:(?i)\.php$)")),
            ("/a/", "^/a/[0-9]", Some("^/a/[0-9]")),
            ("/a/", "^/b/[0-9]", None),
            ("/a/", "/x", None),
            ("/a/", "x|^/y", None),
        ] {
            assert_eq!(
                beneath(prefix, text).as_deref(),
                expected,
                "{prefix} {text}"
            );
        }
    }
}
