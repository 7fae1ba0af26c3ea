//! Tests of the experiment, against simulated origins.

use super::*;
use crate::Rate;
use crate::find::{Figure, Timing};

mod other_limit;
mod outcomes;

fn settings(objective: &str) -> FindSettings {
    FindSettings {
        target: rates("50r/s", "100r/s"),
        objective: objective.parse().unwrap(),
        step: "5%".parse().unwrap(),
        timing: Timing::default(),
    }
}

fn rates(from: &str, to: &str) -> Target {
    Target::Rate {
        from: from.parse().unwrap(),
        to: to.parse().unwrap(),
    }
}

/// Origin for one experiment, with ten ticks a second by default. A request takes 100 ms.
struct Driver {
    it: Experiment,
    now: Moment,
    seen: Observed,
    departs: f64,
    /// Duration between ticks.
    every: Duration,
    steps: Vec<StepRecord>,
}

const MS: fn(u64) -> Duration = Duration::from_millis;

#[expect(clippy::unnecessary_wraps, reason = "what a driver's closure returns")]
fn head(millis: u64) -> Option<AnswerEvent> {
    Some(AnswerEvent::Head {
        took: MS(millis),
        status: 200,
    })
}

impl Driver {
    fn new(settings: FindSettings) -> Self {
        let start = Moment::from_nanos(1_000_000_000);
        let seen = Observed {
            has_waited: true,
            ..Observed::default()
        };
        Self {
            it: Experiment::new(settings, seen, start),
            now: start,
            seen,
            departs: 0.0,
            every: MS(100),
            steps: Vec::new(),
        }
    }

    /// Sends requests at the current level; `answer` returns the event of each.
    fn run(&mut self, seconds: u32, mut answer: impl FnMut(f64) -> Option<AnswerEvent>) {
        let end = self.now + Duration::from_secs(seconds.into());
        while self.now < end && !self.it.is_over() {
            self.tick(&mut answer);
        }
    }

    fn tick(&mut self, mut answer: impl FnMut(f64) -> Option<AnswerEvent>) {
        if self.it.is_over() {
            return;
        }
        let levels = self.it.levels();
        let rate = levels.rate.map_or(1000.0, Rate::per_second);
        let rate = levels
            .permits
            .map_or(rate, |permits| f64::from(permits) * 10.0);
        self.departs += rate * self.every.as_secs_f64();
        while self.departs >= 1.0 {
            self.departs -= 1.0;
            self.seen.departed += 1;
            if let Some(event) = answer(rate) {
                self.it.record(self.now, event);
            }
        }
        self.now = self.now + self.every;
        self.seen.in_flight = 5;
        self.steps.extend(self.it.tick(&self.seen, self.now));
    }

    fn outcome(&self) -> Option<Outcome> {
        self.it.report(self.now).outcome
    }
}

/// Returns the outcome of a break at the first level, with `held` as the last good level.
fn broken(held: Option<Level>) -> Outcome {
    Outcome::Aborted(AbortReason::BrokenAtFirst, held)
}

fn level(text: &str) -> Level {
    Level::Rate(text.parse().unwrap())
}

#[test]
fn an_origin_that_breaks_above_a_rate_is_found_there() {
    let mut run = Driver::new(settings("p95<400ms, errors<0.5%"));
    run.run(2000, |rate| head(if rate > 71.0 { 900 } else { 80 }));
    let Some(Outcome::Found(found)) = run.outcome() else {
        panic!("{:?}", run.outcome());
    };
    assert_eq!(found.level, level("70.4r/s"));
    assert_eq!((found.at_once, found.at_edge), (5, Some(5)));
    assert!(!found.is_upper_bound);
    let steps = run.steps.iter();
    let broke: Vec<_> = steps
        .filter(|it| it.verdict == StepVerdict::Broke)
        .collect();
    for step in &broke {
        assert!(step.took <= MS(4700), "{step:?}");
        let below = [level("67r/s"), level("66.9r/s")];
        let is_below = step.back_to.is_some_and(|back| below.contains(&back));
        assert!(is_below, "{step:?}");
    }
    assert!(matches!(broke[0].figures[0].value, Some(Figure::Time(time)) if time > MS(850)));
    assert_eq!(broke[0].figures[1].value, Some(Figure::Share(0.0)));
    assert_eq!(run.it.levels(), Levels::default());
    let report = run.it.report(run.now);
    assert_eq!(report.requests, run.seen.departed);
    assert_eq!(report.steps.len(), run.steps.len());
}

