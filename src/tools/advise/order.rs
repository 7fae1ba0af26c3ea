//! Sorts a nearly ordered sequence by time, in bounded memory.
//!
//! Items are held until no earlier one can follow. Here an item is a request of a log.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Maximum delay of a line after its request arrived, in nanoseconds.
///
/// Servers write a line when the response has ended, so lines are not in order of arrival.
pub(super) const MAX_DELAY: u64 = 60 * 1_000_000_000;
/// Number of held items at which the first one is taken, although an earlier one may follow.
const MAX_HELD: usize = 1 << 20;

/// Items that are nearly in order of time, held until their order is known.
#[derive(Default)]
pub(super) struct Order<T: Ord> {
    /// Held items by time and number. Items of the same time stay in the order of their numbers.
    held: BinaryHeap<Reverse<(u64, u64, T)>>,
    /// Number of items added.
    count: u64,
    /// Latest time of all items.
    latest: u64,
    /// Time of the last item that was taken.
    last_taken: u64,
    /// Number of items that arrived too late to be sorted.
    pub(super) late: u64,
}

impl<T: Copy + Ord> Order<T> {
    /// Adds an item of `time`.
    ///
    /// Before the next item, call [`Self::take_in_order`] until it returns `None`.
    pub(super) fn put(&mut self, time: u64, item: T) {
        // If later items have already been taken, the item counts as if it had their time.
        self.late += u64::from(time < self.last_taken);
        let time = time.max(self.last_taken);
        self.count += 1;
        self.held.push(Reverse((time, self.count, item)));
        self.latest = self.latest.max(time);
    }

    /// Takes the first item and its time, if no earlier one can follow or [`MAX_HELD`] are held.
    pub(super) fn take_in_order(&mut self) -> Option<(u64, T)> {
        let due = self.latest.saturating_sub(MAX_DELAY);
        let Reverse((first, ..)) = self.held.peek()?;
        (*first <= due || self.held.len() >= MAX_HELD).then(|| self.take())?
    }

    /// Takes the first item and its time. For the end of the sequence.
    pub(super) fn take(&mut self) -> Option<(u64, T)> {
        let Reverse((time, _, item)) = self.held.pop()?;
        self.last_taken = time;
        Some((time, item))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    /// Sorts items of these times. Returns their times and numbers, and how many were too late.
    fn sort(times: impl IntoIterator<Item = u64>) -> (Vec<(u64, u64)>, u64) {
        let (mut order, mut out) = (Order::default(), Vec::new());
        for (number, time) in times.into_iter().enumerate() {
            order.put(time, number as u64);
            out.extend(std::iter::from_fn(|| order.take_in_order()));
        }
        out.extend(std::iter::from_fn(|| order.take()));
        (out, order.late)
    }

    #[test]
    fn items_are_sorted_and_equal_ones_keep_their_order() {
        let (out, late) = sort([5, 3, 3, 9, 4, 9, 1].map(|time| time * SECOND));
        let numbers: Vec<u64> = out.iter().map(|(_, number)| *number).collect();
        assert_eq!(numbers, [6, 1, 2, 4, 0, 3, 5]);
        assert!(out.is_sorted_by_key(|(time, _)| *time));
        assert_eq!(late, 0);
    }

    #[test]
    fn an_item_that_is_too_late_is_counted_and_taken_next() {
        let (out, late) = sort([0, 100, 161, 30, 101].map(|time| time * SECOND));
        assert_eq!(late, 1);
        let expected = [(0, 0), (100, 1), (100, 3), (101, 4), (161, 2)];
        assert_eq!(out, expected.map(|(time, number)| (time * SECOND, number)));
    }

    #[test]
    fn a_bounded_number_of_items_is_held() {
        let mut order = Order::default();
        let mut taken = Vec::new();
        // Returns the number of items taken so far, and the last of them.
        let mut put = |order: &mut Order<()>, time| {
            order.put(time, ());
            taken.extend(std::iter::from_fn(|| order.take_in_order()));
            (taken.len(), taken.last().copied())
        };
        for time in 0..MAX_HELD as u64 + 8 {
            put(&mut order, time);
        }
        assert_eq!(put(&mut order, MAX_HELD as u64 + 8), (10, Some((9, ()))));
        assert_eq!(order.held.len(), MAX_HELD - 1);
        assert!(order.held.capacity() <= MAX_HELD);
        // An item earlier than all held items is taken at once.
        assert_eq!(put(&mut order, 9), (11, Some((9, ()))));
        assert_eq!(order.late, 0);
        assert_eq!(put(&mut order, 8), (12, Some((9, ()))));
        assert_eq!(order.late, 1);
    }
}
