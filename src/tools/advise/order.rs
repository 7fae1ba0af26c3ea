//! Sorts a nearly ordered sequence by time, in bounded memory.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Maximum delay of a line, in nanoseconds. Servers write a line when the response has ended.
pub(super) const WAITED: u64 = 60 * 1_000_000_000;
/// Maximum number of lines that are held back.
const HELD: usize = 1 << 20;

/// Sorts items that are nearly in order of time, in bounded memory.
pub(super) struct Order<T> {
    /// Held items by time. Items of the same time stay in their order.
    held: BinaryHeap<Reverse<(u64, u64, T)>>,
    count: u64,
    latest: u64,
    left: u64,
    late: u64,
}

impl<T: Copy + Ord> Order<T> {
    pub(super) fn new() -> Self {
        Self {
            held: BinaryHeap::new(),
            count: 0,
            latest: 0,
            left: 0,
            late: 0,
        }
    }

    /// Adds an item of `time`. Passes items whose order is now certain to `out`.
    pub(super) fn put(&mut self, time: u64, item: T, mut out: impl FnMut(u64, T)) {
        // The item is late: later items have already been passed on. Count it as if it had their
        // time.
        self.late += u64::from(time < self.left);
        let time = time.max(self.left);
        if self.held.len() == HELD {
            // Passing items on before adding one keeps the queue within its bound.
            if self.first().is_some_and(|first| time < first) {
                self.left = time;
                out(time, item);
                return;
            }
            self.take(&mut out);
        }
        self.count += 1;
        self.held.push(Reverse((time, self.count, item)));
        self.latest = self.latest.max(time);
        let due = self.latest.saturating_sub(WAITED);
        while self.first().is_some_and(|first| first <= due) {
            self.take(&mut out);
        }
    }

    /// Ends the input. Passes all remaining items to `out`.
    pub(super) fn end(&mut self, mut out: impl FnMut(u64, T)) {
        while self.first().is_some() {
            self.take(&mut out);
        }
    }

    /// Returns the number of items that arrived too late to be sorted.
    pub(super) fn late(&self) -> u64 {
        self.late
    }

    fn first(&self) -> Option<u64> {
        self.held.peek().map(|Reverse(it)| it.0)
    }

    fn take(&mut self, out: &mut impl FnMut(u64, T)) {
        if let Some(Reverse((time, _, item))) = self.held.pop() {
            self.left = time;
            out(time, item);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn ordered(times: impl IntoIterator<Item = u64>) -> (Vec<(u64, u64)>, u64) {
        let (mut order, mut out) = (Order::new(), Vec::new());
        for (number, time) in times.into_iter().enumerate() {
            order.put(time, number as u64, |time, item| out.push((time, item)));
        }
        order.end(|time, item| out.push((time, item)));
        (out, order.late())
    }

    #[test]
    fn items_are_sorted_and_equal_ones_keep_their_order() {
        let (out, late) = ordered([5, 3, 3, 9, 4, 9, 1].map(|time| time * SECOND));
        let numbers: Vec<u64> = out.iter().map(|(_, number)| *number).collect();
        assert_eq!(numbers, [6, 1, 2, 4, 0, 3, 5]);
        assert!(out.is_sorted_by_key(|(time, _)| *time));
        assert_eq!(late, 0);
    }

    #[test]
    fn what_is_too_late_is_counted_and_goes_next() {
        let (out, late) = ordered([0, 100, 161, 30, 101].map(|time| time * SECOND));
        assert_eq!(late, 1);
        let expected = [(0, 0), (100, 1), (100, 3), (101, 4), (161, 2)];
        assert_eq!(out, expected.map(|(time, number)| (time * SECOND, number)));
    }

    #[test]
    fn no_more_than_so_many_are_held_back() {
        let (mut order, mut left) = (Order::new(), 0);
        for time in 0..HELD as u64 + 10 {
            order.put(time, (), |_, ()| left += 1);
        }
        assert_eq!(left, 10);
        assert_eq!(order.held.len(), HELD);
        assert!(order.held.capacity() <= HELD);
        // An item earlier than all held items is passed on at once.
        order.put(9, (), |time, ()| left += time);
        assert_eq!((left, order.late()), (19, 0));
        order.put(8, (), |time, ()| left += time);
        assert_eq!((left, order.late()), (19 + 9, 1));
    }
}
