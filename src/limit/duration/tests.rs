use proptest::prelude::*;

use super::*;

#[test]
fn reads_a_whole_number_and_a_unit() {
    for (text, nanos) in [
        ("0", 0),
        ("0s", 0),
        ("1ns", 1),
        ("20us", 20_000),
        ("250ms", 250_000_000),
        ("75s", 75_000_000_000),
        ("5m", 300_000_000_000),
        ("2h", 7_200_000_000_000),
        ("1d", 86_400_000_000_000),
        ("007s", 7_000_000_000),
        ("18446744073709551615ns", u64::MAX),
    ] {
        assert_eq!(
            parse_duration(text),
            Some(Duration::from_nanos(nanos)),
            "{text}"
        );
    }
}

#[test]
fn reads_nothing_else() {
    for text in [
        "",
        "5",
        "00",
        "s",
        "1.5s",
        "-1s",
        "+1s",
        " 1s",
        "1s ",
        "1 s",
        "1S",
        "1sec",
        "1s500ms",
        "1µs",
        "٣s",
        "none",
        "18446744073709551616ns",
        "213504d",
    ] {
        assert_eq!(parse_duration(text), None, "{text:?}");
    }
}

#[test]
fn shows_the_largest_unit_that_needs_no_fraction() {
    for (nanos, shown) in [
        (0, "0"),
        (1, "1ns"),
        (1_500, "1500ns"),
        (250_000_000, "250ms"),
        (60_000_000_000, "1m"),
        (90_000_000_000, "90s"),
        (86_400_000_000_000, "1d"),
    ] {
        assert_eq!(show_duration(Duration::from_nanos(nanos)), shown);
    }
}

proptest! {
    #![proptest_config(testing::config())]

    #[test]
    fn what_is_shown_reads_back(count: u32, unit in 0..UNITS.len()) {
        let (_, nanos) = UNITS[unit];
        let span = Duration::from_nanos(u64::from(count).saturating_mul(nanos));
        prop_assert_eq!(parse_duration(&show_duration(span)), Some(span));
    }
}
