//! Escapes the characters of an untrusted text that would change the text around it, such as an end
//! of line in a log.

/// Returns whether a character can be shown without changing the text around it.
///
/// Not printable are:
///
/// - control characters;
/// - characters that some readers treat as the end of a line;
/// - characters that change the direction of the text after them;
/// - invisible characters, which make two different texts look the same (Unicode:
///   `Default_Ignorable_Code_Point`, and the annotations U+FFF9 to U+FFFB).
pub fn is_printable(c: char) -> bool {
    let is_special = matches!(
        c,
        // Soft hyphen.
        '\u{ad}'
            | '\u{34f}'
            | '\u{61c}'
            | '\u{115f}'..='\u{1160}'
            | '\u{17b4}'..='\u{17b5}'
            | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{3164}'
            | '\u{fe00}'..='\u{fe0f}'
            | '\u{feff}'
            | '\u{ffa0}'
            | '\u{fff0}'..='\u{fffb}'
            | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}'
    );
    !c.is_control() && !is_special
}

/// Appends a text so that it stays on one line.
///
/// Characters that are not printable are escaped as in Rust, such as `\n` and `\u{9b}`.
pub fn put_printable(line: &mut String, text: impl IntoIterator<Item = char>) {
    put_escaped(line, text, |line, c| line.extend(c.escape_default()));
}

/// Appends a text. `escape` writes the characters that are not printable.
pub fn put_escaped(
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
    fn unprintable_characters_are_escaped() {
        let mut line = String::new();
        put_printable(
            &mut line,
            "a\n\u{9b}31m\u{2028}\u{202e}\u{feff}é😀\\".chars(),
        );
        assert_eq!(line, "a\\n\\u{9b}31m\\u{2028}\\u{202e}\\u{feff}é😀\\");
        for c in "\u{ad}\u{200b}\u{180e}\u{2060}\u{fff9}\u{fe0f}\u{e0001}".chars() {
            assert!(!is_printable(c), "{}", c.escape_unicode());
        }
        assert!("aé😀 \u{301}\u{e000}".chars().all(is_printable));
    }
}
