//! What is known without demand, and which condition broke.

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
        let outcomes = run.outcomes();
        if is_known {
            assert!(
                matches!(outcomes[..], [Outcome::AtLeast(_)]),
                "{outcomes:?}"
            );
        } else {
            assert_eq!(outcomes, [Outcome::Unknown(level("50r/s"))]);
        }
    }
}
