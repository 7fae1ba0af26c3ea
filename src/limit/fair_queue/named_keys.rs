//! Waiting keys of a queue, as reported to the store that gateways share.
//!
//! The *name* of a key is its hash, which is the same at all gateways. A *named* key is one of the
//! heaviest waiting keys, which are reported one by one. Each *claim* (a query to the store) takes
//! the changes since the last one. A *flow* is the index of a key in its queue.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::num::NonZeroU16;

/// Change of a key: it waits with a weight, or waits no longer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyChange {
    /// Hash of the key and its class.
    pub key: u64,
    /// Hash of the class.
    pub class: u32,
    /// Weight, from 1 to [`MAX_WEIGHT`](crate::MAX_WEIGHT); 0: the key waits no longer.
    pub weight: u32,
}

/// Rules by which the keys of a queue are named to other gateways.
#[derive(Debug)]
pub(crate) struct Naming<K> {
    /// Hash of a key, the same at all gateways.
    pub(crate) name: fn(&K) -> u64,
    /// Hash of the queue's class.
    pub(crate) class: u32,
    /// Upper bound of the keys that are named.
    pub(crate) max_keys: usize,
}

/// Waiting keys of a queue, the named keys, and the weights that the store knows.
///
/// Of keys with equal weight, the ones with the highest names are named, so that all gateways name
/// the same keys.
#[derive(Debug)]
pub(crate) struct NamedKeys<K> {
    naming: Naming<K>,
    /// Weight and name of each waiting key, by its flow.
    waiting: HashMap<u32, (u32, u64)>,
    /// Flow of each waiting key, by name.
    flows: HashMap<u64, u32>,
    /// Weight and name of the named keys.
    named: BTreeSet<(u32, u64)>,
    /// Weight and name of the other waiting keys.
    others: BTreeSet<(u32, u64)>,
    /// Keys that were reported to the store, by name.
    reported: BTreeMap<u64, KnownKey>,
    /// Keys of which the store may have another weight.
    changed: BTreeSet<u64>,
    /// Name and weight of each change in the claim that is under way.
    sent: Vec<(u64, u32)>,
    /// Name from which the next changes are taken, so that all keys are reported in rotation.
    next: u64,
    /// Whether keys are reported as if none waited, because none can depart.
    is_hidden: bool,
}

/// Knowledge of the store about a key.
#[derive(Debug)]
struct KnownKey {
    /// Weight last reported to the store; `None` while its reply is missing.
    weight: Option<u32>,
    /// Number of gateways at which the key waits, as of the last reply.
    gateways: NonZeroU16,
}

impl<K> NamedKeys<K> {
    pub(super) fn new(naming: Naming<K>) -> Self {
        Self {
            naming,
            waiting: HashMap::new(),
            flows: HashMap::new(),
            named: BTreeSet::new(),
            others: BTreeSet::new(),
            reported: BTreeMap::new(),
            changed: BTreeSet::new(),
            sent: Vec::new(),
            next: 0,
            is_hidden: false,
        }
    }

    /// Records that a key begins to wait.
    ///
    /// Returns the last known number of gateways at which it waits.
    pub(super) fn began(&mut self, flow: u32, key: &K, weight: u32) -> NonZeroU16 {
        // The same key has another name in each class.
        let class = u64::from(self.naming.class).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let name = (self.naming.name)(key) ^ class;
        self.waiting.insert(flow, (weight, name));
        self.flows.insert(name, flow);
        self.add(weight, name);
        let reported = self.reported.get(&name);
        reported.map_or(NonZeroU16::MIN, |reported| reported.gateways)
    }

    /// Changes the weight of a waiting key.
    pub(super) fn set_weight(&mut self, flow: u32, weight: u32) {
        if let Some((known, name)) = self.waiting.get_mut(&flow) {
            let (before, name) = (std::mem::replace(known, weight), *name);
            self.remove(before, name);
            self.add(weight, name);
        }
    }

    /// Records that a key waits no longer.
    pub(super) fn ended(&mut self, flow: u32) {
        if let Some((weight, name)) = self.waiting.remove(&flow) {
            self.flows.remove(&name);
            self.remove(weight, name);
        }
    }

    /// Records that no key waits any more.
    pub(super) fn all_ended(&mut self) {
        self.waiting.clear();
        self.flows.clear();
        self.others.clear();
        let named = std::mem::take(&mut self.named);
        self.changed.extend(named.iter().map(|(_, name)| *name));
    }

