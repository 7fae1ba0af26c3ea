mod blind_spots;

use std::collections::BTreeMap;

use super::recent::Recent;
use super::rules::headline;
use super::*;
use crate::admin::views::{
    BackingOff, FileAndNow, GateOutage, GateRefused, GateSample, HeavyKey, Latency, OriginSample,
    Override, Plain, Problem, RateAdvice, StoreRefuses, StoreSample, TriedRate, ZoneSample,
};

fn counts(counts: &[(&str, u64)]) -> BTreeMap<Plain, u64> {
    let each = counts.iter().map(|(name, count)| ((*name).into(), *count));
    each.collect()
}

/// A second in which 10 requests passed: a zone, an origin with two servers.
fn fine() -> Sample {
    Sample {
        codes: counts(&[("2xx", 10)]),
        zones: vec![ZoneSample {
            name: "per_client".into(),
            rate: Some(10.0),
            passed: 10,
            keys: 5,
            max_keys: 100,
            ..ZoneSample::default()
        }],
        origins: vec![OriginSample {
            name: "api".into(),
            healthy: 2,
            servers: 2,
            codes: counts(&[("2xx", 10)]),
            ..OriginSample::default()
        }],
        ..Sample::default()
    }
}

/// An origin that takes 3 s, with so many places left of 40 and so many rejections a second.
fn slow(it: &mut Sample, places: u64, kept: bool, rejections: u64) {
    let origin = &mut it.origins[0];
    origin.codes = counts(&[("2xx", 1)]);
    origin.latency.p50 = Some(3.0);
    origin.gate = Some(GateSample {
        max_in_flight: FileAndNow {
            file: Some(40),
            now: Some(places),
        },
        backing_off: Some(BackingOff {
            text: "10 of 10 answers were slow".into(),
            kept,
            usual: Some(0.05),
            ..BackingOff::default()
        }),
        rejected: counts(&[("max_queue", rejections)]),
        ..GateSample::default()
    });
}

#[test]
fn damage_that_has_ended_is_not_in_the_title_of_a_gate_that_backs_off() {
    let samples = (100..110).map(|seq| {
        let mut second = Sample { seq, ..fine() };
        slow(&mut second, 12, false, if seq < 107 { 70 } else { 0 });
        second
    });
    let samples: Vec<_> = samples.collect();
    let told = headline(&Recent::new(&samples));
    assert_eq!(told.title, "The gate of api backs off".into());
    assert_eq!(told.severity, "warn".into());
}

/// The headline after ten such seconds.
fn after(second: &Sample) -> Headline {
    let samples: Vec<Sample> = (100..110)
        .map(|seq| Sample {
            seq,
            ..second.clone()
        })
        .collect();
    headline(&Recent::new(&samples))
}

/// A change of the fine second, and the headline that it leads to: cause, severity, about, and
/// parts of its texts.
struct Situation {
    change: fn(&mut Sample),
    cause: &'static str,
    severity: &'static str,
    about: Option<&'static str>,
    says: &'static [&'static str],
    says_not: &'static [&'static str],
}

/// More rate is never advised while an origin suffers.
const MORE: &[&str] = &["raise `rate`", "Raise"];

