//! Tests of the age of an answer (RFC 9111, sections 4.2.3 and 5.1).

use super::*;

/// Returns the age of an answer with these fields that arrives `took` after its request.
fn age_after(took: Duration, lines: &[&str]) -> Duration {
    let mut lines = lines.to_vec();
    lines.push("Cache-Control: max-age=36000");
    match judge_after(&collapse(3600, 0), 200, &lines, took) {
        Verdict::Shared(terms) => terms.age(Duration::ZERO),
        other => panic!("{lines:?}: {other:?}"),
    }
}

fn age(lines: &[&str]) -> u64 {
    age_after(Duration::ZERO, lines).as_secs()
}

#[test]
fn age_is_a_number_of_seconds_or_ignored() {
    assert_eq!(age(&["AGE: 007200"]), 7200);
    for value in "0|abc|-7200|7200.0|7200;foo=bar|".split('|') {
        assert_eq!(age(&[&format!("Age: {value}")]), 0, "{value}");
    }
}

#[test]
fn the_first_of_several_ages_counts() {
    for (lines, expected) in [
        (&["Age: 7200, 0"][..], 7200),
        (&["Age: 0, 7200"], 0),
        (&["Age: 7200", "Age: 0"], 7200),
        (&["Age: 0", "Age: 7200"], 0),
        (&["Age: 0, 0"], 0),
        (&["Age: 3600", "Age: 3600"], 3600),
        (&["Age: x, 7200"], 0),
    ] {
        assert_eq!(age(lines), expected, "{lines:?}");
    }
}

#[test]
fn the_time_on_the_way_counts_only_for_an_answer_of_a_cache() {
    let took = Duration::from_millis(5500);
    assert_eq!(age_after(took, &["Age: 10"]), Duration::from_millis(15_500));
    assert_eq!(age_after(took, &["Age: 0"]), took);
    // The origin made it as the last step; `Date` is when it began.
    assert_eq!(age_after(took, &[]), Duration::ZERO);
    assert_eq!(age_after(took, &["Age: x"]), Duration::ZERO);
}

#[test]
fn a_date_in_the_past_makes_it_older() {
    for (date, expected) in [
        (MINUTE_BEFORE, 60),
        (DATE, 0),
        (MINUTE_LATER, 0),
        ("no date", 0),
        ("Sunday, 06-Nov-94 08:48:37 GMT", 60),
    ] {
        assert_eq!(age(&[&format!("Date: {date}")]), expected, "{date}");
    }
    let date = format!("Date: {DATE}");
    // `Date` has a resolution of one second.
    let found = age_after(Duration::from_millis(999), &[&date]);
    assert_eq!(found, Duration::ZERO);
    assert_eq!(age_after(secs(1), &[&date]), secs(1));
    let before = format!("Date: {MINUTE_BEFORE}");
    assert_eq!(age(&[&before, "Age: 30"]), 60);
    assert_eq!(age(&[&before, "Age: 90"]), 90);
}

#[test]
fn age_grows_from_the_arrival() {
    let terms = terms(&["Age: 30"]);
    assert_eq!(terms.age(secs(2)), secs(32));
    let far = u64::from(u32::MAX);
    assert_eq!(terms.age(secs(far)), secs(far + 30));
}

#[test]
fn an_answer_older_than_its_lifetime_is_for_one_request() {
    let later = format!("Expires: {MINUTE_LATER}");
    let (date, before) = (format!("Date: {DATE}"), format!("Date: {MINUTE_BEFORE}"));
    let much_later = "Expires: Sun, 06 Nov 1994 08:51:37 GMT";
    let ahead = "Date: Sun, 06 Nov 1994 08:51:27 GMT";
    for (expected, ages) in [
        (
            0,
            "7200|7200, 0|2147483647|2147483648|2147483649|99999999999999999999|3600",
        ),
        (1, "3599"),
        (3600, "-7200"),
    ] {
        for age in ages.split('|') {
            let lines = ["Cache-Control: max-age=3600", &format!("Age: {age}")];
            assert_eq!(fresh_for(&lines), expected, "{age}");
        }
    }
    for (lines, expected) in [
        (&["Cache-Control: max-age=60", &before][..], 0),
        (&["Cache-Control: max-age=90", &before], 30),
        (&[&later, &date, "Age: 45"], 15),
        (&[&later, &date, "Age: 60"], 0),
        // The clock of the origin is one minute behind the gateway's clock, then ahead of it.
        (&[&later, &before, "Age: 150"], 0),
        (&[much_later, ahead, "Age: 15"], 0),
    ] {
        assert_eq!(fresh_for(lines), expected, "{lines:?}");
    }
    // Without its own lifetime, the answer has that of `keep`, whatever its age.
    assert_eq!(fresh_for(&["Age: 7200"]), 3600);
}
