//! Tests of `If-None-Match` and `If-Modified-Since`.

use super::*;

fn is_unmodified(answer: &AnswerHead, fields: &[(&str, &str)]) -> bool {
    request(fields).present(answer, 10) == Presented::NotModified
}

#[test]
fn entity_tags_are_compared_weakly_wherever_they_stand() {
    for (own, tags, expected) in [
        ("\"abc\"", "\"abc\"", true),
        ("\"abc\"", "W/\"abc\"", true),
        ("W/\"abc\"", "\"abc\"", true),
        ("W/\"abc\"", "W/\"abc\"", true),
        ("\"abc\"", "\"abc\", \"1\", \"2\"", true),
        ("\"abc\"", "\"1\", \"abc\", \"2\"", true),
        ("\"abc\"", "\"1\",W/\"2\",\"abc\"", true),
        ("\"abc\"", ", \"abc\",", true),
        ("\"abc\"", "\t\"abc\" ", true),
        ("\"abc\u{fc}\"", "\"abc\u{fc}\"", true),
        ("\"a,b\"", "\"a,b\"", true),
        ("\"a,b\"", "\"x,y\", \"a,b\"", true),
        ("\"\"", "\"\"", true),
        ("\"b\"", "\"a,b\"", false),
        ("\", \"", "\"a\", \"b\"", false),
        ("\"abc\"", "\"ABC\"", false),
        ("\"abc\"", "\"abcd\"", false),
        ("\"abc\"", "\"ab\", \"c\"", false),
        ("\"abc\"", "abc", false),
        ("\"abc\"", "\"abc", false),
        ("\"abc\"", "", false),
        ("abc", "\"abc\"", false),
        ("abc", "abc", false),
        ("w/\"abc\"", "\"abc\"", false),
        ("W\"abc\"", "\"abc\"", false),
    ] {
        let answer = head(200, &[("ETag", own)]);
        let found = is_unmodified(&answer, &[("if-none-match", tags)]);
        assert_eq!(found, expected, "{own} {tags}");
    }
}

#[test]
fn a_star_is_any_answer() {
    for answer in [validated(), head(200, &[])] {
        assert!(is_unmodified(&answer, &[("if-none-match", "*")]));
        assert!(is_unmodified(&answer, &[("if-none-match", " * ")]));
        assert!(!is_unmodified(&answer, &[("if-none-match", "\"*\"")]));
    }
}

#[test]
fn an_answer_without_a_tag_is_no_tag_of_the_list() {
    let answer = head(200, &[("Last-Modified", MODIFIED)]);
    assert!(!is_unmodified(&answer, &[("if-none-match", "\"abc\"")]));
    assert!(!is_unmodified(&answer, &[("if-none-match", "\"\"")]));
}

#[test]
fn if_modified_since_at_or_after_the_last_change_is_unmodified() {
    for (since, expected) in [
        (BEFORE, false),
        (MODIFIED, true),
        (AFTER, true),
        ("Sunday, 06-Nov-94 08:49:37 GMT", true),
        ("Sun Nov  6 08:49:37 1994", true),
        ("Sunday, 06-Nov-94 08:49:36 GMT", false),
        ("Sun, 06 Nov 2094 08:49:37 UTC", false),
        ("784111777", false),
        ("", false),
    ] {
        let found = is_unmodified(&validated(), &[("if-modified-since", since)]);
        assert_eq!(found, expected, "{since}");
    }
}

#[test]
fn without_a_time_of_change_there_is_a_change() {
    for answer in [head(200, &[]), head(200, &[("Last-Modified", "0")])] {
        assert!(!is_unmodified(&answer, &[("if-modified-since", AFTER)]));
    }
}

#[test]
fn tags_win_over_times() {
    let both = |tags, since| {
        let fields = [("if-none-match", tags), ("if-modified-since", since)];
        is_unmodified(&validated(), &fields)
    };
    assert!(both("\"abc\"", BEFORE));
    assert!(!both("\"other\"", AFTER));
    assert!(!both("", AFTER));
}

#[test]
fn no_change_wins_over_a_range() {
    let unchanged = request(&[("if-none-match", "\"abc\""), ("range", "bytes=90-")]);
    assert_eq!(unchanged.present(&validated(), 10), Presented::NotModified);
    let changed = request(&[("if-none-match", "\"other\""), ("range", "bytes=1-2")]);
    assert_eq!(changed.present(&validated(), 10), Presented::Part(1..3));
}
