//! Classes of traffic that share one stream of departures by weight. Within a class, keys do.
//!
//! The rule between classes is that between keys (see [`FairQueue`]): no class has priority, so
//! none starves.

#[cfg(test)]
mod newcomers;
mod sharing;
#[cfg(test)]
mod tests;

use std::hash::Hash;
use std::sync::Arc;

use super::fair_queue::{FairQueue, Next, Position, Tag, UNIT};

/// The largest weight of a class.
pub const MAX_CLASS_WEIGHT: u32 = 1000;

/// A class of traffic at a gate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Class {
    /// Its name in the file.
    pub name: Arc<str>,
    /// Its share of the origin against other classes, from 1 to [`MAX_CLASS_WEIGHT`].
    pub weight: u32,
}

impl Class {
    /// A short name for its name, the same in all gateways and versions: FNV-1a.
    pub fn hash(&self) -> u32 {
        self.name.bytes().fold(0x811c_9dc5, |hash, byte| {
            (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
        })
    }
}

/// In how many steps a class may have a part of its weight.
const STEPS: u32 = 1000;

/// Whose share of a gate a request takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Share<K> {
    /// The name of its class. One that the gate does not have stands for the first.
    pub class: Arc<str>,
    /// Its key.
    pub key: K,
    /// The weight of its key within the class, from 1 to [`MAX_WEIGHT`](super::MAX_WEIGHT).
    pub weight: u32,
    /// How many more requests of its key may wait above `queue`: those that are held back.
    pub above_queue: u32,
}

impl<K> Share<K> {
    /// The share of a key of weight 1, where there are no classes.
    pub fn of(key: K) -> Self {
        Self {
            class: Arc::from(""),
            key,
            weight: 1,
            above_queue: 0,
        }
    }
}

/// The requests that wait for an origin, by class and key.
#[derive(Debug)]
pub struct ClassQueue<K, W> {
    /// The first stands for all classes that are not here. There is always one.
    lanes: Vec<Lane<K, W>>,
    /// How many of the lanes are of the file. Those behind have left it, and end when nothing
    /// waits.
    named: usize,
    /// The tag of the last departure.
    now: Tag,
    /// How often a tag was set.
    sets: u64,
}

#[derive(Debug)]
struct Lane<K, W> {
    class: Class,
    /// Its weight here in [`STEPS`]: all of it, or the part that other gateways leave.
    weight: Tag,
    queue: FairQueue<K, W>,
    /// The tag of its first waiter, and when it was set.
    first: (Tag, u64),
    /// The end of its last departure.
    end: Tag,
}

/// The position of a waiter in a [`ClassQueue`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClassPosition {
    class: Arc<str>,
    position: Position,
}

impl<K: Hash + Eq + Clone, W> Lane<K, W> {
    fn new(class: Class) -> Self {
        Self {
            weight: Tag::from(class.weight) * Tag::from(STEPS),
            class,
            queue: FairQueue::default(),
            first: (0, 0),
            end: 0,
        }
    }

    /// What a cost is in tags.
    fn span(&self, cost: u64) -> Tag {
        UNIT * Tag::from(cost) * Tag::from(STEPS) / self.weight
    }

    /// Whole costs that leave by `tag`, if nobody else comes.
    fn through(&self, tag: Tag) -> u64 {
        let Some(ahead) = tag.checked_sub(self.first.0) else {
            return 0;
        };
        let costs = ahead.saturating_mul(self.weight) / (UNIT * Tag::from(STEPS)) + 1;
        let costs = u64::try_from(costs).unwrap_or(u64::MAX);
        costs.min(self.queue.costs())
    }
}

/// The class of all requests where the file has none.
fn only() -> Class {
    Class {
        name: Arc::from(""),
        weight: 1,
    }
}

impl<K: Hash + Eq + Clone, W> Default for ClassQueue<K, W> {
    fn default() -> Self {
        Self {
            lanes: vec![Lane::new(only())],
            named: 1,
            now: 0,
            sets: 0,
        }
    }
}

