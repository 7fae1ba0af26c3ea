//! Counts the results of the clients of the scene `fair`.

use std::cell::RefCell;
use std::mem;
use std::rc::Rc;
use std::time::Duration;

use crate::demo::tally::Outcome;

/// The kind of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ClientKind {
    /// The client that sends too many requests.
    Flood,
    /// One of the clients that send few requests.
    Light,
}

/// Results of the clients in one part of the scene: first of the current second, then in total.
#[derive(Clone, Debug, Default)]
pub(super) struct Score(Rc<RefCell<[Results; 2]>>);

/// Results of the clients in a second, or in a part of the scene.
#[derive(Clone, Debug, Default)]
pub(super) struct Results {
    pub(super) flood: Group,
    pub(super) light: Group,
}

/// Results of the clients of one kind.
#[derive(Clone, Debug, Default)]
pub(super) struct Group {
    /// Time from sending to the answer, of each answered request.
    pub(super) waits: Vec<Duration>,
    pub(super) rejected: u32,
    /// Requests that got neither the origin's answer nor a rejection.
    pub(super) failed: u32,
}

impl Score {
    /// Records the end of a request, `wait` after it was sent.
    pub fn add(&self, kind: ClientKind, outcome: Outcome, wait: Duration) {
        for results in &mut *self.0.borrow_mut() {
            let group = match kind {
                ClientKind::Flood => &mut results.flood,
                ClientKind::Light => &mut results.light,
            };
            match outcome {
                Outcome::Answered => group.waits.push(wait),
                Outcome::Rejected => group.rejected += 1,
                Outcome::Failed => group.failed += 1,
            }
        }
    }

    /// Ends the current second. Returns its results.
    pub(super) fn next_second(&self) -> Results {
        mem::take(&mut self.0.borrow_mut()[0])
    }

    /// Returns the results of the whole part.
    pub(super) fn total(&self) -> Results {
        self.0.borrow()[1].clone()
    }
}

impl Group {
    /// Returns whether no request has ended.
    pub(super) fn is_empty(&self) -> bool {
        self.waits.is_empty() && self.rejected == 0 && self.failed == 0
    }

    /// Returns the median wait of answered requests; the upper one of an even number.
    pub(super) fn median(&self) -> Option<Duration> {
        let mut waits = self.waits.clone();
        waits.sort_unstable();
        waits.get(waits.len() / 2).copied()
    }

    /// Returns the longest wait of answered requests.
    pub(super) fn worst(&self) -> Option<Duration> {
        self.waits.iter().max().copied()
    }
}
