use proptest::prelude::*;

use super::*;
use crate::Percent;

fn rate(text: &str) -> Rate {
    text.parse()
        .unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

#[test]
fn reads_every_form_of_the_contract() {
    let day = 24 * 60 * 60;
    for (text, count, period) in [
        ("10r/s", 10.0, seconds(1)),
        ("30r/m", 30.0, seconds(60)),
        ("100r/h", 100.0, seconds(3600)),
        ("5r/d", 5.0, seconds(day)),
        ("0.5r/s", 0.5, seconds(1)),
        ("5r/250ms", 5.0, Duration::from_millis(250)),
        ("1r/90s", 1.0, seconds(90)),
        ("1r/366d", 1.0, seconds(366 * day)),
        ("1r/1us", 1.0, Duration::from_micros(1)),
        ("0.001r/1ns", 0.001, Duration::from_nanos(1)),
        ("1000000r/s", 1e6, seconds(1)),
        ("999999999.999999999r/d", 1e9, seconds(day)),
    ] {
        let rate = rate(text);
        assert!((rate.count() - count).abs() < 1e-6, "{text}");
        assert_eq!(rate.period(), period, "{text}");
        let per_second = count / period.as_secs_f64();
        assert!(
            (rate.per_second() / per_second - 1.0).abs() < 1e-9,
            "{text}"
        );
    }
}

#[test]
fn counts_the_requests_of_a_span_down() {
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
    for (text, error) in [
        ("", Form),
        ("10", Form),
        ("10/s", Form),
        ("10 r / s", Form),
        ("10R/s", Form),
        ("r/s", Count),
        ("-1r/s", Count),
        ("+1r/s", Count),
        (" 1r/s", Count),
        ("1 r/s", Count),
        ("1e3r/s", Count),
        (".5r/s", Count),
        ("5.r/s", Count),
        ("1.2.3r/s", Count),
        ("1,5r/s", Count),
        ("١r/s", Count),
        ("1234567890r/d", Count),
        ("0.1234567890r/s", Count),
        ("0r/s", Zero),
        ("0.000r/s", Zero),
        ("000r/d", Zero),
        ("1r/", Period),
        ("1r/S", Period),
        ("1r/sec", Period),
        ("1r/s ", Period),
        ("1r/5", Period),
        ("1r/0", Period),
        ("1r/0s", Period),
        ("1r/1.5s", Period),
        ("1r/-1s", Period),
        ("1r/367d", Period),
        ("1r/99999999999999999999d", Period),
        ("1r/5r/s", Period),
        ("1000001r/s", TooFast),
        ("1000000.000000001r/s", TooFast),
        ("1r/999ns", TooFast),
        ("60000001r/m", TooFast),
    ] {
        assert_eq!(text.parse::<Rate>(), Err(error), "{text:?}");
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

#[test]
fn an_interval_is_rounded_up_to_a_nanosecond() {
    for (text, nanos) in [
        ("1r/m", 60_000_000_000),
        ("3r/s", 333_333_334),
        ("7r/m", 8_571_428_572),
        ("0.5r/s", 2_000_000_000),
        ("5r/250ms", 50_000_000),
        ("1000000r/s", 1_000),
    ] {
        assert_eq!(rate(text).interval(), Duration::from_nanos(nanos), "{text}");
    }
}

#[test]
fn a_part_of_a_rate_is_exact_up_to_nine_decimals() {
    for (text, part, scaled) in [
        ("200r/s", "50%", "100r/s"),
        ("200r/s", "28.5%", "57r/s"),
        ("200r/s", "0.0001%", "0.0002r/s"),
        ("1r/m", "33.3333%", "0.333333r/m"),
        ("2.5r/250ms", "10%", "0.25r/250ms"),
        ("0.123456789r/s", "50%", "0.061728395r/s"),
        ("0.000000001r/d", "0.0001%", "0.000000001r/d"),
        ("1000000r/s", "100%", "1000000r/s"),
        ("999999999.999999999r/d", "0.0001%", "1000r/d"),
    ] {
        let scaled_by = |part: &str| rate(text).scaled(part.parse().unwrap());
        assert_eq!(scaled_by(part).to_string(), scaled, "{part} of {text}");
        assert_eq!(scaled_by("100%"), rate(text));
    }
}

proptest! {
    #![proptest_config(testing::config())]

    /// Compares fractions of requests a nanosecond, without rounding.
    #[test]
    fn a_part_of_a_rate_is_between_it_and_the_rate_itself(
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

    #[test]
    fn every_rate_that_reads_prints_so_that_it_reads_back(
        text in "[0-9]{1,9}(\\.[0-9]{1,9})?r/([smhd]|[1-9][0-9]{0,3}(ns|us|ms|s|m|h|d))"
    ) {
        if let Ok(rate) = text.parse::<Rate>() {
            prop_assert_eq!(rate.to_string().parse(), Ok(rate));
        }
    }
}
