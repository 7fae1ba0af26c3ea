//! Untrusted bytes as text that cannot break out of its line or its quotes.

use std::fmt::Write;

/// Escapes bytes so that the text cannot break out of its line or its quotes.
///
/// As in nginx: each byte that is not printable becomes `\xNN`, a backslash `\\`, and a quote
/// `\x22`.
#[must_use]
pub fn escape(bytes: &[u8]) -> String {
    escape_but(bytes, |c| c != '"')
}

/// Escapes like [`escape`], but leaves quotes unchanged.
///
/// For places where a quote does not end the text.
#[must_use]
pub fn escape_unquoted(bytes: &[u8]) -> String {
    escape_but(bytes, |_| true)
}

/// Longest name of a key in a label, a sample or a log event, in characters.
///
/// A key may be as long as the head of a request.
const MAX_NAME: usize = 128;

/// Bytes from outside as text for people, escaped like [`escape_unquoted`] and of bounded length.
///
/// Keys are shown by [`KeyNames`](super::key_names::KeyNames).
#[must_use]
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
#[must_use]
pub fn cut_quoted(bytes: &[u8]) -> String {
    in_quotes(&cut(bytes))
}

/// A text that is escaped like [`escape_unquoted`], escaped like [`escape`].
pub(super) fn in_quotes(text: &str) -> String {
    text.replace('"', "\\x22")
}

/// The bytes of a text that [`escape`] or [`escape_unquoted`] wrote.
///
/// Returns `None` if the text contains an escape that they never write.
#[must_use]
pub fn unescape(text: &str) -> Option<Vec<u8>> {
    let (mut bytes, mut rest) = (Vec::with_capacity(text.len()), text.as_bytes());
    loop {
        rest = match rest {
            [] => return Some(bytes),
            [b'\\', b'\\', behind @ ..] => {
                bytes.push(b'\\');
                behind
            }
            [b'\\', b'x', high, low, behind @ ..] => {
                let digit = |byte: &u8| char::from(*byte).to_digit(16);
                bytes.push(u8::try_from(digit(high)? * 16 + digit(low)?).ok()?);
                behind
            }
            [b'\\', ..] => return None,
            [byte, behind @ ..] => {
                bytes.push(*byte);
                behind
            }
        };
    }
}

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

/// Whether a character can be shown without changing the text around it.
///
/// Not printable are control characters, characters that some readers take for the end of a line,
/// and characters that change the direction of the text after them.
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
    fn names_are_of_bounded_length() {
        assert_eq!(cut(&[b'a'; 128]), "a".repeat(128));
        assert_eq!(cut(&vec![b'a'; 60_000]), format!("{}…", "a".repeat(128)));
        assert_eq!(
            cut("é".repeat(60_000).as_bytes()),
            format!("{}…", "é".repeat(128))
        );
        assert_eq!(
            cut("😀".repeat(200).as_bytes()),
            format!("{}…", "😀".repeat(128))
        );
    }
}
