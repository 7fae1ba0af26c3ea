use std::hash::Hash;
use std::time::Duration;

use super::{Gate, Moment, ticks};

/// What of a gate outlives its process, relative to the moment at which it was saved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SavedGate {
    /// Time until the slot behind all requests that wait.
    pub next: Duration,
    /// Time until a pause ends.
    pub opens: Duration,
}

impl<K: Hash + Eq + Clone, W> Gate<K, W> {
    /// What has to be kept of it at `at`, a moment not long before now.
    ///
    /// Those that wait leave in their slots, which are not for others.
    #[must_use]
    pub fn save(&self, at: Moment) -> SavedGate {
        let next = self.rate.map_or(Duration::ZERO, |_| {
            let costs = self.outage.costs() + self.waiting.costs();
            self.leaves_behind(costs, self.opens.max(at)).since(at)
        });
        SavedGate {
            next,
            opens: self.opens.since(at),
        }
    }

    /// Continues what was saved at `at`. Nothing has left yet.
    pub fn restore(&mut self, saved: &SavedGate, at: Moment) {
        self.before = None;
        self.last = self.rate.map(|rate| (ticks(rate, at + saved.next), 0));
        self.opens = self.opens.max(at + saved.opens);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limit::{Cost, GateLimits, Share};

    const START: Moment = Moment::from_nanos(1_700_000_000_000_000_000);

    fn paced(rate: &str) -> Gate<u8, u32> {
        Gate::new(GateLimits {
            rate: Some(rate.parse().unwrap()),
            ..GateLimits::NONE
        })
    }

    fn ask(gate: &mut Gate<u8, u32>, count: u32, now: Moment) {
        for number in 0..count {
            let cost = Cost::new(1 + number % 3).unwrap();
            gate.join(&Share::of(1), cost, now, || number);
        }
    }

    /// When those leave who wait.
    fn dues(gate: &mut Gate<u8, u32>) -> Vec<Moment> {
        let far = START + Duration::from_secs(1_000);
        std::iter::from_fn(|| gate.take(far).map(|release| release.due)).collect()
    }

    #[test]
    fn newcomers_take_the_slots_behind_those_who_wait_in_the_process_before() {
        for (old, new) in [(0, 3), (1, 3), (7, 5)] {
            let mut one = paced("3r/s");
            ask(&mut one, old, START);
            let now = START + Duration::from_millis(700);
            while one.take(now).is_some() {}
            let mut next = paced("3r/s");
            next.restore(&one.save(now), now);
            let waiting = one.depth();
            ask(&mut one, new, now);
            ask(&mut next, new, now);
            let together = dues(&mut one);
            // Those who need not wait have left already.
            let alone = dues(&mut next);
            let skip = waiting.min(together.len());
            let together = &together[skip..];
            assert_eq!(alone.len(), together.len(), "{old} and {new}");
            // The time between the processes is whole nanoseconds.
            let is_same =
                |(one, other): (&Moment, &Moment)| one.as_nanos().abs_diff(other.as_nanos()) <= 2;
            assert!(
                alone.iter().zip(together).all(is_same),
                "{old} and {new}: {alone:?}, {together:?}"
            );
        }
    }

    #[test]
    fn a_pause_goes_on() {
        let mut gate = paced("10r/s");
        gate.pause(START + Duration::from_secs(9));
        let now = START + Duration::from_secs(2);
        let mut next = paced("10r/s");
        next.restore(&gate.save(now), now);
        ask(&mut next, 1, now);
        assert_eq!(dues(&mut next), [START + Duration::from_secs(9)]);
    }

    #[test]
    fn a_gate_without_a_pace_keeps_only_its_pause() {
        let mut gate: Gate<u8, u32> = Gate::new(GateLimits::NONE);
        ask(&mut gate, 5, START);
        assert_eq!(gate.save(START), SavedGate::default());
    }
}
