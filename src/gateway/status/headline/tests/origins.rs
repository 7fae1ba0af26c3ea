//! Tests of origins that fail, or of which some servers fail.

use super::*;
use crate::collapse::report::sample::{Shared, SharedSample};
use crate::status::minute::Latency;

#[test]
fn trouble_of_an_origin_has_its_headlines() {
    reported("bad origin_failing api", |it| {
        it.origins[0].codes.clear();
        it.origins[0].errors = counts(&[("unreachable", 12)]);
        it.origins[0].last_failure = Some("connecting failed".into());
    })
    .says("does not answer … 120 of 120 attempts … 120 unreachable … connecting failed");
    reported("warn origin_failing api", |it| {
        it.codes.clear();
        it.origins[0].codes.clear();
        (it.origins[0].servers, it.origins[0].healthy) = (1, 1);
        it.origins[0].failing = 1;
    })
    .says("did not answer the last request");
    reported("bad origin_failing api", |it| it.origins[0].healthy = 0).says("no server in use");
    reported("warn origin_failing api", |it| {
        it.origins[0].errors = counts(&[("timeout", 2)]);
    })
    .says("20 of 120 attempts … 20 timeout");
    // One refreshes in the background, and the others get the kept response.
    reported("bad origin_errors api", |it| {
        it.origins[0].codes = counts(&[("5xx", 1)]);
        it.origins[0].shared = Some(SharedSample {
            shared: Shared {
                requests: counts(&[("stale", 340), ("refresh", 1)]),
                ..Shared::default()
            },
            ..SharedSample::default()
        });
    })
    .says("answers 100 % with 5xx … 10 of 10 answers")
    .says("Meanwhile, 3,400 requests got stale answers.");
    reported("bad origin_failing api", |it| {
        it.origins[0].codes.clear();
        it.origins[0].errors = counts(&[("unreachable", 1)]);
        it.origins[0].shared = Some(SharedSample {
            shared: Shared {
                requests: counts(&[("stale", 20), ("refresh", 1)]),
                ..Shared::default()
            },
            ..SharedSample::default()
        });
    })
    .says("10 unreachable … 200 requests got stale answers");
    reported("bad origin_errors api", |it| {
        it.origins[0].codes = counts(&[("5xx", 10)]);
    })
    .says("answers 100 % with 5xx … 100 of 100 answers");
    reported("warn origin_errors api", |it| {
        it.origins[0].codes = counts(&[("2xx", 9), ("5xx", 1)]);
        it.origins[0].latency = Latency {
            p95: Some(1.5),
            ..Latency::default()
        };
    })
    .says("answers 10 % with 5xx … 1.5 s");
    reported("warn server_out api", |it| {
        it.origins[0].healthy = 1;
        wait(it, 30, 2.0);
    })
    .says("1 of 2 servers of origin api is out … Also: 30 requests wait in per_client");
    // Its requests went on to the other server.
    reported("warn server_out api", |it| {
        it.origins[0].failing = 1;
        it.origins[0].errors = counts(&[("unreachable", 3)]);
    })
    .says("1 of 2 servers of origin api fails");
}

/// While an origin suffers, no headline advises more rate.
#[test]
fn nobody_advises_more_rate_while_an_origin_suffers() {
    let suffering: [fn(&mut Sample); 4] = [
        |it| it.origins[0].codes = counts(&[("5xx", 10)]),
        |it| it.origins[0].errors = counts(&[("broken", 20)]),
        |it| it.origins[0].healthy = 1,
        |it| it.origins[0].healthy = 0,
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
