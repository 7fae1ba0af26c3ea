//! Tests of the advised rate, in numbers.
//!
//! `fine` is a second in which nothing is wrong: 10 requests pass the zone `per_client` to the
//! origin `api`.

use super::*;

#[test]
fn more_rate_is_advised_in_numbers_and_longer_queues_only_while_waits_are_short() {
    let rejecting = |reason, oldest_wait| {
        let mut second = fine();
        second.zones[0].rejected = 15;
        second.zones[0].oldest_wait = oldest_wait;
        second.zones[0].rejections = counts(&[(reason, 15)]);
        second.zones[0].advice = Some(advice());
        second.zones[0].burst = Some(20);
        after(&second)
    };
    let reported = rejecting("burst", 1.0);
    let evidence = &reported.finding.evidence;
    assert!(evidence.ends_with("All 30 keys are limited."), "{evidence}");
    assert_eq!(
        reported.finding.remedy,
        "If the origin can do more, raise `rate`: at 2r/s 1 % would have been rejected in the last 10 min, at 3r/s none; 99 % of the waits would have been no longer than 400 ms. \
         Otherwise raise `burst` to let more requests wait."
    );
    // The rate of the page's button.
    assert_eq!(reported.advised_rate, Some("3r/s".into()));
    for reason in ["burst", "max_wait"] {
        let reported = rejecting(reason, 20.0);
        let remedy = &reported.finding.remedy;
        for part in ["at 3r/s none", "wait 20 s already"] {
            assert!(remedy.contains(part), "{remedy}");
        }
        assert!(!remedy.contains(&format!("raise `{reason}`")), "{remedy}");
    }
}

#[test]
fn a_faster_rate_is_advised_for_long_waits_unless_an_origin_is_slow() {
    let mut second = fine();
    second.zones[0].depth = 30;
    second.zones[0].oldest_wait = 20.0;
    second.zones[0].advice = Some(advice());
    let reported = after(&second);
    let part = "at 3r/s 99 % of the waits would have been no longer than 400 ms";
    assert!(reported.finding.remedy.contains(part), "{reported:?}");
    assert_eq!(reported.advised_rate, Some("3r/s".into()));
    second.origins[0].latency.p95 = Some(1.2);
    let reported = after(&second);
    let remedy = &reported.finding.remedy;
    assert!(remedy.contains("find out why"), "{remedy}");
    assert_eq!(reported.advised_rate, None);
}
