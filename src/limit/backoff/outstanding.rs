use std::time::Duration;

use crate::limit::Moment;

/// Stands for no request.
const NONE: usize = usize::MAX;

/// The requests without an answer, in the order in which they were sent.
///
/// A linked list in a slab: each operation takes constant time, and memory is bounded by the most
/// requests that were ever outstanding at once.
#[derive(Debug)]
pub(super) struct Outstanding {
    slots: Vec<Slot>,
    /// The first free slot, linked by `after`.
    free: usize,
    /// The first request that is not overdue. Those before it are.
    first_in_time: usize,
    last: usize,
    overdue: u64,
}

#[derive(Debug)]
struct Slot {
    sent: Moment,
    is_overdue: bool,
    before: usize,
    after: usize,
}

impl Default for Outstanding {
    fn default() -> Self {
        Self {
            slots: Vec::new(),
            free: NONE,
            first_in_time: NONE,
            last: NONE,
            overdue: 0,
        }
    }
}

impl Outstanding {
    /// Adds a request sent at `sent`. Returns its slot.
    pub fn add(&mut self, sent: Moment) -> usize {
        let slot = Slot {
            sent,
            is_overdue: false,
            before: self.last,
            after: NONE,
        };
        let index = if self.free == NONE {
            self.slots.push(slot);
            self.slots.len() - 1
        } else {
            let index = self.free;
            self.free = self.slots[index].after;
            self.slots[index] = slot;
            index
        };
        if self.last != NONE {
            self.slots[self.last].after = index;
        }
        if self.first_in_time == NONE {
            self.first_in_time = index;
        }
        self.last = index;
        index
    }

    /// Removes the request of a slot, which must have been added and not removed yet.
    pub fn remove(&mut self, index: usize) {
        let Some(slot) = self.slots.get_mut(index) else {
            return;
        };
        let (before, after) = (slot.before, slot.after);
        self.overdue -= u64::from(slot.is_overdue);
        slot.after = self.free;
        self.free = index;
        if before != NONE {
            self.slots[before].after = after;
        }
        if after != NONE {
            self.slots[after].before = before;
        }
        if self.first_in_time == index {
            self.first_in_time = after;
        }
        if self.last == index {
            self.last = before;
        }
    }

    /// Number of requests that were sent more than `slow` before `now`.
    pub fn overdue(&mut self, slow: Duration, now: Moment) -> u64 {
        while let Some(slot) = self.slots.get_mut(self.first_in_time)
            && now.since(slot.sent) > slow
        {
            slot.is_overdue = true;
            self.overdue += 1;
            self.first_in_time = slot.after;
        }
        self.overdue
    }

    /// Forgets all requests. Their slots must not be removed any more.
    pub fn clear(&mut self) {
        let slots = std::mem::take(&mut self.slots);
        *self = Self::default();
        self.slots = slots;
        self.slots.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_who_is_past_slow_whatever_the_order_of_answers() {
        let at = |millis: u64| Moment::from_nanos(millis * 1_000_000);
        let slow = Duration::from_millis(250);
        let mut outstanding = Outstanding::default();
        let slots = [0, 10, 20, 30].map(|millis| outstanding.add(at(millis)));
        assert_eq!(outstanding.overdue(slow, at(250)), 0, "250 ms is not slow");
        assert_eq!(outstanding.overdue(slow, at(261)), 2);
        outstanding.remove(slots[1]);
        assert_eq!(outstanding.overdue(slow, at(261)), 1);
        outstanding.remove(slots[2]);
        assert_eq!(outstanding.overdue(slow, at(281)), 2);
        outstanding.remove(slots[3]);
        outstanding.remove(slots[0]);
        assert_eq!(outstanding.overdue(slow, at(1000)), 0);
        let again = outstanding.add(at(1000));
        assert!(slots.contains(&again), "slots are used again");
        outstanding.add(at(1000));
        assert_eq!(outstanding.overdue(slow, at(2000)), 2);
        outstanding.clear();
        assert_eq!(outstanding.overdue(slow, at(3000)), 0);
        assert_eq!(outstanding.add(at(3000)), 0);
    }
}
