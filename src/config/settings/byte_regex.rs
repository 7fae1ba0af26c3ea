use std::fmt;
use std::hash::{Hash, Hasher};

use regex::bytes::{Regex, RegexBuilder};
use regex_syntax::ParserBuilder;
use regex_syntax::hir::{Hir, HirKind, Look};
use thiserror::Error;

/// A regular expression for bytes, such as those of a path: `.` is any of them but a line feed,
/// and `\\d`, `\\w` and `(?i)` mean ASCII.
#[derive(Clone)]
pub struct ByteRegex {
    text: String,
    compiled: Regex,
}

impl ByteRegex {
    /// The longest text of a regular expression, in bytes.
    pub const MAX_REGEX_SIZE: usize = 1000;
    /// The most memory that a compiled one may take, in bytes.
    ///
    /// Each thread that compares with it may take four times as much for what it has found so far.
    pub const LARGEST: usize = 256 << 10;

    /// Compiles a regular expression.
    ///
    /// # Errors
    ///
    /// Returns an error if it is too long, is none, or would be too large.
    pub fn new(text: &str) -> Result<Self, ByteRegexError> {
        if text.len() > Self::MAX_REGEX_SIZE {
            return Err(ByteRegexError::TooLong);
        }
        let compiled = RegexBuilder::new(text)
            .unicode(false)
            .size_limit(Self::LARGEST)
            .dfa_size_limit(4 * Self::LARGEST)
            .build();
        match compiled {
            Ok(compiled) => Ok(Self {
                text: text.to_owned(),
                compiled,
            }),
            Err(regex::Error::CompiledTooBig(_)) => Err(ByteRegexError::TooLarge),
            Err(error) => Err(ByteRegexError::Syntax(reason(&error))),
        }
    }

    /// Whether it finds a match, in time in proportion to the length of `bytes`.
    #[must_use]
    pub fn is_match(&self, bytes: &[u8]) -> bool {
        self.compiled.is_match(bytes)
    }

    /// What a group of the expression takes of `bytes`; empty if there is no such group, or it
    /// takes no part in the match.
    ///
    /// `group`: a name, or a number from 1.
    #[must_use]
    pub fn capture<'b>(&self, bytes: &'b [u8], group: &str) -> &'b [u8] {
        let found = self.compiled.captures(bytes).and_then(|captures| {
            let by_number = group.parse().ok().and_then(|number| captures.get(number));
            by_number.or_else(|| captures.name(group))
        });
        found.map_or(&[], |found| found.as_bytes())
    }

    /// Whether the expression has a group with this name, or this number.
    #[must_use]
    pub fn has_group(&self, group: &str) -> bool {
        let is_number = group
            .parse()
            .is_ok_and(|it: usize| it < self.compiled.captures_len());
        is_number
            || self
                .compiled
                .capture_names()
                .flatten()
                .any(|name| name == group)
    }

    pub(super) fn begins_with(&self, text: &str) -> bool {
        let mut parser = ParserBuilder::new().unicode(false).utf8(false).build();
        // It was parsed before, when it was compiled.
        let parsed = parser.parse(&self.text);
        let parts = match parsed.as_ref().map(Hir::kind) {
            Ok(HirKind::Concat(parts)) => parts.as_slice(),
            Ok(_) | Err(_) => return false,
        };
        let mut kinds = parts.iter().map(Hir::kind);
        let is_at_start = kinds.next() == Some(&HirKind::Look(Look::Start));
        let first = kinds.next();
        is_at_start
            && matches!(first, Some(HirKind::Literal(it)) if it.0.starts_with(text.as_bytes()))
    }
}

/// The last line of the message of the crate, which says what is wrong; the others show where.
fn reason(error: &regex::Error) -> String {
    let text = error.to_string();
    let last = text.lines().last().unwrap_or_default();
    last.strip_prefix("error: ").unwrap_or(last).to_owned()
}

/// Why a text is not a regular expression for paths.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ByteRegexError {
    /// Longer than [`ByteRegex::MAX_REGEX_SIZE`].
    #[error(
        "a regular expression has at most {} bytes; write several routes",
        ByteRegex::MAX_REGEX_SIZE
    )]
    TooLong,
    /// Larger than [`ByteRegex::LARGEST`] when compiled.
    #[error(
        "this regular expression takes more than {} KB when it is compiled; lower the counts in {{}} or write several routes",
        ByteRegex::LARGEST >> 10
    )]
    TooLarge,
    /// No regular expression of the crate `regex`, for this reason.
    #[error("this is not a regular expression of drip: {0}")]
    Syntax(String),
}

impl fmt::Debug for ByteRegex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ByteRegex").field(&self.text).finish()
    }
}

impl PartialEq for ByteRegex {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for ByteRegex {}

impl Hash for ByteRegex {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.text.hash(state);
    }
}

impl fmt::Display for ByteRegex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_large_or_no_regular_expression_is_refused() {
        let error = |text: &str| ByteRegex::new(text).unwrap_err().to_string();
        assert!(
            error("a(?=b)").contains("look-around"),
            "{}",
            error("a(?=b)")
        );
        assert!(error("(").contains("unclosed group"), "{}", error("("));
        assert!(error(r"\p{L}").contains("not a regular expression"));
        assert_eq!(
            ByteRegex::new(&"a".repeat(1001)).unwrap_err(),
            ByteRegexError::TooLong
        );
        assert_eq!(
            ByteRegex::new("(a{500}){500}").unwrap_err(),
            ByteRegexError::TooLarge
        );
    }

    #[test]
    fn groups_have_names_and_numbers() {
        let regex = ByteRegex::new("^/u/(?<user>[0-9]+)(/x)?").unwrap();
        for (path, group, expected) in [
            ("/u/12/x", "user", "12"),
            ("/u/12/x", "1", "12"),
            ("/u/12/x", "2", "/x"),
            ("/u/12", "2", ""),
            ("/u/12", "3", ""),
            ("/u/12", "name", ""),
            ("/v/12", "user", ""),
        ] {
            let found = regex.capture(path.as_bytes(), group);
            assert_eq!(found, expected.as_bytes(), "{path} {group}");
        }
        for (group, expected) in [
            ("user", true),
            ("1", true),
            ("2", true),
            ("3", false),
            ("x", false),
        ] {
            assert_eq!(regex.has_group(group), expected, "{group}");
        }
    }
}
