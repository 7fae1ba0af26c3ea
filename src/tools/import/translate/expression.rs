//! Translates nginx's regular expressions (PCRE) to drip's (crate `regex`).
//!
//! Only expressions that mean the same in both are translated.

use config::{ByteRegex, PathPattern};

/// Syntax that only PCRE has, or that means something else in the crate `regex`.
const UNSUPPORTED: [&str; 14] = [
    "\\<", "\\>", "\\v", "\\b{", "&&", "--", "~~", "*+", "++", "?+", "}+", "(?R", "(?u", "(?x",
];

/// Translates the expression of a location; `None` if drip has no equivalent.
///
/// `ignores_case`: the location has `~*`.
pub(in crate::import) fn translate(pattern: &str, ignores_case: bool) -> Option<String> {
    // PCRE repeats only the last byte of a character that is not ASCII; drip repeats the character.
    let is_same = pattern.is_ascii() || !pattern.contains(['*', '+', '?', '{', '[', '\u{fffd}']);
    if !is_same || UNSUPPORTED.iter().any(|part| pattern.contains(part)) {
        return None;
    }
    let mut text = if ignores_case { "(?i)" } else { "" }.to_owned();
    let (mut is_escaped, mut is_in_class) = (false, false);
    for c in pattern.chars() {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '[' => is_in_class = true,
            ']' => is_in_class = false,
            // In PCRE `$` also matches before a final line feed.
            '$' if !is_in_class => text.push_str("\\n?"),
            _ => {}
        }
        text.push(c);
    }
    if text.is_empty() || text.starts_with(char::is_whitespace) {
        // A path of drip may neither be empty nor begin with a blank after `regex:`.
        text.insert_str(0, "(?:)");
    }
    ByteRegex::new(&text).ok()?;
    Some(text)
}

/// Returns an expression that matches all paths of `pattern`, and possibly more.
///
/// The expression is the part before the first look-around or back-reference; `None` without such a
/// part.
pub(super) fn wider(pattern: &str, ignores_case: bool) -> Option<String> {
    let untranslatable = ["(?=", "(?!", "(?<=", "(?<!", "\\1", "\\2"];
    let ends = untranslatable.iter().filter_map(|part| pattern.find(part));
    let (start, rest) = pattern.split_at(ends.min()?);
    // If an alternative follows, a path may match without this start. Escapes and classes may
    // contain parentheses, so the depth is not known after them.
    let is_depth_known = !rest.contains(['\\', '[']);
    let mut depth = 0_i32;
    for c in rest.chars() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            '|' if depth <= 0 || !is_depth_known => return None,
            _ => {}
        }
    }
    translate(start, ignores_case).filter(|_| !start.is_empty())
}

/// Returns the expression of all paths that begin with `prefix`.
pub(super) fn prefix(prefix: &str) -> String {
    format!("^{}", regex::escape(prefix))
}

/// Returns whether an expression in drip's syntax matches a path. `text`: the expression.
pub(super) fn matches(text: &str, path: &str) -> bool {
    ByteRegex::new(text).is_ok_and(|regex| PathPattern::Regex(regex).matches(path.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_expression_is_translated_only_if_it_means_the_same() {
        for (pattern, text) in [
            (r"^/u/[0-9]+$", r"^/u/[0-9]+\n?$"),
            (r"\.(png|jpe?g)$", r"\.(png|jpe?g)\n?$"),
            (r"^/a\$[$]", r"^/a\$[$]"),
            ("^/é", "^/é"),
            ("", "(?:)"),
            (" a", "(?:) a"),
            (r"^/(?<id>[[:alnum:]]{2,3})/", r"^/(?<id>[[:alnum:]]{2,3})/"),
        ] {
            assert_eq!(translate(pattern, false).as_deref(), Some(text));
        }
        assert_eq!(translate("a", true).as_deref(), Some("(?i)a"));
        for pattern in [
            r"/\.(?!well-known)",
            r"(a)\1",
            r"a*+b",
            r"[a&&b]",
            r"\<a",
            "é+",
            "\u{fffd}",
            "[a[b]",
        ] {
            assert_eq!(translate(pattern, false), None, "{pattern}");
        }
    }

    #[test]
    fn a_wider_expression_matches_all_paths_of_another_and_more() {
        for (pattern, text) in [
            (r"/\.(?!well-known)", Some(r"/\.")),
            (r"^/(?=e)", Some("^/")),
            (r"(b)\1", Some("(b)")),
            (r"/\.(?!a|b)", Some(r"/\.")),
            (r"/a(?!b)|/c", None),
            (r"/a(?!\(|b)", None),
            ("(?<!a)b", None),
            (r"/(a(?!b))", None),
            ("/(?>a)", None),
        ] {
            assert_eq!(wider(pattern, false).as_deref(), text, "{pattern}");
        }
    }
}
