//! `strip_prefix` and `add_prefix` of a route, which change the path that the origin gets.

use super::kinds;
use super::prelude::*;
use crate::{PathPattern, target};

/// Rewrites the path of a request for its origin.
///
/// First `strip_prefix` is removed from the beginning of the path, then `add_prefix` is put before
/// it. The input is the path that routes are compared with: decoded and resolved. The rest after
/// the prefix keeps its encoding as sent, if this gives the same path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathRewrite {
    /// Empty, or begins with `/`. A path without this prefix is not stripped.
    pub strip: String,
    /// Empty, or an encoded path without segments such as `..`.
    pub add: String,
}

impl PathRewrite {
    /// Returns the new path in two parts: the text to put before the rest, and the rest.
    ///
    /// The new path begins with `/`, and has no `//` where the parts meet.
    pub fn apply<'a>(&'a self, path: &'a [u8]) -> (&'a str, &'a [u8]) {
        let rest = path.strip_prefix(self.strip.as_bytes()).unwrap_or(path);
        let add = match (&*self.add, rest) {
            ("", [b'/', ..]) => "",
            ("", _) => "/",
            (add, [b'/', ..]) => add.strip_suffix('/').unwrap_or(add),
            (add, _) => add,
        };
        (add, rest)
    }

    /// Returns the rest of a path after the prefix, with the escapes that the client sent.
    ///
    /// `sent`: the path as the client sent it. `path`: the same path, decoded and resolved. `None`:
    /// an origin that decodes and resolves the result would get another path.
    pub fn rest_as_sent<'s>(&self, path: &[u8], sent: &'s [u8]) -> Option<&'s [u8]> {
        let rest = sent.strip_prefix(self.strip.as_bytes())?;
        let (add, resolved_rest) = self.apply(path);
        // Whether both rests meet the added text alike.
        let begins_alike = rest.starts_with(b"/") == resolved_rest.starts_with(b"/");
        let decoded = target::unescape(rest);
        let mut segments = decoded.split(|byte| *byte == b'/');
        let has_dots = segments.any(|segment| matches!(segment, b"." | b".."));
        if !begins_alike || rest.starts_with(b"//") || has_dots {
            return None;
        }
        let mut encoded = add.as_bytes().to_vec();
        target::encode(resolved_rest, &mut |piece| {
            encoded.extend_from_slice(piece);
        });
        let as_sent = [add.as_bytes(), rest].concat();
        (target::path(&as_sent) == target::path(&encoded)).then_some(rest)
    }

    /// Returns whether the origin would see a segment `.` or `..` that the path does not have.
    ///
    /// `/v1..` has none, but without `/v1` it becomes `..`.
    pub fn makes_dots(&self, path: &[u8]) -> bool {
        let (add, rest) = self.apply(path);
        let first = rest.split(|byte| *byte == b'/').next();
        (add.is_empty() || add.ends_with('/')) && matches!(first, Some(b"." | b".."))
    }
}

/// Form of `strip_prefix`.
pub(super) const STRIP_FORM: Form = Form::Regex("/[^?#]*");
/// Form of `add_prefix`: a path with escapes.
pub(super) const ADD_FORM: Form = Form::Regex("/([0-9A-Za-z._~!$&'()*+,;=:@/-]|%[0-9A-Fa-f]{2})*");

/// Shows a prefix, if there is one.
pub(super) fn show_prefix(prefix: &str) -> Option<Shown> {
    if prefix.is_empty() {
        return None;
    }
    kinds::show_text(prefix)
}

/// Reads the path rewrite of a route; `None`: paths stay as they are, or a value is wrong.
///
/// `path`: path of the route, if it is right.
pub(super) fn read(fields: &mut Fields, path: Option<&PathPattern>) -> Option<PathRewrite> {
    let strip = fields.read_optional("strip_prefix", |node| {
        values::parse(node, "a path such as \"/v1\"", parse_prefix)
    });
    let add = fields.read_optional("add_prefix", |node| {
        values::parse(node, "a path such as \"/app\"", parse_added)
    });
    let strip = strip.unwrap_or_default();
    if let (Some(node), Some(path)) = (fields.valid_value("strip_prefix"), path)
        && !path.begins_with(&strip)
    {
        let remedy = match path {
            PathPattern::Regex(_) => {
                "the regular expression must begin with ^ and this text, so that each path does"
            }
            PathPattern::Prefix(_) | PathPattern::Exact(_) => {
                "the path of the route does not begin with it; change one"
            }
        };
        return node.refuse(&format!("{remedy}; found {}", node.found()));
    }
    let add = add.unwrap_or_default();
    (!strip.is_empty() || !add.is_empty()).then_some(PathRewrite { strip, add })
}

