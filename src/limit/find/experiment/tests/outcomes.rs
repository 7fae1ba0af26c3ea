//! Tests of outcomes without demand, and of the condition that broke.

use super::*;

#[test]
fn a_step_that_broke_names_what_broke() {
    let mut run = Driver::new(settings("p95<400ms, errors<5%"));
    run.run(30, |_| head(80));
    run.run(30, |_| None);
    let broke = run.steps.iter().find(|it| it.verdict == StepVerdict::Broke);
    let broken = broke.and_then(|it| it.broken.clone());
    assert_eq!(broken.as_deref(), Some("p95<400ms"));
    let mut run = Driver::new(settings("p95<400ms, 4xx<5%"));
    run.run(30, |_| head(80));
    run.run(30, |_| {
        let (took, status) = (MS(80), 404);
        Some(AnswerEvent::Head { took, status })
    });
    let broke = run.steps.iter().find(|it| it.verdict == StepVerdict::Broke);
    let broken = broke.and_then(|it| it.broken.clone());
    assert_eq!(broken.as_deref(), Some("4xx<5%"));
    assert!(run.steps[0].broken.is_none());
}

#[test]
fn nothing_is_known_of_a_level_for_which_nobody_asked() {
    for (per_second, is_known) in [(0, false), (1, false), (20, true)] {
        let mut run = Driver::new(settings("p95<400ms"));
        run.seen.has_waited = false;
        for tick in 0..1000 {
            for _ in 0..if tick % 10 == 0 { per_second } else { 0 } {
                run.seen.departed += 1;
                run.it.record(run.now, head(80).unwrap());
            }
            run.now = run.now + MS(100);
            run.steps.extend(run.it.tick(&run.seen, run.now));
        }
        let outcome = run.outcome();
        if is_known {
            assert!(matches!(outcome, Some(Outcome::AtLeast(_))), "{outcome:?}");
        } else {
            assert_eq!(outcome, Some(Outcome::Unknown(level("50r/s"))));
        }
    }
}

#[test]
fn a_confirmation_of_an_hour_and_a_step_with_little_demand_end() {
    let mut long = settings("p95<400ms");
    long.timing.confirm = Duration::from_secs(3600);
    let mut run = Driver::new(long);
    run.run(420, |_| head(80));
    assert_eq!(run.it.current().1, Purpose::Confirm);
    // Few ticks: each examines all blocks since the level was set.
    run.every = MS(4000);
    run.run(3590, |_| head(80));
    let Some(Outcome::Found(found)) = run.outcome() else {
        panic!("{:?}", run.outcome());
    };
    assert_eq!(found.level, level("100r/s"));
    assert!(run.steps.last().is_some_and(|it| it.took > MS(3_600_000)));
    // Requests wait for two seconds of ten, and the gate is never idle for ten minutes.
    let mut patient = settings("p95<400ms");
    patient.timing.idle = Duration::from_secs(600);
    let mut run = Driver::new(patient);
    run.every = MS(1000);
    for second in 0..2000 {
        run.seen.has_waited = second % 10 < 2;
        run.run(1, |_| head(80));
    }
    assert!(!run.steps.is_empty(), "a step ends");
}

/// All requests are at an origin that stopped responding, so there are no waiters at the gate.
#[test]
fn an_origin_that_hangs_breaks_a_step_though_nobody_waits_and_has_not_recovered() {
    let mut run = Driver::new(settings("p95<400ms, errors<1%"));
    while run.steps.is_empty() {
        run.tick(|_| head(80));
    }
    // Departures in the first moments of a level do not count for it.
    for _ in 0..6 {
        run.tick(|_| head(80));
    }
    run.tick(|_| None);
    let good = run.steps.len();
    run.departs = f64::MIN;
    run.seen.has_waited = false;
    run.run(120, |_| None);
    let broke = &run.steps[good];
    assert_eq!(
        (broke.verdict, broke.hung),
        (StepVerdict::Broke, true),
        "{broke:?}"
    );
    let back = &run.steps[good + 1..];
    let is_none_good = back.iter().all(|it| it.verdict != StepVerdict::Good);
    assert!(is_none_good, "{back:?}");
    let reason = match run.outcome() {
        Some(Outcome::Aborted(reason, _)) => reason,
        other => panic!("{other:?}"),
    };
    assert_eq!(reason, AbortReason::NotRecovered);
}

/// Error responses count as slow; the report names the condition on errors.
#[test]
fn an_origin_that_fails_from_the_beginning_is_said_to_fail() {
    let mut run = Driver::new(settings("p95<400ms, errors<1%"));
    run.run(30, |_| {
        Some(AnswerEvent::Head {
            took: MS(5),
            status: 500,
        })
    });
    assert_eq!(run.steps[0].broken.as_deref(), Some("errors<1%"));
    let mut run = Driver::new(settings("p95<400ms, errors<1%"));
    run.run(30, |_| head(500));
    assert_eq!(run.steps[0].broken.as_deref(), Some("p95<400ms"));
}
