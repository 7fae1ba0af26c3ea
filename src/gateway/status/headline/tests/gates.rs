//! Tests of gates that hold, back off, reject and let requests wait.
//!
//! `reported` changes a second in which nothing is wrong (`fine`), and checks the headline after
//! ten such seconds: severity, cause and subject. Then `says` checks parts of its text.
//!
//! A gate bounds the pace of the requests to an origin, and how many run at once (permits). It
//! *backs off*, which means that it sends fewer, while the origin is slow or fails.

use std::num::NonZeroUsize;

use super::*;
use crate::gate::report::sample::{BackingOff, GateKeySample, GateOutage};
use crate::gate::{GateOverride, GateValues};
use crate::observe::networks::Crowd;

/// Makes the origin take 3 s. Sets the permits left of 40, and the rejections a second.
fn slow(now: &mut Sample, permits: u64, kept: bool, rejections: u64) {
    now.origins[0].codes = counts(&[("2xx", 1)]);
    now.origins[0].latency.p50 = Some(3.0);
    let gate = gate_of(now);
    (gate.max_in_flight.file, gate.max_in_flight.now) = (Some(40), Some(permits));
    gate.rejected = counts(&[("max_queue", rejections)]);
    gate.backing_off = Some(BackingOff {
        text: "10 of 10 answers were slow".into(),
        kept,
        in_vain: kept,
        usual: Some(0.05),
        ..BackingOff::default()
    });
}

/// Returns the back-off of the gate.
fn backing_off(now: &mut Sample) -> &mut BackingOff {
    gate_of(now).backing_off.get_or_insert_default()
}

/// Makes the origin as fast as before, with 12 of 40 permits and these rejections a second.
fn recovering(now: &mut Sample, rejections: u64) {
    slow(now, 12, false, rejections);
    now.origins[0].codes = counts(&[("2xx", 10)]);
    now.origins[0].latency.p50 = Some(0.05);
    (backing_off(now).grows, backing_off(now).reason) = (true, "slow".into());
}

/// Adds an override to a gate with 100r/s and `depth` waiters.
fn overridden(now: &mut Sample, depth: u64, change: impl FnOnce(&mut GateOverride)) {
    let mut other = overriding(GateValues::default());
    change(&mut other);
    let gate = gate_of(now);
    (gate.depth, gate.rate, gate.overridden) = (depth, both(100.0), Some(other));
}

#[test]
fn a_gate_that_is_paused_overridden_holds_or_backs_off_has_a_headline() {
    reported("warn paused api", |now| {
        overridden(now, 12, |other| other.values.pause = true);
    })
    .says("The gate of api is paused")
    .says("ops paused it until 2026-12-01T15:00:00.000Z; 12 requests wait.")
    .says("undoing the override");
    reported("warn overridden api", |now| {
        overridden(now, 0, |other| {
            other.values.rate = "20r/s".parse().ok();
            other.values.max_in_flight = NonZeroUsize::new(1);
        });
    })
    .says("The gate of api is not as in the file")
    .says("rate 20r/s and max_in_flight 1, until 2026-12-01T15:00:00.000Z, set by ops.");
    reported("warn overridden api", |now| {
        overridden(now, 0, |other| {
            other.values.rate = "20r/s".parse().ok();
            other.owner = Some("drip find".into());
        });
    })
    .says("rate 20r/s, drip find renews it, set by ops.")
    .not(&["write its numbers"]);
    reported("warn backing_off api", |now| {
        overridden(now, 3, |other| other.values.rate = "200r/s".parse().ok());
        gate_of(now).rate.now = Some(120.0);
        backing_off(now).text = "12 of 40 answers were trouble".into();
        backing_off(now).reason = "trouble".into();
    })
    .says("120 a second of 200 a second … Also: The gate of api is not as in the file")
    .not(&["write its numbers"]);
    reported("bad origin_failing api", |now| {
        now.origins[0].healthy = 0;
        gate_of(now).depth = 12;
        gate_of(now).outage = Some(GateOutage {
            lasts: 1.24,
            hold: "5s".into(),
            error: "connecting to http://10.0.0.1:80 failed".into(),
        });
    })
    .says("Origin api is down; 12 requests wait for it, up to 5s")
    .says("It is down for 1.2 s: connecting to http://10.0.0.1:80 failed.");
    reported("warn backing_off api", |now| {
        let gate = gate_of(now);
        (gate.rate.file, gate.rate.now) = (Some(100.0), Some(40.0));
        gate.rejected = counts(&[("queue", 3)]);
        backing_off(now).text = "12 of 40 answers were trouble".into();
    })
    .says("40 a second of 100 a second … 12 of 40 … Also: The gate of api rejects 3.0");
    reported("bad backing_off api", |now| slow(now, 2, false, 73))
        .says("99 % of requests get 503: api takes 3.0 s (50 ms before); 2 of 40 permits")
        .says("At the last cut, 10 of 10 answers were slow.");
    // Too few permits for responses that take longer than the sampled seconds.
    reported("bad backing_off api", |now| {
        slow(now, 6, false, 20);
        now.origins[0].in_flight = 6;
        now.origins[0].codes.clear();
        now.origins[0].latency.p50 = None;
    })
    .says("100 % of requests get 503: … nothing for 10 s (50 ms before); 6 of 40 permits");
}

