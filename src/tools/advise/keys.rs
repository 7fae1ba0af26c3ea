use foldhash::fast::RandomState;
use lru::LruCache;

use super::hours::Class;
use super::windows::{Counts, Window};
use crate::replay::Spread;
use crate::tools::shown;

/// How many dropped keys have their peaks remembered.
const REMEMBERED: usize = 256;

/// The keys of a group in bounded memory.
///
/// If all groups together have too many, the group's least recently used key is dropped.
///
/// A peak is a count within a second, so dropping a key loses no peak unless the key comes again
/// within the same second. If a dropped key comes again, it only counts as another key.
pub(super) struct Keys {
    slots: LruCache<Box<[u8]>, u32, RandomState>,
    known: Vec<Known>,
    /// How many keys it may have however many the other groups have.
    least: usize,
    dropped: u64,
    /// The highest peaks of dropped keys.
    remembered: Vec<Peaks>,
    /// The dropped keys with the most requests.
    heaviest: Vec<Peaks>,
    spreads: [Spread; 3],
}

/// What is known of a key.
#[derive(Clone, Copy, Debug, Default)]
struct Known {
    counts: Counts,
    peaks: [u32; 3],
    requests: u64,
    /// Whether a request of the key has been counted.
    is_counted: bool,
}

/// The peaks of one key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peaks {
    /// The key, unescaped.
    pub key: Box<[u8]>,
    /// The number of its requests.
    pub requests: u64,
    /// The most requests within a second, 100 ms and 10 ms.
    pub peaks: [u32; 3],
    /// Its slot; `None` if it was dropped for another key.
    pub(super) slot: Option<u32>,
}

impl Peaks {
    /// The key as it is shown: escaped, and its start if it is long.
    pub(super) fn shown(&self) -> String {
        shown::key(&self.key)
    }
}

impl Keys {
    pub(super) fn new(least: usize) -> Self {
        Self {
            slots: LruCache::unbounded_with_hasher(RandomState::default()),
            known: Vec::new(),
            least: least.max(1),
            dropped: 0,
            remembered: Vec::new(),
            heaviest: Vec::new(),
            spreads: std::array::from_fn(|_| Spread::default()),
        }
    }

    /// The slot of a key, which becomes the most recently used one.
    ///
    /// `has_room`: whether all groups together may have one more key.
    pub(super) fn slot(&mut self, key: &[u8], has_room: bool, over: impl FnMut(Window)) -> u32 {
        if let Some(slot) = self.slots.get(key) {
            return *slot;
        }
        let slot = if has_room || self.slots.len() < self.least {
            self.known.push(Known::default());
            u32::try_from(self.known.len() - 1).unwrap_or(u32::MAX)
        } else {
            self.drop_one(over)
        };
        self.slots.put(key.into(), slot);
        slot
    }

    fn drop_one(&mut self, over: impl FnMut(Window)) -> u32 {
        let Some((key, slot)) = self.slots.pop_lru() else {
            return 0;
        };
        self.dropped += 1;
        if let Some(mut peaks) = self.take(key, slot, over) {
            peaks.slot = None;
            self.remembered.push(peaks.clone());
            self.heaviest.push(peaks);
        }
        if self.remembered.len() >= 2 * REMEMBERED {
            highest(&mut self.remembered, REMEMBERED);
            heaviest(&mut self.heaviest, REMEMBERED);
        }
        slot
    }

    /// Removes a key, and returns its peaks.
    fn take(&mut self, key: Box<[u8]>, slot: u32, mut over: impl FnMut(Window)) -> Option<Peaks> {
        let known = self.known.get_mut(slot as usize)?;
        let mut known = std::mem::take(known);
        let peaks = &mut known.peaks;
        known.counts.end(|window| {
            peaks[window.width] = peaks[window.width].max(window.count);
            over(window);
        });
        for (spread, peak) in self.spreads.iter_mut().zip(known.peaks) {
            spread.add(peak.into());
        }
        Some(Peaks {
            key,
            requests: known.requests,
            peaks: known.peaks,
            slot: Some(slot),
        })
    }

