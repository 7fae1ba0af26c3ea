//! Arrivals of the last ten minutes at a zone, kept for a replay with other settings.
//!
//! Each supervisor has an `ArrivalLog`. `Arrivals` is a copy of the logs of all workers. A log is
//! made of *chunks*: many arrivals in little memory.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use config::short_key;
use limit::{Cost, Limit, Moment};

/// Duration for which an arrival is kept.
const KEPT_FOR: Duration = Duration::from_secs(10 * 60);
/// Upper bound of the arrivals kept by a zone, over all workers. The oldest are dropped first.
pub(super) const MAX_ARRIVALS: usize = 100_000;
/// Arrivals in a full chunk. Old arrivals are dropped by whole chunks.
const CHUNK: usize = 512;
/// Number of a chunk's limits that are compared with the limit of a new arrival.
const RECENT_LIMITS: usize = 8;

/// Arrival of a request at a zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival<'a> {
    /// Time of the arrival.
    pub time: Moment,
    /// Key of the request; a long key in its short form.
    pub key: &'a [u8],
    /// Limit of the route, adapted to the request's plan and cost.
    pub limit: Limit,
    /// Whether the route is in dry run.
    pub dry_run: bool,
}

/// Arrivals at a zone, complete from `since` to `until`.
#[derive(Clone, Debug, Default)]
pub struct Arrivals {
    since: Moment,
    until: Moment,
    /// Chunks of all workers. Some may have arrivals before `since`, which do not count.
    chunks: Vec<Arc<Chunk>>,
}

/// Arrivals that one supervisor keeps.
///
/// A full chunk is shared with its readers, so that it need not be copied.
pub(super) struct ArrivalLog {
    /// Full chunks, the oldest first.
    full: VecDeque<Arc<Chunk>>,
    /// Chunk that new arrivals are added to.
    last: Chunk,
    /// Start of the span in which no arrival is missing.
    since: Moment,
    /// Maximum number of full chunks.
    max_chunks: usize,
}

/// Consecutive arrivals: 16 bytes each, and their keys.
#[derive(Clone, Debug, Default)]
struct Chunk {
    entries: Vec<Entry>,
    /// Keys of all entries, concatenated.
    keys: Vec<u8>,
    /// Limits and dry-run flags that the entries refer to. The limits have cost 1.
    limits: Vec<(Limit, bool)>,
}

/// Arrival in a chunk.
#[derive(Clone, Copy, Debug)]
struct Entry {
    time: Moment,
    /// End of its key in `keys`. The key begins where the previous one ends.
    key_end: u32,
    /// Index in `limits`.
    limit: u16,
    cost: Cost,
}

impl ArrivalLog {
    /// Creates an empty log that keeps up to `max_arrivals`, but at least one chunk.
    ///
    /// Arrivals before `since` are unknown.
    pub(super) fn new(max_arrivals: usize, since: Moment) -> Self {
        Self {
            full: VecDeque::new(),
            last: Chunk::default(),
            since,
            // One more chunk is `last`.
            max_chunks: (max_arrivals / CHUNK).saturating_sub(1),
        }
    }

    /// Adds the latest arrival.
    pub(super) fn record(&mut self, arrival: Arrival) {
        if self.last.entries.len() >= CHUNK {
            let mut full = std::mem::take(&mut self.last);
            full.keys.shrink_to_fit();
            self.full.push_back(Arc::new(full));
            self.forget_old(arrival.time);
        }
        self.last.add(arrival);
    }

    /// Drops arrivals that are too old or exceed the maximum.
    pub(super) fn forget_old(&mut self, now: Moment) {
        let oldest = now.before(KEPT_FOR);
        while let Some(first) = self.full.front() {
            let end = first.end();
            if self.full.len() <= self.max_chunks && end >= oldest {
                break;
            }
            self.full.pop_front();
            self.since = self.since.max(end + Duration::from_nanos(1));
        }
        if self.full.is_empty() && !self.last.entries.is_empty() && self.last.end() < oldest {
            self.since = self.since.max(self.last.end() + Duration::from_nanos(1));
            self.last = Chunk::default();
        }
    }

