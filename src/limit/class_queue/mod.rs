//! Queue of classes that share one stream of departures by weight. Within a class, keys share.
//!
//! The rule between classes is the rule between keys (see [`FairQueue`]). No class has priority, so
//! none starves. A *tag* is an instant in the order of departures: the waiter with the smallest tag
//! departs next. Its *end* is its tag plus its cost divided by the weight, and is the tag of the
//! next waiter. A *part* is the share of a class's weight that counts here, where several gateways
//! share an origin: see `sharing`.

#[cfg(test)]
mod newcomers;
mod sharing;
#[cfg(test)]
mod tests;

use std::hash::Hash;
use std::sync::Arc;

use super::fair_queue::{FairQueue, Next, Position, Tag, UNIT};

/// Largest weight of a class.
pub const MAX_CLASS_WEIGHT: u32 = 1000;

/// Class of traffic at a gate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Class {
    /// Name in the file.
    pub name: Arc<str>,
    /// Share of the origin against other classes, from 1 to [`MAX_CLASS_WEIGHT`].
    pub weight: u32,
}

impl Class {
    /// Returns the FNV-1a hash of the name, which is the same in all gateways and versions.
    pub fn hash(&self) -> u32 {
        self.name.bytes().fold(0x811c_9dc5, |hash, byte| {
            (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
        })
    }
}

/// Number of steps into which a class's weight can be divided between gateways.
const STEPS: u32 = 1000;

/// Class, key and weight on whose account a request joins a gate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Share<K> {
    /// Name of the class. A name that the gate does not have stands for its first class.
    pub class: Arc<str>,
    /// Key of the request.
    pub key: K,
    /// Weight of the key within the class, from 1 to [`MAX_WEIGHT`](super::MAX_WEIGHT).
    pub weight: u32,
    /// Number of waiters that the key may have above `queue`: HTTP/2 requests (`hold_streams`).
    pub above_queue: u32,
}

impl<K> Share<K> {
    /// Returns the share of a key of weight 1, for a gate without classes.
    pub fn of(key: K) -> Self {
        Self {
            class: Arc::from(""),
            key,
            weight: 1,
            above_queue: 0,
        }
    }
}

/// Waiters of an origin, by class and key. `K` is a key, and `W` a waiter.
#[derive(Debug)]
pub struct ClassQueue<K, W> {
    /// One lane per class. There is always a first lane; it serves all unknown classes too.
    lanes: Vec<Lane<K, W>>,
    /// Number of lanes whose class is in the file.
    ///
    /// Classes of the lanes behind were removed from the file. These lanes are dropped when they
    /// have no waiters.
    named: usize,
    /// Tag of the last departure.
    now: Tag,
    /// Number of times that a tag was set. Of equal tags, the one that was set first departs first.
    tag_count: u64,
}

/// A class and its waiters.
#[derive(Debug)]
struct Lane<K, W> {
    class: Class,
    /// Weight of the class times the steps of [`STEPS`] that count here.
    weight: Tag,
    queue: FairQueue<K, W>,
    /// Tag of the first waiter, and the value of `tag_count` when the tag was set.
    first: (Tag, u64),
    /// End of the last departure.
    end: Tag,
}

/// Position of a waiter in a [`ClassQueue`].
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

    /// Converts a cost to a difference of tags: the cost divided by the weight.
    fn cost_in_tags(&self, cost: u64) -> Tag {
        UNIT * Tag::from(cost) * Tag::from(STEPS) / self.weight
    }

    /// Returns the costs of this class that depart by `tag`, in whole requests, if no other joins.
    fn costs_by(&self, tag: Tag) -> u64 {
        let Some(ahead) = tag.checked_sub(self.first.0) else {
            return 0;
        };
        let costs = ahead.saturating_mul(self.weight) / (UNIT * Tag::from(STEPS)) + 1;
        let costs = u64::try_from(costs).unwrap_or(u64::MAX);
        costs.min(self.queue.costs())
    }
}

/// Returns the only class of a gate without classes in the file.
fn only_class() -> Class {
    Class {
        name: Arc::from(""),
        weight: 1,
    }
}

impl<K: Hash + Eq + Clone, W> Default for ClassQueue<K, W> {
    fn default() -> Self {
        Self {
            lanes: vec![Lane::new(only_class())],
            named: 1,
            now: 0,
            tag_count: 0,
        }
    }
}

