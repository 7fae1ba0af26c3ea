//! Tests of `X-Accel-Expires`, as nginx reads it (`ngx_http_upstream_process_accel_expires`).

use super::*;

/// One minute after all requests here leave for the origin.
const IN_A_MINUTE: &str = "X-Accel-Expires: @784111837";

#[test]
fn accel_expires_has_precedence_over_cache_control_and_expires() {
    let before = format!("Expires: {MINUTE_BEFORE}");
    let later = format!("Expires: {MINUTE_LATER}");
    let date = format!("Date: {MINUTE_BEFORE}");
    for (lines, expected) in [
        (&["X-Accel-Expires: 5"][..], 5),
        (&["x-accel-expires: 0005"], 5),
        (&["X-Accel-Expires: 5", "Cache-Control: max-age=600"], 5),
        (&["Cache-Control: s-maxage=600", "X-Accel-Expires: 5"], 5),
        (&["X-Accel-Expires: 600", "Cache-Control: max-age=5"], 600),
        (&["X-Accel-Expires: 600", "Cache-Control: max-age=0"], 600),
        (&["X-Accel-Expires: 600", "Cache-Control: no-cache"], 600),
        (&["Cache-Control: no-store", "X-Accel-Expires: 600"], 600),
        (&["Cache-Control: private", "X-Accel-Expires: 600"], 600),
        (&["X-Accel-Expires: 600", &before], 600),
        (&["X-Accel-Expires: 600", "Expires: 0"], 600),
        (&["X-Accel-Expires: 5", &later], 5),
        // It counts from the arrival, whatever the age of the answer.
        (&["X-Accel-Expires: 5", "Age: 100"], 5),
        (&["X-Accel-Expires: 5", &date], 5),
        (&[IN_A_MINUTE], 60),
        (&[IN_A_MINUTE, "Age: 100", "Cache-Control: max-age=5"], 60),
        // `keep` is the upper bound.
        (&["X-Accel-Expires: 9223372036854775807"], 3600),
        (&["X-Accel-Expires: @9223372036854775807"], 3600),
    ] {
        assert_eq!(fresh_for(lines), expected, "{lines:?}");
    }
}

#[test]
fn zero_and_a_time_that_has_passed_are_for_one_request() {
    for value in ["0", "00", "@0", "@784111776", "@784111777"] {
        let line = format!("X-Accel-Expires: {value}");
        let lines = [&*line, "Cache-Control: public, max-age=600"];
        assert_eq!(judge(&lines), Verdict::Unshareable, "{line}");
        assert_eq!(judge(&[&line]), Verdict::Unshareable, "{line}");
    }
}

#[test]
fn an_invalid_number_is_ignored() {
    let values = "|@|-1|+5|5.0|5s|0x5|5, 5|5 5|\"5\"|@@5|@ 5|@-5|5@|off|\u{665}|\
        9223372036854775808|@99999999999999999999|Sun, 06 Nov 1994 08:49:37 GMT";
    for value in values.split('|') {
        let line = format!("X-Accel-Expires: {value}");
        let with = |other: &'static str| fresh_for(&[&*line, other]);
        assert_eq!(with("Cache-Control: max-age=600"), 600, "{line}");
        assert_eq!(with("Cache-Control: public"), 3600, "{line}");
        assert_eq!(with("Cache-Control: private"), 0, "{line}");
    }
}

#[test]
fn the_first_line_counts() {
    for (lines, expected) in [
        (["X-Accel-Expires: 5", "X-Accel-Expires: 600"], 5),
        (["X-Accel-Expires: 5", "X-Accel-Expires: 0"], 5),
        (["X-Accel-Expires: 0", "X-Accel-Expires: 5"], 0),
        (["X-Accel-Expires: 5", "X-Accel-Expires: x"], 5),
        // The second line is not read even if the first one is invalid.
        (["X-Accel-Expires: x", "X-Accel-Expires: 5"], 3600),
    ] {
        assert_eq!(fresh_for(&lines), expected, "{lines:?}");
    }
}

#[test]
fn accel_expires_does_not_share_private_or_partial_answers() {
    let lines = "Set-Cookie: a=b|Vary: *|Vary: User-Agent|Content-Type: text/event-stream";
    for line in lines.split('|') {
        let found = judge(&["X-Accel-Expires: 600", line]);
        assert_eq!(found, Verdict::Unshareable, "{line}");
    }
    let judge = |status| judge_with(&collapse(3600, 0), status, &["X-Accel-Expires: 600"]);
    for status in [206, 302, 403] {
        assert_eq!(judge(status), Verdict::Unshareable, "{status}");
    }
    assert_eq!(judge(503), Verdict::Failed);
}

#[test]
fn cache_control_still_says_what_a_stale_answer_may_do() {
    let collapse = collapse(3600, 100);
    let line = "X-Accel-Expires: 10";
    let cases = [
        ("Cache-Control: public", (10, 10, 110)),
        ("Cache-Control: must-revalidate", (10, 10, 10)),
        ("Cache-Control: stale-while-revalidate=5", (10, 15, 110)),
        (
            "Cache-Control: max-age=1, stale-if-error=500",
            (10, 10, 510),
        ),
    ];
    for (other, expected) in cases {
        assert_eq!(ends(terms(&[line, other]), &collapse), expected, "{other}");
    }
}
