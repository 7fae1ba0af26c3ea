//! Heavy hitters: the keys with the most requests, rejections and waiting time of the last minutes.
//!
//! Time is divided into *slots*. A *summary* (see `space_saving`) counts the heaviest keys of one
//! slot in bounded memory. Its *floor* is the largest error of its counts.

#[cfg(test)]
mod properties;
mod space_saving;

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use self::space_saving::SpaceSaving;
use super::Moment;

/// Quantity that is summed for each key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// Requests that arrived.
    Requests,
    /// Requests that were rejected.
    Rejections,
    /// Durations that requests waited, in nanoseconds.
    Waits,
}

/// Window of the sums.
///
/// Time is divided into slots. A window covers the current slot and some slots before it. So it is
/// up to one slot longer than its name says: at most 4 seconds, 70 seconds, and 12 minutes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Window {
    /// The last three seconds, in slots of one second. Counts only rejections.
    Seconds,
    /// The last minute, in slots of 10 seconds.
    Minute,
    /// The last 10 minutes, in slots of 2 minutes.
    TenMinutes,
}

/// Finder of the heaviest keys of a window, in bounded memory.
///
/// Each slot has a summary for each [`Measure`] that it counts: 43 summaries in all, with at most
/// 64 counters of 36 bytes each. So the finder takes 100 KB and the memory of the keys, allocated
/// as keys come.
#[derive(Debug)]
pub struct HeavyHitters<K> {
    /// One for each [`Window`], in their order.
    rings: [Ring<K>; 3],
}

/// Slots of a window, the oldest first.
#[derive(Debug)]
struct Ring<K> {
    window: Window,
    slots: VecDeque<Slot<K>>,
}

#[derive(Debug)]
struct Slot<K> {
    /// Index of the slot, counted from the Unix epoch.
    number: u64,
    /// End of the slot.
    end: Moment,
    /// One for each [`Measure`], in their order.
    summaries: [SpaceSaving<K>; 3],
}

/// Sums of one key in the window.
///
/// No sum is too low. Each may be too high by up to [`Heaviest::error`] of its measure.
#[derive(Clone, Debug, PartialEq)]
pub struct Heavy<K> {
    /// Key.
    pub key: K,
    /// Requests that arrived.
    pub requests: u64,
    /// Requests that were rejected.
    pub rejections: u64,
    /// Sum of the durations that its requests waited.
    pub wait: Duration,
}

/// Heaviest keys of a window by one measure.
#[derive(Clone, Debug, PartialEq)]
pub struct Heaviest<K> {
    /// Keys, the heaviest first.
    pub keys: Vec<Heavy<K>>,
    /// Sum over all keys.
    pub total: u64,
    /// Upper bound of the error of a key's sum: at most a 64th of `total`.
    ///
    /// Each key with a larger sum is found, as far as `keys` reaches.
    pub error: u64,
}

impl Window {
    /// Returns the length of a slot, and the number of slots with the current one.
    const fn slots(self) -> (Duration, usize) {
        match self {
            Self::Seconds => (Duration::from_secs(1), 4),
            Self::Minute => (Duration::from_secs(10), 7),
            Self::TenMinutes => (Duration::from_secs(120), 6),
        }
    }

    /// Returns the index of the slot at an instant.
    fn number(self, now: Moment) -> u64 {
        now.since(Moment::default()).as_secs() / self.slots().0.as_secs()
    }

    /// Returns the end of the slot with this index.
    fn end(self, number: u64) -> Moment {
        let length = self.slots().0.as_secs();
        Moment::default() + Duration::from_secs((number + 1).saturating_mul(length))
    }

    /// Returns the index of the first slot of the window at an instant.
    fn first(self, now: Moment) -> u64 {
        let before = self.slots().1.saturating_sub(1) as u64;
        self.number(now).saturating_sub(before)
    }
}

impl<K: Clone + Ord> HeavyHitters<K> {
    /// Adds `weight` to a measure of the key with this hash.
    ///
    /// `key` is called if the key has no counter yet.
    pub fn record(
        &mut self,
        measure: Measure,
        hash: u64,
        key: impl FnOnce() -> K,
        weight: u64,
        now: Moment,
    ) {
        let [seconds, minute, ten_minutes] = &mut self.rings;
        let summary = ten_minutes.summary(measure, now);
        let key = summary.record(hash, key, weight);
        let summary = minute.summary(measure, now);
        let key = summary.record(hash, || key.clone(), weight);
        if measure == Measure::Rejections {
            let summary = seconds.summary(measure, now);
            summary.record(hash, || key.clone(), weight);
        }
    }

