//! Conditions for a request to belong to a route: on its path, host, fields, query arguments and
//! cookies.
//!
//! `route_index` finds the route of a request. `tables::route_match` reads these values.

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

/// Pattern of a host: one host, or all hosts below one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum HostPattern {
    /// `api.example.com`: in lowercase, without a port.
    Exact(String),
    /// `*.example.com`, stored without the `*`: every host with this suffix and at least one more
    /// label.
    Below(String),
}

impl fmt::Display for HostPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exact(name) => f.write_str(name),
            Self::Below(end) => write!(f, "*{end}"),
        }
    }
}

/// Condition: a part of the request must have a value.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Matcher {
    /// Part of the request that has the value.
    pub input: MatcherInput,
    /// Required value.
    pub value: MatcherValue,
}

/// Part of a request.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum MatcherInput {
    /// `header:x-version`: a header field, in lowercase.
    Header(String),
    /// `query:debug`: a query argument.
    Query(String),
    /// `cookie:beta`: a cookie.
    Cookie(String),
}

/// Required value of a part of a request. A missing part has no value, not an empty one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum MatcherValue {
    /// The value consists of these bytes. Empty: the part is present and empty.
    Equal(String),
    /// The expression matches in the value.
    Regex(ByteRegex),
}

impl Matcher {
    /// Returns whether a request with this value meets the condition. `None`: the part is missing.
    pub fn is_met_by(&self, value: Option<&[u8]>) -> bool {
        value.is_some_and(|value| match &self.value {
            MatcherValue::Equal(text) => text.as_bytes() == value,
            MatcherValue::Regex(regex) => regex.is_match(value),
        })
    }
}

impl fmt::Display for MatcherInput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Header(name) => write!(f, "header:{name}"),
            Self::Query(name) => write!(f, "query:{name}"),
            Self::Cookie(name) => write!(f, "cookie:{name}"),
        }
    }
}

impl fmt::Display for MatcherValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Equal(text) => f.write_str(text),
            Self::Regex(regex) => write!(f, "regex:{regex}"),
        }
    }
}

impl fmt::Display for Matcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.input, self.value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_value_meets_no_condition() {
        let matcher = |value| Matcher {
            input: MatcherInput::Query("debug".to_owned()),
            value,
        };
        let empty = matcher(MatcherValue::Equal(String::new()));
        assert!(empty.is_met_by(Some(b"")));
        assert!(!empty.is_met_by(Some(b"1")) && !empty.is_met_by(None));
        let regex = matcher(MatcherValue::Regex(ByteRegex::new("^on|^$").unwrap()));
        assert!(regex.is_met_by(Some(b"only")) && regex.is_met_by(Some(b"")));
        assert!(!regex.is_met_by(Some(b"off")) && !regex.is_met_by(None));
    }

    fn regex(text: &str) -> PathPattern {
        PathPattern::Regex(ByteRegex::new(text).unwrap())
    }

    #[test]
    fn a_regular_expression_is_compared_with_bytes() {
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
    fn a_regular_expression_begins_with_a_text_only_if_all_its_matches_do() {
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
