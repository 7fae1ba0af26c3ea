//! Converts untrusted bytes to text that cannot break out of its line or its quotes.

use std::fmt::Write;

use config::{is_printable, put_escaped};

/// Escapes bytes so that the text cannot break out of its line or its quotes.
///
/// As in nginx: each byte that is not printable becomes `\xNN`, a backslash `\\`, and a quote
/// `\x22`.
pub fn escape(bytes: &[u8]) -> String {
    escape_but(bytes, |c| c != '"')
}

/// Escapes like [`escape`], but leaves quotes unchanged.
///
/// For text that no quote ends.
pub fn escape_unquoted(bytes: &[u8]) -> String {
    escape_but(bytes, |_| true)
}

/// Maximum length of a key's name in a label, a sample or a log event, in characters.
///
/// A key may be as long as the head of a request.
const MAX_NAME: usize = 128;

/// Converts bytes from outside to text for people, of limited length.
///
/// Escaped like [`escape_unquoted`]. Keys are shown by [`KeyNames`](super::key_names::KeyNames).
pub fn cut(bytes: &[u8]) -> String {
    // A character comes from at most four bytes, so the rest of a long text is not needed.
    let begin = &bytes[..bytes.len().min(4 * MAX_NAME)];
    let text = escape_unquoted(begin);
    match text.char_indices().nth(MAX_NAME) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None if begin.len() < bytes.len() => format!("{text}…"),
        None => text,
    }
}

/// As [`cut`], escaped like [`escape`]: for a text between quotes.
pub fn cut_quoted(bytes: &[u8]) -> String {
    in_quotes(&cut(bytes))
}

/// Escapes a text like [`escape`]. The text is already escaped like [`escape_unquoted`].
pub(super) fn in_quotes(text: &str) -> String {
    text.replace('"', "\\x22")
}

/// Returns the bytes of a text that [`escape`] or [`escape_unquoted`] wrote.
///
/// `None` if the text contains an escape that they never write.
pub fn unescape(text: &str) -> Option<Vec<u8>> {
    let (mut bytes, mut rest) = (Vec::with_capacity(text.len()), text.as_bytes());
    loop {
        rest = match rest {
            [] => return Some(bytes),
            [b'\\', b'\\', after @ ..] => {
                bytes.push(b'\\');
                after
            }
            [b'\\', b'x', high, low, after @ ..] => {
                let digit = |byte: &u8| char::from(*byte).to_digit(16);
                bytes.push(u8::try_from(digit(high)? * 16 + digit(low)?).ok()?);
                after
            }
            [b'\\', ..] => return None,
            [byte, after @ ..] => {
                bytes.push(*byte);
                after
            }
        };
    }
}

/// Escapes all characters except printable ones for which `stays` returns true.
fn escape_but(bytes: &[u8], stays: impl Fn(char) -> bool) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '\\' => text.push_str("\\\\"),
                c if !is_printable(c) || !stays(c) => {
                    escape_bytes(&mut text, c.encode_utf8(&mut [0; 4]).as_bytes());
                }
                c => text.push(c),
            }
        }
        escape_bytes(&mut text, chunk.invalid());
    }
    text
}

/// Escapes unprintable characters in JSON as `\u202e`. The meaning stays the same.
///
/// Programs that write JSON escape only characters that are not allowed there. In JSON on one line
/// only strings have unprintable characters.
pub(super) fn in_json(json: String) -> String {
    with_escapes(json, |text, c| {
        for unit in c.encode_utf16(&mut [0; 2]) {
            let _ = write!(text, "\\u{unit:04x}");
        }
    })
}

/// Escapes all unprintable characters except line feeds.
pub fn in_lines(lines: String) -> String {
    with_escapes(lines, |text, c| match c {
        '\n' => text.push(c),
        c => escape_bytes(text, c.encode_utf8(&mut [0; 4]).as_bytes()),
    })
}

/// Replaces all unprintable characters of a text by what `put` writes for them.
fn with_escapes(text: String, put: impl Fn(&mut String, char)) -> String {
    // Most texts have only printable ASCII characters.
    if text.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
        return text;
    }
    let mut escaped = String::with_capacity(text.len());
    put_escaped(&mut escaped, text.chars(), put);
    escaped
}

/// Appends the escaped form of bytes.
fn escape_bytes(text: &mut String, bytes: &[u8]) {
    for byte in bytes {
        let _ = write!(text, "\\x{byte:02X}");
    }
}

#[cfg(test)]
mod properties;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_and_json_have_only_printable_characters_and_json_keeps_its_meaning() {
        let nasty = "a\u{9b}31m\u{7f}\u{202e}b\u{2028}c\u{feff}é😀\n";
        let json = serde_json::to_string(nasty).unwrap();
        let shown = in_json(json.clone());
        assert_eq!(shown, r#""a\u009b31m\u007f\u202eb\u2028c\ufeffé😀\n""#);
        assert_eq!(serde_json::from_str::<String>(&shown).unwrap(), nasty);
        assert_eq!(
            in_lines(nasty.to_owned()),
            "a\\xC2\\x9B31m\\x7F\\xE2\\x80\\xAEb\\xE2\\x80\\xA8c\\xEF\\xBB\\xBFé😀\n"
        );
        assert_eq!(in_lines("plain\n".to_owned()), "plain\n");
    }

    #[test]
    fn the_length_of_a_cut_text_is_bounded() {
        assert_eq!(cut(&[b'a'; 128]), "a".repeat(128));
        assert_eq!(cut(&vec![b'a'; 60_000]), format!("{}…", "a".repeat(128)));
        for (letter, count) in [("é", 60_000), ("😀", 200)] {
            let text = cut(letter.repeat(count).as_bytes());
            assert_eq!(text, format!("{}…", letter.repeat(128)));
        }
    }
}
