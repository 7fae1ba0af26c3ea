use proptest::prelude::*;
use testing::config;

use super::*;

#[test]
fn reads_percentages_and_prints_them() {
    for (text, millionths, printed) in [
        ("10%", 100_000, "10%"),
        ("2.5%", 25_000, "2.5%"),
        ("0.0001%", 1, "0.0001%"),
        ("007.50%", 75_000, "7.5%"),
        ("100%", 1_000_000, "100%"),
        ("100.0000%", 1_000_000, "100%"),
        ("12.3456%", 123_456, "12.3456%"),
        ("5.05%", 50_500, "5.05%"),
    ] {
        let percent = text.parse::<Percent>().unwrap();
        assert_eq!(percent.millionths(), millionths, "{text}");
        assert_eq!(percent.to_string(), printed, "{text}");
        assert_eq!(Percent::from_millionths(millionths), percent, "{text}");
    }
    assert_eq!(format!("{:?}", Percent::ALL), "Percent(100%)");
}

#[test]
fn says_what_is_wrong() {
    use PercentError::{Form, Range};
    for (text, error) in [
        ("", Form),
        ("%", Form),
        ("10", Form),
        ("0.1", Form),
        ("10 %", Form),
        (" 10%", Form),
        ("-10%", Form),
        ("+10%", Form),
        ("1e1%", Form),
        (".5%", Form),
        ("5.%", Form),
        ("1.2.3%", Form),
        ("10%%", Form),
        ("0.00001%", Form),
        ("1234567890%", Form),
        ("١%", Form),
        ("0%", Range),
        ("0.0000%", Range),
        ("100.0001%", Range),
        ("101%", Range),
        ("999999999%", Range),
    ] {
        assert_eq!(text.parse::<Percent>(), Err(error), "{text:?}");
    }
    assert!(Form.to_string().contains("2.5%") && Range.to_string().contains("100%"));
}

#[test]
fn numbers_out_of_range_take_the_nearest_bound() {
    assert_eq!(Percent::from_millionths(0).millionths(), 1);
    assert_eq!(Percent::from_millionths(u32::MAX), Percent::ALL);
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn what_is_printed_reads_back(millionths in 1..=1_000_000_u32, text in "\\PC{0,8}%?") {
        let percent = Percent::from_millionths(millionths);
        prop_assert_eq!(percent.to_string().parse(), Ok(percent));
        let _ = text.parse::<Percent>();
    }
}