impl<K: Hash + Eq + Clone, W> ClassQueue<K, W> {
    /// Shares between these classes from now on. The first stands for all others.
    ///
    /// Requests that wait in a class which is not among them stay there, with its weight.
    pub fn set_classes(&mut self, classes: &[Class]) {
        let mut before = std::mem::take(&mut self.lanes);
        let only = [only()];
        let classes = if classes.is_empty() { &only } else { classes };
        for class in classes {
            let known = before.iter().position(|lane| lane.class.name == class.name);
            let mut lane = match known {
                Some(known) => before.swap_remove(known),
                None => Lane::new(class.clone()),
            };
            lane.class.weight = class.weight;
            lane.weight = Tag::from(class.weight) * Tag::from(STEPS);
            self.lanes.push(lane);
        }
        self.named = self.lanes.len();
        self.lanes.append(&mut before);
        self.forget();
    }

    /// Number of waiters.
    pub fn len(&self) -> usize {
        self.lanes.iter().map(|lane| lane.queue.len()).sum()
    }

    /// What all waiters cost together.
    pub fn costs(&self) -> u64 {
        self.lanes.iter().map(|lane| lane.queue.costs()).sum()
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.lanes.iter().all(|lane| lane.queue.is_empty())
    }

    /// The classes of the file, each with its number of waiters.
    pub fn classes(&self) -> impl Iterator<Item = (&Class, usize)> {
        let named = self.lanes.iter().take(self.named);
        named.map(|lane| (&lane.class, lane.queue.len()))
    }

    /// The classes that have waiters: each with the weights of all its keys that wait together, and
    /// with its number of waiters.
    pub fn weights(&self) -> impl Iterator<Item = (&Class, u64, usize)> {
        let waiting = self.lanes.iter().filter(|lane| !lane.queue.is_empty());
        waiting.map(|lane| (&lane.class, lane.queue.weights(), lane.queue.len()))
    }

    /// Number of waiters of a key, in all classes.
    pub fn depth(&self, key: &K) -> usize {
        self.lanes.iter().map(|lane| lane.queue.depth(key)).sum()
    }

    /// Whether one more request of a key may wait.
    ///
    /// It may while its key has fewer waiters than `queue`, and fewer than are left of `max_queue`.
    /// So one key alone takes at most half of `max_queue`, and leaves room for others. If `queue`
    /// is `None`, all requests may fill `max_queue` together.
    pub fn has_room(&self, key: &K, queue: Option<usize>, max_queue: usize) -> bool {
        let left = max_queue.saturating_sub(self.len());
        queue.map_or(left > 0, |queue| self.depth(key) < queue.min(left))
    }

    /// Adds a waiter. `cost` is at least 1.
    pub fn join(&mut self, share: &Share<K>, cost: u32, waiter: W) -> ClassPosition {
        let index = self.index(&share.class);
        if self.lanes[index].queue.is_empty() {
            let tag = self.begin(index);
            self.set_tag(index, tag);
        }
        let lane = &mut self.lanes[index];
        ClassPosition {
            class: Arc::clone(&lane.class.name),
            position: lane.queue.join(&share.key, share.weight, cost, waiter),
        }
    }

    /// Moves a waiter ahead of those of its class and key behind which it does not belong.
    pub fn advance(&mut self, at: &ClassPosition, is_behind: impl Fn(&W) -> bool) {
        let mut lanes = self.lanes.iter_mut();
        if let Some(lane) = lanes.find(|lane| lane.class.name == at.class) {
            lane.queue.advance(at.position, is_behind);
        }
    }

    /// Charges a class and a key for a request that leaves at once, while nothing waits.
    pub fn depart(&mut self, share: &Share<K>, cost: u32) {
        let index = self.index(&share.class);
        self.now = self.begin(index);
        let lane = &mut self.lanes[index];
        lane.end = self.now + lane.span(cost.into());
        lane.queue.depart(&share.key, share.weight, cost);
    }

    /// Counts no departure against its class and key any more. Nothing may wait.
    pub fn restart(&mut self) {
        self.now = 0;
        for lane in &mut self.lanes {
            lane.end = 0;
            lane.queue.restart();
        }
    }

