use std::cell::RefCell;
use std::collections::VecDeque;
use std::fmt;
use std::hash::{DefaultHasher, Hasher};
use std::time::Duration;

/// How many of the last steps are kept.
const KEPT: usize = 400;

/// What has happened: the last steps, and a hash of all of them.
#[derive(Default)]
pub(in crate::simulation) struct Trace(RefCell<Steps>);

#[derive(Default)]
struct Steps {
    last: VecDeque<String>,
    count: u64,
    /// Without random keys: the same steps have the same hash.
    hash: DefaultHasher,
}

impl Trace {
    pub fn add(&self, now: Duration, step: fmt::Arguments<'_>) {
        let steps = &mut *self.0.borrow_mut();
        let line = format!("{:>13.6} {step}", now.as_secs_f64() * 1000.0);
        steps.hash.write(line.as_bytes());
        steps.count += 1;
        if steps.last.len() == KEPT {
            steps.last.pop_front();
        }
        steps.last.push_back(line);
    }

    /// How many steps there were, and what they hash to.
    pub(in crate::simulation) fn digest(&self) -> (u64, u64) {
        let steps = self.0.borrow();
        (steps.count, steps.hash.finish())
    }

    /// The last steps, one a line: milliseconds, and what happened.
    pub(in crate::simulation) fn last(&self) -> String {
        let steps = self.0.borrow();
        let last = steps.last.iter().map(String::as_str);
        last.collect::<Vec<_>>().join("\n")
    }
}
