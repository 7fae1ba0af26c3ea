//! Pace of a waiting room: the measured number of calls per second.
//!
//! A *call* reserves a session for a waiting visitor. Calls are counted in *steps* of five seconds.

use std::collections::VecDeque;
use std::time::Duration;

use crate::{Moment, nanos};

/// Length of a step.
const STEP: Duration = Duration::from_secs(5);
/// Number of steps that are kept: five minutes.
const STEPS: usize = 60;

/// Seconds with waiting visitors that suffice to know the pace.
const MEASURED_SECONDS: f64 = 20.0;

/// Pace of calls, measured while visitors wait.
#[derive(Debug)]
pub(super) struct Pace {
    /// Calls per second to assume until enough is measured.
    expected: f64,
    /// Measured steps, the oldest first.
    steps: VecDeque<Step>,
    /// Instant until which the pace has been measured.
    until: Moment,
}

#[derive(Clone, Copy, Debug, Default)]
struct Step {
    /// Number of calls.
    calls: f64,
    /// Seconds in which a visitor waited.
    waited: f64,
    /// Number of the step since the Unix epoch.
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

    /// Forgets the measurement, because it was made under other limits.
    pub(super) fn expect(&mut self, expected: f64, now: Moment) {
        *self = Self::new(expected, now);
    }

    /// Records the time that has passed. `has_waiter`: a visitor waited meanwhile.
    pub(super) fn pass(&mut self, now: Moment, has_waiter: bool) {
        let passed = now.since(self.until);
        self.until = self.until.max(now);
        if has_waiter && !passed.is_zero() {
            // After a pause, for example of the machine, most of the time is unknown.
            self.step(now).waited += passed.min(STEP).as_secs_f64();
        }
    }

    /// Records a call.
    pub(super) fn called(&mut self, now: Moment) {
        self.step(now).calls += 1.0;
    }

    /// Returns the current step. Begins it if it is new.
    fn step(&mut self, now: Moment) -> &mut Step {
        let index = now.as_nanos() / nanos(STEP);
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

    /// Returns the expected calls per second.
    ///
    /// If less than [`MEASURED_SECONDS`] are measured, the expected pace counts for the rest. So
    /// the first few calls have little weight.
    pub(super) fn per_second(&self) -> f64 {
        let calls: f64 = self.steps.iter().map(|step| step.calls).sum();
        let waited: f64 = self.steps.iter().map(|step| step.waited).sum();
        let missing = (MEASURED_SECONDS - waited).max(0.0);
        if self.expected.is_finite() {
            (calls + self.expected * missing) / (waited + missing)
        } else if waited > 0.0 {
            calls / waited
        } else {
            f64::INFINITY
        }
    }
}
