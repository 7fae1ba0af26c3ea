//! Gates hold, back off, reject and let requests wait.

use super::*;
use crate::observe::networks::Crowd;
use crate::status::views::{BackingOff, GateKeySample, GateOutage, GateOverride};

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
            in_vain: kept,
            usual: Some(0.05),
            ..BackingOff::default()
        }),
        rejected: counts(&[("max_queue", rejections)]),
        ..GateSample::default()
    });
}

/// An origin that is as fast as before, and whose gate has 12 of 40 places and rejects so many a
/// second.
fn recovering(it: &mut Sample, rejections: u64) {
    slow(it, 12, false, rejections);
    let origin = &mut it.origins[0];
    origin.codes = counts(&[("2xx", 10)]);
    origin.latency.p50 = Some(0.05);
    if let Some(gate) = &mut origin.gate
        && let Some(backing_off) = &mut gate.backing_off
    {
        backing_off.grows = true;
        backing_off.reason = "slow".into();
    }
}

/// A gate of the file's 100r/s at which so many wait, with this override.
fn overridden(it: &mut Sample, depth: u64, change: impl FnOnce(&mut GateOverride)) {
    let mut other = GateOverride {
        until: "2026-12-01T15:00:00Z".into(),
        by: "ops".into(),
        ..GateOverride::default()
    };
    change(&mut other);
    it.origins[0].gate = Some(GateSample {
        depth,
        rate: both(100.0),
        overridden: Some(other),
        ..GateSample::default()
    });
}

const SITUATIONS: &[Situation] = &[
    Situation {
        change: |it| {
            overridden(it, 12, |other| other.pause = true);
        },
        cause: "paused",
        says: &[
            "The gate of api is paused",
            "ops paused it until 2026-12-01T15:00:00Z; 12 requests wait.",
            "undoing the override",
        ],
        ..WARN
    },
    Situation {
        change: |it| {
            overridden(it, 0, |other| {
                other.rate = Some("20r/s".into());
                other.max_in_flight = Some(1);
            });
        },
        cause: "overridden",
        says: &[
            "The gate of api is not as in the file",
            "ts rate is 20r/s and its `max_in_flight` is 1, until 2026-12-01T15:00:00Z, set by ops.",
        ],
        ..WARN
    },
    Situation {
        change: |it| {
            overridden(it, 0, |other| {
                other.rate = Some("20r/s".into());
                other.owner = Some("drip find".into());
            });
        },
        cause: "overridden",
        says: &["ts rate is 20r/s, drip find renews it, set by ops."],
        says_not: &["write its numbers"],
        ..WARN
    },
    Situation {
        change: |it| {
            overridden(it, 3, |other| other.rate = Some("200r/s".into()));
            let gate = it.origins[0].gate.as_mut().expect("a gate");
            gate.rate.now = Some(120.0);
            gate.backing_off = Some(BackingOff {
                text: "12 of 40 answers were trouble".into(),
                reason: "trouble".into(),
                ..BackingOff::default()
            });
        },
        cause: "backing_off",
        says: &[
            "120 a second of 200 a second",
            "Also: The gate of api is not as in the file",
        ],
        says_not: &["write its numbers"],
        ..WARN
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
        cause: "origin_failing",
        says: &[
            "Origin api is down; 12 requests wait for it, up to 5s",
            "It is down for 1.2 s: connecting to http://10.0.0.1:80 failed.",
        ],
        ..BAD
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
        says: &[
            "40 a second of 100 a second",
            "12 of 40",
            "Also: The gate of api rejects 3.0",
        ],
        ..WARN
    },
    Situation {
        change: |it| slow(it, 2, false, 73),
        cause: "backing_off",
        says: &[
            "99 % of requests get 503: api takes 3.0 s (50 ms before); 2 of 40 places",
            "At the last cut, 10 of 10 answers were slow.",
        ],
        ..BAD
    },
    Situation {
        // Too few places for answers that take longer than the seconds that are looked at.
        change: |it| {
            slow(it, 6, false, 20);
            it.origins[0].in_flight = 6;
            it.origins[0].codes.clear();
            it.origins[0].latency.p50 = None;
        },
        cause: "backing_off",
        says: &[
            "100 % of requests get 503: api has answered nothing for 10 s (50 ms before); 6 of 40 places",
        ],
        ..BAD
    },
    Situation {
        // Some places are back, and more of them would do no harm.
        change: |it| {
            slow(it, 20, true, 10);
            let gate = it.origins[0].gate.as_mut();
            if let Some(backing_off) = gate.and_then(|it| it.backing_off.as_mut()) {
                backing_off.kept = false;
            }
        },
        cause: "backing_off",
        says: &["20 of 40 places", "Find out what the origin waits for"],
        says_not: &["relief"],
        ..BAD
    },
    Situation {
        change: |it| recovering(it, 0),
        cause: "backing_off",
        severity: "fine",
        about: Some("api"),
        says: &[
            "Origin api answers in time again; its gate grows back: 12 of 40 places",
            "At the last cut, 10 of 10 answers were slow.",
            "Nothing is to be done",
        ],
        says_not: &["503", "backs off", "relief", "takes", "lets"],
    },
    Situation {
        // The origin is well, and has too few places still.
        change: |it| recovering(it, 5),
        cause: "backing_off",
        says: &[
            "33 % of requests get 503: 12 of 40 places",
            "Nothing is to be done",
        ],
        says_not: &["relief", "takes", "answers in time again;"],
        ..WARN
    },
    Situation {
        // Places grow also where nobody asks; that does not say how fast the origin is.
        change: |it| {
            recovering(it, 0);
            it.origins[0].codes.clear();
            it.origins[0].latency.p50 = None;
        },
        cause: "backing_off",
        says: &["The gate of api backs off"],
        says_not: &["in time again"],
        ..WARN
    },
    Situation {
        change: |it| slow(it, 40, true, 2),
        cause: "backing_off",
        says: &[
            "67 % of requests get 503: api takes 3.0 s (50 ms before); fewer at once did not make api faster; all 40 places are back",
            "however many requests run at once",
        ],
        says_not: &["Raise", "backs off"],
        ..BAD
    },
    Situation {
        change: |it| slow(it, 40, true, 0),
        cause: "backing_off",
        says: &["Fewer at once did not make api faster; all 40 places are back"],
        says_not: &["503", "backs off"],
        ..WARN
    },
    Situation {
        change: |it| {
            it.origins[0].in_flight = 8;
            it.origins[0].gate = Some(GateSample {
                depth: 12,
                max_in_flight: both(8),
                ..GateSample::default()
            });
        },
        cause: "waiting",
        says: &["12 requests wait at the gate of api", "All 8 places"],
        says_not: &[],
        ..WARN
    },
    Situation {
        // A short queue is what a gate is for.
        change: |it| {
            it.origins[0].gate = Some(GateSample {
                depth: 1,
                wait_p99: Some(0.2),
                ..GateSample::default()
            });
        },
        cause: "waiting",
        severity: "fine",
        about: Some("api"),
        says: &["1 request waits at the gate of api"],
        says_not: &[],
    },
    Situation {
        change: |it| {
            it.origins[0].gate = Some(GateSample {
                depth: 9,
                wait_p99: Some(1.0),
                ..GateSample::default()
            });
        },
        cause: "waiting",
        says: &["9 requests wait at the gate of api"],
        says_not: &[],
        ..WARN
    },
];

