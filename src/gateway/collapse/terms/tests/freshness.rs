//! Tests of how long an answer is fresh (RFC 9111, sections 4.2.1, 5.2.2 and 5.3).

use super::*;

#[test]
fn an_answer_without_a_lifetime_has_that_of_keep() {
    for lines in [
        &[][..],
        &["Last-Modified: Sun, 06 Nov 1994 08:00:00 GMT", "ETag: x"],
        &["Cache-Control: public"],
        &["Cache-Control: foobar"],
        &["Pragma: no-cache"],
        &["Set-Cookie2: a=b"],
        &["X-Cache-Control: no-store"],
    ] {
        for keep in [0, 1, 3600] {
            let collapse = collapse(keep, 0);
            let Verdict::Shared(terms) = judge_with(&collapse, 200, lines) else {
                panic!("{lines:?}");
            };
            assert_eq!(ends(terms, &collapse).0, keep, "{lines:?}");
        }
    }
}

#[test]
fn keep_is_never_beyond_what_the_answer_allows() {
    let terms = terms(&["Cache-Control: max-age=60"]);
    for (keep, expected) in [(0, 0), (1, 1), (59, 59), (60, 60), (61, 60), (3600, 60)] {
        assert_eq!(ends(terms, &collapse(keep, 0)).0, expected, "{keep}");
    }
}

#[test]
fn max_age_is_read_as_caches_do() {
    controls_are_fresh_for(
        600,
        "max-age=600|MaX-aGe=600|foobar, max-age=600|max-age=600, foobar=\"a, b\"|max-age=000600|\
         max-age=\"600\"|immutable, max-age=600|must-revalidate, max-age=600|max-age= 600|\
         max-age=600, max-age=600",
    );
    controls_are_fresh_for(
        3600,
        "max-age=2147483647|max-age=2147483648|max-age=2147483649|max-age=99999999999",
    );
    controls_are_fresh_for(
        1,
        "extension=\"max-age=600\", max-age=1|max-age=1, extension=\"max-age=600\"",
    );
    controls_are_fresh_for(
        0,
        "max-age=0|max-age=-600|max-age='600'|max-age=600.0|max-age=600.5|max-age=a600|\
         max-age=600a|max-age=|max-age|max-age=600, max-age=1|max-age=1, max-age=600",
    );
    let lines = ["Cache-Control: max-age=600", "Cache-Control: max-age=1"];
    assert_eq!(fresh_for(&lines), 0);
}

#[test]
fn s_maxage_wins_over_max_age_which_wins_over_expires() {
    controls_are_fresh_for(600, "s-maxage=600|max-age=1, s-maxage=600");
    controls_are_fresh_for(1, "max-age=600, s-maxage=1|s-maxage=1, max-age=600");
    controls_are_fresh_for(0, "max-age=600, s-maxage=0");
    let lines = ["Cache-Control: max-age=600", "Cache-Control: s-maxage=1"];
    assert_eq!(fresh_for(&lines), 1);
    for (value, expires, expected) in [
        ("max-age=0, s-maxage=600", MINUTE_BEFORE, 600),
        ("max-age=600, s-maxage=x", MINUTE_LATER, 0),
        ("max-age=600", MINUTE_BEFORE, 600),
        ("max-age=600", "0", 600),
        ("max-age=0", MINUTE_LATER, 0),
        ("public", MINUTE_LATER, 60),
    ] {
        let lines = [control(value), format!("Expires: {expires}")];
        assert_eq!(fresh_for(&[&lines[0], &lines[1]]), expected, "{lines:?}");
    }
}

#[test]
fn expires_counts_from_the_date_of_the_answer() {
    for (expires, date, expected) in [
        (MINUTE_LATER, Some(DATE), 60),
        (MINUTE_LATER, None, 60),
        (MINUTE_LATER, Some("foo"), 60),
        (DATE, Some(DATE), 0),
        (MINUTE_BEFORE, Some(DATE), 0),
        (MINUTE_BEFORE, None, 0),
        // The clock of the origin is a minute ahead.
        (MINUTE_LATER, Some(MINUTE_LATER), 0),
        ("Sun, 06 Nov 1994 08:51:37 GMT", Some(MINUTE_LATER), 60),
        // The answer was in transit for a minute, or the clock of the origin is behind.
        (MINUTE_LATER, Some(MINUTE_BEFORE), 60),
        (DATE, Some(MINUTE_BEFORE), 0),
        ("Sunday, 06-Nov-94 08:50:37 GMT", Some(DATE), 60),
        ("Fri, 31 Dec 9999 23:59:59 GMT", Some(DATE), 3600),
    ] {
        let expires = format!("Expires: {expires}");
        let mut lines = vec![expires.as_str()];
        let date = date.map(|date| format!("Date: {date}"));
        lines.extend(date.as_deref());
        assert_eq!(fresh_for(&lines), expected, "{lines:?}");
    }
}

#[test]
fn expires_that_cannot_be_read_has_passed() {
    let values = "0|-1||Sun, 06 Nov 2094 08:50:37 UTC|Thursday, 06-Nov-68 08:50:37 GMT";
    for value in values.split('|') {
        let line = format!("Expires: {value}");
        assert_eq!(judge(&[&line]), Verdict::Unshareable, "{line}");
    }
    let line = format!("Expires: {MINUTE_LATER}");
    assert_eq!(judge(&[&line, &line]), Verdict::Unshareable);
    assert_eq!(judge(&[&line, "Expires: 0"]), Verdict::Unshareable);
}