impl<K: Hash + Eq + Clone, W> ClassQueue<K, W> {
    /// Replaces the classes. The first one serves all unknown classes too.
    ///
    /// Waiters of a class that is removed stay in it, with its weight.
    pub fn set_classes(&mut self, classes: &[Class]) {
        let mut before = std::mem::take(&mut self.lanes);
        let only = [only_class()];
        let classes = if classes.is_empty() { &only } else { classes };
        for class in classes {
            let known = before.iter().position(|lane| lane.class.name == class.name);
            let mut lane = Lane::new(class.clone());
            if let Some(known) = known {
                let known = before.swap_remove(known);
                (lane.queue, lane.first, lane.end) = (known.queue, known.first, known.end);
            }
            self.lanes.push(lane);
        }
        self.named = self.lanes.len();
        self.lanes.append(&mut before);
        self.drop_removed_classes();
    }

    /// Returns the number of waiters.
    pub fn len(&self) -> usize {
        self.lanes.iter().map(|lane| lane.queue.len()).sum()
    }

    /// Returns the sum of the costs of all waiters.
    pub fn costs(&self) -> u64 {
        self.lanes.iter().map(|lane| lane.queue.costs()).sum()
    }

    /// Returns whether there are no waiters.
    pub fn is_empty(&self) -> bool {
        self.lanes.iter().all(|lane| lane.queue.is_empty())
    }

    /// Returns the classes of the file, each with its number of waiters.
    pub fn classes(&self) -> impl Iterator<Item = (&Class, usize)> {
        let named = self.lanes.iter().take(self.named);
        named.map(|lane| (&lane.class, lane.queue.len()))
    }

    /// Returns the classes that have waiters.
    ///
    /// Each comes with the sum of the weights of its waiting keys, and with its number of waiters.
    pub fn weights(&self) -> impl Iterator<Item = (&Class, u64, usize)> {
        let waiting = self.lanes.iter().filter(|lane| !lane.queue.is_empty());
        waiting.map(|lane| (&lane.class, lane.queue.weights(), lane.queue.len()))
    }

    /// Returns the number of waiters of a key, in all classes.
    pub fn depth(&self, key: &K) -> usize {
        self.lanes.iter().map(|lane| lane.queue.depth(key)).sum()
    }

    /// Returns whether one more request of a key may wait.
    ///
    /// The key must have fewer waiters than `queue`, and fewer than are free of `max_queue`. So one
    /// key alone takes at most half of `max_queue`, and leaves room for others. If `queue` is
    /// `None`, only `max_queue` counts.
    pub fn has_room(&self, key: &K, queue: Option<usize>, max_queue: usize) -> bool {
        let free = max_queue.saturating_sub(self.len());
        queue.map_or(free > 0, |queue| self.depth(key) < queue.min(free))
    }

    /// Adds a waiter. `cost` is at least 1.
    pub fn join(&mut self, share: &Share<K>, cost: u32, waiter: W) -> ClassPosition {
        let index = self.lane_index(&share.class);
        if self.lanes[index].queue.is_empty() {
            let tag = self.first_tag(index);
            self.set_tag(index, tag);
        }
        let lane = &mut self.lanes[index];
        ClassPosition {
            class: Arc::clone(&lane.class.name),
            position: lane.queue.join(&share.key, share.weight, cost, waiter),
        }
    }

    /// Moves a waiter ahead of the waiters of its class and key for which `is_behind` is true.
    pub fn advance(&mut self, at: &ClassPosition, is_behind: impl Fn(&W) -> bool) {
        let mut lanes = self.lanes.iter_mut();
        if let Some(lane) = lanes.find(|lane| lane.class.name == at.class) {
            lane.queue.advance(at.position, is_behind);
        }
    }

    /// Charges a class and a key for a request that departs at once. There must be no waiters.
    pub fn depart(&mut self, share: &Share<K>, cost: u32) {
        let index = self.lane_index(&share.class);
        self.now = self.first_tag(index);
        let lane = &mut self.lanes[index];
        lane.end = self.now + lane.cost_in_tags(cost.into());
        lane.queue.depart(&share.key, share.weight, cost);
    }

    /// Ignores all earlier departures from now on. There must be no waiters.
    pub fn restart(&mut self) {
        self.now = 0;
        for lane in &mut self.lanes {
            lane.end = 0;
            lane.queue.restart();
        }
    }