    /// Counts a request of the key in `slot`. Returns whether it is the key's first request there.
    pub(super) fn count(
        &mut self,
        slot: u32,
        time: u64,
        class: Class,
        mut over: impl FnMut(Window),
    ) -> bool {
        let Some(known) = self.known.get_mut(slot as usize) else {
            return false;
        };
        known.requests += 1;
        let peaks = &mut known.peaks;
        known.counts.add(time, class, |window| {
            peaks[window.width] = peaks[window.width].max(window.count);
            over(window);
        });
        !std::mem::replace(&mut known.is_counted, true)
    }

    /// The number of slots.
    pub(super) fn slots(&self) -> usize {
        self.known.len()
    }

    /// Ends all windows. Returns the keys; the `wanted` keys with the highest peaks, and with the
    /// most requests, are listed.
    pub(super) fn end(mut self, wanted: usize, mut over: impl FnMut(Window)) -> Ended {
        let count = self.slots.len() as u64 + self.dropped;
        let mut top = std::mem::take(&mut self.remembered);
        let mut most = std::mem::take(&mut self.heaviest);
        while let Some((key, slot)) = self.slots.pop_lru() {
            let peaks = self.take(key, slot, &mut over);
            top.extend(peaks.clone());
            most.extend(peaks);
            if top.len() >= 2 * REMEMBERED {
                highest(&mut top, REMEMBERED);
                heaviest(&mut most, REMEMBERED);
            }
        }
        highest(&mut top, wanted);
        heaviest(&mut most, wanted);
        Ended {
            count,
            dropped: self.dropped,
            top,
            most,
            spreads: self.spreads,
        }
    }
}

/// The results for all keys at the end.
#[derive(Debug, Default)]
pub(super) struct Ended {
    /// The number of keys. A key that was dropped and came again counts each time.
    pub(super) count: u64,
    pub(super) dropped: u64,
    /// The keys with the highest peaks.
    pub(super) top: Vec<Peaks>,
    /// The keys with the most requests.
    pub(super) most: Vec<Peaks>,
    /// The distribution of the keys' peaks, for each window width.
    pub(super) spreads: [Spread; 3],
}

/// Keeps the `count` entries with the highest peaks, the highest first.
fn highest(all: &mut Vec<Peaks>, count: usize) {
    all.sort_by(|one, other| {
        let by = |it: &Peaks| (it.peaks, it.requests);
        by(other)
            .cmp(&by(one))
            .then_with(|| one.key.cmp(&other.key))
    });
    all.truncate(count);
}

/// Keeps the `count` entries with the most requests, the first of them first.
fn heaviest(all: &mut Vec<Peaks>, count: usize) {
    all.sort_by(|one, other| {
        let by_requests = other.requests.cmp(&one.requests);
        by_requests.then_with(|| one.key.cmp(&other.key))
    });
    all.truncate(count);
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn more_keys_than_are_known_lose_no_peak() {
        let mut keys = Keys::new(3);
        let mut peak = 0;
        let mut over = |window: Window| {
            if window.width == 0 {
                peak = peak.max(window.count);
            }
        };
        for second in 0..1_000u64 {
            // One key comes nine times in its second, long before the end.
            let times = if second == 17 { 9 } else { 1 };
            let slot = keys.slot(second.to_string().as_bytes(), false, &mut over);
            for nth in 0..times {
                let is_first = keys.count(
                    slot,
                    second * 1_000 * MS + nth * 20 * MS,
                    Class::Good,
                    &mut over,
                );
                assert_eq!(is_first, nth == 0);
            }
        }
        assert_eq!(keys.slots(), 3);
        let ended = keys.end(2, &mut over);
        assert_eq!((ended.count, ended.dropped), (1_000, 997));
        assert_eq!(&*ended.top[0].key, b"17");
        assert_eq!((ended.top[0].peaks, ended.top[0].requests), ([9, 5, 1], 9));
        assert_eq!(ended.top[1].peaks, [1, 1, 1]);
        assert_eq!(
            (&*ended.most[0].key, ended.most[0].requests),
            (&b"17"[..], 9)
        );
        assert_eq!(ended.most[0].slot, None, "it was dropped");
        assert_eq!(ended.spreads[0].peak(), 9);
        assert_eq!(peak, 9);
    }
}
