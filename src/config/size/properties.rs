//! Property tests of sizes.

use proptest::prelude::*;
use testing::{config, replay_text, text};

use super::*;

/// Reference parser, which reads a size from its end.
fn naive(text: &str) -> Option<u64> {
    let units = [("KB", 10), ("MB", 20), ("GB", 30), ("B", 0), ("", 0)];
    let (count, shift) = units
        .into_iter()
        .find_map(|(unit, shift)| Some((text.strip_suffix(unit)?, shift)))?;
    let mut size = 0u128;
    for c in count.chars() {
        size = (size * 10 + u128::from(c.to_digit(10)?)).min(1 << 64);
    }
    u64::try_from(size << shift)
        .ok()
        .filter(|_| !count.is_empty())
}

fn holds(text: &str) -> Result<(), TestCaseError> {
    let read = parse_size(text);
    prop_assert_eq!(read, naive(text));
    if let Some(size) = read {
        prop_assert_eq!(parse_size(&show_size(size)), Some(size));
    }
    Ok(())
}

#[test]
fn the_corpus_holds() {
    replay_text("sizes", holds);
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn any_text_is_read_as_a_naive_reader_reads_it(text in text("sizes")) {
        holds(&text)?;
    }

    #[test]
    fn a_likely_size_is_read_as_a_naive_reader_reads_it(text in "[0-9]{1,22}[KMG]?B?") {
        holds(&text)?;
    }

    #[test]
    fn every_size_reads_back(size: u64, shift in 0..64u32) {
        let size = size >> shift << (shift / 2);
        prop_assert_eq!(parse_size(&show_size(size)), Some(size));
    }
}
