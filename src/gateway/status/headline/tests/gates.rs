//! Tests of gates that hold, back off, reject and let requests wait.

use std::num::NonZeroUsize;

use super::*;
use crate::gate::report::sample::{BackingOff, GateKeySample, GateOutage};
use crate::gate::{GateOverride, GateValues};
use crate::observe::networks::Crowd;

/// Makes the origin take 3 s. Sets the permits left of 40, and the rejections a second.
fn slow(it: &mut Sample, permits: u64, kept: bool, rejections: u64) {
    it.origins[0].codes = counts(&[("2xx", 1)]);
    it.origins[0].latency.p50 = Some(3.0);
    let gate = gate_of(it);
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

fn backing_off(it: &mut Sample) -> &mut BackingOff {
    gate_of(it).backing_off.get_or_insert_default()
}

/// Makes the origin as fast as before, with 12 of 40 permits and these rejections a second.
fn recovering(it: &mut Sample, rejections: u64) {
    slow(it, 12, false, rejections);
    it.origins[0].codes = counts(&[("2xx", 10)]);
    it.origins[0].latency.p50 = Some(0.05);
    (backing_off(it).grows, backing_off(it).reason) = (true, "slow".into());
}

/// Adds an override to a gate with 100r/s and `depth` waiters.
fn overridden(it: &mut Sample, depth: u64, change: impl FnOnce(&mut GateOverride)) {
    let mut other = overriding(GateValues::default());
    change(&mut other);
    let gate = gate_of(it);
    (gate.depth, gate.rate, gate.overridden) = (depth, both(100.0), Some(other));
}

#[test]
fn a_gate_that_holds_or_backs_off_has_its_headlines() {
    reported("warn paused api", |it| {
        overridden(it, 12, |other| other.values.pause = true);
    })
    .says("The gate of api is paused")
    .says("ops paused it until 2026-12-01T15:00:00.000Z; 12 requests wait.")
    .says("undoing the override");
    reported("warn overridden api", |it| {
        overridden(it, 0, |other| {
            other.values.rate = "20r/s".parse().ok();
            other.values.max_in_flight = NonZeroUsize::new(1);
        });
    })
    .says("The gate of api is not as in the file")
    .says("rate 20r/s and max_in_flight 1, until 2026-12-01T15:00:00.000Z, set by ops.");
    reported("warn overridden api", |it| {
        overridden(it, 0, |other| {
            other.values.rate = "20r/s".parse().ok();
            other.owner = Some("drip find".into());
        });
    })
    .says("rate 20r/s, drip find renews it, set by ops.")
    .not(&["write its numbers"]);
    reported("warn backing_off api", |it| {
        overridden(it, 3, |other| other.values.rate = "200r/s".parse().ok());
        gate_of(it).rate.now = Some(120.0);
        backing_off(it).text = "12 of 40 answers were trouble".into();
        backing_off(it).reason = "trouble".into();
    })
    .says("120 a second of 200 a second … Also: The gate of api is not as in the file")
    .not(&["write its numbers"]);
    reported("bad origin_failing api", |it| {
        it.origins[0].healthy = 0;
        gate_of(it).depth = 12;
        gate_of(it).outage = Some(GateOutage {
            lasts: 1.24,
            hold: "5s".into(),
            error: "connecting to http://10.0.0.1:80 failed".into(),
        });
    })
    .says("Origin api is down; 12 requests wait for it, up to 5s")
    .says("It is down for 1.2 s: connecting to http://10.0.0.1:80 failed.");
    reported("warn backing_off api", |it| {
        let gate = gate_of(it);
        (gate.rate.file, gate.rate.now) = (Some(100.0), Some(40.0));
        gate.rejected = counts(&[("queue", 3)]);
        backing_off(it).text = "12 of 40 answers were trouble".into();
    })
    .says("40 a second of 100 a second … 12 of 40 … Also: The gate of api rejects 3.0");
    reported("bad backing_off api", |it| slow(it, 2, false, 73))
        .says("99 % of requests get 503: api takes 3.0 s (50 ms before); 2 of 40 permits")
        .says("At the last cut, 10 of 10 answers were slow.");
    // Too few permits for responses that take longer than the sampled seconds.
    reported("bad backing_off api", |it| {
        slow(it, 6, false, 20);
        it.origins[0].in_flight = 6;
        it.origins[0].codes.clear();
        it.origins[0].latency.p50 = None;
    })
    .says("100 % of requests get 503: … nothing for 10 s (50 ms before); 6 of 40 permits");
}

#[test]
fn a_gate_that_grows_back_or_backs_off_in_vain_says_so() {
    // Some permits are back. More of them would do no harm.
    reported("bad backing_off api", |it| {
        slow(it, 20, true, 10);
        backing_off(it).kept = false;
    })
    .says("20 of 40 permits … Find out what the origin waits for")
    .not(&["relief"]);
    reported("fine backing_off api", |it| recovering(it, 0))
        .says("Origin api answers in time again; its gate grows back: 12 of 40 permits")
        .says("At the last cut, 10 of 10 answers were slow. … Nothing is to be done")
        .not(&["503", "backs off", "relief", "takes", "lets"]);
    // The origin is well, and still has too few permits.
    reported("warn backing_off api", |it| recovering(it, 5))
        .says("33 % of requests get 503: 12 of 40 permits … Nothing is to be done")
        .not(&["relief", "takes", "answers in time again;"]);
    // Permits also grow without requests. That does not show how fast the origin is.
    reported("warn backing_off api", |it| {
        recovering(it, 0);
        it.origins[0].codes.clear();
        it.origins[0].latency.p50 = None;
    })
    .says("The gate of api backs off")
    .not(&["in time again"]);
    reported("bad backing_off api", |it| slow(it, 40, true, 2))
        .says(
            "67 % of requests get 503: api takes 3.0 s (50 ms before); fewer at once did not make",
        )
        .says("api faster; all 40 permits are back … however many requests run at once")
        .not(&["Raise", "backs off"]);
    reported("warn backing_off api", |it| slow(it, 40, true, 0))
        .says("Fewer at once did not make api faster; all 40 permits are back")
        .not(&["503", "backs off"]);
    reported("warn waiting api", |it| {
        it.origins[0].in_flight = 8;
        (gate_of(it).depth, gate_of(it).max_in_flight) = (12, both(8));
    })
    .says("12 requests wait at the gate of api … All 8 permits");
    // A short queue is normal at a gate.
    reported("fine waiting api", |it| {
        (gate_of(it).depth, gate_of(it).wait_p99) = (1, Some(0.2));
    })
    .says("1 request waits at the gate of api");
    reported("warn waiting api", |it| {
        (gate_of(it).depth, gate_of(it).wait_p99) = (9, Some(1.0));
    })
    .says("9 requests wait at the gate of api");
}

/// Change of a fine second.
type Second = fn(&mut Sample);

/// Headline after three such seconds.
fn in_course(seconds: [Second; 3]) -> Headline {
    after_all(seconds.map(|change| {
        let mut second = fine();
        change(&mut second);
        second
    }))
}

/// As [`recovering`], in a window with a few slow responses.
fn pausing(it: &mut Sample, reason: &str) {
    recovering(it, 0);
    (backing_off(it).grows, backing_off(it).reason) = (false, reason.into());
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
        let reported = in_course(seconds);
        let says = "Origin api answers in time again; its gate grows back: 12 of 40 permits";
        assert_eq!(reported.finding.title, says);
        assert_eq!(reported.finding.severity.label(), "fine");
        let remedy = reported.finding.remedy.as_str();
        assert!(remedy.starts_with("Nothing is to be done"), "{remedy}");
    }
    let trouble: Second = |it| {
        pausing(it, "trouble");
        it.origins[0].codes = counts(&[("2xx", 9), ("4xx", 1)]);
    };
    let retry_after: Second = |it| pausing(it, "retry_after");
    let unknown: Second = |it| {
        pausing(it, "slow");
        backing_off(it).usual = None;
    };
    // In the second after a cut, it is not known whether the permits grow.
    for seconds in [[slow, slow, window], [slow, slow, all_good]] {
        let reported = in_course(seconds);
        assert_eq!(reported.finding.title, "The gate of api backs off");
    }
    for second in [slow, trouble, retry_after, unknown] {
        let remedy = in_course([second; 3]).finding.remedy;
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
    assert_eq!(
        (reported.finding.cause.label(), reported.finding.count),
        ("backing_off", 75)
    );
}

#[test]
fn a_gate_that_rejects_most_is_bad_unless_one_client_may_be_the_reason() {
    for (label, reason, rejections) in [
        ("bad rejecting api", "max_queue", 10),
        ("warn rejecting api", "max_queue", 9),
        ("warn rejecting api", "queue", 10),
    ] {
        let reported = reported(label, |it| {
            gate_of(it).rejected = counts(&[(reason, rejections)]);
            let depth = 8;
            gate_of(it).deepest = vec![GateKeySample {
                depth,
                ..Default::default()
            }];
        });
        if label.starts_with("bad") {
            // The key has no name.
            reported.says("100 of 200 requests in the last 10 s: as many requests wait as `max_queue` allows.\n");
        }
    }
}

#[test]
fn the_limit_that_binds_at_a_gate_is_named() {
    let gate = |in_flight| {
        reported("warn waiting api", |it| {
            it.origins[0].in_flight = in_flight;
            let gate = gate_of(it);
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
        reported("warn waiting api", |it| {
            let gate = gate_of(it);
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
    let (paces, permits) = ((Some(5.0), None), (None, Some(8)));
    let both = (Some(5.0), Some(8));
    let (by_pace, by_permits) = (
        [("pace", 0.9), ("in_flight", 0.1)],
        [("pace", 0.1), ("in_flight", 0.9)],
    );
    let (in_flight_text, rate) = (
        "`max_in_flight`, which is 8",
        "`rate`, which is 5.0 a second",
    );
    for (reason, blocked, file, names, names_not) in [
        ("max_queue", &by_permits[..], both, in_flight_text, "`rate`"),
        ("queue", &by_pace, both, rate, "in_flight"),
        (
            "timeout",
            &[("in_flight", 1.0)],
            permits,
            in_flight_text,
            "`rate`",
        ),
        ("max_queue", &[], paces, rate, "in_flight"),
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
        let mut second = fine();
        let gate = gate_of(&mut second);
        (gate.rate.file, gate.rate.now) = (file.0, file.0);
        (gate.max_in_flight.file, gate.max_in_flight.now) = (file.1, file.1);
        gate.rejected = counts(&[(reason, 3)]);
        gate.blocked = blocked
            .iter()
            .map(|(by, time)| ((*by).into(), *time))
            .collect();
        let reported = after(&second);
        assert_eq!(reported.finding.cause.label(), "rejecting", "{reported:?}");
        let remedy = reported.finding.remedy.as_str();
        let is_right = remedy.contains(names) && !remedy.contains(names_not);
        assert!(is_right, "{remedy}");
    }
}

#[test]
fn a_crowd_of_one_network_comes_before_the_queue_that_it_makes() {
    reported("warn key_flood api", |it| {
        gate_of(it).depth = 200;
        gate_of(it).crowd = Some(Crowd {
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
