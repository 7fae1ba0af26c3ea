//! Tests of zones that reject, delay, are flooded, paused or overridden.
//!
//! `reported` changes a second in which nothing is wrong (`fine`), and checks the headline after
//! ten such seconds: severity, cause and subject. Then `says` checks parts of its text.

use super::*;
use crate::status::sample::Problem;
use crate::zone::ZoneValues;

#[test]
fn a_zone_that_rejects_is_flooded_or_overridden_has_a_headline() {
    reported("warn overridden per_client", |now| {
        now.zones[0].overridden = Some(overriding(ZoneValues {
            rate: "20r/s".parse().ok(),
            ..ZoneValues::default()
        }));
        now.zones[0].overridden_keys = 2;
    })
    .says("not as in the file … rate 20r/s and 2 keys");
    reported("warn paused per_client", |now| {
        now.zones[0].overridden = Some(overriding(ZoneValues {
            pause: true,
            ..ZoneValues::default()
        }));
        now.zones[0].depth = 3;
    })
    .says("per_client is paused … ops … 2026 … 3 requests")
    .not(&["Also"]);
    reported("warn key_flood per_client", |now| {
        now.zones[0].passed = 200;
        now.zones[0].new_keys = 200;
        (now.zones[0].keys, now.zones[0].max_keys) = (2_000, 100_000);
    })
    .says("200 a second … 2,000 of 100,000 keys … set `new_keys`");
    reported("warn key_flood per_client", |now| {
        now.zones[0].flooded = 150;
        now.zones[0].rejected = 140;
    })
    .says("1,500 requests shared one bucket … Also: per_client rejects 140");
    reported("warn key_flood per_client", |now| now.zones[0].keys = 95)
        .says("nearly full … 95 of 100 keys … Raise `max_keys`");
    // The deepest key is not the rejected one.
    reported("warn rejecting per_client", |now| {
        now.zones[0].rejected = 5;
        now.zones[0].depth = 20;
        now.zones[0].rejections = counts(&[("max_wait", 4), ("burst", 1)]);
        now.zones[0].rejected_now = heavy("203.0.113.50", 0.98);
        // Most rejections of the last minute, and none now.
        now.zones[0].rejected_keys = heavy("203.0.113.99", 0.97);
    })
    .says("5.0 a second … 50 of 150 … `max_wait` … 203.0.113.50 causes 98 % … a plan")
    .not(&["burst", "raise", "203.0.113.99", "last minute"]);
    reported("bad rejecting per_client", |now| {
        rejects(now, "burst", 15).burst = Some(20);
    })
    .says("150 of 250 … `burst` is reached … raise `rate` … more requests wait");
    // Nothing waits where all limits have `nodelay`.
    reported("bad rejecting per_client", |now| {
        rejects(now, "burst", 15);
    })
    .says("more came at once than `burst` allows … more requests through at once")
    .not(&["queue", "wait"]);
    // One key of many that send too much.
    reported("bad rejecting per_client", |now| {
        now.zones[0].rejected = 15;
        now.zones[0].rejected_now = heavy("127.0.1.1", 0.04);
        now.zones[0].advice = Some(advice());
    })
    .says("All 30 keys are limited")
    .not(&["127.0.1.1"]);
    reported("warn rejecting per_client", |now| {
        rejects(now, "burst", 4).is_login = true;
        now.zones[0].rejected_now = heavy("192.0.2.1", 1.0);
    })
    .says("192.0.2.1 causes 100 % … what the limit is for")
    .says("192.0.2.1 goes on, add the address to `deny`")
    .not(&["plan", "raise", "queue"]);
    reported("warn rejecting per_client", |now| {
        rejects(now, "burst", 4).is_login = true;
    })
    .says("what the limit is for … access log")
    .not(&["plan", "raise", "deny"]);
    reported("warn rejecting per_client", |now| {
        now.zones[0].rejected = 1;
        now.error = Some(Problem::default());
    })
    .says("Also: The file has an error");
}

#[test]
fn requests_that_wait_or_leave_in_a_zone_have_a_headline() {
    reported("warn waiting per_client", |now| {
        wait(now, 30, 2.0);
        now.origins[0].latency.p95 = Some(1.2);
    })
    .says("Origin api takes 1.2 s … find out why");
    reported("fine waiting per_client", |now| {
        now.zones[0].depth = 1;
        now.zones[0].depth_max = 1;
        now.zones[0].burst = Some(20);
        now.zones[0].oldest_wait = 0.25;
    })
    .says("1 request waits in per_client, the oldest for 250 ms")
    .says("Those of a key leave one by one, 10 a second. None is rejected.");
    reported("warn waiting per_client", |now| {
        now.zones[0].depth = 20;
        now.zones[0].depth_max = 2;
        now.zones[0].oldest_wait = 1.5;
    })
    .says("20 requests wait in per_client, the oldest for 1.5 s");
    reported("warn waiting per_client", |now| {
        now.zones[0].depth = 12;
        now.zones[0].depth_max = 10;
        now.zones[0].burst = Some(20);
    })
    .says("12 requests wait in per_client");
    reported("warn overridden per_client", |now| {
        // A state that is no warning does not hide a warning.
        wait(now, 1, 0.1).overridden_keys = 1;
    })
    .says("Also: 1 request waits in per_client");
    reported("bad leaving per_client", |now| {
        now.zones[0].rate = Some(3.0);
        now.zones[0].passed = 5;
        leave(now, 5, 1.02).depth = 9;
        now.zones[0].oldest_wait = 1.4;
    })
    .says("50 % leave per_client before their turn, after about 1.0 s")
    .says("50 of 100 requests … Set `max_wait = \"1s\"`, or raise `rate` to 6r/s:")
    .not(&["what the queue is for"]);
    reported("warn leaving per_client", |now| {
        now.zones[0].rate = Some(0.05);
        now.zones[0].passed = 6;
        leave(now, 2, 0.31);
    })
    .says("25 % leave … Set `max_wait = \"300ms\"`, or raise `rate` to 4r/m:");
}

#[test]
fn clients_that_left_in_a_pause_are_no_reason_for_more_rate_after_it() {
    let reported = |last_is_paused| {
        after_all((0..3).map(|nth| {
            let mut second = fine();
            second.zones[0].left = 10;
            second.zones[0].overridden = Some(overriding(ZoneValues {
                pause: nth < 2 || last_is_paused,
                rate: "20r/s".parse().ok(),
                dry_run: None,
            }));
            second
        }))
    };
    let paused = reported(true);
    assert_eq!(paused.finding.cause.label(), "paused");
    assert!(paused.also[0].as_str().contains("leave"), "{paused:?}");
    let resumed = reported(false);
    assert_eq!(resumed.finding.cause.label(), "overridden", "{resumed:?}");
    assert!(resumed.also.is_empty(), "{resumed:?}");
}

#[test]
fn the_first_rejections_of_all_are_blamed_on_nobody() {
    let reported = |seconds: usize, rejected| {
        after_all((0..3).map(|nth| {
            let mut second = fine();
            if nth >= 3 - seconds {
                second.zones[0].rejected = rejected;
                second.zones[0].rejected_now = heavy("192.0.2.1", 1.0);
            }
            second
        }))
    };
    let names_key = |reported: Headline| reported.finding.evidence.contains("192.0.2.1");
    assert!(!names_key(reported(1, 2)));
    assert!(names_key(reported(1, 3)) && names_key(reported(2, 1)));
}
