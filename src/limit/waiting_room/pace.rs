use std::collections::VecDeque;
use std::time::Duration;

use crate::Moment;

/// The span over which calls are counted together.
const STEP: Duration = Duration::from_secs(5);
/// How many spans are kept: five minutes.
const STEPS: usize = 60;

/// How fast visitors are called, measured while some wait.
#[derive(Debug)]
pub(super) struct Pace {
    /// Calls a second until enough is measured.
    expected: f64,
    /// The oldest first.
    steps: VecDeque<Step>,
    /// Until when it has been measured.
    until: Moment,
}

#[derive(Clone, Copy, Debug, Default)]
struct Step {
    calls: f64,
    /// Seconds in which somebody waited.
    waited: f64,
    /// Since the epoch.
    index: u64,
}

impl Pace {
    pub(super) fn new(expected: f64, now: Moment) -> Self {
        Self {
            expected,
            steps: VecDeque::new(),
            until: now,
        }
    }

    /// Forgets what was measured, because it was under other limits.
    pub(super) fn expect(&mut self, expected: f64, now: Moment) {
        *self = Self::new(expected, now);
    }

    /// Records the time that has passed. `is_waited`: whether anybody waited since the last time.
    pub(super) fn pass(&mut self, now: Moment, is_waited: bool) {
        let passed = now.since(self.until);
        self.until = self.until.max(now);
        if is_waited && !passed.is_zero() {
            // After a pause, such as that of a machine, little is known of the time between.
            self.step(now).waited += passed.min(STEP).as_secs_f64();
        }
    }

    /// Records a call.
    pub(super) fn called(&mut self, now: Moment) {
        self.step(now).calls += 1.0;
    }

    fn step(&mut self, now: Moment) -> &mut Step {
        let index = now.as_nanos() / u64::try_from(STEP.as_nanos()).unwrap_or(u64::MAX);
        if self.steps.back().is_none_or(|last| last.index < index) {
            if self.steps.len() == STEPS {
                self.steps.pop_front();
            }
            self.steps.push_back(Step {
                index,
                ..Step::default()
            });
        }
        let last = self.steps.len() - 1;
        &mut self.steps[last]
    }

    /// Calls a second, as they are expected.
    ///
    /// For what is missing of the first 20 s of measurement the expected pace counts, so that the
    /// first few calls say little.
    pub(super) fn per_second(&self) -> f64 {
        let sum = |of: fn(&Step) -> f64| self.steps.iter().map(of).sum::<f64>();
        let (calls, waited) = (sum(|it| it.calls), sum(|it| it.waited));
        let missing = (20.0 - waited).max(0.0);
        if self.expected.is_finite() {
            (calls + self.expected * missing) / (waited + missing)
        } else if waited > 0.0 {
            calls / waited
        } else {
            f64::INFINITY
        }
    }
}
