//! Tests of outcomes without demand, and of the condition that broke.
//!
//! A *step* tries one level. It *breaks* if the objective does not hold.

use super::*;

/// Returns the condition that broke in the first step that broke the objective.
fn first_broken(run: &Driver) -> Option<&str> {
    let mut steps = run.steps.iter();
    let step = steps.find(|it| it.verdict == StepVerdict::Broke)?;
    step.broken.as_deref()
}

#[test]
fn a_step_that_broke_names_what_broke() {
    let mut run = Driver::new("p95<400ms, errors<5%");
    run.run(30, fast);
    run.run(30, |_, _| None);
    assert_eq!(first_broken(&run), Some("p95<400ms"));
    let mut run = Driver::new("p95<400ms, 4xx<5%");
    run.run(30, fast);
    run.run(30, |_, _| Some(head(80, 404)));
    assert_eq!(first_broken(&run), Some("4xx<5%"));
    assert!(run.steps[0].broken.is_none());
}

#[test]
fn nothing_is_known_of_a_level_for_which_nobody_asked() {
    for (per_second, is_known) in [(0, false), (1, false), (20, true)] {
        let mut run = Driver::new("p95<400ms");
        run.seen.has_waited = false;
        for tick in 0..1000 {
            if tick % 10 == 0 {
                run.send(per_second, |nth| fast(0.0, nth));
            }
            run.pass();
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
    long.timing.confirm = secs(3600);
    let mut run = Driver::with(long);
    run.run(420, fast);
    assert_eq!(run.experiment.current().1, Purpose::Confirm);
    // Few ticks: each examines all blocks since the level was set.
    run.every = ms(4000);
    run.run(3590, fast);
    let found = run.found();
    assert_eq!(found.level, level("100r/s"));
    assert!(run.steps.last().is_some_and(|it| it.took > ms(3_600_000)));
    // Requests wait for two seconds of ten, and the gate is never idle for ten minutes.
    let mut patient = settings("p95<400ms");
    patient.timing.idle = secs(600);
    let mut run = Driver::with(patient);
    run.every = ms(1000);
    for second in 0..2000 {
        run.seen.has_waited = second % 10 < 2;
        run.run(1, fast);
    }
    assert!(!run.steps.is_empty(), "a step ends");
}

/// All requests are at an origin that stopped responding, so there are no waiters at the gate.
#[test]
fn an_origin_that_hangs_breaks_a_step_though_nobody_waits_and_has_not_recovered() {
    let mut run = Driver::new("p95<400ms, errors<1%");
    while run.steps.is_empty() {
        run.tick(fast);
    }
    // Departures in the first moments of a level do not count for it.
    for _ in 0..6 {
        run.tick(fast);
    }
    run.tick(|_, _| None);
    let good = run.steps.len();
    run.departs = f64::MIN;
    run.seen.has_waited = false;
    run.run(120, |_, _| None);
    let broke = &run.steps[good];
    let expected = (StepVerdict::Broke, true);
    assert_eq!((broke.verdict, broke.hung), expected, "{broke:?}");
    let back = &run.steps[good + 1..];
    let is_none_good = back.iter().all(|it| it.verdict != StepVerdict::Good);
    assert!(is_none_good, "{back:?}");
    let outcome = run.outcome();
    let is_lost = matches!(
        outcome,
        Some(Outcome::Aborted(AbortReason::NotRecovered, _))
    );
    assert!(is_lost, "{outcome:?}");
}

/// Error responses count as slow; the report names the condition on errors.
#[test]
fn an_origin_that_fails_from_the_beginning_is_said_to_fail() {
    for (answer, condition) in [(head(5, 500), "errors<1%"), (head(500, 200), "p95<400ms")] {
        let mut run = Driver::new("p95<400ms, errors<1%");
        run.run(30, |_, _| Some(answer));
        assert_eq!(run.steps[0].broken.as_deref(), Some(condition));
    }
}
