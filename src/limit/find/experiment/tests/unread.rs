//! What a figure that is watched proves while it cannot be read.

use super::*;

fn watching() -> FindSettings {
    FindSettings {
        figures: vec!["node_load1 < 8".parse().unwrap()],
        ..settings("p95<400ms")
    }
}

/// At the upper bound, about to be confirmed.
fn at_the_top() -> Driver {
    let targets = vec![rates("50r/s", "50r/s")];
    let mut run = Driver::new(FindSettings {
        targets,
        ..watching()
    });
    run.run_reading(24, 7.0, |_| true);
    assert_eq!(run.it.current().1, Purpose::Confirm);
    run
}

#[test]
fn a_level_at_which_no_figure_was_read_is_not_good() {
    let mut run = Driver::new(watching());
    run.run_reading(45, 7.0, |_| false);
    assert!(run.steps.is_empty(), "{:?}", run.steps);
    // Readings of the level before say nothing.
    let mut run = Driver::new(watching());
    run.run_reading(24, 7.0, |_| true);
    assert_eq!(run.steps.len(), 1);
    run.run_reading(45, 7.0, |_| false);
    assert_eq!(run.steps.len(), 1, "{:?}", run.steps);
}

#[test]
fn readings_each_third_second_are_enough() {
    let mut run = Driver::new(watching());
    run.run_reading(26, 7.0, |second| second % 3 == 0);
    assert_eq!(run.steps.len(), 1);
    assert_eq!(run.steps[0].verdict, StepVerdict::Good);
}

#[test]
fn a_confirmation_goes_on_for_as_long_as_a_figure_was_not_read() {
    let mut run = at_the_top();
    run.run_reading(50, 7.0, |_| true);
    assert_eq!(run.outcomes(), []);
    run.run_reading(14, 7.0, |_| true);
    assert!(matches!(run.outcomes()[..], [Outcome::Found(_)]));
    let mut run = at_the_top();
    // Six or seven of ten seconds are known: until three seconds after the last reading.
    run.run_reading(70, 7.0, |second| second % 10 < 4);
    assert_eq!(run.outcomes(), []);
    run.run_reading(40, 7.0, |second| second % 10 < 4);
    assert!(matches!(run.outcomes()[..], [Outcome::Found(_)]));
    let took = run.steps[1].took;
    assert!(took > MS(80_000) && took < MS(110_000), "{took:?}");
}

#[test]
fn a_figure_that_is_not_read_for_half_of_a_step_ends_it() {
    let mut run = at_the_top();
    run.run_reading(200, 7.0, |second| second % 9 == 0);
    let held = Some(level("50r/s"));
    let unread = Outcome::Aborted(AbortReason::FigureUnread, held);
    assert_eq!(run.outcomes(), [unread]);
    let last = run.steps.last().unwrap();
    assert_eq!(last.verdict, StepVerdict::Unread);
    assert!(last.took < MS(100_000), "{:?}", last.took);
}

#[test]
fn a_long_confirmation_goes_on_while_most_of_it_is_known() {
    let mut long = watching();
    long.targets = vec![rates("50r/s", "50r/s")];
    long.timing.confirm = MS(300_000);
    let mut run = Driver::new(long);
    // Three or four of ten seconds are unknown: a minute in all after half of it.
    run.run_reading(300, 7.0, |second| second % 10 < 4);
    assert_eq!(run.outcomes(), []);
    run.run_reading(300, 7.0, |second| second % 10 < 4);
    assert!(matches!(run.outcomes()[..], [Outcome::Found(_)]));
}

#[test]
fn an_origin_has_not_recovered_while_its_figure_is_unknown() {
    let mut run = Driver::new(watching());
    run.run_reading(30, 7.0, |_| true);
    run.run_reading(3, 9.0, |_| true);
    assert_eq!(run.it.current().1, Purpose::Recover);
    run.run_reading(50, 7.0, |_| false);
    assert_eq!(run.it.current().1, Purpose::Recover);
    run.run_reading(1, 7.0, |_| true);
    let last = run.steps.last().map(|it| (it.purpose, it.verdict));
    assert_eq!(last, Some((Purpose::Recover, StepVerdict::Good)));
    let mut run = Driver::new(watching());
    run.run_reading(30, 7.0, |_| true);
    run.run_reading(3, 9.0, |_| true);
    run.run_reading(70, 7.0, |_| false);
    let unread = Outcome::Aborted(AbortReason::FigureUnread, Some(level("50r/s")));
    assert_eq!(run.outcomes(), [unread]);
}

#[test]
fn without_demand_and_readings_nothing_is_known() {
    for (is_read, is_known) in [(true, true), (false, false)] {
        let mut run = Driver::new(watching());
        run.seen.has_waited = false;
        run.run_reading(59, 7.0, |_| is_read);
        run.run_reading(41, 7.0, |second| is_read || second < 3);
        let outcomes = run.outcomes();
        let is_at_least = matches!(outcomes[..], [Outcome::AtLeast(_)]);
        assert_eq!(is_at_least, is_known, "{outcomes:?}");
    }
}