#[test]
fn what_a_gate_does_has_its_headlines() {
    check_all(SITUATIONS);
}

/// What a second is like.
type Second = fn(&mut Sample);

/// The headline after three such seconds.
fn in_course(seconds: [Second; 3]) -> Headline {
    after_all(seconds.map(|change| {
        let mut second = fine();
        change(&mut second);
        second
    }))
}

/// As [`recovering`], in a window with a few slow answers.
fn pausing(it: &mut Sample, reason: &str) {
    recovering(it, 0);
    let gate = it.origins[0].gate.as_mut();
    if let Some(backing_off) = gate.and_then(|it| it.backing_off.as_mut()) {
        (backing_off.grows, backing_off.reason) = (false, reason.into());
    }
}

#[test]
fn an_origin_that_answers_in_time_again_is_fine_as_soon_as_its_permits_grow() {
    let well: Second = |it| recovering(it, 0);
    let slow: Second = |it| slow(it, 12, false, 0);
    let all_good: Second = |it| pausing(it, "trouble");
    let window: Second = |it| pausing(it, "slow");
    for seconds in [
        [well, well, well],
        [slow, well, window],
        [well, window, window],
    ] {
        let told = in_course(seconds);
        let says = "Origin api answers in time again; its gate grows back: 12 of 40 places";
        assert_eq!(told.title.as_str(), says);
        assert_eq!(told.severity.as_str(), "fine");
        assert!(
            told.remedy.as_str().starts_with("Nothing is to be done"),
            "{told:?}"
        );
    }
    let trouble: Second = |it| {
        pausing(it, "trouble");
        it.origins[0].codes = counts(&[("2xx", 9), ("4xx", 1)]);
    };
    let retry_after: Second = |it| pausing(it, "retry_after");
    let unknown: Second = |it| {
        pausing(it, "slow");
        let gate = it.origins[0].gate.as_mut();
        gate.and_then(|it| it.backing_off.as_mut())
            .map(|it| it.usual.take());
    };
    // Whether it grows is not known in the second after a cut.
    for seconds in [[slow, slow, window], [slow, slow, all_good]] {
        assert_eq!(
            in_course(seconds).title.as_str(),
            "The gate of api backs off"
        );
    }
    for second in [slow, trouble, retry_after, unknown] {
        let remedy = in_course([second; 3]).remedy;
        assert!(remedy.as_str().contains("once nearly all"), "{remedy}");
    }
}

