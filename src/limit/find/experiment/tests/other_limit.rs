//! Tests with the limit that is not searched holding requests back.

use super::*;
use crate::find::Waited;

fn waited(for_pace: u64, for_permits: u64) -> Waited {
    Waited {
        for_pace: MS(for_pace),
        for_permits: MS(for_permits),
    }
}

#[test]
fn a_rate_limited_by_permits_is_not_found() {
    let mut only = settings("p95<400ms");
    only.target = rates("400r/s", "1000r/s");
    let mut run = Driver::new(only);
    run.seen.limits.permits = Some(4);
    let tick = |run: &mut Driver, left: u64| {
        run.seen.departed += left;
        for event in (0..left).filter_map(|_| head(80)) {
            run.it.record(run.now, event);
        }
        run.now = run.now + MS(100);
        run.steps.extend(run.it.tick(&run.seen, run.now));
    };
    // A few seconds of waiting for the pace do not make it the limit that binds.
    for nth in 0..900 {
        let by_permits = nth % 200 >= 20;
        run.seen.waited = if by_permits {
            waited(40, 60)
        } else {
            waited(60, 40)
        };
        tick(&mut run, if nth % 2 == 0 { 7 } else { 8 });
    }
    let Some(Outcome::HeldBack(HeldBack {
        level: Level::Rate(rate),
        by,
    })) = run.outcome()
    else {
        panic!("{:?} {:?}", run.outcome(), run.steps);
    };
    assert!((rate.per_second() - 75.0).abs() < 0.5, "{rate}");
    assert_eq!(by, Some(Level::Permits(4)));
    assert_eq!(run.steps[0].verdict, StepVerdict::HeldBack);
    assert_eq!(run.steps.len(), 1);
}

#[test]
fn a_level_that_held_before_the_other_limit_did_is_at_least() {
    let mut patient = settings("p95<400ms");
    // Waiting only helps if more requests may come.
    patient.timing.idle = Duration::from_secs(600);
    let mut run = Driver::new(patient);
    run.seen.waited = waited(50, 50);
    run.run(45, |_| head(80));
    assert_eq!(run.steps.len(), 2);
    run.seen.waited = waited(0, 100);
    run.run(70, |_| head(80));
    let Some(Outcome::HeldBack(HeldBack {
        level: Level::Rate(rate),
        by: None,
    })) = run.outcome()
    else {
        panic!("{:?}", run.outcome());
    };
    // The driver sends at the level, whatever requests wait for.
    assert!((52.5..=55.1).contains(&rate.per_second()), "{rate}");
}

#[test]
fn permits_limited_by_the_rate_are_not_found() {
    let mut only = settings("p95<400ms");
    only.target = Target::Permits { from: 8, to: 20 };
    let mut run = Driver::new(only);
    run.seen.limits.rate = Some("20r/s".parse().unwrap());
    run.seen.waited = waited(90, 10);
    run.run(100, |_| head(80));
    let by = Some(level("20r/s"));
    let held_back = HeldBack {
        level: Level::Permits(5),
        by,
    };
    assert_eq!(run.outcome(), Some(Outcome::HeldBack(held_back)));
}