    /// Names a waiting key. If too many keys are named then, the lightest one is not named any
    /// more.
    fn add(&mut self, weight: u32, name: u64) {
        self.named.insert((weight, name));
        self.changed.insert(name);
        if self.named.len() > self.naming.max_keys
            && let Some((weight, lightest)) = self.named.pop_first()
        {
            self.others.insert((weight, lightest));
            self.changed.insert(lightest);
        }
    }

    /// Removes a waiting key. If it was named, the heaviest of the others is named instead.
    fn remove(&mut self, weight: u32, name: u64) {
        if self.others.remove(&(weight, name)) || !self.named.remove(&(weight, name)) {
            return;
        }
        self.changed.insert(name);
        if let Some((weight, heaviest)) = self.others.pop_last() {
            self.named.insert((weight, heaviest));
            self.changed.insert(heaviest);
        }
    }

    /// Reports the keys as if none waited while `is_hidden`, because none of them can depart.
    pub(crate) fn hide(&mut self, is_hidden: bool) {
        if std::mem::replace(&mut self.is_hidden, is_hidden) != is_hidden {
            self.changed
                .extend(self.named.iter().map(|(_, name)| *name));
        }
    }

    /// Returns the weight to report for a key: 0 if it is not named, or if keys are hidden.
    fn weight(&self, name: u64) -> u32 {
        let flow = self.flows.get(&name).filter(|_| !self.is_hidden);
        let waiting = flow.and_then(|flow| self.waiting.get(flow));
        waiting.map_or(0, |(weight, name)| {
            let is_named = self.named.contains(&(*weight, *name));
            if is_named { *weight } else { 0 }
        })
    }

    /// Adds changes that the store does not know to the next claim, up to `limit` in all.
    pub(crate) fn take_changes(&mut self, limit: usize, changes: &mut Vec<KeyChange>) {
        while changes.len() < limit {
            let behind = self.changed.range(self.next..).next();
            let Some(name) = behind.or(self.changed.first()).copied() else {
                return;
            };
            self.changed.remove(&name);
            self.next = name.wrapping_add(1);
            let weight = self.weight(name);
            // A key that was not reported has the weight 0 at the store.
            let known = self.reported.get(&name).map_or(Some(0), |key| key.weight);
            if known == Some(weight) {
                continue;
            }
            let reported = self.reported.entry(name).or_insert(KnownKey {
                weight: None,
                gateways: NonZeroU16::MIN,
            });
            reported.weight = None;
            self.sent.push((name, weight));
            changes.push(KeyChange {
                key: name,
                class: self.naming.class,
                weight,
            });
        }
    }

    /// Records that the store has applied the changes of the claim that was under way.
    ///
    /// Returns the flows that wait and are no longer named.
    pub(super) fn record_applied(&mut self) -> Vec<u32> {
        let mut unnamed = Vec::new();
        for (name, weight) in self.sent.drain(..) {
            if weight == 0 {
                self.reported.remove(&name);
                unnamed.extend(self.flows.get(&name));
            } else if let Some(reported) = self.reported.get_mut(&name) {
                reported.weight = Some(weight);
            }
        }
        unnamed
    }

    /// Records that no reply came: the store may have applied the changes or not.
    pub(crate) fn unanswered(&mut self) {
        let sent = self.sent.drain(..);
        self.changed.extend(sent.map(|(name, _)| name));
    }

    /// Reports all keys again, because the store knows none of them.
    pub(super) fn forget_reported(&mut self) {
        self.sent.clear();
        self.reported.clear();
        self.changed = self.named.iter().map(|(_, name)| *name).collect();
    }

    /// Reports all keys again, because the store has lost some of them.
    pub(super) fn report_again(&mut self) {
        for (name, reported) in &mut self.reported {
            (reported.weight, reported.gateways) = (None, NonZeroU16::MIN);
            self.changed.insert(*name);
        }
    }

    /// Sets the number of gateways at which a key waits. Returns its flow if it is known and waits.
    pub(super) fn set_gateways_of_key(&mut self, name: u64, gateways: NonZeroU16) -> Option<u32> {
        self.reported.get_mut(&name)?.gateways = gateways;
        self.flows.get(&name).copied()
    }

    /// Returns the flows of all waiting keys.
    pub(super) fn waiting(&self) -> impl Iterator<Item = u32> {
        let mut flows: Vec<u32> = self.waiting.keys().copied().collect();
        flows.sort_unstable();
        flows.into_iter()
    }
}
