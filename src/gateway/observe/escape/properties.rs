//! Property tests of escaping any bytes.

use proptest::prelude::*;
use testing::{bytes, config, replay};

use super::*;

fn escape_holds(bytes: &[u8]) -> Result<(), TestCaseError> {
    let escaped = escape(bytes);
    let breaks = ['\u{2028}', '\u{2029}', '\u{202e}', '\u{2066}'];
    let is_left = |c: char| c.is_control() || c == '"' || breaks.contains(&c);
    prop_assert!(!escaped.contains(is_left), "{escaped}");
    // Unescaping gives the same bytes, so different bytes never have the same escaped text.
    prop_assert_eq!(unescape(&escaped), Some(bytes.to_vec()), "{}", escaped);
    let unquoted = escape_unquoted(bytes);
    prop_assert_eq!(unescape(&unquoted), Some(bytes.to_vec()), "{}", unquoted);
    prop_assert_eq!(unquoted.replace('"', "\\x22"), escaped);
    Ok(())
}

#[test]
fn the_corpus_holds() {
    replay("bytes", escape_holds);
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn any_bytes_are_escaped_to_one_distinct_line(bytes in bytes("bytes")) {
        escape_holds(&bytes)?;
    }
}
