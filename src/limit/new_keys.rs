//! Budget of new keys in a zone: how many keys that were never seen may get a bucket of their own.
//!
//! It protects a zone from clients that invent keys.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::{Moment, Rate};

/// Budget that bounds the number of new keys in a zone, over all its workers.
///
/// A burst of keys may come at once: as many as the rate allows in a second, at least one. After
/// that, one key may come each `1 / rate`, rounded up to a nanosecond. The algorithm is the generic
/// cell rate algorithm (ITU-T I.371). Its state is one atomic number.
#[derive(Debug, Default)]
pub struct NewKeyBudget {
    /// Regular time of the next key: its arrival if all keys came exactly at the rate.
    ///
    /// In nanoseconds since the Unix epoch. A key may come earlier than this by the burst.
    next: AtomicU64,
}

impl NewKeyBudget {
    /// Takes one new key from the budget. Returns `false` if there is none left.
    pub fn take(&self, rate: Rate, now: Moment) -> bool {
        let take = |next| Self::next_after_key(rate, next, now);
        let relaxed = Ordering::Relaxed;
        self.next.fetch_update(relaxed, relaxed, take).is_ok()
    }

    /// Returns whether a new key could be taken now.
    pub fn has_room(&self, rate: Rate, now: Moment) -> bool {
        Self::next_after_key(rate, self.next.load(Ordering::Relaxed), now).is_some()
    }

    /// Returns the duration from `now` until the whole budget is available again.
    pub fn used(&self, now: Moment) -> Duration {
        Moment::from_nanos(self.next.load(Ordering::Relaxed)).since(now)
    }

    /// Restores a saved budget, which is whole again from `full_at` on.
    ///
    /// `full_at` is limited to the duration of one burst from `now` on, because the rate may have
    /// changed since.
    pub fn restore(&self, rate: Rate, full_at: Moment, now: Moment) {
        let burst = rate.count_in(Duration::from_secs(1)).max(1);
        let latest = now + rate.time_for(burst);
        let full_at = full_at.min(latest).as_nanos();
        self.next.fetch_max(full_at, Ordering::Relaxed);
    }

    /// Returns the next regular time after a key that comes `now`; `None` if it comes too early.
    fn next_after_key(rate: Rate, next: u64, now: Moment) -> Option<u64> {
        let burst = rate.count_in(Duration::from_secs(1)).max(1);
        let latest = now + rate.time_for(burst - 1);
        let regular = Moment::from_nanos(next);
        (regular <= latest).then(|| (regular.max(now) + rate.interval()).as_nanos())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{START, at, ms, rate};

    /// Tries to take `tries` keys at one instant. Returns how many were taken.
    fn take(budget: &NewKeyBudget, text: &str, tries: u32, millis: u64) -> u32 {
        let take = |_| u32::from(budget.take(rate(text), at(millis)));
        (0..tries).map(take).sum()
    }

    /// Steps of one budget: the rate, the instant in milliseconds, and the keys taken of 500 tries.
    #[test]
    fn a_budget_has_a_burst_of_one_second_and_then_the_rate() {
        for steps in [
            // Idle time earns no more than the burst.
            &[
                ("10r/s", 0, 10),
                ("10r/s", 99, 0),
                ("10r/s", 100, 1),
                ("10r/s", 450, 3),
                ("10r/s", 60_000, 10),
            ][..],
            // A slow rate has a burst of one.
            &[("6r/m", 0, 1), ("6r/m", 9_999, 0), ("6r/m", 10_000, 1)],
            // A new rate applies from the next key on.
            &[
                ("10r/s", 0, 10),
                ("100r/s", 0, 0),
                ("100r/s", 10, 1),
                ("1r/s", 1_000, 0),
                ("1r/s", 1_010, 1),
            ],
        ] {
            let budget = NewKeyBudget::default();
            for (rate, millis, taken) in steps {
                let found = take(&budget, rate, 500, *millis);
                assert_eq!(found, *taken, "{rate} at {millis} ms of {steps:?}");
            }
        }
    }

    #[test]
    fn has_room_takes_no_key() {
        let (budget, rate) = (NewKeyBudget::default(), rate("1r/s"));
        assert!(budget.has_room(rate, START));
        assert!(budget.has_room(rate, START));
        assert!(budget.take(rate, START));
        assert!(!budget.has_room(rate, START));
        assert!(budget.has_room(rate, at(1_000)));
    }

    #[test]
    fn a_used_budget_stays_used_in_the_next_process() {
        let budget = NewKeyBudget::default();
        assert_eq!(budget.used(START), Duration::ZERO);
        assert_eq!(take(&budget, "10r/s", 8, 0), 8);
        let used = budget.used(START);
        assert_eq!(used, ms(800));
        let next = NewKeyBudget::default();
        next.restore(rate("10r/s"), START + used, START);
        assert_eq!(take(&next, "10r/s", 50, 0), 2);
        // Whatever the file says, a burst later the budget is full.
        let next = NewKeyBudget::default();
        next.restore(rate("10r/s"), Moment::from_nanos(u64::MAX), START);
        assert_eq!(take(&next, "10r/s", 50, 0), 0);
        assert_eq!(take(&next, "10r/s", 50, 1_000), 10);
    }

    #[test]
    fn several_threads_take_no_more_than_one_does() {
        let budget = NewKeyBudget::default();
        let all: u32 = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4)
                .map(|_| scope.spawn(|| take(&budget, "1000r/s", 2_000, 0)))
                .collect();
            threads.into_iter().map(|it| it.join().unwrap()).sum()
        });
        assert_eq!(all, 1_000);
    }
}
