/// What the arguments of a `location` say.
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

/// How a path is compared.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Mark {
    None,
    Exact,
    Stops,
}

/// Reads the arguments of a `location`.
pub(super) fn kind(args: &[String]) -> Kind<'_> {
    let regex = |pattern, ignores_case| Kind::Regex {
        pattern,
        ignores_case,
    };
    let path = |mark, path| Kind::Path { mark, path };
    match args {
        [mark, text] => match &**mark {
            "=" => path(Mark::Exact, text),
            "^~" => path(Mark::Stops, text),
            "~" => regex(text, false),
            "~*" => regex(text, true),
            _ => Kind::Bad,
        },
        [text] => {
            if text.starts_with('@') {
                Kind::Named
            } else if let Some(text) = text.strip_prefix("~*") {
                regex(text, true)
            } else if let Some(text) = text.strip_prefix('~') {
                regex(text, false)
            } else if let Some(text) = text.strip_prefix('=') {
                path(Mark::Exact, text)
            } else if let Some(text) = text.strip_prefix("^~") {
                path(Mark::Stops, text)
            } else {
                path(Mark::None, text)
            }
        }
        _ => Kind::Bad,
    }
}