    /// Returns a copy of the log. Full chunks are not copied but shared.
    pub(super) fn arrivals(&self, now: Moment) -> Arrivals {
        let full = self.full.iter().map(Arc::clone);
        Arrivals {
            since: self.since.max(now.before(KEPT_FOR)),
            until: now,
            chunks: full.chain([Arc::new(self.last.clone())]).collect(),
        }
    }
}

impl Arrivals {
    /// Returns the start of the span in which no arrival is missing. There are no earlier arrivals.
    pub fn since(&self) -> Moment {
        self.since
    }

    /// Returns the time at which the arrivals were collected.
    pub fn until(&self) -> Moment {
        self.until
    }

    /// Creates an empty list that begins at the start of a zone.
    pub(super) fn none(since: Moment) -> Self {
        Self {
            since,
            ..Self::default()
        }
    }

    /// Adds the arrivals of another worker.
    pub fn add(&mut self, other: Self) {
        self.since = self.since.max(other.since);
        self.until = self.until.max(other.until);
        self.chunks.extend(other.chunks);
    }

    /// Returns the arrivals in order of time. Arrivals of one worker keep their order.
    ///
    /// Sorts them first, which takes a few milliseconds for a full zone.
    pub fn in_order(&self) -> impl ExactSizeIterator<Item = Arrival<'_>> {
        let chunks = self.chunks.iter();
        // Each arrival as its chunk and its index there. A stable sort moves only these.
        let all =
            chunks.flat_map(|chunk| (0..chunk.entries.len()).map(move |index| (&**chunk, index)));
        let complete = all.filter(|(chunk, index)| chunk.entries[*index].time >= self.since);
        let mut complete: Vec<_> = complete.collect();
        complete.sort_by_key(|(chunk, index)| chunk.entries[*index].time);
        (complete.into_iter()).map(|(chunk, index)| chunk.arrival(index))
    }
}

impl Chunk {
    /// Appends an arrival.
    fn add(&mut self, arrival: Arrival) {
        let limit = (arrival.limit.for_one(), arrival.dry_run);
        // A zone has few limits, and most requests have one of the recent ones.
        let mut recent = self.limits.iter().enumerate().rev().take(RECENT_LIMITS);
        let known = recent.find(|(_, known)| **known == limit);
        let index = known.map_or(self.limits.len(), |(index, _)| index);
        if index == self.limits.len() {
            self.limits.push(limit);
        }
        self.keys.extend_from_slice(&short_key(arrival.key));
        self.entries.push(Entry {
            time: arrival.time,
            // A chunk has few entries with short keys, so neither number overflows.
            key_end: u32::try_from(self.keys.len()).unwrap_or(u32::MAX),
            limit: u16::try_from(index).unwrap_or(u16::MAX),
            cost: arrival.limit.cost,
        });
    }

    /// Returns the time of the last arrival.
    fn end(&self) -> Moment {
        let last = self.entries.last();
        last.map_or_else(Moment::default, |entry| entry.time)
    }

    /// Returns the arrival with this index.
    fn arrival(&self, index: usize) -> Arrival<'_> {
        let entry = self.entries[index];
        let previous = index.checked_sub(1);
        let start = previous.map_or(0, |previous| self.entries[previous].key_end);
        let (limit, dry_run) = self.limits[usize::from(entry.limit)];
        Arrival {
            time: entry.time,
            key: &self.keys[start as usize..entry.key_end as usize],
            limit: Limit {
                cost: entry.cost,
                ..limit
            },
            dry_run,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use limit::Delay;

    const START: Moment = Moment::from_nanos(1_700_000_000_000_000_000);

    /// Returns an instant in nanoseconds after the start.
    fn at(nanos: u64) -> Moment {
        START + Duration::from_nanos(nanos)
    }

    /// Returns an arrival under a limit that is in dry run if `burst` is 3.
    fn arrival(time: Moment, key: &[u8], burst: u32, cost: u32) -> Arrival<'_> {
        let limit = Limit {
            burst,
            ..Limit::unlimited(Delay::Above(burst / 2), Cost::new(cost).unwrap())
        };
        Arrival {
            time,
            key,
            limit,
            dry_run: burst == 3,
        }
    }