/// Checks a value of `strip_prefix`, and returns it.
fn parse_prefix(text: &str) -> Result<String, &'static str> {
    if !text.starts_with('/') {
        return Err("a prefix begins with /");
    }
    if text.contains(['?', '#']) {
        return Err("a prefix has no query or fragment; remove everything from ? or # on");
    }
    Ok(text.to_owned())
}

/// Checks a value of `add_prefix`, and returns it.
fn parse_added(text: &str) -> Result<String, &'static str> {
    let text = parse_prefix(text)?;
    if !target::is_sendable(text.as_bytes()) {
        return Err(
            "what is added is sent as it is written; escape other characters than those of a URL's path, such as %20 for a blank",
        );
    }
    if !target::is_resolved(text.as_bytes()) {
        return Err("what is added has no empty segments, and none that is . or ..; remove them");
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rewrite(strip: &str, add: &str) -> PathRewrite {
        PathRewrite {
            strip: strip.to_owned(),
            add: add.to_owned(),
        }
    }

    #[test]
    fn prefixes_are_replaced_as_text() {
        for (strip, add, path, expected) in [
            ("/v1", "", "/v1/x", "/x"),
            ("/v1", "", "/v1", "/"),
            ("/v1/", "", "/v1/x", "/x"),
            ("/v1", "/app", "/v1/x", "/app/x"),
            ("/v1", "/app", "/v1", "/app"),
            ("/v1/", "/x", "/v1/abc", "/xabc"),
            ("", "/app/", "/", "/app/"),
            ("/v1", "/app", "/other", "/app/other"),
        ] {
            let rewrite = rewrite(strip, add);
            let (added, rest) = rewrite.apply(path.as_bytes());
            let new_path = [added.as_bytes(), rest].concat();
            assert_eq!(new_path, expected.as_bytes(), "{strip} {add} {path}");
            assert!(!rewrite.makes_dots(path.as_bytes()));
        }
    }

    #[test]
    fn the_rest_is_sent_as_the_client_sent_it_where_that_is_the_same_path() {
        for (strip, add, sent, expected) in [
            ("/v1", "/api", "/v1/a%2Fb", Some("/a%2Fb")),
            ("/v1/", "/api/", "/v1/a%2Fb", Some("a%2Fb")),
            ("/v1", "/api", "/v1/%e4%B8%ad%25", Some("/%e4%B8%ad%25")),
            ("/v1", "/api", "/v1/a//b", Some("/a//b")),
            // Decoding changes the part that the prefix matches.
            ("/v1", "/api", "/%761/a%2Fb", None),
            ("/v1", "/api", "/v1%2Fa", None),
            // Dots would remain, or the rest would begin with two slashes.
            ("/v1", "/api", "/v1/a/../b%2Fc", None),
            ("/v1", "/api", "/v1/a/%2e%2E/b", None),
            ("/v1", "/api", "/v1/a%2F..%2Fb", None),
            ("/v1", "/api", "/v1/../v1/b", None),
            ("/v1", "/api", "/v1//b", None),
        ] {
            let rewrite = rewrite(strip, add);
            let path = target::path(sent.as_bytes());
            let rest = rewrite.rest_as_sent(&path, sent.as_bytes());
            let rest = rest.map(|rest| str::from_utf8(rest).unwrap());
            assert_eq!(rest, expected, "{strip} {add} {sent}");
        }
    }

    #[test]
    fn a_stripped_prefix_may_leave_a_segment_of_dots() {
        for (strip, add, path, expected) in [
            ("/v1", "", "/v1../admin", true),
            ("/v1", "/app", "/v1../admin", false),
            ("/v1", "", "/v1.../admin", false),
        ] {
            let rewrite = rewrite(strip, add);
            let makes_dots = rewrite.makes_dots(path.as_bytes());
            assert_eq!(makes_dots, expected, "{strip} {add} {path}");
        }
    }
}
