//! Puts what is nearly in order of time into order, in bounded memory.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// How late a line may be, in nanoseconds. Servers write a line when the response has ended.
pub(super) const WAITED: u64 = 60 * 1_000_000_000;
/// Maximum number of lines that are held back.
const HELD: usize = 1 << 20;

/// Sorts items that are nearly in order of time, in bounded memory.
#[derive(Debug)]
pub(super) struct Order<T> {
    /// Items that came in order.
    straight: VecDeque<(u64, u64, T)>,
    /// Items that came after a later one.
    astray: BinaryHeap<Reverse<(u64, u64, T)>>,
    count: u64,
    latest: u64,
    left: u64,
    late: u64,
}

impl<T: Copy + Ord> Order<T> {
    pub(super) fn new() -> Self {
        Self {
            straight: VecDeque::new(),
            astray: BinaryHeap::new(),
            count: 0,
            latest: 0,
            left: 0,
            late: 0,
        }
    }

    /// Adds an item of `time`. Items whose order is now certain go to `out`.
    pub(super) fn put(&mut self, time: u64, item: T, mut out: impl FnMut(u64, T)) {
        let mut time = time;
        if time < self.left {
            // Too late: later items have left already. The item counts as if it had come at their
            // time.
            self.late += 1;
            time = self.left;
        }
        if self.straight.len() + self.astray.len() == HELD {
            // Before it is added, so that the queue never grows beyond its bound.
            if self.first().is_some_and(|first| time < first) {
                self.left = time;
                out(time, item);
                return;
            }
            self.take(&mut out);
        }
        self.count += 1;
        let it = (time, self.count, item);
        if self.straight.back().is_none_or(|last| last.0 <= time) {
            self.straight.push_back(it);
        } else {
            self.astray.push(Reverse(it));
        }
        self.latest = self.latest.max(time);
        let due = self.latest.saturating_sub(WAITED);
        while self.first().is_some_and(|first| first <= due) {
            self.take(&mut out);
        }
    }

    /// Ends the input. All remaining items go to `out`.
    pub(super) fn end(&mut self, mut out: impl FnMut(u64, T)) {
        while self.first().is_some() {
            self.take(&mut out);
        }
    }

    /// How many items came too late to be put into order.
    pub(super) fn late(&self) -> u64 {
        self.late
    }

    fn first(&self) -> Option<u64> {
        let straight = self.straight.front().map(|it| it.0);
        let astray = self.astray.peek().map(|Reverse(it)| it.0);
        [straight, astray].into_iter().flatten().min()
    }

    fn take(&mut self, out: &mut impl FnMut(u64, T)) {
        let is_straight = match (self.straight.front(), self.astray.peek()) {
            (Some(straight), Some(Reverse(astray))) => {
                (straight.0, straight.1) < (astray.0, astray.1)
            }
            (straight, _) => straight.is_some(),
        };
        let it = if is_straight {
            self.straight.pop_front()
        } else {
            self.astray.pop().map(|Reverse(it)| it)
        };
        if let Some((time, _, item)) = it {
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
    fn what_is_astray_finds_its_place_and_equals_keep_theirs() {
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
        assert_eq!(order.straight.len() + order.astray.len(), HELD);
        assert!(order.straight.capacity() <= HELD);
        // One that is earlier than all that are held goes on at once.
        order.put(9, (), |time, ()| left += time);
        assert_eq!((left, order.late()), (19, 0));
        order.put(8, (), |time, ()| left += time);
        assert_eq!((left, order.late()), (19 + 9, 1));
    }
}
