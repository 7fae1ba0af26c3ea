use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use crate::Moment;

/// A visitor who was called and has not come yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// When.
    pub at: Moment,
    /// Until when its place is kept.
    pub until: Moment,
}

/// The visitors who were called and have not come yet, by their places in line.
#[derive(Debug, Default)]
pub(super) struct Calls {
    open: HashMap<u64, Call>,
    /// The ends of all, and of those that were answered since.
    ends: BinaryHeap<Reverse<(Moment, u64)>>,
}

impl Calls {
    pub(super) fn len(&self) -> usize {
        self.open.len()
    }

    pub(super) fn call(&mut self, place: u64, call: Call) {
        self.open.insert(place, call);
        self.ends.push(Reverse((call.until, place)));
    }

    /// The call of a place is answered.
    pub(super) fn take(&mut self, place: u64) -> Option<Call> {
        self.open.remove(&place)
    }

    /// Ends those whose time is over. Returns how many.
    pub(super) fn lapse(&mut self, now: Moment) -> u64 {
        let mut lapsed = 0;
        while let Some(&Reverse((end, place))) = self.ends.peek()
            && end <= now
        {
            self.ends.pop();
            lapsed += u64::from(self.open.remove(&place).is_some());
        }
        lapsed
    }

    /// When the next one may end.
    pub(super) fn next_end(&self) -> Option<Moment> {
        self.ends.peek().map(|Reverse((end, _))| *end)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (u64, Call)> {
        self.open.iter().map(|(place, call)| (*place, *call))
    }

    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}