    /// Removes and returns the waiter that departs next.
    pub fn take(&mut self) -> Option<Next<K, W>> {
        let lanes = self.lanes.iter().enumerate();
        let waiting = lanes.filter(|(_, lane)| !lane.queue.is_empty());
        let (index, _) = waiting.min_by_key(|(_, lane)| lane.first)?;
        let lane = &mut self.lanes[index];
        let next = lane.queue.take()?;
        self.now = lane.first.0;
        lane.end = self.now + lane.cost_in_tags(next.cost.into());
        let end = lane.end;
        self.set_tag(index, end);
        self.drop_removed_classes();
        Some(next)
    }

    /// Removes a waiter that disconnected or expired. The waiters behind it move up.
    pub fn leave(&mut self, at: &ClassPosition) -> Option<W> {
        let mut lanes = self.lanes.iter_mut();
        let lane = lanes.find(|lane| lane.class.name == at.class)?;
        let waiter = lane.queue.leave(at.position);
        self.drop_removed_classes();
        waiter
    }

    /// Returns the costs that depart before a new request of `share`, if no other request joins.
    ///
    /// In whole requests. Waiters with an equal tag are assumed to depart first.
    pub fn ahead_of_new(&self, share: &Share<K>) -> u64 {
        let index = self.lane_index(&share.class);
        self.ahead(index, self.lanes[index].queue.ahead_of_new(&share.key))
    }

    /// Returns the costs that depart before the waiter of `share` that has `nth` others ahead.
    ///
    /// In whole requests. Each waiter ahead is assumed to cost 1. `None` if `share` has no waiters.
    pub fn ahead_of_nth(&self, share: &Share<K>, nth: u32) -> Option<u64> {
        let index = self.lane_index(&share.class);
        let own = self.lanes[index].queue.ahead_of_nth(&share.key, nth)?;
        Some(self.ahead(index, own))
    }

    /// Calls `visit` for some of the keys that have waiters, with their number of waiters.
    ///
    /// Begins at the position `from` in a class (index), and takes at most `max_steps` steps. Keys
    /// are in any order. Returns where the next call must begin, or `None` after the last key. The
    /// first call begins at `(0, 0)`.
    pub fn depths(
        &self,
        (class, from): (usize, usize),
        max_steps: usize,
        visit: impl FnMut(&K, usize),
    ) -> Option<(usize, usize)> {
        let next = self.lanes.get(class)?.queue.depths(from, max_steps, visit);
        let next_class = (class + 1 < self.lanes.len()).then_some((class + 1, 0));
        next.map(|next| (class, next)).or(next_class)
    }

    /// Removes and returns all waiters. Waiters of one class are in their order.
    pub fn clear(&mut self) -> Vec<W> {
        let lanes = self.lanes.iter_mut();
        let waiters = lanes.flat_map(|lane| lane.queue.clear()).collect();
        self.drop_removed_classes();
        self.restart();
        waiters
    }

    /// Returns the index of the lane of a class: the first one for an unknown class.
    fn lane_index(&self, class: &str) -> usize {
        let mut named = self.lanes.iter().take(self.named);
        let found = named.position(|lane| *lane.class.name == *class);
        found.unwrap_or_default()
    }

    /// Returns the tag of the first waiter of a class that had no waiters.
    fn first_tag(&mut self, index: usize) -> Tag {
        let lane = &mut self.lanes[index];
        if lane.end <= self.now {
            // The class was idle: its keys begin anew, as all keys do at an idle gate.
            lane.queue.restart();
        }
        self.now.max(lane.end)
    }

    /// Sets the tag of the first waiter of a class.
    fn set_tag(&mut self, index: usize, tag: Tag) {
        self.tag_count += 1;
        self.lanes[index].first = (tag, self.tag_count);
    }

    /// Returns the costs of all classes that depart before a request of the class at `index`.
    ///
    /// `own` is the cost of the requests of this class that depart before it.
    fn ahead(&self, index: usize, own: u64) -> u64 {
        let lane = &self.lanes[index];
        let first = if lane.queue.is_empty() {
            lane.end.max(self.now)
        } else {
            lane.first.0
        };
        let tag = first + lane.cost_in_tags(own);
        let others = self.lanes.iter().enumerate();
        let others = others.filter(|(other, _)| *other != index);
        own + others.map(|(_, other)| other.costs_by(tag)).sum::<u64>()
    }

    /// Drops classes that were removed from the file and have no waiters.
    fn drop_removed_classes(&mut self) {
        let named = self.named;
        let mut index = 0;
        self.lanes.retain(|lane| {
            index += 1;
            index <= named || !lane.queue.is_empty()
        });
    }
}
