//! Zones reject, let requests wait, are flooded, paused or overridden.

use super::*;
use crate::status::views::{Latency, Override, Problem};

const SITUATIONS: &[Situation] = &[
    Situation {
        change: |it| {
            it.zones[0].depth = 30;
            it.zones[0].oldest_wait = 2.0;
            it.origins[0].latency = Latency {
                p95: Some(1.2),
                ..Latency::default()
            };
        },
        cause: "waiting",
        about: Some("per_client"),
        says: &["Origin api takes 1.2 s", "find out why"],
        ..WARN
    },
    Situation {
        change: |it| {
            it.zones[0].overridden = Some(Override {
                pause: true,
                by: "127.0.0.1".into(),
                until: "2026-01-01T00:00:00Z".into(),
                ..Override::default()
            });
            it.zones[0].depth = 3;
        },
        cause: "paused",
        says: &["per_client is paused", "127.0.0.1", "2026", "3 requests"],
        says_not: &["Also"],
        ..ZONE
    },
    Situation {
        change: |it| {
            it.zones[0].passed = 200;
            it.zones[0].new_keys = 200;
            (it.zones[0].keys, it.zones[0].max_keys) = (2_000, 100_000);
        },
        cause: "key_flood",
        says: &["200 a second", "2,000 of 100,000 keys", "set `new_keys`"],
        ..ZONE
    },
    Situation {
        change: |it| {
            it.zones[0].flooded = 150;
            it.zones[0].rejected = 140;
        },
        cause: "key_flood",
        says: &[
            "1,500 requests shared one bucket",
            "Also: per_client rejects 140",
        ],
        ..ZONE
    },
    Situation {
        change: |it| it.zones[0].keys = 95,
        cause: "key_flood",
        says: &["nearly full", "95 of 100 keys", "Raise `max_keys`"],
        ..ZONE
    },
    Situation {
        // The deepest key is not the one that is rejected.
        change: |it| {
            it.zones[0].rejected = 5;
            it.zones[0].depth = 20;
            it.zones[0].rejections = counts(&[("max_wait", 4), ("burst", 1)]);
            it.zones[0].rejected_now = heavy("203.0.113.50", 0.98);
            // Most of the last minute, and none now.
            it.zones[0].rejected_keys = heavy("203.0.113.99", 0.97);
        },
        cause: "rejecting",
        says: &[
            "5.0 a second",
            "50 of 150",
            "`max_wait`",
            "203.0.113.50 causes 98 %",
            "a plan",
        ],
        says_not: &["burst", "raise", "203.0.113.99", "last minute"],
        ..ZONE
    },
    Situation {
        change: |it| {
            it.zones[0].rejected = 15;
            it.zones[0].rejections = counts(&[("burst", 15)]);
            it.zones[0].burst = Some(20);
        },
        cause: "rejecting",
        says: &[
            "150 of 250",
            "`burst` is reached",
            "raise `rate`",
            "more requests wait",
        ],
        ..BAD_ZONE
    },
    Situation {
        // Nothing waits where all limits have `nodelay`.
        change: |it| {
            it.zones[0].rejected = 15;
            it.zones[0].rejections = counts(&[("burst", 15)]);
        },
        cause: "rejecting",
        says: &[
            "more came at once than `burst` allows",
            "more requests through at once",
        ],
        says_not: &["queue", "wait"],
        ..BAD_ZONE
    },
    Situation {
        // One of many that ask for too much.
        change: |it| {
            it.zones[0].rejected = 15;
            it.zones[0].rejected_now = heavy("127.0.1.1", 0.04);
            it.zones[0].advice = Some(advice());
        },
        cause: "rejecting",
        says: &["All 30 keys are limited"],
        says_not: &["127.0.1.1"],
        ..BAD_ZONE
    },
    Situation {
        change: |it| {
            it.zones[0].rejected = 4;
            it.zones[0].rejections = counts(&[("burst", 4)]);
            it.zones[0].is_login = true;
            it.zones[0].rejected_now = heavy("192.0.2.1", 1.0);
        },
        cause: "rejecting",
        says: &[
            "192.0.2.1 causes 100 %",
            "what the limit is for",
            "192.0.2.1 goes on, add the address to `deny`",
        ],
        says_not: &["plan", "raise", "queue"],
        ..ZONE
    },
    Situation {
        change: |it| {
            it.zones[0].rejected = 4;
            it.zones[0].rejections = counts(&[("burst", 4)]);
            it.zones[0].is_login = true;
        },
        cause: "rejecting",
        says: &["what the limit is for", "access log"],
        says_not: &["plan", "raise", "deny"],
        ..ZONE
    },
    Situation {
        change: |it| {
            it.zones[0].rejected = 1;
            it.error = Some(Problem {
                line: Some(7),
                message: "unknown field".into(),
                ..Problem::default()
            });
        },
        cause: "rejecting",
        says: &["Also: The file has an error"],
        ..ZONE
    },
    Situation {
        change: |it| {
            it.zones[0].depth = 1;
            it.zones[0].depth_max = 1;
            it.zones[0].burst = Some(20);
            it.zones[0].oldest_wait = 0.25;
        },
        cause: "waiting",
        severity: "fine",
        about: Some("per_client"),
        says: &[
            "1 request waits in per_client, the oldest for 250 ms",
            "Those of a key leave one by one, 10 a second. None is rejected.",
        ],
        says_not: &[],
    },
    Situation {
        change: |it| {
            it.zones[0].depth = 20;
            it.zones[0].depth_max = 2;
            it.zones[0].oldest_wait = 1.5;
        },
        cause: "waiting",
        says: &["20 requests wait in per_client, the oldest for 1.5 s"],
        ..ZONE
    },
    Situation {
        change: |it| {
            it.zones[0].depth = 12;
            it.zones[0].depth_max = 10;
            it.zones[0].burst = Some(20);
        },
        cause: "waiting",
        says: &["12 requests wait in per_client"],
        ..ZONE
    },
    Situation {
        change: |it| {
            // What is no warning does not hide one that is.
            it.zones[0].depth = 1;
            it.zones[0].oldest_wait = 0.1;
            it.zones[0].overridden_keys = 1;
        },
        cause: "overridden",
        says: &["Also: 1 request waits in per_client"],
        ..ZONE
    },
    Situation {
        change: |it| {
            it.zones[0].rate = Some(3.0);
            it.zones[0].passed = 5;
            it.zones[0].left = 5;
            it.zones[0].left_after = Some(1.02);
            it.zones[0].depth = 9;
            it.zones[0].oldest_wait = 1.4;
        },
        cause: "leaving",
        says: &[
            "50 % leave per_client before their turn, after about 1.0 s",
            "50 of 100 requests",
            "Set `max_wait = \"1s\"`, or raise `rate` to 6r/s:",
        ],
        says_not: &["what the queue is for"],
        ..BAD_ZONE
    },
    Situation {
        change: |it| {
            it.zones[0].rate = Some(0.05);
            it.zones[0].passed = 6;
            it.zones[0].left = 2;
            it.zones[0].left_after = Some(0.31);
        },
        cause: "leaving",
        says: &[
            "25 % leave",
            "Set `max_wait = \"300ms\"`, or raise `rate` to 4r/m:",
        ],
        ..ZONE
    },
    Situation {
        change: |it| {
            it.zones[0].overridden = Some(Override {
                rate: Some("20r/s".into()),
                ..Override::default()
            });
            it.zones[0].overridden_keys = 2;
        },
        cause: "overridden",
        says: &["not as in the file", "its rate is 20r/s and 2 keys"],
        ..ZONE
    },
];