    /// Takes the waiter that leaves next.
    pub fn take(&mut self) -> Option<Next<K, W>> {
        let lanes = self.lanes.iter().enumerate();
        let waiting = lanes.filter(|(_, lane)| !lane.queue.is_empty());
        let (index, _) = waiting.min_by_key(|(_, lane)| lane.first)?;
        let lane = &mut self.lanes[index];
        let next = lane.queue.take()?;
        self.now = lane.first.0;
        lane.end = self.now + lane.span(next.cost.into());
        let end = lane.end;
        self.set_tag(index, end);
        self.forget();
        Some(next)
    }

    /// Removes a waiter that leaves before its turn. Those behind it move up.
    pub fn leave(&mut self, at: &ClassPosition) -> Option<W> {
        let mut lanes = self.lanes.iter_mut();
        let lane = lanes.find(|lane| lane.class.name == at.class)?;
        let left = lane.queue.leave(at.position);
        self.forget();
        left
    }

    /// Whole costs that leave before one more request of this share would, if nobody else comes.
    ///
    /// Where tags are equal, all others are taken to leave first.
    pub fn ahead_of_new(&self, share: &Share<K>) -> u64 {
        let index = self.index(&share.class);
        self.ahead(index, self.lanes[index].queue.ahead_of_new(&share.key))
    }

    /// Whole costs that leave before the waiter of this share that has `nth` others of it ahead.
    ///
    /// Those ahead are taken to cost 1 each. `None` if none of this share waits.
    pub fn ahead_of_nth(&self, share: &Share<K>, nth: u32) -> Option<u64> {
        let index = self.index(&share.class);
        let own = self.lanes[index].queue.ahead_of_nth(&share.key, nth)?;
        Some(self.ahead(index, own))
    }

    /// A part of the keys that have waiters, with how many, in no order.
    ///
    /// The part begins at `from`, a class and a position in it, and takes at most `most` steps.
    /// Returns where the next part begins; `None` after the last one.
    pub fn depths(
        &self,
        (class, from): (usize, usize),
        most: usize,
        see: impl FnMut(&K, usize),
    ) -> Option<(usize, usize)> {
        let next = self.lanes.get(class)?.queue.depths(from, most, see);
        let next_class = (class + 1 < self.lanes.len()).then_some((class + 1, 0));
        next.map(|next| (class, next)).or(next_class)
    }

    /// Removes all waiters, those of a class in their order.
    pub fn clear(&mut self) -> Vec<W> {
        let lanes = self.lanes.iter_mut();
        let waiters = lanes.flat_map(|lane| lane.queue.clear()).collect();
        self.forget();
        self.restart();
        waiters
    }

    fn index(&self, class: &str) -> usize {
        let mut named = self.lanes.iter().take(self.named);
        let found = named.position(|lane| *lane.class.name == *class);
        found.unwrap_or_default()
    }

    /// The tag of a class without waiters that gets one now.
    fn begin(&mut self, index: usize) -> Tag {
        let lane = &mut self.lanes[index];
        if lane.end <= self.now {
            // The class was idle: its keys begin anew, as all keys do at an idle gate.
            lane.queue.restart();
        }
        self.now.max(lane.end)
    }

    fn set_tag(&mut self, index: usize, tag: Tag) {
        self.sets += 1;
        self.lanes[index].first = (tag, self.sets);
    }

    /// Whole costs of all classes that leave before a request of one, with `own` of it ahead.
    fn ahead(&self, index: usize, own: u64) -> u64 {
        let lane = &self.lanes[index];
        let first = if lane.queue.is_empty() {
            lane.end.max(self.now)
        } else {
            lane.first.0
        };
        let tag = first + lane.span(own);
        let others = self.lanes.iter().enumerate();
        let others = others.filter(|(other, _)| *other != index);
        own + others.map(|(_, other)| other.through(tag)).sum::<u64>()
    }

    /// Forgets classes that have left the file and have no waiters.
    fn forget(&mut self) {
        let named = self.named;
        let mut index = 0;
        self.lanes.retain(|lane| {
            index += 1;
            index <= named || !lane.queue.is_empty()
        });
    }
}
