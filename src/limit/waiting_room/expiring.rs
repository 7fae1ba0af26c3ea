//! Entries that expire: the sessions of a waiting room, and its calls of visitors who have not
//! come.
//!
//! The end of an entry may move to a later instant, for example with each request of a session.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use crate::Moment;

/// Entries that expire, by number.
#[derive(Debug)]
pub(super) struct Expiring<T> {
    entries: HashMap<u64, T>,
    /// Instant at which an entry is checked next, and its number. The first one comes first.
    ///
    /// The check is not later than the end of the entry. The entry may have been removed by then.
    checks: BinaryHeap<Reverse<(Moment, u64)>>,
}

impl<T> Default for Expiring<T> {
    fn default() -> Self {
        Self {
            entries: HashMap::new(),
            checks: BinaryHeap::new(),
        }
    }
}

impl<T> Expiring<T> {
    pub(super) fn len(&self) -> u64 {
        self.entries.len() as u64
    }

    /// Adds an entry that expires at `end`. Replaces an entry with the same number.
    pub(super) fn insert(&mut self, number: u64, entry: T, end: Moment) {
        if self.entries.insert(number, entry).is_none() {
            self.checks.push(Reverse((end, number)));
        }
    }

    pub(super) fn get_mut(&mut self, number: u64) -> Option<&mut T> {
        self.entries.get_mut(&number)
    }

    pub(super) fn take(&mut self, number: u64) -> Option<T> {
        self.entries.remove(&number)
    }

    /// Removes the entries that have expired by `now`. Returns how many.
    ///
    /// `end` returns the current end of an entry.
    pub(super) fn expire(&mut self, now: Moment, end: impl Fn(&T) -> Moment) -> u64 {
        let mut expired = 0;
        while let Some(&Reverse((check, number))) = self.checks.peek()
            && check <= now
        {
            self.checks.pop();
            match self.entries.get(&number).map(&end) {
                Some(end) if end > now => self.checks.push(Reverse((end, number))),
                Some(_) => {
                    self.entries.remove(&number);
                    expired += 1;
                }
                None => {}
            }
        }
        expired
    }

    /// Schedules all checks again, because the expiry of all entries has changed.
    pub(super) fn reschedule(&mut self, end: impl Fn(&T) -> Moment) {
        let checks = self.entries.iter();
        let checks = checks.map(|(number, entry)| Reverse((end(entry), *number)));
        self.checks = checks.collect();
    }

    /// Returns the instant at which the next entry may have expired.
    pub(super) fn next_check(&self) -> Option<Moment> {
        self.checks.peek().map(|Reverse((check, _))| *check)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (u64, &T)> {
        self.entries.iter().map(|(number, entry)| (*number, entry))
    }
}
