//! Budget of new keys in a zone.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::{Moment, Rate};

/// Budget that bounds the number of new keys in a zone, over all its workers.
///
/// It is GCRA (ITU-T I.371), with the time of the next regular key in one atomic number: a burst of
/// one second of the rate, at least one, then one key each `1 / rate`. The interval is rounded up
/// to a nanosecond.
#[derive(Debug, Default)]
pub struct NewKeyBudget {
    /// Regular time of the next key: its arrival if all keys came at the rate.
    ///
    /// In nanoseconds since the Unix epoch.
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

    /// Restores a budget that is available again in full from `whole` on.
    ///
    /// At most a burst and one key are used up, because the rate may have been another one.
    pub fn restore(&self, rate: Rate, whole: Moment, now: Moment) {
        let burst = rate.count_in(Duration::from_secs(1)).max(1);
        let latest = now + rate.time_for(burst);
        let whole = whole.min(latest).as_nanos();
        self.next.fetch_max(whole, Ordering::Relaxed);
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

    const START: Moment = Moment::from_nanos(1_700_000_000_000_000_000);

    fn after(millis: u64) -> Moment {
        START + Duration::from_millis(millis)
    }

    fn taken(budget: &NewKeyBudget, rate: &str, tries: u32, at: Moment) -> u32 {
        let rate = rate.parse().unwrap();
        (0..tries).map(|_| u32::from(budget.take(rate, at))).sum()
    }

    #[test]
    fn a_burst_of_one_second_then_the_rate() {
        let budget = NewKeyBudget::default();
        assert_eq!(taken(&budget, "10r/s", 50, START), 10);
        assert_eq!(taken(&budget, "10r/s", 50, after(99)), 0);
        assert_eq!(taken(&budget, "10r/s", 50, after(100)), 1);
        assert_eq!(taken(&budget, "10r/s", 50, after(450)), 3);
        // Idle time earns no more than the burst.
        assert_eq!(taken(&budget, "10r/s", 50, after(60_000)), 10);
    }

    #[test]
    fn a_slow_rate_has_a_burst_of_one() {
        let budget = NewKeyBudget::default();
        assert_eq!(taken(&budget, "6r/m", 5, START), 1);
        assert_eq!(taken(&budget, "6r/m", 5, after(9_999)), 0);
        assert_eq!(taken(&budget, "6r/m", 5, after(10_000)), 1);
    }

    #[test]
    fn a_look_takes_nothing() {
        let (budget, rate) = (NewKeyBudget::default(), "1r/s".parse().unwrap());
        assert!(budget.has_room(rate, START));
        assert!(budget.has_room(rate, START));
        assert!(budget.take(rate, START));
        assert!(!budget.has_room(rate, START));
        assert!(budget.has_room(rate, after(1_000)));
    }

    #[test]
    fn what_is_used_up_stays_so_in_the_next_process() {
        let rate = "10r/s".parse().unwrap();
        let budget = NewKeyBudget::default();
        assert_eq!(budget.used(START), Duration::ZERO);
        assert_eq!(taken(&budget, "10r/s", 8, START), 8);
        let used = budget.used(START);
        assert_eq!(used, Duration::from_millis(800));
        let next = NewKeyBudget::default();
        next.restore(rate, START + used, START);
        assert_eq!(taken(&next, "10r/s", 50, START), 2);
        // Whatever the file says, a burst later the budget is full.
        let next = NewKeyBudget::default();
        next.restore(rate, Moment::from_nanos(u64::MAX), START);
        assert_eq!(taken(&next, "10r/s", 50, START), 0);
        assert_eq!(taken(&next, "10r/s", 50, after(1_000)), 10);
    }

    #[test]
    fn a_new_rate_holds_from_the_next_key_on() {
        let budget = NewKeyBudget::default();
        assert_eq!(taken(&budget, "10r/s", 50, START), 10);
        assert_eq!(taken(&budget, "100r/s", 500, START), 0);
        assert_eq!(taken(&budget, "100r/s", 500, after(10)), 1);
        assert_eq!(taken(&budget, "1r/s", 5, after(1_000)), 0);
        assert_eq!(taken(&budget, "1r/s", 5, after(1_010)), 1);
    }

    #[test]
    fn many_threads_take_no_more_than_one() {
        let budget = NewKeyBudget::default();
        let all: u32 = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4)
                .map(|_| scope.spawn(|| taken(&budget, "1000r/s", 2_000, START)))
                .collect();
            threads.into_iter().map(|it| it.join().unwrap()).sum()
        });
        assert_eq!(all, 1_000);
    }
}
