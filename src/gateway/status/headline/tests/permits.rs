//! Tests of shared permits that are withheld, or at other gateways.
//!
//! `reported` changes a second in which nothing is wrong (`fine`), and checks the headline after
//! ten such seconds: severity, cause and subject. Then `says` checks parts of its text.

use super::*;
use crate::gate::report::sample::PermitsStatus;
use crate::zone::report::sample::{FullKey, HeavyKey};

/// Advice that is wrong while permits are withheld.
const RAISE: &[&str] = &["raise `", "raise its `", "Raise"];

/// A gate with 8 permits for all gateways, and 12 requests that wait for them.
fn gate(now: &mut Sample, permits: PermitsStatus, by_pace: f64) -> &mut GateSample {
    let gate = GateSample {
        depth: 12,
        rate: both(20.0),
        max_in_flight: both(8),
        blocked: [("pace".into(), by_pace), ("in_flight".into(), 0.5)].into(),
        permits: Some(PermitsStatus {
            of: 8,
            orphan: "75s".into(),
            ..permits
        }),
        ..GateSample::default()
    };
    now.origins[0].in_flight = 2;
    now.origins[0].gate.insert(gate)
}

/// Of 8 permits 2 are in use here, 1 elsewhere, and 5 are withheld.
fn withheld() -> PermitsStatus {
    PermitsStatus {
        held: 2,
        in_use: 2,
        leased: 3,
        withheld: 5,
        gateways: 2,
        ..PermitsStatus::default()
    }
}

/// A key that has its 2 permits, `withheld` of them at a gateway that has vanished.
fn full(withheld: u64) -> FullKey {
    FullKey {
        key: "a".into(),
        of: 2,
        here: 0,
        elsewhere: 2,
        withheld,
        orphan: "75s".into(),
    }
}

/// A zone that rejects 3 requests a second, those of `a`.
fn rejecting(now: &mut Sample, reason: &str, full_key: FullKey) {
    let zone = &mut now.zones[0];
    zone.rejected = 3;
    zone.rejections = counts(&[(reason, 3)]);
    zone.rejected_now = vec![HeavyKey {
        key: "a".into(),
        share: 1.0,
        ..HeavyKey::default()
    }];
    zone.full_key = Some(full_key);
}

const WITHHELD: &str = "5 of 8 permits are withheld for a gateway that has vanished, as its requests may still run at the origin. \
     Gateways that are there have 3, this one 2.";
const NOTHING: &str = "There is nothing to raise: withheld permits are free when `orphan`, which is 75s, has passed, or when that gateway is back.";
const KEY_WITHHELD: &str = "Of 2 permits of a, 2 are withheld for a gateway that has vanished, as its requests may still run; \
     0 run here, 0 at other gateways.";
const NOTHING_IN_ZONE: &str = "There is nothing to raise: withheld permits are free when `orphan` of the zone, which is 75s, has passed, or when that gateway is back.";

/// Checks that the headline has this text and does not advise to raise anything.
fn nothing_to_raise(label: &str, says: &str, change: impl FnOnce(&mut Sample)) {
    let (why, nothing) = if label.ends_with("api") {
        (WITHHELD, NOTHING)
    } else {
        (KEY_WITHHELD, NOTHING_IN_ZONE)
    };
    let reported = reported(label, change).says(says).says(nothing).not(RAISE);
    if !label.contains("leaving") {
        reported.says(why);
    }
}

#[test]
fn while_permits_are_withheld_no_limit_is_advised_to_be_raised() {
    nothing_to_raise("warn waiting api", "", |now| {
        gate(now, withheld(), 0.0).left = 0;
    });
    nothing_to_raise("warn rejecting api", "`queue_timeout` allows.", |now| {
        gate(now, withheld(), 0.0).rejected = counts(&[("timeout", 9)]);
    });
    let max_wait = "Set `max_wait = \"1s\"` for its routes: requests";
    nothing_to_raise("warn leaving api", max_wait, |now| {
        gate(now, withheld(), 0.0).left = 9;
        gate_of(now).left_after = Some(1.0);
    });
    nothing_to_raise("warn rejecting per_client", "`in_flight` allows.", |now| {
        rejecting(now, "in_flight", full(2));
    });
    nothing_to_raise("warn rejecting per_client", "", |now| {
        rejecting(now, "burst", full(2));
    });
    nothing_to_raise("warn waiting per_client", "", |now| {
        wait(now, 3, 2.0).full_key = Some(full(2));
    });
    let max_wait = "Set `max_wait = \"1s\"`: requests";
    nothing_to_raise("warn leaving per_client", max_wait, |now| {
        leave(now, 9, 1.0).full_key = Some(full(2));
    });
}

#[test]
fn permits_with_unknown_holders_are_not_reported_as_withheld() {
    reported("warn waiting api", |now| {
        let lost = PermitsStatus {
            withheld: 0,
            unknown: 6,
            leased: 2,
            ..withheld()
        };
        gate(now, lost, 0.0);
    })
    .says("Redis does not know yet who has 6 of 8 permits")
    .says("There is nothing to do: permits are leased within 3 s.")
    .not(&["withheld", "raise its `", "Raise"]);
}

#[test]
fn for_permits_at_other_gateways_a_higher_total_is_advised() {
    reported("warn waiting api", |now| {
        let leased = PermitsStatus {
            withheld: 0,
            leased: 8,
            ..withheld()
        };
        gate(now, leased, 0.0);
    })
    .says("This gateway has 2 of 8 permits, other gateways 6.")
    .says("raise its `max_in_flight`, which is 8 for all gateways. … `rate` would not help.")
    .not(&["withheld", "leave one by one"]);
    reported("warn rejecting per_client", |now| {
        rejecting(now, "burst", full(0));
    })
    .says("Of 2 permits of a, 0 are in use here, 2 at other gateways.")
    .says("raise `in_flight`, which is 2 for all gateways. More `rate` would not help.")
    .not(&["withheld", "raise `rate`"]);
}

#[test]
fn withheld_permits_are_not_blamed_for_other_causes() {
    // Requests wait for the pace.
    reported("warn waiting api", |now| {
        gate(now, withheld(), 0.9).left = 0;
    })
    .says("They leave one by one … raise its `rate`, which is 20 a second")
    .says("2 of 2 permits are taken")
    .not(&["withheld"]);
    // Another key is rejected.
    reported("warn rejecting per_client", |now| {
        rejecting(now, "burst", full(2));
        now.zones[0].rejected_now[0].key = "b".into();
    })
    .says("b causes 100 % of the rejections")
    .not(&["withheld"]);
    reported("warn rejecting per_client", |now| {
        rejecting(now, "keys", full(2));
    })
    .says("Raise `max_keys`")
    .not(&["withheld"]);
}

#[test]
fn without_a_lease_redis_is_the_remedy() {
    reported("warn waiting api", |now| {
        let alone = PermitsStatus {
            alone: true,
            reason: Some("no answer in time".into()),
            remedy: Some("bring Redis or the way to it back".into()),
            ..withheld()
        };
        gate(now, alone, 0.0);
    })
    .says("The lease of this gateway's permits has ended: no answer in time.")
    .says("Bring Redis or the way to it back.")
    .not(RAISE);
}
