//! Parses the arguments of a `location`.

use super::route::Pattern;

/// The arguments of a `location`.
pub(super) enum Kind<'d> {
    Path(Pattern),
    /// An expression of nginx.
    Regex {
        pattern: &'d str,
        ignores_case: bool,
    },
    Named,
    Bad,
}

/// Reads the arguments of a `location`.
pub(super) fn kind(args: &[String]) -> Kind<'_> {
    let (mark, text) = match args {
        [mark, text] if !mark.is_empty() => (&**mark, &**text),
        [text] => {
            let marks = ["~*", "~", "=", "^~"];
            let mark = marks.into_iter().find(|mark| text.starts_with(mark));
            text.split_at(mark.map_or(0, str::len))
        }
        _ => return Kind::Bad,
    };
    match mark {
        "" if text.starts_with('@') => Kind::Named,
        "=" => Kind::Path(Pattern::Exact(text.to_owned())),
        "" | "^~" => Kind::Path(Pattern::Prefix {
            path: text.to_owned(),
            stops: !mark.is_empty(),
        }),
        "~" | "~*" => Kind::Regex {
            pattern: text,
            ignores_case: mark == "~*",
        },
        _ => Kind::Bad,
    }
}