    /// Drops the slots that are in no window any more.
    pub fn forget_old(&mut self, now: Moment) {
        self.rings.iter_mut().for_each(|ring| ring.forget_old(now));
    }

    /// Returns the `limit` heaviest keys of a window by a measure. Equal keys are in their order.
    pub fn heaviest(
        &self,
        measure: Measure,
        window: Window,
        limit: usize,
        now: Moment,
    ) -> Heaviest<K> {
        let ring = &self.rings[window as usize];
        let error = ring.sum(measure, now, |summary| summary.floor);
        // The sum of a key is the sum of all floors, plus the parts of its counts above the floors.
        // So these parts rank the keys.
        let mut above: HashMap<u64, (&K, u64)> = HashMap::new();
        for summary in ring.summaries(measure, now) {
            for (hash, key, count) in summary.iter() {
                let (_, sum) = above.entry(hash).or_insert((key, 0));
                *sum = sum.saturating_add(count.saturating_sub(summary.floor));
            }
        }
        let mut ranked: Vec<_> = above.into_iter().collect();
        ranked.sort_unstable_by_key(|(_, (key, sum))| (std::cmp::Reverse(*sum), *key));
        ranked.truncate(limit);
        let keys = ranked.into_iter().map(|(hash, (key, _))| {
            let sum = |measure| ring.sum(measure, now, |summary| summary.count(hash));
            Heavy {
                key: key.clone(),
                requests: sum(Measure::Requests),
                rejections: sum(Measure::Rejections),
                wait: Duration::from_nanos(sum(Measure::Waits)),
            }
        });
        Heaviest {
            keys: keys.collect(),
            total: ring.sum(measure, now, |summary| summary.total),
            error,
        }
    }
}

impl<K> Default for HeavyHitters<K> {
    fn default() -> Self {
        let windows = [Window::Seconds, Window::Minute, Window::TenMinutes];
        let rings = windows.map(|window| Ring {
            window,
            slots: VecDeque::new(),
        });
        Self { rings }
    }
}

impl<K> Ring<K> {
    /// Returns the summary of the current slot. Begins a new slot if the last one has ended.
    fn summary(&mut self, measure: Measure, now: Moment) -> &mut SpaceSaving<K> {
        if self.slots.back().is_none_or(|last| last.end <= now) {
            if let Some(last) = self.slots.back_mut() {
                last.summaries.iter_mut().for_each(SpaceSaving::close);
            }
            self.forget_old(now);
            let number = self.window.number(now);
            self.slots.push_back(Slot {
                number,
                end: self.window.end(number),
                summaries: Default::default(),
            });
        }
        let last = self.slots.len() - 1;
        &mut self.slots[last].summaries[measure as usize]
    }

    fn forget_old(&mut self, now: Moment) {
        let first = self.window.first(now);
        while self.slots.front().is_some_and(|slot| slot.number < first) {
            self.slots.pop_front();
        }
    }

    /// Returns the summaries of the slots that are in the window now.
    fn summaries(&self, measure: Measure, now: Moment) -> impl Iterator<Item = &SpaceSaving<K>> {
        let first = self.window.first(now);
        let slots = self.slots.iter().filter(move |slot| slot.number >= first);
        slots.map(move |slot| &slot.summaries[measure as usize])
    }

    /// Returns the sum of `count` over the summaries of the slots that are in the window now.
    fn sum(&self, measure: Measure, now: Moment, count: impl Fn(&SpaceSaving<K>) -> u64) -> u64 {
        let counts = self.summaries(measure, now).map(count);
        counts.fold(0, u64::saturating_add)
    }
}

#[cfg(test)]
impl<K> Heavy<K> {
    /// Returns the sum of a measure; waits in nanoseconds.
    fn of(&self, measure: Measure) -> u64 {
        match measure {
            Measure::Requests => self.requests,
            Measure::Rejections => self.rejections,
            Measure::Waits => crate::nanos(self.wait),
        }
    }
}
