//! The line that names a table, as it is written.

/// A line that names a table, perhaps with wrong brackets.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Header<'t> {
    /// As it is written, between the brackets.
    pub(super) name: &'t str,
    /// How many brackets are before and behind it.
    pub(super) opened: usize,
    pub(super) closed: usize,
}

impl<'t> Header<'t> {
    /// Reads a line; `None` if it has more than brackets, a name and a comment.
    pub(super) fn of(line: &'t str) -> Option<Self> {
        let text = line.trim_start_matches('[');
        let opened = line.len() - text.len();
        // Quotes around one of these leave a name with half of them, which is none.
        let (name, _) = text.split_at(text.find([']', '#']).unwrap_or(text.len()));
        let is_closed = text[name.len()..].starts_with(']');
        let name = if is_closed { name } else { name.trim_end() };
        let brackets = &text[name.len()..];
        let rest = brackets.trim_start_matches(']');
        let (closed, rest) = (brackets.len() - rest.len(), rest.trim_start());
        let is_header = (1..=2).contains(&opened) && is_name(name);
        (is_header && (rest.is_empty() || rest.starts_with('#'))).then_some(Self {
            name,
            opened,
            closed,
        })
    }
}

/// Whether a text is the name of a field or table, perhaps with dots and quotes.
pub(super) fn is_name(text: &str) -> bool {
    let text = text.trim();
    let fits = |c: char| c.is_ascii_alphanumeric() || "_-. \t\"'".contains(c);
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_' || c == '"' || c == '\'')
        && text.chars().all(fits)
        && text.matches('"').count().is_multiple_of(2)
        && text.matches('\'').count().is_multiple_of(2)
        // A text in a list.
        && !text.contains("\",")
}
