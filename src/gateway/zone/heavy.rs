//! The keys of a zone with the most requests, rejections and waiting time.

use std::hash::BuildHasher;
use std::time::Duration;

use config::{Plans, short_key};
use foldhash::fast::RandomState;
use limit::{HeavyHitters, Measure, Moment};

use super::join::Key;
use super::stats::KeyState;
use crate::observe::key_names::KeyNames;

/// Longest key that is kept whole, in bytes. Of a longer one the beginning is kept.
const MAX_KEY_SIZE: usize = 128;

/// A key among the heaviest of a zone, as it is kept: whole, or its beginning with its short form
/// behind it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct HeavyName(Key);

/// A key among the heaviest of a zone.
#[derive(Clone, Debug)]
pub struct HeavyKey {
    /// Its key.
    pub name: HeavyName,
    /// Requests that came.
    pub requests: u64,
    /// Requests that were rejected. A dry run rejects none.
    pub rejections: u64,
    /// How long its requests waited together.
    pub wait: Duration,
    /// Its present state; `None` if the zone does not remember it, or only its beginning is kept.
    pub state: Option<KeyState>,
}

/// The heaviest keys of a zone.
#[derive(Clone, Debug, Default)]
pub struct HeavyKeys {
    /// The heaviest first.
    pub keys: Vec<HeavyKey>,
    /// The sum over all keys of what they are ordered by; of waits in nanoseconds.
    pub total: u64,
    /// The most by which that may be too high for a key.
    pub error: u64,
}

/// Counts what the keys of one supervisor ask for and get.
#[derive(Debug, Default)]
pub(super) struct HeavyCount {
    pub(super) hitters: HeavyHitters<HeavyName>,
    hasher: RandomState,
}

impl HeavyName {
    /// The key, or its first 128 bytes.
    pub fn begin(&self) -> &[u8] {
        &self.0[..self.0.len().min(MAX_KEY_SIZE)]
    }

    /// The key, if it is kept whole.
    pub fn whole(&self) -> Option<&Key> {
        (self.0.len() <= MAX_KEY_SIZE).then_some(&self.0)
    }

    /// As text: of a long key the beginning and an ellipsis, or its masked name.
    pub fn full(&self, names: KeyNames) -> String {
        match self.whole() {
            Some(key) => names.full(key),
            None => names
                .masked(self.short_form())
                .unwrap_or_else(|| format!("{}…", names.full(self.begin()))),
        }
    }

    /// As text of bounded length.
    pub fn short(&self, names: KeyNames) -> String {
        match self.whole() {
            Some(key) => names.short(key),
            None => names
                .masked(self.short_form())
                .unwrap_or_else(|| names.short(self.begin())),
        }
    }

    /// The short form of a long key, which has the same masked name.
    fn short_form(&self) -> &[u8] {
        self.0.get(MAX_KEY_SIZE..).unwrap_or_default()
    }

    /// The name of its plan, if it has one and is kept whole.
    pub fn plan<'p>(&self, plans: &'p Plans) -> Option<&'p str> {
        plans.name_of(self.whole()?)
    }

    fn of(key: &Key) -> Self {
        if key.len() <= MAX_KEY_SIZE {
            return Self(Key::clone(key));
        }
        Self(Key::from([&key[..MAX_KEY_SIZE], &*short_key(key)].concat()))
    }
}

impl HeavyCount {
    pub(super) fn record(&mut self, measure: Measure, key: &Key, weight: u64, now: Moment) {
        let hash = self.hasher.hash_one(&key[..]);
        let name = || HeavyName::of(key);
        self.hitters.record(measure, hash, name, weight, now);
    }
}

impl HeavyKeys {
    /// Adds those of another supervisor, which counts other keys, and keeps the first `limit`.
    pub(super) fn merge(&mut self, other: Self, measure: Measure, limit: usize) {
        self.keys.extend(other.keys);
        self.keys.sort_by(|a, b| {
            let by_weight = b.of(measure).cmp(&a.of(measure));
            by_weight.then_with(|| a.name.cmp(&b.name))
        });
        self.keys.truncate(limit);
        self.total = self.total.saturating_add(other.total);
        self.error = self.error.max(other.error);
    }
}

impl HeavyKey {
    fn of(&self, measure: Measure) -> u128 {
        match measure {
            Measure::Requests => self.requests.into(),
            Measure::Rejections => self.rejections.into(),
            Measure::Waits => self.wait.as_nanos(),
        }
    }
}
