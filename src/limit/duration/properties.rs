//! Properties of the parser of durations, over arbitrary texts.

use proptest::prelude::*;
use testing::{config, replay_text, text};

use super::*;

/// Parses a duration to nanoseconds, letter by letter.
fn parse_naively(text: &str) -> Option<u64> {
    let (mut count, mut digits, mut unit) = (0u128, 0, String::new());
    for c in text.chars() {
        match c {
            '0'..='9' if unit.is_empty() => {
                count = (count * 10 + u128::from(u32::from(c) - 48)).min(u128::from(u64::MAX) + 1);
                digits += 1;
            }
            _ => unit.push(c),
        }
    }
    let nanos = match unit.as_str() {
        "" if text == "0" => 0,
        "ns" => 1,
        "us" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        "d" => 86_400_000_000_000,
        _ => return None,
    };
    (digits > 0).then(|| u64::try_from(count * nanos).ok())?
}

/// Checks that a text is parsed as by the naive parser, and that the result is printed readably.
fn check(text: &str) -> Result<(), TestCaseError> {
    let read = parse_duration(text);
    prop_assert_eq!(read, parse_naively(text).map(Duration::from_nanos));
    if let Some(span) = read {
        prop_assert_eq!(parse_duration(&show_duration(span)), Some(span));
    }
    Ok(())
}

#[test]
fn the_corpus_holds() {
    replay_text("durations", check);
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn any_text_is_read_as_a_naive_reader_reads_it(text in text("durations")) {
        check(&text)?;
    }

    #[test]
    fn text_that_looks_like_a_duration_is_read_as_a_naive_reader_reads_it(text in "[0-9]{1,22}(ns|us|ms|s|m|h|d)?") {
        check(&text)?;
    }

    #[test]
    fn every_duration_reads_back(nanos in prop_oneof![any::<u64>(), 0..10_000u64]) {
        let span = Duration::from_nanos(nanos);
        prop_assert_eq!(parse_duration(&show_duration(span)), Some(span));
    }
}
