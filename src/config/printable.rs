//! Which characters of a text from outside can be shown as they are.

/// Returns whether a character can be shown without changing the text around it.
///
/// These are not printable: control characters, characters that some readers take for the end of a
/// line, and characters that change the direction of the text after them.
pub(crate) fn is_printable(c: char) -> bool {
    let moves = matches!(
        c,
        '\u{61c}'
            | '\u{200e}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2066}'..='\u{2069}'
            | '\u{feff}'
    );
    !c.is_control() && !moves
}

/// Appends a text that is shown on one line.
///
/// Characters that are not printable are escaped as Rust writes them, such as `\n` and `\u{9b}`.
pub(crate) fn put_printable(line: &mut String, text: impl IntoIterator<Item = char>) {
    put_escaped(line, text, |line, c| line.extend(c.escape_default()));
}

/// Appends a text. `escape` writes the characters that are not printable.
pub(crate) fn put_escaped(
    line: &mut String,
    text: impl IntoIterator<Item = char>,
    escape: impl Fn(&mut String, char),
) {
    for c in text {
        if is_printable(c) {
            line.push(c);
        } else {
            escape(line, c);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_moves_a_terminal_or_turns_a_line_is_written_as_its_code() {
        let mut line = String::new();
        put_printable(
            &mut line,
            "a\n\u{9b}31m\u{2028}\u{202e}\u{feff}é😀\\".chars(),
        );
        assert_eq!(line, "a\\n\\u{9b}31m\\u{2028}\\u{202e}\\u{feff}é😀\\");
    }
}
