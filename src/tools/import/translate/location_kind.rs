//! Parses the arguments of a `location`.

/// The arguments of a `location`.
pub(super) enum Kind<'d> {
    Path {
        mark: Mark,
        path: &'d str,
    },
    Regex {
        pattern: &'d str,
        ignores_case: bool,
    },
    Named,
    Bad,
}

/// Way to compare a path.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Mark {
    None,
    Exact,
    Stops,
}

/// Reads the arguments of a `location`.
pub(super) fn kind(args: &[String]) -> Kind<'_> {
    let (mark, text) = match args {
        [mark, text] if !mark.is_empty() => (&**mark, &**text),
        [text] => {
            let marks = ["~*", "~", "=", "^~"];
            let mark = marks.into_iter().find(|mark| text.starts_with(mark));
            let mark = mark.unwrap_or_default();
            (mark, &text[mark.len()..])
        }
        _ => return Kind::Bad,
    };
    let path = |mark| Kind::Path { mark, path: text };
    let regex = |ignores_case| Kind::Regex {
        pattern: text,
        ignores_case,
    };
    match mark {
        "" if text.starts_with('@') => Kind::Named,
        "" => path(Mark::None),
        "=" => path(Mark::Exact),
        "^~" => path(Mark::Stops),
        "~" => regex(false),
        "~*" => regex(true),
        _ => Kind::Bad,
    }
}