#[test]
fn an_origin_that_takes_all_of_it_takes_at_least_the_upper_bound() {
    let mut run = Driver::new(settings("p95<400ms"));
    run.run(2000, |_| head(80));
    let Some(Outcome::Found(found)) = run.outcome() else {
        panic!("{:?}", run.outcome());
    };
    assert!(found.is_upper_bound && found.level == level("100r/s") && found.at_edge.is_none());
    let good: Vec<_> = run.steps.iter().map(|it| it.took).collect();
    assert!(good.iter().all(|took| *took >= MS(20_000)), "{good:?}");
}

#[test]
fn an_origin_that_answers_nothing_breaks_the_objective() {
    for objective in ["p95<400ms", "p50 whole<400ms, 4xx<1%"] {
        let mut run = Driver::new(settings(objective));
        run.run(60, |_| None);
        assert_eq!(run.outcome(), Some(broken(None)));
        assert!(run.steps[0].took < MS(5000), "{:?}", run.steps[0].took);
    }
    let mut run = Driver::new(settings("errors<1%"));
    run.run(60, |_| None);
    assert!(run.it.is_over() && run.steps[0].took < MS(20_000));
    let mut run = Driver::new(settings("errors<1%"));
    run.run(60, |_| Some(AnswerEvent::Failed { had_head: false }));
    assert!(run.it.is_over() && run.steps[0].took < MS(5000));
}

#[test]
fn only_answers_to_requests_that_were_sent_at_a_level_count_for_it() {
    let mut run = Driver::new(settings("p95<400ms"));
    run.run(20, |_| head(80));
    let before = run.now;
    run.run(5, |_| head(80));
    assert_eq!(run.steps.len(), 1);
    for _ in 0..10_000 {
        let event = head(5000).expect("an answer");
        run.it.record(before.before(MS(5000)), event);
    }
    run.run(30, |_| head(80));
    assert_eq!(run.steps[1].verdict, StepVerdict::Good);
    assert_eq!(run.steps[1].figures[0].value, run.steps[0].figures[0].value);
}

#[test]
fn clients_that_leave_early_say_nothing_and_late_ones_say_slow() {
    for (millis, is_over) in [(100, false), (500, true)] {
        let mut run = Driver::new(settings("p95<400ms"));
        let mut nth = 0;
        run.run(15, |_| {
            nth += 1;
            let left = AnswerEvent::Abandoned {
                had_head: false,
                took: MS(millis),
            };
            if nth % 4 == 0 { Some(left) } else { head(80) }
        });
        assert_eq!(run.it.is_over(), is_over, "{millis}");
    }
}

#[test]
fn where_nobody_asks_for_more_it_takes_at_least_what_held() {
    let mut run = Driver::new(settings("p95<400ms"));
    run.run(45, |_| head(80));
    assert_eq!(run.steps.len(), 2);
    run.seen.has_waited = false;
    run.run(59, |_| head(80));
    assert!(!run.it.is_over());
    run.run(10, |_| head(80));
    assert_eq!(run.outcome(), Some(Outcome::AtLeast(level("52.5r/s"))));
    assert_eq!(run.steps[2].verdict, StepVerdict::Idle);
    // At the first level, the result is the demand.
    let mut run = Driver::new(settings("p95<400ms"));
    run.seen.has_waited = false;
    let mut nth = 0;
    run.run(100, |_| {
        nth += 1;
        head(80)
    });
    let Some(Outcome::AtLeast(Level::Rate(rate))) = run.outcome() else {
        panic!("{:?}", run.outcome());
    };
    assert!((rate.per_second() - 50.0).abs() < 0.5, "{rate}");
}

