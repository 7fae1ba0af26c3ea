/// How the path of a request becomes that which the origin gets.
///
/// `strip_prefix` is removed from the beginning of the path, then `add_prefix` is put before. The
/// path is the one that routes are compared with: decoded and resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathRewrite {
    /// Empty, or begins with `/`. A path that does not begin with it keeps its beginning.
    pub strip: String,
    /// Empty, or a path in the form in which it is sent, without segments such as `..`.
    pub add: String,
}

impl PathRewrite {
    /// What is put before the rest of this path, and the rest.
    ///
    /// Together they begin with `/`, and have no `//` between them.
    #[must_use]
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

    /// Whether the origin would see a segment `.` or `..` that the path does not have.
    ///
    /// `/v1..` has none, but `..` remains of it without `/v1`.
    #[must_use]
    pub fn makes_dots(&self, path: &[u8]) -> bool {
        let (add, rest) = self.apply(path);
        let first = rest.split(|byte| *byte == b'/').next();
        (add.is_empty() || add.ends_with('/')) && matches!(first, Some(b"." | b".."))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_are_replaced_as_text() {
        for (strip, add, path, expected) in [
            ("/v1", "", "/v1/x", "/x"),
            ("/v1", "", "/v1", "/"),
            ("/v1", "", "/v1x", "/x"),
            ("/v1/", "", "/v1/x", "/x"),
            ("/v1/", "/", "/v1/x", "/x"),
            ("/v1", "/", "/v1/x", "/x"),
            ("/v1", "/app", "/v1/x", "/app/x"),
            ("/v1", "/app/", "/v1/x", "/app/x"),
            ("/v1", "/app", "/v1", "/app"),
            ("/v1/", "/x", "/v1/abc", "/xabc"),
            ("", "/app", "/x", "/app/x"),
            ("", "/app/", "/", "/app/"),
            ("/v1", "/app", "/other", "/app/other"),
        ] {
            let rewrite = PathRewrite {
                strip: strip.to_owned(),
                add: add.to_owned(),
            };
            let (before, rest) = rewrite.apply(path.as_bytes());
            let made = [before.as_bytes(), rest].concat();
            assert_eq!(made, expected.as_bytes(), "{strip} {add} {path}");
            assert!(!rewrite.makes_dots(path.as_bytes()));
        }
    }

    #[test]
    fn dots_that_remain_of_a_segment_are_seen() {
        for (strip, add, path, expected) in [
            ("/v1", "", "/v1../admin", true),
            ("/v1", "", "/v1.", true),
            ("/v1", "/app/", "/v1../admin", true),
            ("/v1", "/app", "/v1../admin", false),
            ("/v1", "", "/v1.../admin", false),
            ("/v1", "", "/v1/x..", false),
        ] {
            let rewrite = PathRewrite {
                strip: strip.to_owned(),
                add: add.to_owned(),
            };
            assert_eq!(
                rewrite.makes_dots(path.as_bytes()),
                expected,
                "{strip} {add} {path}"
            );
        }
    }
}
