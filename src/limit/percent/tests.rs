//! Tests of percentages.

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
    for (error, texts) in [
        (
            Form,
            "|%|10|0.1|10 %| 10%|-10%|+10%|1e1%|.5%|5.%|1.2.3%|10%%|0.00001%|1234567890%|١%",
        ),
        (Range, "0%|0.0000%|100.0001%|101%|999999999%"),
    ] {
        for text in texts.split('|') {
            assert_eq!(text.parse::<Percent>(), Err(error), "{text:?}");
        }
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