const SITUATIONS: &[Situation] = &[
    Situation {
        change: |_| {},
        cause: "fine",
        severity: "fine",
        about: None,
        says: &["No requests are waiting", "10 a second", "none delayed"],
        says_not: MORE,
    },
    Situation {
        change: |it| {
            it.zones[0].delayed = 3;
            it.zones[0].wait_p95 = Some(0.16);
        },
        cause: "fine",
        severity: "fine",
        about: None,
        says: &["none rejected; those that waited went on within 160 ms"],
        says_not: &["none delayed"],
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
            it.store = Some(StoreSample {
                up: false,
                out_for: Some(12.0),
                reason: Some("connection refused".into()),
                meanwhile: Some("zones follow their on_store_failure".into()),
                operations: counts(&[("skipped", 10), ("ok", 1)]),
                ..StoreSample::default()
            });
        },
        cause: "store_out",
        severity: "bad",
        about: None,
        says: &[
            "out for 12 s",
            "connection refused",
            "100 skipped",
            "Meanwhile, zones follow their on_store_failure.",
        ],
        says_not: &["raise"],
    },
    Situation {
        change: |it| {
            it.zones[0].rejected = 10;
            it.store = Some(StoreSample {
                up: true,
                operations: counts(&[("refused", 10)]),
                refuses: Some(StoreRefuses {
                    zones: vec!["per_client".into()],
                    reason: "the store does not allow it: NOPERM".into(),
                    remedy: "allow EVAL".into(),
                }),
                ..StoreSample::default()
            });
        },
        cause: "store_refuses",
        severity: "bad",
        about: Some("per_client"),
        says: &[
            "Redis refuses all requests of per_client",
            "100 operations refused in the last 10 s: the store does not allow it: NOPERM.",
            "Allow EVAL.",
        ],
        says_not: MORE,
    },
    Situation {
        change: |it| {
            it.store = Some(StoreSample {
                up: true,
                ..StoreSample::default()
            });
            it.origins[0].gate = Some(GateSample {
                rejected: counts(&[("max_queue", 5)]),
                refused: Some(GateRefused {
                    part: 0.1,
                    reason: "the store refused: WRONGTYPE".into(),
                    remedy: "delete the key".into(),
                }),
                ..GateSample::default()
            });
        },
        cause: "gate_alone",
        severity: "bad",
        about: Some("api"),
        says: &[
            "The gate of api goes on alone with 1/10 of its rate: Redis refused",
            "the store refused: WRONGTYPE.",
            "Delete the key.",
        ],
        says_not: MORE,
    },
    Situation {
        change: |it| {
            it.origins[0].codes.clear();
            it.origins[0].errors = counts(&[("unreachable", 12)]);
            it.origins[0].last_failure = Some("connecting failed".into());
        },
        cause: "origin_failing",
        severity: "bad",
        about: Some("api"),
        says: &[
            "does not answer",
            "120 of 120 attempts",
            "120 unreachable",
            "connecting failed",
        ],
        says_not: MORE,
    },
    Situation {
        change: |it| {
            it.codes.clear();
            it.origins[0].codes.clear();
            (it.origins[0].servers, it.origins[0].healthy) = (1, 1);
            it.origins[0].failing = 1;
        },
        cause: "origin_failing",
        severity: "warn",
        about: Some("api"),
        says: &["did not answer when it was last asked"],
        says_not: MORE,
    },
    Situation {
        change: |it| it.origins[0].healthy = 0,
        cause: "origin_failing",
        severity: "bad",
        about: Some("api"),
        says: &["no server in use"],
        says_not: MORE,
    },
    Situation {
        change: |it| it.origins[0].errors = counts(&[("timeout", 2)]),
        cause: "origin_failing",
        severity: "warn",
        about: Some("api"),
        says: &["20 of 120 attempts", "20 timeout"],
        says_not: MORE,
    },
    Situation {
        change: |it| it.origins[0].codes = counts(&[("5xx", 10)]),
        cause: "origin_errors",
        severity: "bad",
        about: Some("api"),
        says: &["answers 100 % with 5xx", "100 of 100 answers"],
        says_not: MORE,
    },
    Situation {
        change: |it| {
            it.origins[0].codes = counts(&[("2xx", 9), ("5xx", 1)]);
            it.origins[0].latency = Latency {
                p95: Some(1.5),
                ..Latency::default()
            };
        },
        cause: "origin_errors",
        severity: "warn",
        about: Some("api"),
        says: &["answers 10 % with 5xx", "1.5 s"],
        says_not: MORE,
    },
    Situation {
        change: |it| {
            it.origins[0].healthy = 1;
            it.zones[0].depth = 30;
            it.zones[0].oldest_wait = 2.0;
        },
        cause: "server_out",
        severity: "warn",
        about: Some("api"),
        says: &[
            "1 of 2 servers of origin api is out",
            "Also: 30 requests wait in per_client",
        ],
        says_not: MORE,
    },
    Situation {
        // Its requests went on to the other server.
        change: |it| {
            it.origins[0].failing = 1;
            it.origins[0].errors = counts(&[("unreachable", 3)]);
        },
        cause: "server_out",
        severity: "warn",
        about: Some("api"),
        says: &["1 of 2 servers of origin api fails"],
        says_not: MORE,
    },
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
        severity: "warn",
        about: Some("per_client"),
        says: &["Origin api takes 1.2 s", "find out why"],
        says_not: MORE,
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
        severity: "warn",
        about: Some("per_client"),
        says: &["per_client is paused", "127.0.0.1", "2026", "3 requests"],
        says_not: &["Also"],
    },
    Situation {
        change: |it| {
            it.origins[0].healthy = 0;
            it.origins[0].gate = Some(GateSample {
                depth: 12,
                outage: Some(GateOutage {
                    lasts: 1.24,
                    hold: "5s".into(),
                    error: "connecting to http://10.0.0.1:80 failed".into(),
                }),
                ..GateSample::default()
            });
        },
        cause: "holding",
        severity: "bad",
        about: Some("api"),
        says: &[
            "Origin api is down; 12 requests wait for it, up to 5s",
            "It is down for 1.2 s: connecting to http://10.0.0.1:80 failed.",
            "Also: Origin api has no server in use",
        ],
        says_not: MORE,
    },
    Situation {
        change: |it| {
            it.origins[0].gate = Some(GateSample {
                rate: FileAndNow {
                    file: Some(100.0),
                    now: Some(40.0),
                },
                backing_off: Some(BackingOff {
                    text: "12 of 40 answers were trouble".into(),
                    ..BackingOff::default()
                }),
                rejected: counts(&[("queue", 3)]),
                ..GateSample::default()
            });
        },
        cause: "backing_off",
        severity: "warn",
        about: Some("api"),
        says: &[
            "40 a second of 100 a second",
            "12 of 40",
            "Also: The gate of api rejects 3.0",
        ],
        says_not: MORE,
    },
    Situation {
        change: |it| slow(it, 2, false, 73),
        cause: "backing_off",
        severity: "bad",
        about: Some("api"),
        says: &[
            "99 % of requests get 503: api takes 3.0 s (50 ms before); 2 of 40 places",
            "At the last cut, 10 of 10 answers were slow.",
        ],
        says_not: MORE,
    },
    Situation {
        change: |it| slow(it, 40, true, 2),
        cause: "backing_off",
        severity: "bad",
        about: Some("api"),
        says: &[
            "67 % of requests get 503: api takes 3.0 s (50 ms before); fewer at once did not make api faster; all 40 places are back",
            "however many requests run at once",
        ],
        says_not: &["Raise", "backs off"],
    },
    Situation {
        change: |it| slow(it, 40, true, 0),
        cause: "backing_off",
        severity: "warn",
        about: Some("api"),
        says: &["Fewer at once did not make api faster; all 40 places are back"],
        says_not: &["503", "backs off"],
    },
    Situation {
        change: |it| {
            it.zones[0].passed = 200;
            it.zones[0].new_keys = 200;
            (it.zones[0].keys, it.zones[0].max_keys) = (2_000, 100_000);
        },
        cause: "key_flood",
        severity: "warn",
        about: Some("per_client"),
        says: &["200 a second", "2,000 of 100,000 keys", "set `new_keys`"],
        says_not: &[],
    },
    Situation {
        change: |it| {
            it.zones[0].flooded = 150;
            it.zones[0].rejected = 140;
        },
        cause: "key_flood",
        severity: "warn",
        about: Some("per_client"),
        says: &[
            "1,500 requests shared one bucket",
            "Also: per_client rejects 140",
        ],
        says_not: &[],
    },
    Situation {
        change: |it| it.zones[0].keys = 95,
        cause: "key_flood",
        severity: "warn",
        about: Some("per_client"),
        says: &["nearly full", "95 of 100 keys", "Raise `max_keys`"],
        says_not: &[],
    },
    Situation {
        // The deepest key is not the one that is rejected.
        change: |it| {
            it.zones[0].rejected = 5;
            it.zones[0].depth = 20;
            it.zones[0].rejections = counts(&[("max_wait", 4), ("burst", 1)]);
            it.zones[0].rejected_keys = vec![HeavyKey {
                key: "203.0.113.50".into(),
                share: 0.98,
                ..HeavyKey::default()
            }];
        },
        cause: "rejecting",
        severity: "warn",
        about: Some("per_client"),
        says: &[
            "5.0 a second",
            "50 of 150",
            "`max_wait`",
            "203.0.113.50 causes 98 %",
            "a plan",
        ],
        says_not: &["burst", "raise"],
    },
    Situation {
        change: |it| {
            it.zones[0].rejected = 15;
            it.zones[0].rejections = counts(&[("burst", 15)]);
        },
        cause: "rejecting",
        severity: "bad",
        about: Some("per_client"),
        says: &["150 of 250", "`burst` is reached", "raise `rate`"],
        says_not: &[],
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
        severity: "warn",
        about: Some("per_client"),
        says: &["Also: The file has an error"],
        says_not: &[],
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
        severity: "warn",
        about: Some("per_client"),
        says: &["20 requests wait in per_client, the oldest for 1.5 s"],
        says_not: &[],
    },
    Situation {
        change: |it| {
            it.zones[0].depth = 12;
            it.zones[0].depth_max = 10;
            it.zones[0].burst = Some(20);
        },
        cause: "waiting",
        severity: "warn",
        about: Some("per_client"),
        says: &["12 requests wait in per_client"],
        says_not: &[],
    },
    Situation {
        change: |it| {
            // What is no warning does not hide one that is.
            it.zones[0].depth = 1;
            it.zones[0].oldest_wait = 0.1;
            it.zones[0].overridden_keys = 1;
        },
        cause: "overridden",
        severity: "warn",
        about: Some("per_client"),
        says: &["Also: 1 request waits in per_client"],
        says_not: &[],
    },
    Situation {
        change: |it| {
            it.zones[0].rate = Some(3.0);
            it.zones[0].passed = 5;
            it.zones[0].cancelled = 5;
            it.zones[0].left_after = Some(1.02);
            it.zones[0].depth = 9;
            it.zones[0].oldest_wait = 1.4;
        },
        cause: "leaving",
        severity: "bad",
        about: Some("per_client"),
        says: &[
            "50 % leave per_client before their turn, after about 1.0 s",
            "50 of 100 requests",
            "Set `max_wait` = 1s, or raise `rate` to 6r/s:",
        ],
        says_not: &["what the queue is for"],
    },
    Situation {
        change: |it| {
            it.zones[0].rate = Some(0.05);
            it.zones[0].passed = 6;
            it.zones[0].cancelled = 2;
            it.zones[0].left_after = Some(0.31);
        },
        cause: "leaving",
        severity: "warn",
        about: Some("per_client"),
        says: &[
            "25 % leave",
            "Set `max_wait` = 400ms, or raise `rate` to 4r/m:",
        ],
        says_not: &[],
    },
    Situation {
        // One client in ten that leaves is nothing to act on.
        change: |it| it.zones[0].cancelled = 1,
        cause: "fine",
        severity: "fine",
        about: None,
        says: &[],
        says_not: &["leave"],
    },
    Situation {
        change: |it| {
            it.origins[0].in_flight = 8;
            it.origins[0].gate = Some(GateSample {
                depth: 12,
                max_in_flight: FileAndNow {
                    file: Some(8),
                    now: Some(8),
                },
                ..GateSample::default()
            });
        },
        cause: "waiting",
        severity: "warn",
        about: Some("api"),
        says: &["12 requests wait at the gate of api", "All 8 places"],
        says_not: &[],
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
        severity: "warn",
        about: Some("per_client"),
        says: &["not as in the file", "its rate is 20r/s and 2 keys"],
        says_not: &[],
    },
    Situation {
        change: |it| it.zones[0].dry_run = 1,
        cause: "fine",
        severity: "fine",
        about: None,
        says: &["Dry run would have limited requests in per_client"],
        says_not: &[],
    },
];

