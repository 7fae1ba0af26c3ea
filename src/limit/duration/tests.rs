//! Tests of the text of durations.

use super::*;

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
        assert_eq!(show_duration(Duration::from_nanos(nanos)), shown, "{nanos}");
    }
}
