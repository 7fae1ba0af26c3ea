//! Path patterns of routes.

use std::fmt;

use super::ByteRegex;

/// Pattern of the paths that a route takes. Paths are compared as bytes, decoded and resolved.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum PathPattern {
    /// `"/fast"`: every path with this prefix, also `/fast.html`.
    Prefix(String),
    /// `"= /fast"`: this path only.
    Exact(String),
    /// `"regex:^/u/[0-9]+$"`: every path in which the expression matches.
    Regex(ByteRegex),
}

impl PathPattern {
    /// Returns whether the pattern matches a path without query.
    ///
    /// Takes time proportional to the length of the path, whatever the pattern.
    pub fn matches(&self, path: &[u8]) -> bool {
        match self {
            Self::Prefix(prefix) => path.starts_with(prefix.as_bytes()),
            Self::Exact(exact) => path == exact.as_bytes(),
            Self::Regex(regex) => regex.is_match(path),
        }
    }

    /// Returns the text that a group of the regular expression captures in a path.
    ///
    /// Empty if there is no such group.
    pub fn capture<'p>(&self, path: &'p [u8], group: &str) -> &'p [u8] {
        match self {
            Self::Regex(regex) => regex.capture(path, group),
            Self::Prefix(_) | Self::Exact(_) => &[],
        }
    }

    /// Returns whether all matching paths are known to begin with `text`.
    ///
    /// For a regular expression this is known only if it begins with `^` and the text.
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
            Self::Regex(regex) => write!(f, "regex:{regex}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn regex(text: &str) -> PathPattern {
        PathPattern::Regex(ByteRegex::new(text).unwrap())
    }

    #[test]
    fn a_regular_expression_sees_bytes() {
        for (text, path, expected) in [
            ("^/u/[0-9]+$", &b"/u/12"[..], true),
            ("^/u/[0-9]+$", b"/u/12\n", false),
            (r"(?i)\.PhP$", b"/a/b.pHp", true),
            ("^/.$", b"/\xff", true),
            ("^/\u{e9}$", "/\u{e9}".as_bytes(), true),
            (r"^/\d$", "/\u{663}".as_bytes(), false),
        ] {
            assert_eq!(regex(text).matches(path), expected, "{text} {path:?}");
        }
    }

    #[test]
    fn the_beginning_of_a_regular_expression_is_seen_if_it_is_plain() {
        for (text, begin, expected) in [
            ("^/v1/[0-9]", "/v1/", true),
            (r"^/v\-1\.0/", "/v-1.0", true),
            ("^/v1/a|^/v1/b", "/v1", false),
            ("(?x)^/v1 # (\n |^/x", "/v1", false),
            ("(?i)^/v1/", "/v1", false),
            ("/v1/", "/v1", false),
            ("^/v.1/", "/v.1", false),
            ("^/v1?/", "/v1", false),
        ] {
            assert_eq!(regex(text).begins_with(begin), expected, "{text} {begin}");
        }
    }
}
