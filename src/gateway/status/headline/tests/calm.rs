//! Tests of headlines while nothing is wrong, and of a wrong configuration file.
//!
//! `reported` changes a second in which nothing is wrong (`fine`), and checks the headline after
//! ten such seconds: severity, cause and subject. Then `says` checks parts of its text.

use super::*;
use crate::status::sample::Problem;

#[test]
fn calm_seconds_and_an_error_in_the_file_have_a_headline() {
    reported("fine fine", |_| {}).says("Answers come as usual … 10 a second … none delayed");
    reported("fine fine", |now| {
        now.zones[0].delayed = 3;
        now.zones[0].wait_p95 = Some(0.16);
    })
    .says("none rejected; those that waited went on within 160 ms")
    .not(&["none delayed"]);
    // A disconnected client got no response.
    reported("fine fine", |now| {
        now.codes = counts(&[("2xx", 10), ("4xx", 2)]);
        now.left = 1;
    })
    .says("Answers: 11 a second");
    reported("fine fine", |now| {
        now.codes = counts(&[("4xx", 1)]);
        now.left = 1;
    })
    .says("No answers in the last 10 s: 10 clients left before one.")
    .not(&["Answers:"]);
    let clear = |now: &mut Sample| {
        now.codes.clear();
        now.zones[0].passed = 0;
        now.origins[0].codes.clear();
    };
    reported("none idle", clear).says("No requests in the last 10 s");
    reported("none idle", |now| {
        clear(now);
        now.origins[0].in_flight = 81;
    })
    .says("No request has ended in the last 10 s. … 81 requests at api, of which none was answered")
    .not(&["No requests in"]);
    reported("warn file_error", |now| {
        now.error = Some(Problem {
            line: Some(7),
            message: "unknown field".into(),
            ..Problem::default()
        });
    })
    .says("previous settings stay in force … Line 7: unknown field.");
    // Nobody has to act if one client in ten disconnects.
    reported("fine fine", |now| {
        now.zones[0].cancelled = 1;
        now.zones[0].left = 1;
    })
    .not(&["leave"]);
    reported("fine fine", |now| now.zones[0].dry_run = 1)
        .says("Dry run would have limited requests in per_client");
}

#[test]
fn the_headline_is_idle_before_the_second_sample() {
    let mut second = fine();
    second.seq = 1;
    second.zones[0].rejected = 1_000;
    second.zones[0].rejections = counts(&[("burst", 1_000)]);
    let reported = headline(&Recent::last_of(std::slice::from_ref(&second), 10));
    assert_eq!(reported.finding.cause.label(), "idle");
    // The first sample counts since the start: it does not cover one second.
    let samples = [second, Sample { seq: 2, ..fine() }];
    let reported = headline(&Recent::last_of(&samples, 10));
    assert_eq!(reported.finding.cause.label(), "fine");
}
