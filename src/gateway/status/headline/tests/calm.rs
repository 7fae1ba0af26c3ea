//! Nothing is wrong, or the file is.

use super::*;
use crate::status::views::Problem;

const SITUATIONS: &[Situation] = &[
    Situation {
        change: |_| {},
        says: &["Answers come as usual", "10 a second", "none delayed"],
        says_not: MORE,
        ..CALM
    },
    Situation {
        change: |it| {
            it.zones[0].delayed = 3;
            it.zones[0].wait_p95 = Some(0.16);
        },
        says: &["none rejected; those that waited went on within 160 ms"],
        says_not: &["none delayed"],
        ..CALM
    },
    Situation {
        // A client that left got no answer.
        change: |it| {
            it.codes = counts(&[("2xx", 10), ("4xx", 2)]);
            it.left = 1;
        },
        says: &["Answers: 11 a second"],
        ..CALM
    },
    Situation {
        change: |it| {
            it.codes = counts(&[("4xx", 1)]);
            it.left = 1;
        },
        says: &["No answers in the last 10 s: 10 clients left before one."],
        says_not: &["Answers:"],
        ..CALM
    },
    Situation {
        change: |it| {
            it.codes.clear();
            it.zones[0].passed = 0;
            it.origins[0].codes.clear();
        },
        cause: "idle",
        severity: "none",
        about: None,
        says: &["No requests in the last 10 s"],
        says_not: MORE,
    },
    Situation {
        change: |it| {
            it.codes.clear();
            it.zones[0].passed = 0;
            it.origins[0].codes.clear();
            it.origins[0].in_flight = 81;
        },
        cause: "idle",
        severity: "none",
        about: None,
        says: &[
            "No request has ended in the last 10 s. Under way: 81 requests at api, of which none was answered",
        ],
        says_not: &["No requests in"],
    },
    Situation {
        change: |it| {
            it.error = Some(Problem {
                line: Some(7),
                message: "unknown field".into(),
                ..Problem::default()
            });
        },
        cause: "file_error",
        severity: "warn",
        about: None,
        says: &["previous settings stay in force", "Line 7: unknown field."],
        says_not: &[],
    },
    Situation {
        // One client in ten that leaves is nothing to act on.
        change: |it| {
            it.zones[0].cancelled = 1;
            it.zones[0].left = 1;
        },
        says_not: &["leave"],
        ..CALM
    },
    Situation {
        change: |it| it.zones[0].dry_run = 1,
        says: &["Dry run would have limited requests in per_client"],
        ..CALM
    },
];

#[test]
fn calm_seconds_and_errors_in_the_file_have_their_headlines() {
    check_all(SITUATIONS);
}

#[test]
fn nothing_is_said_before_the_second_sample() {
    let mut second = fine();
    second.seq = 1;
    second.zones[0].rejected = 1_000;
    second.zones[0].rejections = counts(&[("burst", 1_000)]);
    let told = headline(&Recent::last_of(std::slice::from_ref(&second), 10));
    assert_eq!(told.cause.as_str(), "idle");
    // The first sample counts since the start: it is no second.
    let samples = [second, Sample { seq: 2, ..fine() }];
    assert_eq!(
        headline(&Recent::last_of(&samples, 10)).cause.as_str(),
        "fine"
    );
}