/// What replays found: 2r/s rejects one in a hundred, and 3r/s nobody.
fn advice() -> RateAdvice {
    let tried = |rate: &str, share_rejected, wait_p99| TriedRate {
        rate: rate.into(),
        share_rejected,
        wait_p99: Some(wait_p99),
    };
    RateAdvice {
        span: 600.0,
        keys: 30,
        limited_keys: 30,
        now: tried("1r/s", 0.4, 20.0),
        faster: vec![tried("2r/s", 0.01, 3.0), tried("3r/s", 0.0, 0.4)],
    }
}

#[test]
fn more_rate_is_advised_in_numbers_and_longer_queues_only_while_waits_are_short() {
    let rejecting = |reason, oldest_wait| {
        let mut second = fine();
        second.zones[0].rejected = 15;
        second.zones[0].oldest_wait = oldest_wait;
        second.zones[0].rejections = counts(&[(reason, 15)]);
        second.zones[0].advice = Some(advice());
        after(&second)
    };
    let told = rejecting("burst", 1.0);
    assert!(
        told.evidence.as_str().ends_with("All 30 keys are limited."),
        "{told:?}"
    );
    assert_eq!(
        told.remedy.as_str(),
        "If the origin can do more, raise `rate`: at 2r/s 1 % would have been rejected in the last 10 min, at 3r/s none. \
         Otherwise raise `burst` to let more requests wait."
    );
    assert_eq!(
        told.advised_rate,
        Some("3r/s".into()),
        "the rate of the button"
    );
    for reason in ["burst", "max_wait"] {
        let told = rejecting(reason, 20.0);
        let remedy = told.remedy.as_str();
        assert!(
            remedy.contains("at 3r/s none") && remedy.contains("wait 20 s already"),
            "{remedy}"
        );
        assert!(!remedy.contains(&format!("raise `{reason}`")), "{remedy}");
    }
}