#[test]
fn a_gate_that_grows_back_or_backs_off_in_vain_says_so() {
    // Some permits are back. More of them would do no harm.
    reported("bad backing_off api", |now| {
        slow(now, 20, true, 10);
        backing_off(now).kept = false;
    })
    .says("20 of 40 permits … Find out what the origin waits for")
    .not(&["relief"]);
    reported("fine backing_off api", |now| recovering(now, 0))
        .says("Origin api answers in time again; its gate grows back: 12 of 40 permits")
        .says("At the last cut, 10 of 10 answers were slow. … Nothing is to be done")
        .not(&["503", "backs off", "relief", "takes", "lets"]);
    // The origin is well, and still has too few permits.
    reported("warn backing_off api", |now| recovering(now, 5))
        .says("33 % of requests get 503: 12 of 40 permits … Nothing is to be done")
        .not(&["relief", "takes", "answers in time again;"]);
    // Permits also grow without requests. That does not show how fast the origin is.
    reported("warn backing_off api", |now| {
        recovering(now, 0);
        now.origins[0].codes.clear();
        now.origins[0].latency.p50 = None;
    })
    .says("The gate of api backs off")
    .not(&["in time again"]);
    reported("bad backing_off api", |now| slow(now, 40, true, 2))
        .says(
            "67 % of requests get 503: api takes 3.0 s (50 ms before); fewer at once did not make",
        )
        .says("api faster; all 40 permits are back … however many requests run at once")
        .not(&["Raise", "backs off"]);
    reported("warn backing_off api", |now| slow(now, 40, true, 0))
        .says("Fewer at once did not make api faster; all 40 permits are back")
        .not(&["503", "backs off"]);
    reported("warn waiting api", |now| {
        now.origins[0].in_flight = 8;
        (gate_of(now).depth, gate_of(now).max_in_flight) = (12, both(8));
    })
    .says("12 requests wait at the gate of api … All 8 permits");
    // A short queue is normal at a gate.
    reported("fine waiting api", |now| {
        (gate_of(now).depth, gate_of(now).wait_p99) = (1, Some(0.2));
    })
    .says("1 request waits at the gate of api");
    reported("warn waiting api", |now| {
        (gate_of(now).depth, gate_of(now).wait_p99) = (9, Some(1.0));
    })
    .says("9 requests wait at the gate of api");
}

/// Changes a fine second to a situation of the gate.
type Situation = fn(&mut Sample);

/// Returns the headline after three seconds with these situations.
fn headline_after(seconds: [Situation; 3]) -> Headline {
    after_all(seconds.map(|change| {
        let mut second = fine();
        change(&mut second);
        second
    }))
}

/// As [`recovering`], in a window with a few slow responses.
fn pausing(now: &mut Sample, reason: &str) {
    recovering(now, 0);
    (backing_off(now).grows, backing_off(now).reason) = (false, reason.into());
}

#[test]
fn an_origin_that_answers_in_time_again_is_fine_as_soon_as_its_permits_grow() {
    let well: Situation = |now| recovering(now, 0);
    let slow: Situation = |now| slow(now, 12, false, 0);
    let all_good: Situation = |now| pausing(now, "trouble");
    let window: Situation = |now| pausing(now, "slow");
    for seconds in [
        [well, well, well],
        [slow, well, window],
        [well, window, window],
    ] {
        let reported = headline_after(seconds);
        let title = "Origin api answers in time again; its gate grows back: 12 of 40 permits";
        assert_eq!(reported.finding.title, title);
        assert_eq!(reported.finding.severity.label(), "fine");
        let remedy = reported.finding.remedy.as_str();
        assert!(remedy.starts_with("Nothing is to be done"), "{remedy}");
    }
    let trouble: Situation = |now| {
        pausing(now, "trouble");
        now.origins[0].codes = counts(&[("2xx", 9), ("4xx", 1)]);
    };
    let retry_after: Situation = |now| pausing(now, "retry_after");
    let unknown: Situation = |now| {
        pausing(now, "slow");
        backing_off(now).usual = None;
    };
    // In the second after a cut, it is not known whether the permits grow.
    for seconds in [[slow, slow, window], [slow, slow, all_good]] {
        let reported = headline_after(seconds);
        assert_eq!(reported.finding.title, "The gate of api backs off");
    }
    for second in [slow, trouble, retry_after, unknown] {
        let remedy = headline_after([second; 3]).finding.remedy;
        assert!(remedy.as_str().contains("once nearly all"), "{remedy}");
    }
}

