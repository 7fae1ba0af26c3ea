//! Tests of origins that fail, or of which some servers fail.
//!
//! `reported` changes a second in which nothing is wrong (`fine`), and checks the headline after
//! ten such seconds: severity, cause and subject. Then `says` checks parts of its text.

use super::*;

/// Lets `count` requests get a stale answer while one refreshes it.
fn share_stale(now: &mut Sample, count: u64) {
    let shared = now.origins[0].shared.get_or_insert_default();
    shared.shared.requests = counts(&[("stale", count), ("refresh", 1)]);
}

#[test]
fn an_origin_that_fails_or_answers_with_errors_has_a_headline() {
    reported("bad origin_failing api", |now| {
        now.origins[0].codes.clear();
        now.origins[0].errors = counts(&[("unreachable", 12)]);
        now.origins[0].last_failure = Some("connecting failed".into());
    })
    .says("does not answer … 120 of 120 attempts … 120 unreachable … connecting failed");
    reported("warn origin_failing api", |now| {
        now.codes.clear();
        now.origins[0].codes.clear();
        (now.origins[0].servers, now.origins[0].healthy) = (1, 1);
        now.origins[0].failing = 1;
    })
    .says("did not answer the last request");
    reported("bad origin_failing api", |now| now.origins[0].healthy = 0).says("no server in use");
    reported("warn origin_failing api", |now| {
        now.origins[0].errors = counts(&[("timeout", 2)]);
    })
    .says("20 of 120 attempts … 20 timeout");
    // One request refreshes a kept answer, and the others get the kept one.
    reported("bad origin_errors api", |now| {
        now.origins[0].codes = counts(&[("5xx", 1)]);
        share_stale(now, 340);
    })
    .says("answers 100 % with 5xx … 10 of 10 answers")
    .says("Meanwhile, 3,400 requests got stale answers.");
    reported("bad origin_failing api", |now| {
        now.origins[0].codes.clear();
        now.origins[0].errors = counts(&[("unreachable", 1)]);
        share_stale(now, 20);
    })
    .says("10 unreachable … 200 requests got stale answers");
    reported("bad origin_errors api", |now| {
        now.origins[0].codes = counts(&[("5xx", 10)]);
    })
    .says("answers 100 % with 5xx … 100 of 100 answers");
    reported("warn origin_errors api", |now| {
        now.origins[0].codes = counts(&[("2xx", 9), ("5xx", 1)]);
        now.origins[0].latency.p95 = Some(1.5);
    })
    .says("answers 10 % with 5xx … 1.5 s");
    reported("warn server_out api", |now| {
        now.origins[0].healthy = 1;
        wait(now, 30, 2.0);
    })
    .says("1 of 2 servers of origin api is out … Also: 30 requests wait in per_client");
    // Its requests went on to the other server.
    reported("warn server_out api", |now| {
        now.origins[0].failing = 1;
        now.origins[0].errors = counts(&[("unreachable", 3)]);
    })
    .says("1 of 2 servers of origin api fails");
}

/// While an origin suffers, no headline advises more rate.
#[test]
fn no_headline_advises_more_rate_while_an_origin_suffers() {
    let suffering: [fn(&mut Sample); 4] = [
        |now| now.origins[0].codes = counts(&[("5xx", 10)]),
        |now| now.origins[0].errors = counts(&[("broken", 20)]),
        |now| now.origins[0].healthy = 1,
        |now| now.origins[0].healthy = 0,
    ];
    for change in suffering {
        for reason in ["burst", "max_wait", "in_flight"] {
            let mut second = fine();
            change(&mut second);
            second.zones[0].rejected = 10;
            second.zones[0].rejections = counts(&[(reason, 10)]);
            let reported = after(&second);
            assert_eq!(reported.finding.about, Some("api".into()), "{reported:?}");
            assert!(!reported.finding.remedy.contains("raise `"), "{reported:?}");
        }
    }
}
