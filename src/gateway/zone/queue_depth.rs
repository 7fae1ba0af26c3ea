//! Counts of waiters (queue depth) and of requests in flight: of each key, and of all keys.

use std::cell::Cell;
use std::rc::Rc;

use super::shard::Shard;
use super::snapshot::Snapshot;
use crate::observe::metrics::Level;

impl Shard {
    /// Updates the numbers of waiters and of requests in flight after those of one key changed.
    pub(super) fn update_counts(&self, snapshot: &Rc<Snapshot>, waiters: usize, in_flight: usize) {
        let was_busy = snapshot.is_busy();
        let before = snapshot.depth.replace(waiters);
        match (before, waiters) {
            (0, 0) => {}
            (0, _) => self.add_waiting_key(snapshot),
            (_, 0) => self.remove_waiting_key(snapshot),
            _ => {}
        }
        update_total(&self.depth, &self.metrics.depth, before, waiters);
        let before = snapshot.in_flight.replace(in_flight);
        update_total(&self.in_flight, &self.metrics.in_flight, before, in_flight);
        let busy_keys = self.busy_keys.get() + usize::from(snapshot.is_busy());
        self.busy_keys
            .set(busy_keys.saturating_sub(usize::from(was_busy)));
    }

    /// Adds a key to the keys with waiters.
    fn add_waiting_key(&self, snapshot: &Rc<Snapshot>) {
        let mut waiting_keys = self.waiting_keys.borrow_mut();
        snapshot.index.set(waiting_keys.len());
        waiting_keys.push(Rc::clone(snapshot));
    }

    /// Removes a key from the keys with waiters. The last key of the list takes its index.
    fn remove_waiting_key(&self, snapshot: &Snapshot) {
        let (mut waiting_keys, index) = (self.waiting_keys.borrow_mut(), snapshot.index.get());
        if index < waiting_keys.len() {
            waiting_keys.swap_remove(index);
        }
        if let Some(moved) = waiting_keys.get(index) {
            moved.index.set(index);
        }
    }

    /// Passes up to `count` keys with waiters to `visit`, from just before `end` to the front.
    ///
    /// Returns the index to continue from; 0 at the end. A walk in several steps visits every key
    /// that has waiters throughout, and some keys twice.
    pub(super) fn walk_waiting_keys(
        &self,
        end: usize,
        count: usize,
        mut visit: impl FnMut(&Snapshot),
    ) -> usize {
        let waiting_keys = self.waiting_keys.borrow();
        let end = end.min(waiting_keys.len());
        let start = end.saturating_sub(count);
        let visited = waiting_keys[start..end].iter().rev();
        visited.for_each(|snapshot| visit(snapshot));
        start
    }
}

impl Drop for Shard {
    /// Subtracts the remaining counts from the metrics, which all supervisors of the zone share.
    ///
    /// After a panic, waiters and requests in flight are subtracted together, not one by one.
    fn drop(&mut self) {
        self.metrics.depth.change(self.depth.get(), 0);
        self.metrics.in_flight.change(self.in_flight.get(), 0);
    }
}

/// Updates a total and its metric after a key's part of it has changed.
fn update_total(total: &Cell<usize>, metric: &Level, before: usize, after: usize) {
    total.set((total.get() + after).saturating_sub(before));
    metric.change(before, after);
}
