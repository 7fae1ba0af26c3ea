use std::collections::HashMap;
use std::sync::Arc;

use foldhash::fast::RandomState;

use crate::Plan;
use crate::mask::mask_key;

/// The plans of a zone, and which key has which.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plans {
    in_order: Arc<[Plan]>,
    by_key: Arc<HashMap<Box<[u8]>, usize, RandomState>>,
    has_classes: bool,
}

impl Plans {
    /// Plans with an index into them for each key that has one.
    pub(crate) fn new(plans: Vec<Plan>, by_key: HashMap<Box<[u8]>, usize, RandomState>) -> Self {
        Self {
            has_classes: plans.iter().any(|plan| plan.class.is_some()),
            in_order: plans.into(),
            by_key: Arc::new(by_key),
        }
    }

    /// The same plans, with masked names in place of the keys in the list of each.
    pub(super) fn masked(&self, zone: &str) -> Self {
        let masked = |plan: &Plan| Plan {
            keys: plan
                .keys
                .iter()
                .map(|key| mask_key(zone, key.as_bytes()))
                .collect(),
            ..plan.clone()
        };
        Self {
            in_order: self.in_order.iter().map(masked).collect(),
            ..self.clone()
        }
    }

    /// Whether no key has a plan.
    pub fn is_empty(&self) -> bool {
        self.by_key.is_empty()
    }

    /// Whether a plan gives its keys a class.
    pub fn have_classes(&self) -> bool {
        self.has_classes
    }

    /// The plan of a key, if it has one.
    pub fn of(&self, key: &[u8]) -> Option<&Plan> {
        self.get(self.index_of(key)?)
    }

    /// The name of the plan of a key, if it has one.
    pub fn name_of(&self, key: &[u8]) -> Option<&str> {
        self.of(key).map(|plan| &*plan.name)
    }

    /// The index of a key's plan in the order of the file, if it has one.
    pub fn index_of(&self, key: &[u8]) -> Option<usize> {
        self.by_key.get(key).copied()
    }

    /// Whether each key has the same rate as under other plans.
    pub(crate) fn have_rates_of(&self, other: &Self) -> bool {
        let rates = |plans: &Self| -> Vec<_> { plans.iter().map(|plan| plan.rate).collect() };
        rates(self) == rates(other) && self.by_key == other.by_key
    }

    /// The plan with this index.
    pub fn get(&self, index: usize) -> Option<&Plan> {
        self.in_order.get(index)
    }

    /// How many keys each plan has, in the order of the file.
    pub fn counts(&self) -> Vec<usize> {
        let mut counts = vec![0; self.in_order.len()];
        for plan in self.by_key.values() {
            if let Some(count) = counts.get_mut(*plan) {
                *count += 1;
            }
        }
        counts
    }

    /// The keys that have the plan with this index, in any order.
    pub(crate) fn keys_of(&self, index: usize) -> impl Iterator<Item = &[u8]> {
        let keys = self.by_key.iter();
        keys.filter(move |(_, plan)| **plan == index)
            .map(|(key, _)| &**key)
    }

    /// All plans, in the order of the file.
    pub fn iter(&self) -> impl Iterator<Item = &Plan> {
        self.in_order.iter()
    }
}
