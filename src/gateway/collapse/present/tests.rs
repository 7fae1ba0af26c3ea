//! Tests of conditions and ranges (RFC 9110, sections 13 and 14).

mod conditions;
mod ranges;

use limit::Moment;

use super::*;
use crate::collapse::terms::Terms;
use crate::collapse::{AnswerFields, AnswerHead};

const BEFORE: &str = "Sun, 06 Nov 1994 08:49:36 GMT";
const MODIFIED: &str = "Sun, 06 Nov 1994 08:49:37 GMT";
const AFTER: &str = "Sun, 06 Nov 1994 08:49:38 GMT";

/// Returns the head of an answer with these fields.
fn head(status: u16, lines: &[(&str, &str)]) -> AnswerHead {
    let mut fields = AnswerFields::default();
    for (name, value) in lines {
        fields.push(name.as_bytes(), value.as_bytes());
    }
    AnswerHead {
        status,
        reason: Vec::new(),
        fields,
        // Monday, 07 Nov 1994.
        arrived: Moment::from_nanos(784_200_000_000_000_000),
        terms: Terms::default(),
        billed: None,
    }
}

/// Returns the head of an answer with both validators, made a second after its last change.
fn validated() -> AnswerHead {
    let tag = ("etag", "\"abc\"");
    head(200, &[tag, ("Last-Modified", MODIFIED), ("DATE", AFTER)])
}

/// Returns the conditions of a request with these fields.
fn request<'a>(fields: &[(&str, &'a str)]) -> Preconditions<'a> {
    let find = |name: &str| {
        let field = fields.iter().find(|it| it.0 == name);
        field.map(|it| it.1.as_bytes())
    };
    Preconditions {
        if_none_match: find("if-none-match"),
        if_modified_since: find("if-modified-since"),
        range: find("range"),
        if_range: find("if-range"),
    }
}

#[test]
fn a_request_without_conditions_gets_all() {
    assert_eq!(request(&[]).present(&validated(), 10), Presented::Whole);
    assert_eq!(request(&[]).present(&head(200, &[]), 0), Presented::Whole);
}

#[test]
fn only_a_success_has_conditions_and_parts() {
    for fields in [
        [("if-none-match", "\"abc\"")],
        [("if-none-match", "*")],
        [("if-modified-since", AFTER)],
        [("range", "bytes=0-1")],
        [("range", "bytes=10-")],
    ] {
        for status in [203, 204, 300, 301, 308, 404, 405, 410, 414, 501] {
            let mut answer = validated();
            answer.status = status;
            let found = request(&fields).present(&answer, 10);
            assert_eq!(found, Presented::Whole, "{status} {fields:?}");
        }
        assert_ne!(request(&fields).present(&validated(), 10), Presented::Whole);
    }
}