#[test]
fn a_gate_that_backs_off_counts_the_requests_without_a_good_answer() {
    let mut second = fine();
    slow(&mut second, 12, false, 70);
    second.origins[0].codes = counts(&[("2xx", 99), ("4xx", 1), ("5xx", 3)]);
    second.origins[0].errors = counts(&[("timeout", 2)]);
    let reported = after(&second);
    assert_eq!(reported.finding.cause.label(), "backing_off");
    assert_eq!(reported.finding.count, 75);
}

#[test]
fn a_gate_that_rejects_most_is_bad_unless_one_client_may_be_the_reason() {
    for (label, reason, rejections) in [
        ("bad rejecting api", "max_queue", 10),
        ("warn rejecting api", "max_queue", 9),
        ("warn rejecting api", "queue", 10),
    ] {
        let reported = reported(label, |now| {
            gate_of(now).rejected = counts(&[(reason, rejections)]);
            // A key without a name.
            let key = GateKeySample::default();
            gate_of(now).deepest = vec![GateKeySample { depth: 8, ..key }];
        });
        if label.starts_with("bad") {
            reported.says("100 of 200 requests in the last 10 s: as many requests wait as `max_queue` allows.\n");
        }
    }
}

#[test]
fn the_limit_that_binds_at_a_gate_is_named() {
    let gate = |in_flight| {
        reported("warn waiting api", |now| {
            now.origins[0].in_flight = in_flight;
            let gate = gate_of(now);
            (gate.depth, gate.rate, gate.max_in_flight) = (12, both(20.0), both(8));
        })
    };
    gate(8).says("raise its `max_in_flight`, which is 8 … More of its `rate` would not help");
    gate(2)
        .says("raise its `rate`, which is 20 a second")
        .says("2 of 8 permits are taken");
}

#[test]
fn a_rate_counts_units_where_requests_have_costs() {
    for (costs, pace) in [(false, "20 a second"), (true, "20 units of cost a second")] {
        reported("warn waiting api", |now| {
            let gate = gate_of(now);
            (gate.depth, gate.costs, gate.rate) = (300, costs, both(20.0));
        })
        .says(&format!(
            "300 requests wait at the gate of api\nThey leave one by one, {pace}.\n … \
             raise its `rate`, which is {pace}."
        ));
    }
}

#[test]
fn the_setting_that_requests_wait_for_is_named() {
    // Rate and `max_in_flight` of the gate.
    let (rate_only, both) = ((Some(5.0), None), (Some(5.0), Some(8)));
    let permits_only = (None, Some(8));
    let by_pace = &[("pace", 0.9), ("in_flight", 0.1)][..];
    let by_permits = &[("pace", 0.1), ("in_flight", 0.9)][..];
    let only_permits = &[("in_flight", 1.0)][..];
    let in_flight = "`max_in_flight`, which is 8";
    let rate = "`rate`, which is 5.0 a second";
    let either = "`rate` or `max_in_flight`";
    // Reason of the rejections, share of time for which each setting blocked the gate, its
    // settings, the text in the remedy, and a text that is not in it.
    for (reason, blocked, file, names, names_not) in [
        ("max_queue", by_permits, both, in_flight, "`rate`"),
        ("queue", by_pace, both, rate, "in_flight"),
        ("timeout", only_permits, permits_only, in_flight, "`rate`"),
        ("max_queue", &[], rate_only, rate, "in_flight"),
        ("max_queue", &[("pause", 1.0)], both, either, "which is"),
        (
            "outage",
            &[("outage", 1.0)],
            both,
            "Bring the origin back",
            "which is",
        ),
    ] {
        let mut second = fine();
        let gate = gate_of(&mut second);
        (gate.rate.file, gate.rate.now) = (file.0, file.0);
        (gate.max_in_flight.file, gate.max_in_flight.now) = (file.1, file.1);
        gate.rejected = counts(&[(reason, 3)]);
        let blocked = blocked.iter().map(|(by, share)| ((*by).into(), *share));
        gate.blocked = blocked.collect();
        let reported = after(&second);
        assert_eq!(reported.finding.cause.label(), "rejecting", "{reported:?}");
        let remedy = reported.finding.remedy.as_str();
        let is_right = remedy.contains(names) && !remedy.contains(names_not);
        assert!(is_right, "{remedy}");
    }
}

#[test]
fn a_crowd_of_one_network_comes_before_the_queue_that_it_makes() {
    reported("warn key_flood api", |now| {
        gate_of(now).depth = 200;
        gate_of(now).crowd = Some(Crowd {
            network: "192.0.2.0/24".to_owned(),
            addresses: 198,
            requests: 210,
            of: 256,
        });
    })
    .says("198 addresses of 192.0.2.0/24 crowd the gate of api\n210 of the last 256 requests")
    .says("`share`")
    .says("`new_keys`")
    .says("`deny`")
    .not(&["raise"]);
}
