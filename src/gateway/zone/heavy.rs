//! Heaviest keys of a zone: those with the most requests, rejections or waiting time.
//!
//! A *measure* is one of these three. `limit::HeavyHitters` counts them, approximately and in
//! bounded memory.

use std::hash::BuildHasher;
use std::time::Duration;

use config::{Plans, short_key};
use foldhash::fast::RandomState;
use limit::{HeavyHitters, Measure, Moment};

use super::join::Key;
use super::stats::KeyState;
use crate::observe::key_names::KeyNames;

/// Maximum size in bytes of a key that is kept whole. Of a longer key, the beginning is kept.
const MAX_KEY_SIZE: usize = 128;

/// Name of a heavy key: the whole key, or its beginning followed by its short form.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct HeavyName(Key);

/// One of the heaviest keys of a zone.
#[derive(Clone, Debug)]
pub struct HeavyKey {
    /// Name of the key.
    pub name: HeavyName,
    /// Number of requests.
    pub requests: u64,
    /// Number of rejected requests. A dry run rejects none.
    pub rejections: u64,
    /// Sum of the waits of all its requests.
    pub wait: Duration,
    /// Present state; `None` if the zone does not remember the key, or `name` is not whole.
    pub state: Option<KeyState>,
}

/// Heaviest keys of a zone.
#[derive(Clone, Debug, Default)]
pub struct HeavyKeys {
    /// Keys, the heaviest first.
    pub keys: Vec<HeavyKey>,
    /// Sum of the measure over all keys; for waits in nanoseconds.
    pub total: u64,
    /// Upper bound of the error of a count. A count may be too high, but not too low.
    pub error: u64,
}

/// Counts requests, rejections and waits by key, for one supervisor.
#[derive(Debug, Default)]
pub(super) struct HeavyCount {
    pub(super) hitters: HeavyHitters<HeavyName>,
    hasher: RandomState,
}

impl HeavyName {
    /// Returns the key, or its first 128 bytes.
    pub fn beginning(&self) -> &[u8] {
        &self.0[..self.0.len().min(MAX_KEY_SIZE)]
    }

    /// Returns the key if it is kept whole.
    pub fn whole(&self) -> Option<&Key> {
        (self.0.len() <= MAX_KEY_SIZE).then_some(&self.0)
    }

    /// Formats the name in full: a long key as its beginning and an ellipsis, or its masked name.
    pub fn full(&self, names: KeyNames) -> String {
        if let Some(key) = self.whole() {
            return names.full(key);
        }
        let beginning = || format!("{}…", names.full(self.beginning()));
        names.masked(self.short_form()).unwrap_or_else(beginning)
    }

    /// Formats the name with bounded length.
    pub fn short(&self, names: KeyNames) -> String {
        if let Some(key) = self.whole() {
            return names.short(key);
        }
        let beginning = || names.short(self.beginning());
        names.masked(self.short_form()).unwrap_or_else(beginning)
    }

    /// Returns the short form of a long key. It has the same masked name as the key.
    fn short_form(&self) -> &[u8] {
        self.0.get(MAX_KEY_SIZE..).unwrap_or_default()
    }

    /// Returns the name of the key's plan. `None` if it has none, or if the key is not kept whole.
    pub fn plan<'p>(&self, plans: &'p Plans) -> Option<&'p str> {
        plans.name_of(self.whole()?)
    }

    /// Creates the name of a key.
    fn of(key: &Key) -> Self {
        if key.len() <= MAX_KEY_SIZE {
            return Self(Key::clone(key));
        }
        Self(Key::from([&key[..MAX_KEY_SIZE], &*short_key(key)].concat()))
    }
}

impl HeavyCount {
    /// Adds `weight` to a measure of a key.
    pub(super) fn record(&mut self, measure: Measure, key: &Key, weight: u64, now: Moment) {
        let hash = self.hasher.hash_one(&key[..]);
        let name = || HeavyName::of(key);
        self.hitters.record(measure, hash, name, weight, now);
    }
}

impl HeavyKeys {
    /// Adds the keys of another supervisor, which are other keys, and keeps the first `limit`.
    pub(super) fn merge(&mut self, other: Self, measure: Measure, limit: usize) {
        self.keys.extend(other.keys);
        self.keys.sort_by(|a, b| {
            let by_weight = b.weight(measure).cmp(&a.weight(measure));
            by_weight.then_with(|| a.name.cmp(&b.name))
        });
        self.keys.truncate(limit);
        self.total = self.total.saturating_add(other.total);
        self.error = self.error.max(other.error);
    }
}

impl HeavyKey {
    /// Returns the value of a measure; for waits in nanoseconds.
    fn weight(&self, measure: Measure) -> u128 {
        match measure {
            Measure::Requests => self.requests.into(),
            Measure::Rejections => self.rejections.into(),
            Measure::Waits => self.wait.as_nanos(),
        }
    }
}
