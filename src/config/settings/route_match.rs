//! Conditions of a route on hosts, fields, query arguments and cookies.

use std::fmt;

use super::ByteRegex;

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
    /// These bytes. Empty: the part is present and empty.
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
        let input = MatcherInput::Query("debug".to_owned());
        let of = |value| Matcher {
            input: input.clone(),
            value,
        };
        let empty = of(MatcherValue::Equal(String::new()));
        assert!(empty.is_met_by(Some(b"")));
        assert!(!empty.is_met_by(Some(b"1")) && !empty.is_met_by(None));
        let regex = of(MatcherValue::Regex(ByteRegex::new("^on|^$").unwrap()));
        assert!(regex.is_met_by(Some(b"only")) && regex.is_met_by(Some(b"")));
        assert!(!regex.is_met_by(Some(b"off")) && !regex.is_met_by(None));
    }
}
