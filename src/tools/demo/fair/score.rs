use std::cell::RefCell;
use std::mem;
use std::rc::Rc;
use std::time::Duration;

use crate::demo::crowd::Outcome;

/// Who sent a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Who {
    Flood,
    Light,
}

/// What the clients got in one part of the scene.
#[derive(Clone, Debug, Default)]
pub(super) struct Score(Rc<RefCell<Counts>>);

#[derive(Debug, Default)]
struct Counts {
    second: Results,
    total: Results,
}

/// What the clients got in some time.
#[derive(Clone, Debug, Default)]
pub(super) struct Results {
    pub(super) flood: Group,
    pub(super) light: Group,
}

/// What one group of clients got.
#[derive(Clone, Debug, Default)]
pub(super) struct Group {
    /// The time from sending to the answer, of each answered request.
    waits: Vec<Duration>,
    pub(super) rejected: u32,
    /// Requests that got neither the origin's answer nor a rejection.
    pub(super) failed: u32,
}

impl Score {
    /// Records the end of a request, `wait` after it was sent.
    pub fn add(&self, who: Who, outcome: Outcome, wait: Duration) {
        let Counts { second, total } = &mut *self.0.borrow_mut();
        for results in [second, total] {
            let group = match who {
                Who::Flood => &mut results.flood,
                Who::Light => &mut results.light,
            };
            match outcome {
                Outcome::Answered => group.waits.push(wait),
                Outcome::Rejected => group.rejected += 1,
                Outcome::Failed => group.failed += 1,
            }
        }
    }

    /// Ends the second, and begins the next.
    pub(super) fn next_second(&self) -> Results {
        mem::take(&mut self.0.borrow_mut().second)
    }

    /// The results of the whole part.
    pub(super) fn total(&self) -> Results {
        self.0.borrow().total.clone()
    }
}

impl Group {
    pub(super) fn answered(&self) -> usize {
        self.waits.len()
    }

    /// Whether no request has ended.
    pub(super) fn is_empty(&self) -> bool {
        self.waits.is_empty() && self.rejected == 0 && self.failed == 0
    }

    /// The median wait of the answered requests: of an even number, the upper one.
    pub(super) fn median(&self) -> Option<Duration> {
        let mut waits = self.waits.clone();
        waits.sort_unstable();
        waits.get(waits.len() / 2).copied()
    }

    /// The longest wait of the answered requests.
    pub(super) fn worst(&self) -> Option<Duration> {
        self.waits.iter().max().copied()
    }
}
