//! Property tests of escaping any bytes.

use proptest::prelude::*;
use testing::{bytes, config, replay};

use super::*;

/// Checks that the escaped text is one line, cannot end quotes, and can be unescaped.
///
/// The text also has no characters that change the direction of reading.
fn check_escape(bytes: &[u8]) -> Result<(), TestCaseError> {
    let escaped = escape(bytes);
    // Two characters that break lines, and two that change the direction of the text after them.
    let breaks = ['\u{2028}', '\u{2029}', '\u{202e}', '\u{2066}'];
    let must_be_escaped = |c: char| c.is_control() || c == '"' || breaks.contains(&c);
    prop_assert!(!escaped.contains(must_be_escaped), "{escaped}");
    // Unescaping gives the same bytes, so different bytes never have the same escaped text.
    prop_assert_eq!(unescape(&escaped), Some(bytes.to_vec()), "{}", escaped);
    // The same, but with quotes as they are.
    let unquoted = escape_unquoted(bytes);
    prop_assert_eq!(unescape(&unquoted), Some(bytes.to_vec()), "{}", unquoted);
    prop_assert_eq!(unquoted.replace('"', "\\x22"), escaped);
    Ok(())
}

#[test]
fn the_bytes_of_the_corpus_are_escaped() {
    replay("bytes", check_escape);
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn any_bytes_are_escaped_to_one_distinct_line(bytes in bytes("bytes")) {
        check_escape(&bytes)?;
    }
}
