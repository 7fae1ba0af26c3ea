//! Sharing of a queue's classes and keys between gateways that have a common origin.
//!
//! A class or a key that waits at several gateways has a part of its weight at each, so that it
//! gets as much as at one gateway. To *name* a key is to report its hash and weight to the other
//! gateways.

use std::hash::Hash;

use super::{ClassQueue, STEPS};
use crate::fair_queue::{FairQueue, Naming, Tag};
use crate::to_whole;

/// Upper bound of the keys that are named, the heaviest first. Each class may name an equal part.
const MAX_NAMED: usize = 1000;

impl<K: Hash + Eq + Clone, W> ClassQueue<K, W> {
    /// Sets the part of each class's weight that counts here, by [hash](super::Class::hash).
    ///
    /// Where gateways share an origin, the part is the weight of the class's keys here, divided by
    /// the weight of all its keys. A class that is not listed counts in full.
    pub fn set_parts(&mut self, parts: &[(u32, f64)]) {
        for lane in &mut self.lanes {
            let hash = lane.class.hash();
            let part = parts.iter().find(|(class, _)| *class == hash);
            let part = part.map_or(1.0, |(_, part)| *part);
            let steps = to_whole((part * f64::from(STEPS)).round());
            let steps = steps.clamp(1, STEPS.into());
            lane.weight = Tag::from(lane.class.weight) * Tag::from(steps);
        }
    }

    /// Starts to record the changes of the waiting keys, for reports; `None` stops it.
    ///
    /// `name` returns the hash of a key, which is the same at all gateways. At first all keys count
    /// with their full weight, and each waiting key is a change.
    pub fn name_keys(&mut self, name: Option<fn(&K) -> u64>) {
        let max_keys = MAX_NAMED.div_ceil(self.named);
        for (index, lane) in self.lanes.iter_mut().enumerate() {
            // Classes that were removed from the file end soon.
            let naming = name.filter(|_| index < self.named);
            lane.queue.name_keys(naming.map(|name| Naming {
                name,
                class: lane.class.hash(),
                max_keys,
            }));
        }
    }

    /// Returns the queues of all classes, so that a caller can report their keys.
    pub(crate) fn queues(&mut self) -> impl Iterator<Item = &mut FairQueue<K, W>> {
        self.lanes.iter_mut().map(|lane| &mut lane.queue)
    }
}
