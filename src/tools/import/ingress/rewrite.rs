//! Translates `rewrite-target`: the path that the origin gets instead of the requested path.
//!
//! ingress-nginx writes `rewrite "(?i)PATH" TARGET break;`, where PATH is a regular expression with
//! groups. drip can only remove a prefix and add another one. So only common forms are translated,
//! such as `/foo(/|$)(.*)` with `/$2`.

use crate::import::translate::probe;

/// The paths of a location, and their rewrite in drip.
#[derive(Debug, PartialEq)]
pub(super) struct Rewrite {
    /// The regular expression of the paths, in drip's syntax.
    pub(super) regex: String,
    pub(super) prefixes: Prefixes,
}

/// `strip_prefix` and `add_prefix` of a route.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Prefixes {
    pub(super) strip: Option<String>,
    pub(super) add: Option<String>,
}

/// The known endings of a path expression. One group of each holds the rest of the path.
///
/// Columns: the ending in nginx's expression, the ending of drip's expression, the group, and
/// whether the rest begins with `/`.
const ENDINGS: [(&str, &str, &str, bool); 6] = [
    ("(/|$)(.*)", "(/|$)", "$2", false),
    ("/()(.*)", "/", "$2", false),
    ("/?(.*)", "", "$1", false),
    ("(/.*)", "/", "$1", true),
    ("/(.*)", "/", "$1", false),
    ("/(.+)", "/.", "$1", false),
];

/// Reads the rewrite of a location.
///
/// # Errors
///
/// Returns the reason why drip cannot express the rewrite.
pub(super) fn read(path: &str, target: &str) -> Result<Rewrite, &'static str> {
    if !target.contains('$') {
        return Err(
            "it sends each path of the route to this one path; if only the prefix is meant, set strip_prefix",
        );
    }
    // An ending takes the rest of the path anyway, so `$` adds nothing.
    let pattern = path.strip_suffix('$').unwrap_or(path);
    let found = ENDINGS
        .iter()
        .find_map(|(ending, drip_ending, group, has_slash)| {
            Some((
                pattern.strip_suffix(ending)?,
                drip_ending,
                group,
                *has_slash,
            ))
        });
    let (strip, drip_ending, group, rest_has_slash) = found.filter(|(strip, ..)| is_plain(strip)).ok_or(
        "drip removes and adds prefixes, and the path is none of /PREFIX(/|$)(.*), /PREFIX/(.*) and the like",
    )?;
    let add = target.strip_suffix(group).filter(|it| !it.contains('$'));
    let add = add
        .ok_or("drip adds a prefix before the rest of a path, and the target is no such prefix")?;
    // The slash between both parts must come from exactly one of them.
    let add = match (add.strip_suffix('/'), rest_has_slash) {
        (Some(add), false) => add,
        (None, true) => add,
        _ => return Err("drip has one / where the prefix meets the rest of a path"),
    };
    let is_sendable = add.is_empty() || probe::rewrite("/", &format!("{add}/"));
    if !is_sendable || add.contains('?') {
        return Err("the target is no path that drip can put before another");
    }
    Ok(Rewrite {
        regex: format!("^{}{}", regex::escape(strip), drip_ending),
        prefixes: Prefixes {
            strip: (!strip.is_empty()).then(|| strip.to_owned()),
            add: (!add.is_empty()).then(|| format!("{add}/")),
        },
    })
}

/// Returns whether a prefix has no special characters of regular expressions except dots.
fn is_plain(prefix: &str) -> bool {
    let is_literal = |c: char| c.is_ascii_alphanumeric() || "/._~-".contains(c);
    (prefix.is_empty() || prefix.starts_with('/')) && prefix.chars().all(is_literal)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn common_forms_become_prefixes() {
        for (path, target, regex, strip, add) in [
            ("/foo(/|$)(.*)", "/$2", "^/foo(/|$)", Some("/foo"), None),
            (
                "/a/b.c(/|$)(.*)",
                "/x/$2",
                "^/a/b\\.c(/|$)",
                Some("/a/b.c"),
                Some("/x/"),
            ),
            ("/foo/(.*)", "/$1", "^/foo/", Some("/foo"), None),
            ("/foo/(.*)$", "/v2/$1", "^/foo/", Some("/foo"), Some("/v2/")),
            ("/foo(/.*)", "/v2$1", "^/foo/", Some("/foo"), Some("/v2/")),
            ("/foo/?(.*)", "/$1", "^/foo", Some("/foo"), None),
            ("/(.*)", "/app/$1", "^/", None, Some("/app/")),
            ("/()(.*)", "/$2", "^/", None, None),
        ] {
            let rewrite = read(path, target).unwrap();
            assert_eq!(rewrite.regex, regex, "{path}");
            assert_eq!(rewrite.prefixes.strip.as_deref(), strip, "{path}");
            assert_eq!(rewrite.prefixes.add.as_deref(), add, "{path}");
        }
    }

    #[test]
    fn other_forms_are_refused_with_the_reason() {
        for (path, target, reason) in [
            ("/foo", "/", "to this one path"),
            ("/foo(/|$)(.*)", "/$1", "the target is no such prefix"),
            ("/foo(/|$)(.*)", "/$2?a=b", "the target is no such prefix"),
            ("/foo(/|$)(.*)", "/$1/$2", "the target is no such prefix"),
            ("/foo(/|$)(.*)", "/x$2", "one /"),
            ("/foo(.*)", "/$1", "none of"),
            ("/[a-z]+/(.*)", "/$1", "none of"),
            ("/u/([0-9]+)/(.*)", "/$2", "none of"),
            ("/foo/(.*)", "/a b/$1", "no path"),
            ("/foo/(.*)", "/../$1", "no path"),
        ] {
            let error = read(path, target).unwrap_err();
            assert!(error.contains(reason), "{path} {target}: {error}");
        }
    }
}
