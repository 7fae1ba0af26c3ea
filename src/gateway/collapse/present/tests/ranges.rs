//! Tests of `Range` and `If-Range`.

use super::*;
use Presented::{Part, Unsatisfiable, Whole};

/// Returns what a request with this `Range` gets of a body of `length` bytes.
fn range(range: &str, length: usize) -> Presented {
    request(&[("range", range)]).present(&head(200, &[]), length)
}

#[test]
fn one_range_gets_its_bytes() {
    for (part, texts) in [
        (0..1, "bytes=0-0"),
        (0..2, "bytes=0-1"),
        (2..6, "bytes=2-5|Bytes=2-5|bytes= 2-5 |bytes=002-0005"),
        (9..10, "bytes=9-9|bytes=-1"),
        (0..10, "bytes=0-9|bytes=0-|bytes=-10|bytes=-99"),
        (5..10, "bytes=5-10|bytes=5-99"),
        (1..10, "bytes=1-"),
    ] {
        for text in texts.split('|') {
            assert_eq!(range(text, 10), Part(part.clone()), "{text}");
        }
    }
}

#[test]
fn a_range_behind_the_end_cannot_be_satisfied() {
    for text in ["bytes=10-", "bytes=10-20", "bytes=99-100", "bytes=-0"] {
        assert_eq!(range(text, 10), Unsatisfiable, "{text}");
    }
    let huge = "9".repeat(40);
    assert_eq!(range(&format!("bytes={huge}-"), 10), Unsatisfiable);
    assert_eq!(range(&format!("bytes={huge}-{huge}"), 10), Unsatisfiable);
    assert_eq!(range(&format!("bytes=4-{huge}"), 10), Part(4..10));
    assert_eq!(range(&format!("bytes=-{huge}"), 10), Part(0..10));
}

#[test]
fn anything_but_one_valid_range_gets_the_whole_answer() {
    let texts = "bytes=0-1,3-4|bytes=0-1, -1|bytes=-1,0-1|bytes=0-,|bytes=5-2|bytes=-|bytes=|\
        bytes||=0-1|bytes=a-b|bytes=1-b|bytes=a-1|bytes=--1|bytes=+1-2|bytes=1-2-3|\
        bytes=1.0-2|bytes:0-1|0-1|items=0-1|items=99-|bytesx=0-1|bytes=0\u{661}-5";
    for text in texts.split('|') {
        assert_eq!(range(text, 10), Whole, "{text}");
    }
    let bytes = Preconditions {
        range: Some(b"bytes=0-\xff"),
        ..Preconditions::default()
    };
    assert_eq!(bytes.present(&head(200, &[]), 10), Whole);
}

#[test]
fn an_empty_body_has_no_first_byte_but_a_last_part() {
    for text in ["bytes=0-0", "bytes=0-", "bytes=1-", "bytes=-0"] {
        assert_eq!(range(text, 0), Unsatisfiable, "{text}");
    }
    // Satisfiable (RFC 9110, section 14.1.2), but 206 cannot express an empty range.
    assert_eq!(range("bytes=-5", 0), Whole);
}

#[test]
fn if_range_with_a_strong_tag_counts_for_exactly_this_answer() {
    for (own, given, is_same) in [
        ("\"abc\"", "\"abc\"", true),
        ("\"abc\"", " \"abc\" ", true),
        ("\"abc\"", "\"other\"", false),
        ("\"abc\"", "W/\"abc\"", false),
        ("W/\"abc\"", "\"abc\"", false),
        ("W/\"abc\"", "W/\"abc\"", false),
        ("\"abc\"", "abc", false),
        ("\"abc\"", "\"abc\", \"other\"", false),
        ("\"abc\"", "*", false),
        ("\"abc\"", "", false),
    ] {
        let fields = [("range", "bytes=1-2"), ("if-range", given)];
        let found = request(&fields).present(&head(200, &[("ETag", own)]), 10);
        let expected = if is_same { Part(1..3) } else { Whole };
        assert_eq!(found, expected, "{own} {given}");
    }
    let fields = [("range", "bytes=1-2"), ("if-range", "\"abc\"")];
    assert_eq!(request(&fields).present(&head(200, &[]), 10), Whole);
}

#[test]
fn if_range_with_a_time_counts_for_exactly_this_time_if_it_is_strong() {
    let with = |modified: &str, date: &str, given: &str| {
        let mut lines = vec![("Last-Modified", modified), ("Date", date)];
        lines.retain(|it| !it.1.is_empty());
        let fields = [("range", "bytes=1-2"), ("if-range", given)];
        request(&fields).present(&head(200, &lines), 10) == Part(1..3)
    };
    assert!(with(MODIFIED, AFTER, MODIFIED));
    assert!(with(MODIFIED, AFTER, "Sun Nov  6 08:49:37 1994"));
    assert!(!with(MODIFIED, AFTER, BEFORE));
    assert!(!with(MODIFIED, AFTER, AFTER), "no exact match");
    assert!(!with(MODIFIED, MODIFIED, MODIFIED), "weak");
    assert!(!with(MODIFIED, "", MODIFIED), "of no known strength");
    assert!(!with("", AFTER, MODIFIED));
    assert!(!with("", "", "0"));
    assert!(!with("0", AFTER, "0"));
}

#[test]
fn if_range_without_a_range_asks_for_all() {
    let fields = [("if-range", "\"abc\"")];
    assert_eq!(request(&fields).present(&validated(), 10), Whole);
    // A range that does not count cannot fail either.
    let fields = [("range", "bytes=99-"), ("if-range", "\"other\"")];
    assert_eq!(request(&fields).present(&validated(), 10), Whole);
}
