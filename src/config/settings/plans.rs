//! Plans of a zone: a plan gives other limits to some keys, and each key has at most one plan.

use std::collections::HashMap;
use std::sync::Arc;

use foldhash::fast::RandomState;

use crate::Plan;
use crate::mask::mask_key;

/// Plans of a zone, with the plan of each key.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plans {
    /// All plans, in the order of the file.
    in_order: Arc<[Plan]>,
    /// Index of each key's plan.
    by_key: Arc<HashMap<Box<[u8]>, usize, RandomState>>,
    /// Whether a plan gives its keys a class.
    has_classes: bool,
}

impl Plans {
    /// Makes plans. `by_key`: the index of each key's plan.
    pub(crate) fn new(plans: Vec<Plan>, by_key: HashMap<Box<[u8]>, usize, RandomState>) -> Self {
        Self {
            has_classes: plans.iter().any(|plan| plan.class.is_some()),
            in_order: plans.into(),
            by_key: Arc::new(by_key),
        }
    }

    /// Returns the same plans with masked names instead of the keys in their lists.
    pub(super) fn masked(&self, zone: &str) -> Self {
        let mask = |key: &String| mask_key(zone, key.as_bytes());
        let masked = |plan: &Plan| Plan {
            keys: plan.keys.iter().map(mask).collect(),
            ..plan.clone()
        };
        Self {
            in_order: self.in_order.iter().map(masked).collect(),
            ..self.clone()
        }
    }

    /// Returns whether no key has a plan.
    pub fn is_empty(&self) -> bool {
        self.by_key.is_empty()
    }

    /// Returns whether a plan gives its keys a class: a group of requests at an origin's gate.
    pub fn have_classes(&self) -> bool {
        self.has_classes
    }

    /// Returns the plan of a key, if it has one.
    pub fn plan_of(&self, key: &[u8]) -> Option<&Plan> {
        self.get(self.index_of(key)?)
    }

    /// Returns the name of a key's plan, if it has one.
    pub fn name_of(&self, key: &[u8]) -> Option<&str> {
        self.plan_of(key).map(|plan| &*plan.name)
    }

    /// Returns the index of a key's plan in the order of the file, if it has one.
    pub fn index_of(&self, key: &[u8]) -> Option<usize> {
        self.by_key.get(key).copied()
    }

    /// Returns whether `other` has plans of the same rates and the same keys, in the same order.
    pub(crate) fn have_rates_of(&self, other: &Self) -> bool {
        let rates = |plans: &Self| -> Vec<_> { plans.iter().map(|plan| plan.rate).collect() };
        rates(self) == rates(other) && self.by_key == other.by_key
    }

    /// Returns the plan with this index.
    pub fn get(&self, index: usize) -> Option<&Plan> {
        self.in_order.get(index)
    }

    /// Returns the number of keys per plan, in the order of the file.
    pub fn counts(&self) -> Vec<usize> {
        let mut counts = vec![0; self.in_order.len()];
        for plan in self.by_key.values() {
            if let Some(count) = counts.get_mut(*plan) {
                *count += 1;
            }
        }
        counts
    }

    /// Returns the keys of the plan with this index, in any order.
    pub(crate) fn keys_of(&self, index: usize) -> impl Iterator<Item = &[u8]> {
        let keys = self.by_key.iter();
        let keys = keys.filter(move |(_, plan)| **plan == index);
        keys.map(|(key, _)| &**key)
    }

    /// Returns all plans, in the order of the file.
    pub fn iter(&self) -> impl Iterator<Item = &Plan> {
        self.in_order.iter()
    }
}
