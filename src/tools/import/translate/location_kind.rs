//! Parses the arguments of a `location`: a modifier such as `^~`, and a path or an expression.

use super::route::Pattern;

/// Kind of a `location`, by its arguments.
pub(super) enum LocationKind<'d> {
    /// An exact path or a prefix.
    Path(Pattern),
    /// A regular expression in nginx's syntax.
    Regex {
        pattern: &'d str,
        ignores_case: bool,
    },
    /// A name such as `@app`.
    Named,
    Invalid,
}

impl<'d> LocationKind<'d> {
    pub(super) fn parse(args: &'d [String]) -> Self {
        let (modifier, text) = match args {
            [modifier, text] if !modifier.is_empty() => (&**modifier, &**text),
            // The modifier may be written without a blank after it.
            [text] => {
                let modifiers = ["~*", "~", "=", "^~"];
                let modifier = modifiers.iter().find(|it| text.starts_with(**it));
                text.split_at(modifier.map_or(0, |it| it.len()))
            }
            _ => return Self::Invalid,
        };
        match modifier {
            "" if text.starts_with('@') => Self::Named,
            "=" => Self::Path(Pattern::Exact(text.to_owned())),
            "" | "^~" => Self::Path(Pattern::Prefix {
                path: text.to_owned(),
                skips_regexes: !modifier.is_empty(),
            }),
            "~" | "~*" => Self::Regex {
                pattern: text,
                ignores_case: modifier == "~*",
            },
            _ => Self::Invalid,
        }
    }
}
