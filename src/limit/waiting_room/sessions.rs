use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::time::Duration;

use crate::Moment;

/// The visitors inside, by their numbers.
#[derive(Debug, Default)]
pub(super) struct Sessions {
    /// When each asked last.
    seen: HashMap<u64, Moment>,
    /// When to look whether each has left: one entry for each, not later than its end.
    checks: BinaryHeap<Reverse<(Moment, u64)>>,
}

impl Sessions {
    pub(super) fn len(&self) -> usize {
        self.seen.len()
    }

    pub(super) fn begin(&mut self, number: u64, seen: Moment, idle: Duration) {
        if self.seen.insert(number, seen).is_none() {
            self.checks.push(Reverse((seen + idle, number)));
        }
    }

    /// Records that a visitor asks. Returns whether it is inside.
    pub(super) fn touch(&mut self, number: u64, now: Moment) -> bool {
        match self.seen.get_mut(&number) {
            Some(seen) => {
                *seen = now.max(*seen);
                true
            }
            None => false,
        }
    }

    /// Ends the sessions of those who asked nothing for `idle`. Returns how many.
    pub(super) fn expire(&mut self, now: Moment, idle: Duration) -> u64 {
        let mut left = 0;
        while let Some(&Reverse((check, number))) = self.checks.peek()
            && check <= now
        {
            self.checks.pop();
            // One that was ended otherwise has no moment any more.
            let Some(end) = self.seen.get(&number).map(|seen| *seen + idle) else {
                continue;
            };
            if end > now {
                self.checks.push(Reverse((end, number)));
            } else {
                self.seen.remove(&number);
                left += 1;
            }
        }
        left
    }

    /// Looks at all of them anew, because `idle` is another one.
    pub(super) fn reschedule(&mut self, idle: Duration) {
        let checks = self
            .seen
            .iter()
            .map(|(number, seen)| Reverse((*seen + idle, *number)));
        self.checks = checks.collect();
    }

    /// When the next one may have ended.
    pub(super) fn next_check(&self) -> Option<Moment> {
        self.checks.peek().map(|Reverse((check, _))| *check)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (u64, Moment)> {
        self.seen.iter().map(|(number, seen)| (*number, *seen))
    }
}
