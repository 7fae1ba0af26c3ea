//! Properties of the parser of rates, over arbitrary texts.

use proptest::prelude::*;
use testing::{config, replay_text, text};

use super::*;

const BILLION: u128 = 1_000_000_000;

/// Parses a rate to a count in billionths of a request and a period in nanoseconds.
fn parse_naively(text: &str) -> Option<(u128, u128)> {
    let at = text.find("r/")?;
    let (count, period) = (&text[..at], &text[at + 2..]);
    let mut parts = count.split('.');
    let (whole, decimals) = (parts.next()?, parts.next());
    let digits = |text: &str| {
        !text.is_empty() && text.len() <= 9 && text.bytes().all(|b| b.is_ascii_digit())
    };
    if parts.next().is_some() || !digits(whole) || decimals.is_some_and(|text| !digits(text)) {
        return None;
    }
    let padded = format!("{whole}{:0<9}", decimals.unwrap_or(""));
    let billionths = padded.parse::<u128>().ok()?;
    let nanos = match period {
        "s" => BILLION,
        "m" => 60 * BILLION,
        "h" => 3_600 * BILLION,
        "d" => 86_400 * BILLION,
        spelled => crate::parse_duration(spelled)?.as_nanos(),
    };
    let fits = billionths > 0 && nanos > 0 && nanos <= 366 * 86_400 * BILLION;
    // At most a thousandth of a request in a nanosecond.
    (fits && billionths <= nanos * 1_000_000).then_some((billionths, nanos))
}

/// Checks that a text is parsed as by the naive parser, and that the rate is exact.
fn check(text: &str) -> Result<(), TestCaseError> {
    let (read, expected) = (text.parse::<Rate>(), parse_naively(text));
    prop_assert_eq!(read.is_ok(), expected.is_some(), "{:?}", read);
    let (Ok(rate), Some((billionths, nanos))) = (read, expected) else {
        return Ok(());
    };
    // ticks_per_request : ticks_per_nano = period in nanoseconds : count
    let (request, nano) = (
        rate.ticks_per_request().unsigned_abs(),
        rate.ticks_per_nano().unsigned_abs(),
    );
    prop_assert_eq!(request % nanos, 0);
    prop_assert_eq!(request / nanos * billionths, nano * BILLION);
    prop_assert_eq!(rate.period().as_nanos(), nanos);
    let shown = rate.to_string();
    prop_assert_eq!(shown.parse::<Rate>(), Ok(rate));
    prop_assert!(shown.len() <= text.len() + 2, "{}", shown);
    // The interval is rounded up to a nanosecond.
    let interval = (nanos * BILLION).div_ceil(billionths);
    prop_assert_eq!(rate.interval().as_nanos(), interval.min(u64::MAX.into()));
    Ok(())
}

#[test]
fn the_corpus_holds() {
    replay_text("rates", check);
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn any_text_is_read_as_a_naive_reader_reads_it(text in text("rates")) {
        check(&text)?;
    }

    #[test]
    fn text_that_looks_like_a_rate_is_read_as_a_naive_reader_reads_it(text in "[0-9]{1,10}(\\.[0-9]{0,10})?r/[0-9]{0,4}(ns|us|ms|s|m|h|d)") {
        check(&text)?;
    }
}
