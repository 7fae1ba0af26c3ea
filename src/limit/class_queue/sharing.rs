//! What other gateways know of the keys of a queue, and which part of it they leave.

use std::hash::Hash;

use super::{ClassQueue, STEPS};
use crate::fair_queue::{FairQueue, Naming, Tag};
use crate::to_whole;

/// Most keys that are named to other gateways: the heaviest. Classes have equal parts of them.
const MAX_NAMED: usize = 1000;

impl<K: Hash + Eq + Clone, W> ClassQueue<K, W> {
    /// Counts only these parts of the classes' weights from now on, by their [hashes](super::Class::hash).
    ///
    /// Where gateways share an origin, a class has the part of its weight that its keys here have
    /// of all its keys. A class that is not named has all of it.
    pub fn set_parts(&mut self, parts: &[(u32, f64)]) {
        for lane in &mut self.lanes {
            let hash = lane.class.hash();
            let part = parts.iter().find(|(class, _)| *class == hash);
            let all = u64::from(STEPS);
            let steps = part.map_or(all, |(_, part)| to_whole((part * f64::from(STEPS)).round()));
            lane.weight = Tag::from(lane.class.weight) * Tag::from(steps.clamp(1, all));
        }
    }

    /// Notes changes of the keys that wait from now on, or not any more.
    ///
    /// `name` is what a key hashes to, at all gateways alike. All keys count whole at first, and
    /// those that wait are changes.
    pub fn name_keys(&mut self, name: Option<fn(&K) -> u64>) {
        let most = MAX_NAMED.div_ceil(self.named);
        for (index, lane) in self.lanes.iter_mut().enumerate() {
            // Those that have left the file end soon.
            let naming = name.filter(|_| index < self.named);
            lane.queue.name_keys(naming.map(|name| Naming {
                name,
                class: lane.class.hash(),
                most,
            }));
        }
    }

    /// The queues of all classes, to name their keys.
    pub(crate) fn queues(&mut self) -> impl Iterator<Item = &mut FairQueue<K, W>> {
        self.lanes.iter_mut().map(|lane| &mut lane.queue)
    }
}