#[test]
fn what_a_zone_does_has_its_headlines() {
    check_all(SITUATIONS);
}

#[test]
fn clients_that_left_in_a_pause_are_no_reason_for_more_rate_after_it() {
    let told = |last_is_paused| {
        after_all((0..3).map(|nth| {
            let mut second = fine();
            second.zones[0].left = 10;
            second.zones[0].overridden = Some(Override {
                pause: nth < 2 || last_is_paused,
                rate: Some("20r/s".into()),
                ..Override::default()
            });
            second
        }))
    };
    let paused = told(true);
    assert_eq!(paused.cause.as_str(), "paused");
    assert!(paused.also[0].as_str().contains("leave"), "{paused:?}");
    let resumed = told(false);
    assert_eq!(resumed.cause.as_str(), "overridden", "{resumed:?}");
    assert!(resumed.also.is_empty(), "{resumed:?}");
}

#[test]
fn the_first_rejections_of_all_are_blamed_on_nobody() {
    let told = |seconds: usize, rejected| {
        after_all((0..3).map(|nth| {
            let mut second = fine();
            if nth >= 3 - seconds {
                second.zones[0].rejected = rejected;
                second.zones[0].rejected_now = heavy("192.0.2.1", 1.0);
            }
            second
        }))
    };
    let names = |told: Headline| told.evidence.as_str().contains("192.0.2.1");
    assert!(!names(told(1, 2)));
    assert!(names(told(1, 3)) && names(told(2, 1)));
}