#[test]
fn a_gate_that_backs_off_counts_the_requests_without_a_good_answer() {
    let mut second = fine();
    slow(&mut second, 12, false, 70);
    second.origins[0].codes = counts(&[("2xx", 99), ("4xx", 1), ("5xx", 3)]);
    second.origins[0].errors = counts(&[("timeout", 2)]);
    let told = after(&second);
    assert_eq!((told.cause.as_str(), told.count), ("backing_off", 75));
}

#[test]
fn a_gate_that_rejects_most_is_bad_unless_one_client_may_be_the_reason() {
    let rejecting = |reason, rejections| {
        let mut second = fine();
        second.origins[0].gate = Some(GateSample {
            rejected: counts(&[(reason, rejections)]),
            deepest: vec![GateKeySample {
                depth: 8,
                ..Default::default()
            }],
            ..GateSample::default()
        });
        after(&second)
    };
    let most = rejecting("max_queue", 10);
    let evidence =
        "100 of 200 requests in the last 10 s: as many requests wait as `max_queue` allows.";
    assert_eq!(most.evidence.as_str(), evidence, "the key has no name");
    assert_eq!(most.severity.as_str(), "bad");
    for (reason, rejections) in [("max_queue", 9), ("queue", 10)] {
        assert_eq!(rejecting(reason, rejections).severity.as_str(), "warn");
    }
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
            max_in_flight: both(8),
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
fn a_rate_counts_units_where_requests_have_costs() {
    for (costs, pace) in [(false, "20 a second"), (true, "20 units of cost a second")] {
        let mut second = fine();
        second.origins[0].gate = Some(GateSample {
            depth: 300,
            costs,
            rate: both(20.0),
            ..GateSample::default()
        });
        let told = after(&second);
        assert_eq!(told.title.as_str(), "300 requests wait at the gate of api");
        let evidence = format!("They leave one by one, {pace}.");
        assert_eq!(told.evidence.as_str(), evidence);
        let remedy = format!("raise its `rate`, which is {pace}.");
        assert!(told.remedy.as_str().contains(&remedy), "{told:?}");
    }
}

/// The remedy where a gate with a rate of 5r/s and 8 places rejects, and requests waited for this.
fn remedy(reason: &str, blocked: &[(&str, f64)], file: (Option<f64>, Option<u64>)) -> String {
    let mut second = fine();
    second.origins[0].gate = Some(GateSample {
        rate: FileAndNow {
            file: file.0,
            now: file.0,
        },
        max_in_flight: FileAndNow {
            file: file.1,
            now: file.1,
        },
        rejected: [(reason.into(), 3)].into(),
        blocked: blocked
            .iter()
            .map(|(by, time)| ((*by).into(), *time))
            .collect(),
        ..GateSample::default()
    });
    let told = after(&second);
    assert_eq!(told.cause.as_str(), "rejecting", "{told:?}");
    told.remedy.to_string()
}

#[test]
fn the_setting_that_requests_wait_for_is_named() {
    let (both, places, rate) = (
        (Some(5.0), Some(8)),
        "`max_in_flight`, which is 8",
        "`rate`, which is 5.0 a second",
    );
    for (reason, blocked, file, names, names_not) in [
        (
            "max_queue",
            &[("pace", 0.1), ("in_flight", 0.9)][..],
            both,
            places,
            "`rate`",
        ),
        (
            "queue",
            &[("pace", 0.9), ("in_flight", 0.1)],
            both,
            rate,
            "in_flight",
        ),
        (
            "timeout",
            &[("in_flight", 1.0)],
            (None, Some(8)),
            places,
            "`rate`",
        ),
        ("max_queue", &[], (Some(5.0), None), rate, "in_flight"),
        (
            "max_queue",
            &[("pause", 1.0)],
            both,
            "`rate` or `max_in_flight`",
            "which is",
        ),
        (
            "outage",
            &[("outage", 1.0)],
            both,
            "Bring the origin back",
            "which is",
        ),
    ] {
        let remedy = remedy(reason, blocked, file);
        assert!(
            remedy.contains(names) && !remedy.contains(names_not),
            "{remedy}"
        );
    }
}

#[test]
fn a_crowd_of_one_network_comes_before_the_queue_that_it_makes() {
    let mut second = fine();
    second.origins[0].gate = Some(GateSample {
        depth: 200,
        crowd: Some(Crowd {
            network: "192.0.2.0/24".to_owned(),
            addresses: 198,
            requests: 210,
            of: 256,
        }),
        ..GateSample::default()
    });
    let told = after(&second);
    assert_eq!(told.cause.as_str(), "key_flood");
    assert_eq!(told.severity.as_str(), "warn");
    assert_eq!(
        told.title.as_str(),
        "198 addresses of 192.0.2.0/24 crowd the gate of api"
    );
    assert!(
        told.evidence
            .as_str()
            .starts_with("210 of the last 256 requests")
    );
    let remedy = told.remedy.as_str();
    for part in ["`share`", "`new_keys`", "`deny`"] {
        assert!(remedy.contains(part), "{remedy}");
    }
    assert!(!remedy.contains("raise"), "{remedy}");
}
