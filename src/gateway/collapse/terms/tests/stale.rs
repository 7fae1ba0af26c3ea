//! Tests of how long a stale answer may be used (RFC 9111, section 4.2.4, and RFC 5861).

use super::*;

/// Returns the windows in seconds, on a route with `keep` of 10 s and `stale` of 100 s.
fn windows(lines: &[&str]) -> (u64, u64, u64) {
    ends(terms(lines), &collapse(10, 100))
}

#[test]
fn stale_counts_from_the_end_of_keep() {
    assert_eq!(windows(&[]), (10, 10, 110));
    assert_eq!(windows(&["Cache-Control: max-age=3600"]), (10, 10, 110));
    assert_eq!(windows(&["Cache-Control: max-age=4"]), (4, 4, 104));
    let none = terms(&["Cache-Control: max-age=4"]);
    assert_eq!(ends(none, &collapse(0, 100)), (0, 0, 100));
    assert_eq!(ends(none, &collapse(10, 0)), (4, 4, 4));
}

#[test]
fn an_answer_that_must_be_revalidated_is_never_stale() {
    let values = "max-age=4, must-revalidate|Must-Revalidate, max-age=4|\
        max-age=4, proxy-revalidate|max-age=1, s-maxage=4|\
        max-age=4, must-revalidate, stale-if-error=50|\
        stale-while-revalidate=50, max-age=4, proxy-revalidate";
    for value in values.split('|') {
        assert_eq!(windows(&[&control(value)]), (4, 4, 4), "{value}");
    }
    // Without a lifetime, `keep` applies.
    assert_eq!(windows(&["Cache-Control: must-revalidate"]), (10, 10, 10));
}

#[test]
fn stale_while_revalidate_counts_from_the_end_of_the_lifetime() {
    for (line, expected) in [
        ("max-age=4, stale-while-revalidate=20", (4, 24, 104)),
        ("max-age=4, stale-while-revalidate=0", (4, 4, 104)),
        ("max-age=4, stale-while-revalidate=x", (4, 4, 104)),
        ("max-age=60, stale-while-revalidate=20", (10, 30, 110)),
        ("stale-while-revalidate=20", (10, 30, 110)),
        ("s-maxage=4, stale-while-revalidate=20", (4, 24, 4)),
    ] {
        assert_eq!(windows(&[&control(line)]), expected, "{line}");
    }
}

#[test]
fn stale_if_error_counts_from_the_end_of_the_lifetime() {
    for (line, expected) in [
        ("max-age=4, stale-if-error=200", (4, 4, 204)),
        ("max-age=4, stale-if-error=20", (4, 4, 104)),
        ("max-age=60, stale-if-error=200", (10, 10, 260)),
        ("s-maxage=4, stale-if-error=20", (4, 4, 24)),
        ("stale-if-error=200", (10, 10, 210)),
    ] {
        assert_eq!(windows(&[&control(line)]), expected, "{line}");
    }
    let terms = terms(&["Cache-Control: max-age=4, stale-if-error=200"]);
    assert_eq!(ends(terms, &collapse(10, 0)), (4, 4, 204));
}

#[test]
fn the_age_at_its_arrival_is_part_of_its_lifetime() {
    let lines = [
        "Cache-Control: max-age=8, stale-while-revalidate=20, stale-if-error=200",
        "Age: 5",
    ];
    assert_eq!(windows(&lines), (3, 23, 203));
}

#[test]
fn the_end_is_the_last_of_all_windows() {
    let collapse = collapse(10, 0);
    for (line, expected) in [
        ("max-age=4", 4),
        ("max-age=4, stale-while-revalidate=20", 24),
        ("max-age=4, stale-if-error=30", 34),
    ] {
        let terms = terms(&[&control(line)]);
        let windows = terms.windows(&collapse, ASKED);
        assert_eq!(windows.end(), ASKED + secs(expected), "{line}");
    }
}

#[test]
fn a_reload_counts_for_answers_that_are_kept() {
    let terms = terms(&["Cache-Control: max-age=60"]);
    assert_eq!(ends(terms, &collapse(1, 0)), (1, 1, 1));
    assert_eq!(ends(terms, &collapse(30, 5)), (30, 30, 35));
    assert_eq!(ends(terms, &collapse(3600, 5)), (60, 60, 65));
}
