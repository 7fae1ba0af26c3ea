//! Tests of clients that disconnect at an origin, at its gate, or while they wait.
//!
//! `reported` changes a second in which nothing is wrong (`fine`), and checks the headline after
//! ten such seconds: severity, cause and subject. Then `says` checks parts of its text.

use super::*;
use crate::gate::report::sample::BackingOff;

/// A gate that passes 5 requests a second, and from which 15 clients disconnect.
fn left_gate(now: &mut Sample, blocked: &str) {
    now.origins[0].codes = counts(&[("2xx", 5)]);
    now.origins[0].gate = Some(GateSample {
        depth: 15,
        left: 15,
        left_after: Some(1.02),
        rate: both(5.0),
        max_in_flight: both(8),
        blocked: [(blocked.into(), 1.0)].into(),
        ..GateSample::default()
    });
}

#[test]
fn disconnected_clients_are_reported_with_the_cause_of_their_wait() {
    // No request has gone on, so no sufficient rate is known.
    reported("bad leaving per_client", |now| {
        now.zones[0].passed = 0;
        now.zones[0].left = 10;
    })
    .says("Set `max_wait`, or raise `rate`: requests")
    .not(&["raise `rate` to"]);
    reported("bad leaving api", |now| {
        now.codes = counts(&[("4xx", 20)]);
        now.left = 20;
        now.origins[0].codes.clear();
        now.origins[0].left = 20;
        now.origins[0].left_after = Some(1.02);
    })
    .says("100 % of clients leave before api answers, after about 1.0 s")
    .says("200 of 200 requests")
    .says("slower than its clients wait: find out what it waits for");
    reported("warn leaving api", |now| now.origins[0].left = 3)
        .says("23 % of clients leave before api answers");
    // Nobody has to act if one client in ten disconnects.
    reported("fine fine", |now| now.origins[0].left = 1).not(&["leave"]);
    reported("bad leaving api", |now| left_gate(now, "pace"))
        .says("75 % leave the gate of api before their turn, after about 1.0 s")
        .says(
            "150 of 200 requests … Set `max_wait = \"1s\"` for its routes, or, if api can do more,",
        )
        .says("raise its `rate`, which is 5.0 a second:")
        .says("Also: 15 requests wait at the gate of api")
        .not(&["max_in_flight"]);
    reported("bad leaving api", |now| left_gate(now, "in_flight"))
        .says("raise its `max_in_flight`, which is 8")
        .not(&["`rate`"]);
    // Clients that disconnected at the origin had a slot at the gate.
    reported("bad leaving api", |now| {
        left_gate(now, "pace");
        now.origins[0].codes.clear();
        now.origins[0].left = 5;
    })
    .says("100 % of clients leave before api answers … Also: 75 % leave the gate of api");
    // A suffering origin should not get more.
    reported("bad leaving api", |now| {
        left_gate(now, "pace");
        if let Some(gate) = &mut now.origins[0].gate {
            gate.backing_off = Some(BackingOff {
                reason: "slow".into(),
                grows: true,
                usual: Some(0.05),
                ..BackingOff::default()
            });
        }
        now.origins[0].latency.p50 = Some(0.05);
    })
    .says("Set `max_wait = \"1s\"` for its routes: requests");
    // They had disconnected before their requests were read, and did not wait for a slot.
    reported("fine fine", |now| now.zones[0].cancelled = 60).not(&["leave", "raise"]);
}

#[test]
fn clients_that_gave_up_in_the_kernel_have_not_left_because_of_an_origin() {
    for (is_full, cause) in [(false, "leaving"), (true, "fine")] {
        let reported = after_all((0..10).map(|nth| {
            let mut second = fine();
            second.origins[0].left = 30;
            second.origins[0].left_after = Some(0.17);
            second.connections.is_full = is_full && nth == 5;
            second
        }));
        assert_eq!(reported.finding.cause.label(), cause);
    }
}
