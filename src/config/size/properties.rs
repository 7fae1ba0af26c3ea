//! Property tests of sizes.
//!
//! The crate `testing` has the inputs: `replay` and `replay_text` check each file of a folder in
//! `tests/corpus`, and `bytes` and `text` make variations of these files.

use proptest::prelude::*;
use testing::{config, replay_text, text};

use super::*;

/// Reference parser, which reads a size from its end.
fn parse_naively(text: &str) -> Option<u64> {
    // A unit, and the power of two by which it multiplies.
    let mut units = [("KB", 10), ("MB", 20), ("GB", 30), ("B", 0), ("", 0)].into_iter();
    let (count, shift) = units.find_map(|(unit, shift)| Some((text.strip_suffix(unit)?, shift)))?;
    let mut size = 0u128;
    for c in count.chars() {
        size = (size * 10 + u128::from(c.to_digit(10)?)).min(1 << 64);
    }
    let size = u64::try_from(size << shift).ok();
    size.filter(|_| !count.is_empty())
}

/// Checks that a text is read as by the reference parser, and that its size reads back.
fn check_size(text: &str) -> Result<(), TestCaseError> {
    let read = parse_size(text);
    prop_assert_eq!(read, parse_naively(text));
    if let Some(size) = read {
        prop_assert_eq!(parse_size(&show_size(size)), Some(size));
    }
    Ok(())
}

#[test]
fn each_text_of_the_corpus_is_read_as_a_naive_reader_reads_it() {
    replay_text("sizes", check_size);
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn any_text_is_read_as_a_naive_reader_reads_it(text in text("sizes")) {
        check_size(&text)?;
    }

    #[test]
    fn a_likely_size_is_read_as_a_naive_reader_reads_it(text in "[0-9]{1,22}[KMG]?B?") {
        check_size(&text)?;
    }

    #[test]
    fn every_size_reads_back(size: u64, shift in 0..64u32) {
        let size = size >> shift << (shift / 2);
        prop_assert_eq!(parse_size(&show_size(size)), Some(size));
    }
}
