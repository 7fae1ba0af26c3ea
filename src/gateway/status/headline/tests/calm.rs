//! Tests of headlines while nothing is wrong, and of a wrong configuration file.

use super::*;
use crate::status::sample::Problem;

#[test]
fn calm_seconds_and_errors_in_the_file_have_their_headlines() {
    reported("fine fine", |_| {}).says("Answers come as usual … 10 a second … none delayed");
    reported("fine fine", |it| {
        it.zones[0].delayed = 3;
        it.zones[0].wait_p95 = Some(0.16);
    })
    .says("none rejected; those that waited went on within 160 ms")
    .not(&["none delayed"]);
    // A disconnected client got no response.
    reported("fine fine", |it| {
        it.codes = counts(&[("2xx", 10), ("4xx", 2)]);
        it.left = 1;
    })
    .says("Answers: 11 a second");
    reported("fine fine", |it| {
        it.codes = counts(&[("4xx", 1)]);
        it.left = 1;
    })
    .says("No answers in the last 10 s: 10 clients left before one.")
    .not(&["Answers:"]);
    reported("none idle", |it| {
        it.codes.clear();
        it.zones[0].passed = 0;
        it.origins[0].codes.clear();
    })
    .says("No requests in the last 10 s");
    reported("none idle", |it| {
        it.codes.clear();
        it.zones[0].passed = 0;
        it.origins[0].codes.clear();
        it.origins[0].in_flight = 81;
    })
    .says("No request has ended in the last 10 s. … 81 requests at api, of which none was answered")
    .not(&["No requests in"]);
    reported("warn file_error", |it| {
        it.error = Some(Problem {
            line: Some(7),
            message: "unknown field".into(),
            ..Problem::default()
        });
    })
    .says("previous settings stay in force … Line 7: unknown field.");
    // Nobody has to act if one client in ten disconnects.
    reported("fine fine", |it| {
        it.zones[0].cancelled = 1;
        it.zones[0].left = 1;
    })
    .not(&["leave"]);
    reported("fine fine", |it| it.zones[0].dry_run = 1)
        .says("Dry run would have limited requests in per_client");
}

#[test]
fn nothing_is_said_before_the_second_sample() {
    let mut second = fine();
    second.seq = 1;
    second.zones[0].rejected = 1_000;
    second.zones[0].rejections = counts(&[("burst", 1_000)]);
    let reported = headline(&Recent::last_of(std::slice::from_ref(&second), 10));
    assert_eq!(reported.finding.cause.label(), "idle");
    // The first sample counts since the start: it does not cover one second.
    let samples = [second, Sample { seq: 2, ..fine() }];
    assert_eq!(
        headline(&Recent::last_of(&samples, 10))
            .finding
            .cause
            .label(),
        "fine"
    );
}
