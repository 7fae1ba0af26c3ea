//! The steps of a simulation, for failure reports and comparisons.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::fmt;
use std::hash::{DefaultHasher, Hasher};
use std::time::Duration;

/// Number of last steps that are kept.
const MAX_STEPS: usize = 400;

/// The last steps, and a hash of all steps.
#[derive(Default)]
pub(in crate::simulation) struct Trace(RefCell<Steps>);

#[derive(Default)]
struct Steps {
    /// The last steps.
    last: VecDeque<String>,
    /// Number of all steps.
    count: u64,
    /// Hasher without random keys: the same steps have the same hash.
    hash: DefaultHasher,
}

impl Trace {
    /// Adds a step.
    pub fn add(&self, now: Duration, step: fmt::Arguments<'_>) {
        let steps = &mut *self.0.borrow_mut();
        let line = format!("{:>13.6} {step}", now.as_secs_f64() * 1000.0);
        steps.hash.write(line.as_bytes());
        steps.count += 1;
        if steps.last.len() == MAX_STEPS {
            steps.last.pop_front();
        }
        steps.last.push_back(line);
    }

    /// Returns the number of steps, and their hash.
    pub(in crate::simulation) fn digest(&self) -> (u64, u64) {
        let steps = self.0.borrow();
        (steps.count, steps.hash.finish())
    }

    /// Returns the last steps, one per line: milliseconds, and the event.
    pub(in crate::simulation) fn last(&self) -> String {
        let steps = self.0.borrow();
        let last = steps.last.iter().map(String::as_str);
        last.collect::<Vec<_>>().join("\n")
    }
}