#[test]
fn long_waits_are_told_at_a_faster_rate_but_not_while_an_origin_is_slow() {
    let mut second = fine();
    second.zones[0].depth = 30;
    second.zones[0].oldest_wait = 20.0;
    second.zones[0].advice = Some(advice());
    let told = after(&second);
    let part = "at 3r/s 99 % of the waits would have been no longer than 400 ms";
    assert!(told.remedy.as_str().contains(part), "{told:?}");
    assert_eq!(told.advised_rate, Some("3r/s".into()));
    second.origins[0].latency.p95 = Some(1.2);
    let told = after(&second);
    assert!(told.remedy.as_str().contains("find out why"), "{told:?}");
    assert_eq!(told.advised_rate, None);
}

#[test]
fn at_a_gate_what_binds_is_named() {
    let gate = |in_flight, rate| {
        let mut second = fine();
        second.origins[0].in_flight = in_flight;
        second.origins[0].gate = Some(GateSample {
            depth: 12,
            rate: FileAndNow {
                file: rate,
                now: rate,
            },
            max_in_flight: FileAndNow {
                file: Some(8),
                now: Some(8),
            },
            ..GateSample::default()
        });
        after(&second).remedy.to_string()
    };
    let places = gate(8, Some(20.0));
    assert!(
        places.contains("raise its `max_in_flight`, which is 8"),
        "{places}"
    );
    assert!(
        places.contains("More of its `rate` would not help"),
        "{places}"
    );
    let rate = gate(2, Some(20.0));
    assert!(
        rate.contains("raise its `rate`, which is 20 a second"),
        "{rate}"
    );
    assert!(rate.contains("2 of 8 places are taken"), "{rate}");
}

