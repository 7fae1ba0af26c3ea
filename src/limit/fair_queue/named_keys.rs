//! The keys that wait in a queue, as the store that gateways share knows them.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::num::NonZeroU16;

/// A key of a queue waits, or waits no longer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyChange {
    /// What its name and its class's name hash to.
    pub key: u64,
    /// What its class's name hashes to.
    pub class: u32,
    /// Its weight, from 1 to [`MAX_WEIGHT`](crate::MAX_WEIGHT); 0: it waits no longer.
    pub weight: u32,
}

/// How the keys of a queue are named to other gateways.
#[derive(Debug)]
pub(crate) struct Naming<K> {
    /// What a key hashes to, the same at all gateways.
    pub(crate) name: fn(&K) -> u64,
    /// What the class of the queue hashes to.
    pub(crate) class: u32,
    /// Most keys that are named.
    pub(crate) most: usize,
}

/// Which keys wait, which of them are named, and what the store knows of them.
///
/// The heaviest are named; of equal weight, those whose hashes are highest, so that gateways name
/// the same ones.
#[derive(Debug)]
pub(crate) struct NamedKeys<K> {
    naming: Naming<K>,
    /// The keys that wait, by their flow: weight and name.
    waiting: HashMap<u32, (u32, u64)>,
    flows: HashMap<u64, u32>,
    named: BTreeSet<(u32, u64)>,
    others: BTreeSet<(u32, u64)>,
    told: BTreeMap<u64, KnownKey>,
    /// Keys that the store may know otherwise.
    changed: BTreeSet<u64>,
    /// What a claim tells that is under way.
    sent: Vec<(u64, u32)>,
    /// Where the next changes are taken from: all have their turns.
    next: u64,
    /// Whether no key is named for now.
    is_hidden: bool,
}

/// What the store knows of a key.
#[derive(Debug)]
struct KnownKey {
    /// The weight that it was told; `None` if an answer is missing.
    weight: Option<u32>,
    /// At how many gateways the key waits, as last heard.
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
            told: BTreeMap::new(),
            changed: BTreeSet::new(),
            sent: Vec::new(),
            next: 0,
            is_hidden: false,
        }
    }

    /// A key begins to wait. Returns at how many gateways it waits, as far as is known.
    pub(super) fn began(&mut self, flow: u32, key: &K, weight: u32) -> NonZeroU16 {
        let class = u64::from(self.naming.class).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let name = (self.naming.name)(key) ^ class;
        self.waiting.insert(flow, (weight, name));
        self.flows.insert(name, flow);
        self.add(weight, name);
        let told = self.told.get(&name);
        told.map_or(NonZeroU16::MIN, |told| told.gateways)
    }

    /// A key that waits has another weight.
    pub(super) fn weighs(&mut self, flow: u32, weight: u32) {
        if let Some((known, name)) = self.waiting.get_mut(&flow) {
            let (before, name) = (std::mem::replace(known, weight), *name);
            self.remove(before, name);
            self.add(weight, name);
        }
    }

    /// A key waits no longer.
    pub(super) fn ended(&mut self, flow: u32) {
        if let Some((weight, name)) = self.waiting.remove(&flow) {
            self.flows.remove(&name);
            self.remove(weight, name);
        }
    }

    /// No key waits any more.
    pub(super) fn all_ended(&mut self) {
        self.waiting.clear();
        self.flows.clear();
        self.others.clear();
        let named = std::mem::take(&mut self.named);
        self.changed.extend(named.iter().map(|(_, name)| *name));
    }

    fn add(&mut self, weight: u32, name: u64) {
        self.named.insert((weight, name));
        self.changed.insert(name);
        if self.named.len() > self.naming.most
            && let Some((weight, lightest)) = self.named.pop_first()
        {
            self.others.insert((weight, lightest));
            self.changed.insert(lightest);
        }
    }

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

    /// Names no key while it is hidden: none of them can leave.
    pub(crate) fn hide(&mut self, is_hidden: bool) {
        if std::mem::replace(&mut self.is_hidden, is_hidden) != is_hidden {
            self.changed
                .extend(self.named.iter().map(|(_, name)| *name));
        }
    }

    /// The weight of a key that is named; 0: it is not.
    fn weight(&self, name: u64) -> u32 {
        let flow = self.flows.get(&name).filter(|_| !self.is_hidden);
        let waiting = flow.and_then(|flow| self.waiting.get(flow));
        waiting.map_or(0, |(weight, name)| {
            let is_named = self.named.contains(&(*weight, *name));
            if is_named { *weight } else { 0 }
        })
    }

    /// Takes up to `most` changes that the store has to be told, for the next claim.
    pub(crate) fn take_changes(&mut self, most: usize, changes: &mut Vec<KeyChange>) {
        while changes.len() < most {
            let behind = self.changed.range(self.next..).next();
            let Some(name) = behind.or(self.changed.first()).copied() else {
                return;
            };
            self.changed.remove(&name);
            self.next = name.wrapping_add(1);
            let weight = self.weight(name);
            let told = self.told.get_mut(&name);
            let known = told.as_ref().map_or(Some(0), |told| told.weight);
            if known == Some(weight) {
                continue;
            }
            if let Some(told) = told {
                told.weight = None;
            } else {
                let gateways = NonZeroU16::MIN;
                let weight = None;
                self.told.insert(name, KnownKey { weight, gateways });
            }
            self.sent.push((name, weight));
            changes.push(KeyChange {
                key: name,
                class: self.naming.class,
                weight,
            });
        }
    }

    /// The store has noted the changes of the claim that was under way.
    ///
    /// Returns the flows that wait and are named no longer.
    pub(super) fn noted(&mut self) -> Vec<u32> {
        let mut unnamed = Vec::new();
        for (name, weight) in self.sent.drain(..) {
            if weight == 0 {
                self.told.remove(&name);
                unnamed.extend(self.flows.get(&name));
            } else if let Some(told) = self.told.get_mut(&name) {
                told.weight = Some(weight);
            }
        }
        unnamed
    }

    /// Nobody answered: the store may have noted the changes or not.
    pub(crate) fn unanswered(&mut self) {
        let sent = self.sent.drain(..);
        self.changed.extend(sent.map(|(name, _)| name));
    }

    /// The store knows none of the keys: all are told again.
    pub(super) fn forget_told(&mut self) {
        self.sent.clear();
        self.told.clear();
        self.changed = self.named.iter().map(|(_, name)| *name).collect();
    }

    /// All keys are told again, as the store has lost news of them.
    pub(super) fn tell_again(&mut self) {
        for (name, told) in &mut self.told {
            (told.weight, told.gateways) = (None, NonZeroU16::MIN);
            self.changed.insert(*name);
        }
    }

    /// A key waits at so many gateways. Returns its flow if it is known and waits.
    pub(super) fn waits_at(&mut self, name: u64, gateways: NonZeroU16) -> Option<u32> {
        self.told.get_mut(&name)?.gateways = gateways;
        self.flows.get(&name).copied()
    }

    /// The flows of all keys that wait.
    pub(super) fn waiting(&self) -> impl Iterator<Item = u32> {
        let mut flows: Vec<u32> = self.waiting.keys().copied().collect();
        flows.sort_unstable();
        flows.into_iter()
    }
}
