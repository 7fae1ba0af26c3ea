//! Tests of rates.

use proptest::prelude::*;

use super::*;
use crate::Percent;
use crate::fixtures::rate;

#[test]
fn count_in_rounds_down_to_whole_requests() {
    for (text, span, count) in [
        ("10r/s", Duration::from_millis(999), 9),
        ("10r/s", Duration::from_secs(1), 10),
        ("3r/s", Duration::from_nanos(333_333_333), 0),
        ("3r/s", Duration::from_nanos(333_333_334), 1),
        ("0.5r/s", Duration::ZERO, 0),
        ("1000000r/s", Duration::MAX, u64::MAX),
    ] {
        assert_eq!(rate(text).count_in(span), count, "{text} {span:?}");
    }
}

#[test]
fn says_what_is_wrong() {
    use RateError::{Count, Form, Period, TooFast, Zero};
    for (error, texts) in [
        (Form, "|10|10/s|10 r / s|10R/s"),
        (
            Count,
            "r/s|-1r/s|+1r/s| 1r/s|1 r/s|1e3r/s|.5r/s|5.r/s|1.2.3r/s|1,5r/s|١r/s",
        ),
        (Count, "1234567890r/d|0.1234567890r/s"),
        (Zero, "0r/s|0.000r/s|000r/d"),
        (
            Period,
            "1r/|1r/S|1r/sec|1r/s |1r/5|1r/0|1r/0s|1r/1.5s|1r/-1s|1r/367d|1r/5r/s",
        ),
        (Period, "1r/99999999999999999999d"),
        (
            TooFast,
            "1000001r/s|1000000.000000001r/s|1r/999ns|60000001r/m",
        ),
    ] {
        for text in texts.split('|') {
            assert_eq!(text.parse::<Rate>(), Err(error), "{text:?}");
        }
    }
}

#[test]
fn prints_what_it_read() {
    for (text, printed) in [
        ("10r/s", "10r/s"),
        ("007r/m", "7r/m"),
        ("1.500r/h", "1.5r/h"),
        ("2.0r/d", "2r/d"),
        ("0.05r/s", "0.05r/s"),
        ("5r/250ms", "5r/250ms"),
        ("5r/1000ms", "5r/1s"),
        ("5r/60s", "5r/1m"),
    ] {
        assert_eq!(rate(text).to_string(), printed);
        assert_eq!(rate(printed), rate(text));
    }
    assert_eq!(format!("{:?}", rate("10r/s")), "Rate(10r/s)");
}

proptest! {
    #![proptest_config(testing::config())]

    /// Compares fractions of requests per nanosecond, without rounding.
    #[test]
    fn a_part_of_a_rate_is_exact_or_rounded_up_to_nine_decimals(
        text in "[0-9]{1,9}(\\.[0-9]{1,9})?r/[smhd]",
        millionths in 1..=1_000_000_u32,
    ) {
        let Ok(whole) = text.parse::<Rate>() else { return Ok(()) };
        let part = Percent::from_millionths(millionths);
        let scaled = whole.scaled(part);
        let billionths = |rate: Rate| {
            let scale = rate.ticks_per_request().unsigned_abs() / rate.period().as_nanos();
            rate.ticks_per_nano().unsigned_abs() * (1_000_000_000 / scale)
        };
        let (scaled_million, exact) =
            (billionths(scaled) * 1_000_000, billionths(whole) * u128::from(millionths));
        prop_assert!(scaled_million >= exact && scaled_million - exact < 1_000_000);
        prop_assert!(billionths(scaled) <= billionths(whole));
        prop_assert_eq!(scaled.to_string().parse(), Ok(scaled));
        prop_assert_eq!(whole.scaled(Percent::ALL), whole);
    }
}
