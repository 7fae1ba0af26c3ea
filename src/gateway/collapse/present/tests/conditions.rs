//! Tests of `If-None-Match` and `If-Modified-Since`.

use super::*;

/// Returns whether a request with these fields gets 304 for this answer.
fn is_unmodified(answer: &AnswerHead, fields: &[(&str, &str)]) -> bool {
    request(fields).present(answer, 10) == Presented::NotModified
}

#[test]
fn entity_tags_are_compared_weakly_wherever_they_stand() {
    // The answer's tag, whether it is listed, and lists of tags.
    for (own, is_listed, lists) in [
        (
            r#""abc""#,
            true,
            r#""abc"|W/"abc"|"abc", "1", "2"|"1", "abc", "2"|"1",W/"2","abc""#,
        ),
        (r#""abc""#, true, ", \"abc\",|\t\"abc\" "),
        (r#"W/"abc""#, true, r#""abc"|W/"abc""#),
        ("\"abc\u{fc}\"", true, "\"abc\u{fc}\""),
        (r#""a,b""#, true, r#""a,b"|"x,y", "a,b""#),
        (r#""""#, true, r#""""#),
        (r#""b""#, false, r#""a,b""#),
        (r#"", ""#, false, r#""a", "b""#),
        (r#""abc""#, false, r#""ABC"|"abcd"|"ab", "c"|abc|"abc|"#),
        ("abc", false, r#""abc"|abc"#),
        (r#"w/"abc""#, false, r#""abc""#),
        (r#"W"abc""#, false, r#""abc""#),
    ] {
        let answer = head(200, &[("ETag", own)]);
        for tags in lists.split('|') {
            let found = is_unmodified(&answer, &[("if-none-match", tags)]);
            assert_eq!(found, is_listed, "{own} {tags}");
        }
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