#[test]
fn each_situation_has_its_headline() {
    for (nth, situation) in SITUATIONS.iter().enumerate() {
        let mut second = fine();
        (situation.change)(&mut second);
        let told = after(&second);
        let also: Vec<_> = told.also.iter().map(|it| format!("Also: {it}")).collect();
        let text = format!(
            "{}\n{}\n{}\n{}",
            told.title,
            told.evidence,
            told.remedy,
            also.join("\n")
        );
        let place = format!("situation {nth}: {} {text}", told.cause);
        assert_eq!(told.cause.as_str(), situation.cause, "{place}");
        assert_eq!(told.severity.as_str(), situation.severity, "{place}");
        let about = told.about.as_ref().map(Plain::as_str);
        assert_eq!(about, situation.about, "{place}");
        for part in situation.says {
            assert!(text.contains(part), "{part:?} is missing in {place}");
        }
        for part in situation.says_not {
            assert!(!text.contains(part), "{part:?} is in {place}");
        }
    }
}

/// Whatever else goes on, an origin that suffers keeps anybody from advising more rate.
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
            let told = after(&second);
            assert_eq!(told.about, Some("api".into()), "{told:?}");
            assert!(!told.remedy.as_str().contains("raise `"), "{told:?}");
        }
    }
}

#[test]
fn slow_paces_are_told_by_the_minute() {
    use super::words::pace;
    let told = [0.0, 1.0 / 60.0, 0.1, 9.94, 10.4].map(pace);
    let wanted = [
        "0.0 a second",
        "1.0 a minute",
        "0.1 a second",
        "9.9 a second",
        "10 a second",
    ];
    assert_eq!(told, wanted);
}