    #[test]
    fn arrivals_of_all_workers_are_returned_in_order_of_time() {
        let [mut one, mut other] = [(); 2].map(|()| ArrivalLog::new(MAX_ARRIVALS, START));
        let keys: Vec<String> = (0..40).map(|n| format!("key {n}")).collect();
        let recorded = |n: u32| {
            let key = &keys[(n * n % 40) as usize];
            arrival(at(n.into()), key.as_bytes(), n % 13, n % 64 + 1)
        };
        for n in 0..3_000 {
            if n % 3 == 0 { &mut one } else { &mut other }.record(recorded(n));
        }
        let mut all = one.arrivals(at(3_000));
        all.add(other.arrivals(at(3_001)));
        assert_eq!((all.since(), all.until()), (START, at(3_001)));
        let expected: Vec<_> = (0..3_000).map(recorded).collect();
        assert_eq!(all.in_order().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn the_oldest_arrivals_are_dropped_above_the_maximum() {
        let most = 10 * CHUNK;
        let mut log = ArrivalLog::new(most, START);
        let all = 50 * CHUNK as u64;
        for n in 0..all {
            log.record(arrival(at(n), b"k", 1, 1));
        }
        let kept = log.arrivals(at(all));
        let times: Vec<_> = kept.in_order().map(|arrival| arrival.time).collect();
        let count = times.len();
        assert!((most - CHUNK..=most).contains(&count), "{count}");
        assert_eq!(times.first(), Some(&kept.since()));
        let first = all - times.len() as u64;
        assert_eq!(times, (first..all).map(at).collect::<Vec<_>>());

        // Arrivals older than the first one kept by either worker are left out of both.
        let mut other = ArrivalLog::new(most, START);
        other.record(arrival(at(1), b"old", 1, 1));
        other.record(arrival(at(all), b"new", 1, 1));
        let mut both = log.arrivals(at(all));
        both.add(other.arrivals(at(all)));
        assert_eq!(both.in_order().len(), times.len() + 1);
        assert!(both.in_order().all(|arrival| arrival.key != b"old"));
    }

    #[test]
    fn old_arrivals_are_dropped_with_and_without_traffic() {
        let mut log = ArrivalLog::new(MAX_ARRIVALS, START);
        for n in 0..2 * CHUNK as u64 + 7 {
            log.record(arrival(at(n), b"k", 1, 1));
        }
        let later = START + KEPT_FOR + Duration::from_secs(1);
        log.record(arrival(later, b"k", 1, 1));
        assert_eq!(log.arrivals(later).in_order().len(), 1);
        assert_eq!(log.arrivals(later).since(), later.before(KEPT_FOR));
        log.forget_old(later);
        assert_eq!(log.full.len(), 0, "full chunks of old ones are freed");
        let last = later + KEPT_FOR + Duration::from_secs(1);
        log.forget_old(last);
        assert_eq!(log.last.entries.capacity(), 0, "an idle zone keeps nothing");
        assert_eq!(log.arrivals(last).in_order().len(), 0);
    }

    #[test]
    fn a_long_key_takes_little_memory() {
        let mut log = ArrivalLog::new(MAX_ARRIVALS, START);
        let name = vec![b'x'; 60_000];
        log.record(arrival(START, &name, 1, 1));
        log.record(arrival(START, b"short", 1, 1));
        assert!(log.last.keys.len() < 200);
        let arrivals = log.arrivals(START);
        let lengths = arrivals.in_order().map(|arrival| arrival.key.len());
        let lengths: Vec<_> = lengths.collect();
        assert_eq!(lengths, [short_key(&name).len(), 5]);
    }
}