/// An origin without waiters may still break.
#[test]
fn an_idle_origin_may_still_break() {
    let mut run = Driver::new(settings("p95<400ms"));
    run.seen.has_waited = false;
    run.run(30, |_| head(80));
    run.run(10, |_| head(500));
    assert_eq!(run.outcome(), Some(broken(None)));
}

#[test]
fn a_change_of_what_it_measures_aborts_it_at_once() {
    type Change = fn(&mut Observed);
    let changes: [(Change, AbortReason); 3] = [
        (|seen| seen.file += 1, AbortReason::FileChanged),
        (|seen| seen.servers += 1, AbortReason::ServersChanged),
        (|seen| seen.is_backed_off = true, AbortReason::BackedOff),
    ];
    for (change, reason) in changes {
        let mut run = Driver::new(settings("p95<400ms"));
        run.run(25, |_| head(80));
        change(&mut run.seen);
        run.run(1, |_| head(80));
        let found = run.outcome();
        assert_eq!(found, Some(Outcome::Aborted(reason, Some(level("50r/s")))));
        assert_eq!(run.it.levels(), Levels::default());
        assert_eq!(run.steps[1].verdict, StepVerdict::Undecided);
        assert!(run.it.abort(AbortReason::Stopped, run.now).is_none());
    }
    let mut run = Driver::new(settings("p95<400ms"));
    run.run(5, |_| head(80));
    assert!(run.it.abort(AbortReason::OwnerLost, run.now).is_some());
    let found = run.outcome();
    assert_eq!(found, Some(Outcome::Aborted(AbortReason::OwnerLost, None)));
}

/// Returns a slow response for every `slow`-th request.
fn every(nth: &mut u32, slow: u32) -> Option<AnswerEvent> {
    *nth += 1;
    head(if nth.is_multiple_of(slow) { 900 } else { 80 })
}

#[test]
fn only_seconds_with_waiters_count_towards_a_good_level() {
    let mut run = Driver::new(settings("p95<400ms"));
    let mut nth = 0;
    for _ in 0..40 {
        run.seen.has_waited = true;
        run.run(2, |_| every(&mut nth, 16));
        run.seen.has_waited = false;
        run.run(2, |_| head(80));
    }
    // Over all seconds 3 % are slow; while requests wait, 6 %.
    let is_good = |it: &StepRecord| it.verdict == StepVerdict::Good;
    assert!(!run.steps.iter().any(is_good), "{:?}", run.steps);
}

#[test]
fn a_confirmation_ends_by_its_figures() {
    let mut only = settings("p95<400ms");
    only.target = rates("50r/s", "50r/s");
    let mut run = Driver::new(only);
    run.run(22, |_| head(80));
    assert_eq!(run.it.current().1, Purpose::Confirm);
    let mut sent = 0;
    // One second in ten has 30 slow responses of 50: 6 %, in bunches on which the ratio does not
    // decide. A minute is too short so near the edge.
    let mut answer = |_| {
        sent += 1;
        head(if sent % 500 >= 470 { 900 } else { 80 })
    };
    run.run(100, &mut answer);
    assert_eq!(run.outcome(), None);
    run.run(40, answer);
    assert_eq!(run.outcome(), Some(broken(Some(level("50r/s")))));
    assert!(run.steps[1].took > MS(100_000));
}

#[test]
fn what_the_level_before_left_behind_does_not_count() {
    let mut run = Driver::new(settings("p95<5s"));
    let mut nth = 0;
    run.run(4, |_| {
        nth += 1;
        head(if nth % 5 < 2 { 6000 } else { 80 })
    });
    run.run(26, |_| head(80));
    assert_eq!(run.steps.len(), 1);
    assert_eq!(run.steps[0].verdict, StepVerdict::Good);
}
