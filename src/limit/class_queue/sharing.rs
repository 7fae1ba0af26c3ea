//! What other gateways know of the keys of a queue, and which part of it they leave.

use std::hash::Hash;
use std::num::NonZeroU16;

use super::{ClassQueue, STEPS};
use crate::fair_queue::{KeyChange, Naming, Tag};

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
            let steps = part.map_or(STEPS, |(_, part)| {
                // From 1 to all: a double becomes the nearest number that fits.
                #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
                let steps = (part * f64::from(STEPS)).round() as u32;
                steps.clamp(1, STEPS)
            });
            lane.weight = Tag::from(lane.class.weight) * Tag::from(steps);
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

    /// Takes up to `most` changes for a claim.
    ///
    /// It is [answered](Self::changes_noted) or [not](Self::changes_unanswered) before the next one.
    pub fn take_changes(&mut self, most: usize) -> Vec<KeyChange> {
        let mut changes = Vec::new();
        for lane in &mut self.lanes {
            lane.queue.take_changes(most, &mut changes);
        }
        changes
    }

    /// Names no key while none of them can leave.
    pub fn hide_keys(&mut self, is_hidden: bool) {
        for lane in &mut self.lanes {
            lane.queue.hide_keys(is_hidden);
        }
    }

    /// The store has noted the changes that were taken last.
    pub fn changes_noted(&mut self) {
        for lane in &mut self.lanes {
            lane.queue.changes_noted();
        }
    }

    /// Nobody knows whether the store has noted the changes that were taken last: they are told
    /// again.
    pub fn changes_unanswered(&mut self) {
        for lane in &mut self.lanes {
            lane.queue.changes_unanswered();
        }
    }

    /// The store knows no key: all count whole, and are changes.
    pub fn forget_told(&mut self) {
        for lane in &mut self.lanes {
            lane.queue.forget_told();
        }
    }

    /// News of keys were lost: all count whole, and are changes, until the store tells again.
    pub fn tell_again(&mut self) {
        for lane in &mut self.lanes {
            lane.queue.tell_again();
        }
    }

    /// A key waits at so many gateways: it counts as one of so many equal parts here.
    pub fn waits_at(&mut self, key: u64, gateways: NonZeroU16) {
        for lane in &mut self.lanes {
            lane.queue.waits_at(key, gateways);
        }
    }
}
