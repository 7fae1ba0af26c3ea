//! Tests of experiments in which the limit that is not searched holds requests back.
//!
//! An experiment searches the rate or the permits (the number of requests at the origin). It ends
//! with [`Outcome::HeldBack`] if requests wait for the other limit.

use super::*;
use crate::find::Waited;

/// Returns the milliseconds for which requests waited since the last tick, by what they waited for.
fn waited(for_pace: u64, for_permits: u64) -> Waited {
    Waited {
        for_pace: ms(for_pace),
        for_permits: ms(for_permits),
    }
}

/// Returns the requests a second to which another limit has held the origin, and that limit.
fn held_back(run: &Driver) -> (f64, Option<Level>) {
    match run.outcome() {
        Some(Outcome::HeldBack(HeldBack {
            level: Level::Rate(rate),
            by,
        })) => (rate.per_second(), by),
        other => panic!("{other:?} {:?}", run.steps),
    }
}

#[test]
fn a_rate_limited_by_permits_is_not_found() {
    let mut only = settings("p95<400ms");
    only.target = rates("400r/s", "1000r/s");
    let mut run = Driver::with(only);
    run.seen.limits.permits = Some(4);
    // A few seconds of waiting for the pace do not make it the limit that binds.
    for tick in 0..900 {
        run.seen.waited = match tick % 200 {
            0..20 => waited(60, 40),
            _ => waited(40, 60),
        };
        run.send(7 + tick % 2, |nth| fast(75.0, nth));
        run.pass();
    }
    let (rate, by) = held_back(&run);
    assert!((rate - 75.0).abs() < 0.5, "{rate}");
    assert_eq!(by, Some(Level::Permits(4)));
    assert_eq!(run.steps[0].verdict, StepVerdict::HeldBack);
    assert_eq!(run.steps.len(), 1);
}

#[test]
fn a_level_that_held_before_the_other_limit_did_is_at_least() {
    let mut patient = settings("p95<400ms");
    // Waiting only helps if more requests may come.
    patient.timing.idle = secs(600);
    let mut run = Driver::with(patient);
    run.seen.waited = waited(50, 50);
    run.run(45, fast);
    assert_eq!(run.steps.len(), 2);
    run.seen.waited = waited(0, 100);
    run.run(70, fast);
    let (rate, by) = held_back(&run);
    // The driver sends at the level, whatever requests wait for.
    assert!((52.5..=55.1).contains(&rate) && by.is_none(), "{rate}");
}

#[test]
fn permits_limited_by_the_rate_are_not_found() {
    let mut only = settings("p95<400ms");
    only.target = Target::Permits { from: 8, to: 20 };
    let mut run = Driver::with(only);
    run.seen.limits.rate = Some(rate("20r/s"));
    run.seen.waited = waited(90, 10);
    run.run(100, fast);
    let by = Some(level("20r/s"));
    let held_back = HeldBack {
        level: Level::Permits(5),
        by,
    };
    assert_eq!(run.outcome(), Some(Outcome::HeldBack(held_back)));
}