#[test]
fn nothing_is_said_before_the_second_sample() {
    let mut second = fine();
    second.seq = 1;
    second.zones[0].rejected = 1_000;
    second.zones[0].rejections = counts(&[("burst", 1_000)]);
    let told = headline(&Recent::new(std::slice::from_ref(&second)));
    assert_eq!(told.cause.as_str(), "looking");
    // The first sample counts since the start: it is no second.
    let samples = [second, Sample { seq: 2, ..fine() }];
    assert_eq!(headline(&Recent::new(&samples)).cause.as_str(), "fine");
}

#[test]
fn the_history_has_each_warning_once_as_it_was_at_its_worst() {
    let headlines = Headlines::default();
    assert_eq!(headlines.view().headline.cause.as_str(), "looking");
    let mut editor = Editor::new(headlines.clone());
    let mut seq = 0;
    let mut feed = |second: &Sample, times| {
        for _ in 0..times {
            seq += 1;
            let mut sample = Sample {
                seq,
                time: f64::from(u32::try_from(seq).unwrap()),
                ..second.clone()
            };
            editor.edit(&mut sample);
        }
    };
    feed(&fine(), 20);
    let mut dead = fine();
    dead.origins[0].healthy = 0;
    feed(&dead, 5);
    feed(&fine(), 20);
    let told: Vec<_> = headlines
        .view()
        .history
        .iter()
        .map(|it| (it.since, it.until, it.headline.cause.to_string()))
        .collect();
    assert_eq!(told, [(21.0, Some(26.0), "origin_failing".to_owned())]);
    let mut errors = fine();
    errors.origins[0].codes = counts(&[("5xx", 10)]);
    feed(&errors, 10);
    feed(&fine(), 5);
    let last = &headlines.view().history[0].headline;
    assert_eq!(
        last.title.as_str(),
        "Origin api answers 100 % with 5xx",
        "its worst"
    );
    assert_ne!(headlines.view().headline.title, last.title, "it decays");
    feed(&fine(), 5);
    assert_eq!(headlines.view().headline.cause.as_str(), "fine");
    let causes: Vec<_> = headlines
        .view()
        .history
        .iter()
        .map(|it| it.headline.cause.to_string())
        .collect();
    assert_eq!(causes, ["origin_errors", "origin_failing"]);
    assert_eq!(headlines.view().history[0].count, 100);
}

/// Within five seconds of its end, nothing is said of an incident in the present tense.
#[test]
fn an_incident_that_has_ended_is_not_told_as_present() {
    let incidents: [fn(&mut Sample); 5] = [
        |it| it.zones[0].rejected = 60,
        |it| it.zones[0].cancelled = 60,
        |it| it.origins[0].codes = counts(&[("5xx", 10)]),
        |it| it.origins[0].errors = counts(&[("timeout", 10)]),
        |it| it.zones[0].new_keys = 200,
    ];
    for incident in incidents {
        let headlines = Headlines::default();
        let mut editor = Editor::new(headlines.clone());
        let mut seq = 100;
        let mut feed = |second: &Sample, times| {
            for _ in 0..times {
                seq += 1;
                let mut sample = Sample {
                    seq,
                    time: f64::from(u32::try_from(seq).unwrap()),
                    ..second.clone()
                };
                editor.edit(&mut sample);
            }
        };
        let mut second = fine();
        incident(&mut second);
        feed(&second, 20);
        let during = headlines.view().headline;
        assert!(during.is_warning(), "{during:?}");
        feed(&fine(), 4);
        let after = headlines.view().headline;
        assert_eq!(after.cause.as_str(), "fine", "{after:?}");
    }
}

/// What is told a second is what happens, not the mean of a longer time before.
#[test]
fn a_pace_is_that_of_the_last_seconds() {
    let headlines = Headlines::default();
    let mut editor = Editor::new(headlines.clone());
    for seq in 1..=20 {
        let mut sample = Sample { seq, ..fine() };
        sample.zones[0].rejected = if seq < 17 { 200 } else { 60 };
        editor.edit(&mut sample);
    }
    let headline = headlines.view().headline;
    assert_eq!(headline.title.as_str(), "per_client rejects 60 a second");
}
