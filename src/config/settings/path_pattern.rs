use std::fmt;
use std::hash::{Hash, Hasher};

use regex::bytes::{Regex, RegexBuilder};
use regex_syntax::ParserBuilder;
use regex_syntax::hir::{Hir, HirKind, Look};
use thiserror::Error;

/// The paths that a route takes, compared as bytes, decoded and resolved.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum PathPattern {
    /// `"/fast"`: every path that begins with it, also `/fast.html`.
    Prefix(String),
    /// `"= /fast"`: this path only.
    Exact(String),
    /// `"regex:^/u/[0-9]+$"`: every path in which it finds a match.
    Regex(PathRegex),
}

/// How far a pattern goes before others: of those that match a path, the highest wins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Precedence {
    /// A prefix, of this length.
    Prefix(usize),
    /// A regular expression. Of several, the first in the file wins.
    Regex,
    /// A whole path.
    Exact,
}

impl PathPattern {
    /// Whether the route takes this path, which has no query.
    ///
    /// Takes time in proportion to the length of the path, whatever the pattern.
    #[must_use]
    pub fn matches(&self, path: &[u8]) -> bool {
        match self {
            Self::Prefix(prefix) => path.starts_with(prefix.as_bytes()),
            Self::Exact(exact) => path == exact.as_bytes(),
            Self::Regex(regex) => regex.compiled.is_match(path),
        }
    }

    /// The precedence of the pattern, as nginx has it.
    #[must_use]
    pub fn precedence(&self) -> Precedence {
        match self {
            Self::Prefix(prefix) => Precedence::Prefix(prefix.len()),
            Self::Exact(_) => Precedence::Exact,
            Self::Regex(_) => Precedence::Regex,
        }
    }

    /// Whether each path that it takes begins with `text`, as far as that can be seen.
    ///
    /// Of a regular expression this can be seen if it begins with `^` and the text.
    #[must_use]
    pub fn begins_with(&self, text: &str) -> bool {
        match self {
            Self::Prefix(path) | Self::Exact(path) => path.starts_with(text),
            Self::Regex(regex) => regex.begins_with(text),
        }
    }
}

impl fmt::Display for PathPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Prefix(prefix) => f.write_str(prefix),
            Self::Exact(exact) => write!(f, "= {exact}"),
            Self::Regex(regex) => write!(f, "regex:{}", regex.text),
        }
    }
}

/// A regular expression for paths, which are bytes: `.` is any of them but a line feed, and
/// `\\d`, `\\w` and `(?i)` mean ASCII.
#[derive(Clone)]
pub struct PathRegex {
    text: String,
    compiled: Regex,
}

impl PathRegex {
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
    pub fn new(text: &str) -> Result<Self, PathRegexError> {
        if text.len() > Self::MAX_REGEX_SIZE {
            return Err(PathRegexError::TooLong);
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
            Err(regex::Error::CompiledTooBig(_)) => Err(PathRegexError::TooLarge),
            Err(error) => Err(PathRegexError::Syntax(reason(&error))),
        }
    }

    fn begins_with(&self, text: &str) -> bool {
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
pub enum PathRegexError {
    /// Longer than [`PathRegex::MAX_REGEX_SIZE`].
    #[error(
        "a regular expression has at most {} bytes; write several routes",
        PathRegex::MAX_REGEX_SIZE
    )]
    TooLong,
    /// Larger than [`PathRegex::LARGEST`] when compiled.
    #[error(
        "this regular expression takes more than {} KB when it is compiled; lower the counts in {{}} or write several routes",
        PathRegex::LARGEST >> 10
    )]
    TooLarge,
    /// No regular expression of the crate `regex`, for this reason.
    #[error("this is not a regular expression of drip: {0}")]
    Syntax(String),
}

impl fmt::Debug for PathRegex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PathRegex").field(&self.text).finish()
    }
}

impl PartialEq for PathRegex {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for PathRegex {}

impl Hash for PathRegex {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.text.hash(state);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn regex(text: &str) -> PathPattern {
        PathPattern::Regex(PathRegex::new(text).unwrap())
    }

    #[test]
    fn a_regular_expression_sees_bytes() {
        for (text, path, expected) in [
            ("^/u/[0-9]+$", &b"/u/12"[..], true),
            ("^/u/[0-9]+$", b"/u/12\n", false),
            ("^/u/[0-9]+$", b"/u/x", false),
            (r"\.php$", b"/a/b.php", true),
            (r"(?i)\.PhP$", b"/a/b.pHp", true),
            ("^/.$", b"/\xff", true),
            ("^/\u{e9}$", "/\u{e9}".as_bytes(), true),
            (r"^/\d$", "/\u{663}".as_bytes(), false),
        ] {
            assert_eq!(regex(text).matches(path), expected, "{text} {path:?}");
        }
    }

    #[test]
    fn what_is_too_large_or_no_regular_expression_is_refused() {
        let error = |text: &str| PathRegex::new(text).unwrap_err().to_string();
        assert!(
            error("a(?=b)").contains("look-around"),
            "{}",
            error("a(?=b)")
        );
        assert!(error("(").contains("unclosed group"), "{}", error("("));
        assert!(error(r"\p{L}").contains("not a regular expression"));
        assert_eq!(
            PathRegex::new(&"a".repeat(1001)).unwrap_err(),
            PathRegexError::TooLong
        );
        assert_eq!(
            PathRegex::new("(a{500}){500}").unwrap_err(),
            PathRegexError::TooLarge
        );
    }

    #[test]
    fn the_beginning_of_a_regular_expression_is_seen_if_it_is_plain() {
        for (text, begin, expected) in [
            ("^/v1/[0-9]", "/v1/", true),
            ("^/v1/[0-9]", "/v1", true),
            (r"^/v\-1\.0/", "/v-1.0", true),
            ("^/(v1|v2)/", "/", true),
            ("^/v1/a|^/v1/b", "/v1", false),
            ("(?x)^/v1 # (\n |^/x", "/v1", false),
            ("(?i)^/v1/", "/v1", false),
            ("(?m)^/v1/", "/v1", false),
            ("/v1/", "/v1", false),
            ("^/v.1/", "/v.1", false),
            ("^/v1?/", "/v1", false),
            ("^/v1/|^/x", "/v1", false),
            ("^/v2/", "/v1", false),
        ] {
            assert_eq!(regex(text).begins_with(begin), expected, "{text} {begin}");
        }
    }
}
