//! One queue in front of an origin, shared fairly between keys.
//!
//! A *flow* is a key in the queue. A *tag* is its virtual start time, which decides the order of
//! departures. The rules are start-time fair queueing (Goyal, Vin and Cheng, 1996), with another
//! rule for newcomers. Within a key, the order is first in, first out.
//! - The smallest tag departs next; of equal tags, the one that was set first. `v` is the tag of
//!   the last departure.
//! - The end of a departure is its tag plus `cost / weight`. It becomes the next tag of its key at
//!   once, even if the key has no waiters.
//! - A newcomer is a key that has never departed, or whose last departure ended before `v`. It gets
//!   the tag `u`, but at most `1 / weight` beyond `v`.
//! - If others wait, a newcomer whose first request costs more than 1 gets the tag
//!   `w + (cost - 1) / weight`, but at least `v`. `w` is the [work time](work_time).
//! - A departure raises `u` to its end, but not beyond the end of the first request of any other
//!   waiting key. If no other key waits, `u` is raised to `v`.
//!
//! In the published rule, newcomers get `v`. `v` stands still while new keys come, so a known key
//! would wait for all of them. Here newcomers stand behind the first request of each waiting key.
//! If costs did not count, new keys with costly requests would delay each key by the sum of these
//! costs. As costs count, such keys delay a key as if their requests were served in parts of cost
//! 1.
//!
//! Two keys of equal weight that both wait never differ by more than one departure. A key alone
//! gets the whole rate. Idle time earns no credit. A request that need not wait
//! [departs](FairQueue::depart) by the same rule.
//!
//! Files: `lines` sorts the flows, `heads` and `ends` keep sums over them, `work_time` computes
//! `w`, `weights` changes weights, `named_keys` reports keys to other gateways.

mod ends;
mod heads;
mod lines;
#[cfg(test)]
pub(super) mod model;
mod named_keys;
#[cfg(test)]
mod named_properties;
#[cfg(test)]
mod newcomers;
#[cfg(test)]
mod properties;
mod queries;
mod tag;
#[cfg(test)]
mod tests;
mod weights;
mod work_time;

use std::collections::HashMap;
use std::hash::Hash;
use std::num::NonZeroU16;

use super::chain::{Chain, Nodes};
use ends::Ends;
use heads::Heads;
use lines::Lines;
pub use named_keys::KeyChange;
use named_keys::NamedKeys;
pub(super) use named_keys::Naming;
pub use tag::MAX_WEIGHT;
pub(super) use tag::{Tag, UNIT};
use work_time::{WorkTime, next_step};

/// Upper bound of the keys without waiters whose last departure is remembered.
///
/// While there are no waiters, no tag passes the tags of these keys. A key that is forgotten early
/// may depart too early, by the cost of its last request.
const MAX_RESTING: usize = 10_000;

/// Upper bound of the keys that one call forgets. A call adds at most one.
const FORGOTTEN_AT_ONCE: usize = 2;

/// Once no key is left, the memory is freed if there is room for more keys than this.
const MAX_KEPT_CAPACITY: usize = 1024;

/// Waiters of an origin, by key. `K` is a key, and `W` a waiter.
#[derive(Debug)]
pub struct FairQueue<K, W> {
    flows: Nodes<Flow<K>>,
    /// Index of the flow of each key.
    by_key: HashMap<K, u32>,
    waiters: Nodes<QueuedWaiter<W>>,
    /// Flows with waiters, by tag.
    ready: Lines,
    /// Flows without waiters whose last departure still counts, by the end of that departure.
    resting: Lines,
    /// Tags behind the first waiters of all flows.
    heads: Heads,
    /// `v`: the tag of the last departure.
    now: Tag,
    /// `u`: upper bound of the tag of a newcomer that costs 1. Never below `now`.
    newcomers: Tag,
    work_time: WorkTime,
    /// Number of times that a tag was set.
    tag_count: u64,
    /// Number of waiters.
    waiting: usize,
    /// Sum of the costs of all waiters.
    costs: u64,
    /// Sum of the weights of all keys with waiters.
    weights: u64,
    next_ticket: u64,
    /// Tags behind the last waiters of all flows.
    ends: Ends,
    /// Keys as reported to other gateways; `None` while they are not reported.
    named: Option<Box<NamedKeys<K>>>,
}

/// Key in the queue.
#[derive(Debug)]
struct Flow<K> {
    key: K,
    weight: u16,
    /// Number of gateways at which the key waits; 1 while it does not wait.
    ///
    /// A cost here is multiplied by this number.
    gateways: NonZeroU16,
    /// Whether the tag was set by the work time: the key was a newcomer, and its request cost more
    /// than 1.
    is_costly: bool,
    /// Tag of the first waiter; without waiters, the end of the last departure.
    tag: Tag,
    /// Value of `tag_count` when the tag was set; 0: never set.
    ///
    /// Of equal tags, the one that was set first departs first.
    tag_number: u64,
    /// Tag behind the last waiter.
    end: Tag,
    /// Tag behind the first waiter, as in [`Heads`]; 0 without waiters.
    head: Tag,
    /// Waiters of the key, in the order in which they depart.
    waiters: Chain,
}

#[derive(Debug)]
struct QueuedWaiter<W> {
    /// Number of its join. It tells a position of a waiter that has left from a later one.
    ticket: u64,
    /// Index of its flow.
    flow: u32,
    cost: u32,
    waiter: W,
}

/// Position of a waiter in a [`FairQueue`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    slot: u32,
    ticket: u64,
}

/// Waiter that departs now.
#[derive(Debug, PartialEq, Eq)]
pub struct Next<K, W> {
    /// Key of the waiter.
    pub key: K,
    /// Cost of the waiter.
    pub cost: u32,
    /// The waiter itself.
    pub waiter: W,
}

impl<K, W> Default for FairQueue<K, W> {
    fn default() -> Self {
        Self {
            flows: Nodes::default(),
            by_key: HashMap::new(),
            waiters: Nodes::default(),
            ready: Lines::default(),
            resting: Lines::default(),
            heads: Heads::default(),
            now: 0,
            newcomers: 0,
            work_time: WorkTime::default(),
            tag_count: 0,
            waiting: 0,
            costs: 0,
            weights: 0,
            next_ticket: 0,
            ends: Ends::default(),
            named: None,
        }
    }
}

impl<K: Hash + Eq + Clone, W> FairQueue<K, W> {
    /// Returns the number of waiters.
    pub fn len(&self) -> usize {
        self.waiting
    }

    /// Returns whether there are no waiters.
    pub fn is_empty(&self) -> bool {
        self.waiting == 0
    }

    /// Returns the sum of the costs of all waiters.
    pub fn costs(&self) -> u64 {
        self.costs
    }

    /// Returns the sum of the weights of all keys that have waiters.
    pub fn weights(&self) -> u64 {
        self.weights
    }

    /// Returns the number of waiters of a key.
    pub fn depth(&self, key: &K) -> usize {
        self.flow(key).map_or(0, |flow| flow.waiters.len() as usize)
    }

    /// Adds a waiter. `weight` is from 1 to [`MAX_WEIGHT`]; `cost` is at least 1.
    ///
    /// The weight of a key is that of its last request.
    pub fn join(&mut self, key: &K, weight: u32, cost: u32, waiter: W) -> Position {
        let index = self.flow_index(key, weight);
        let ticket = self.next_ticket;
        self.next_ticket += 1;
        if self.flows[index].waiters.is_empty() {
            self.begin_waiting(index, cost);
        }
        let slot = self.waiters.add(QueuedWaiter {
            ticket,
            flow: index,
            cost,
            waiter,
        });
        let flow = &mut self.flows[index];
        flow.waiters.push(&mut self.waiters, slot);
        let end = flow.end + flow.cost_in_tags(cost);
        let before = std::mem::replace(&mut flow.end, end);
        self.ends.remove(flow.weight_in_sums(), before);
        self.ends.add(flow.weight_in_sums(), end);
        self.update_head(index);
        self.waiting += 1;
        self.costs += u64::from(cost);
        Position { slot, ticket }
    }

    /// Moves a waiter ahead of the waiters of its key for which `is_behind` is true.
    ///
    /// Searches from the waiter to the front, and stops at the first one for which it is false.
    pub fn advance(&mut self, at: Position, is_behind: impl Fn(&W) -> bool) {
        let Some(flow) = self.flow_at(at) else {
            return;
        };
        let mut ahead_of = None;
        let mut before = Chain::before(&self.waiters, at.slot);
        while let Some(slot) = before.filter(|slot| is_behind(&self.waiters[*slot].waiter)) {
            ahead_of = Some(slot);
            before = Chain::before(&self.waiters, slot);
        }
        let Some(ahead_of) = ahead_of else {
            return;
        };
        let chain = &mut self.flows[flow].waiters;
        chain.unlink(&mut self.waiters, at.slot);
        chain.insert_before(&mut self.waiters, at.slot, ahead_of);
        self.update_head(flow);
    }

    /// Charges a key for a request that departs at once. There must be no waiters.
    pub fn depart(&mut self, key: &K, weight: u32, cost: u32) {
        debug_assert!(self.is_empty(), "no request overtakes waiters");
        let index = self.flow_index(key, weight);
        self.resting.remove(&mut self.flows, index);
        self.tag_newcomer(index, cost);
        let flow = &mut self.flows[index];
        self.now = flow.tag;
        self.newcomers = self.newcomers.max(self.now);
        self.work_time.restart(self.now);
        let end = flow.tag + flow.cost_in_tags(cost);
        self.set_tag(index, end);
        self.resting.push(&mut self.flows, index);
        self.forget();
    }

    /// Makes all keys newcomers: earlier departures no longer count. There must be no waiters.
    ///
    /// For this, `v` becomes larger than all tags. Later calls remove the keys, a few in each call.
    pub fn restart(&mut self) {
        debug_assert!(self.is_empty(), "waiters have tags");
        if self.resting.len() > 0 {
            self.now = next_step(self.now.max(self.resting.last_tag() + 1));
            self.newcomers = self.newcomers.max(self.now);
            self.work_time.restart(self.now);
        }
        self.forget();
    }

    /// Removes and returns the waiter that departs next.
    pub fn take(&mut self) -> Option<Next<K, W>> {
        let index = self.ready.first(&self.flows)?;
        let weights = self.ready.weight();
        self.ready.remove(&mut self.flows, index);
        let flow = &mut self.flows[index];
        let (tag, key, slot) = (flow.tag, flow.key.clone(), flow.waiters.first()?);
        flow.waiters.unlink(&mut self.waiters, slot);
        let departed = self.waiters.remove(slot)?;
        let end = tag + flow.cost_in_tags(departed.cost);
        let is_last = flow.waiters.is_empty();
        self.set_tag(index, end);
        self.now = tag;
        self.waiting -= 1;
        self.costs -= u64::from(departed.cost);
        self.set_head(index, 0);
        // The head of this key is not among them. Without other waiting keys, `u` rises to `v`.
        let reached = self.heads.first().map_or(tag, |first| end.min(first));
        self.newcomers = self.newcomers.max(reached);
        self.clear_costly(index);
        if self.waiting == 0 {
            self.work_time.restart(tag);
        } else {
            self.work_time.advance(departed.cost, weights, tag);
        }
        if is_last {
            let flow = &self.flows[index];
            self.ends.remove(flow.weight_in_sums(), flow.end);
            self.end_waiting(index);
            self.resting.push(&mut self.flows, index);
        } else {
            self.ready.push(&mut self.flows, index);
        }
        self.update_head(index);
        self.forget();
        Some(Next {
            key,
            cost: departed.cost,
            waiter: departed.waiter,
        })
    }

    /// Removes a waiter that disconnected or expired. The waiters of its key move up.
    pub fn leave(&mut self, at: Position) -> Option<W> {
        let index = self.flow_at(at)?;
        let flow = &mut self.flows[index];
        flow.waiters.unlink(&mut self.waiters, at.slot);
        let removed = self.waiters.remove(at.slot)?;
        let old_end = flow.end;
        flow.end = old_end - flow.cost_in_tags(removed.cost);
        let (weight, new_end, is_last) = (flow.weight_in_sums(), flow.end, flow.waiters.is_empty());
        self.waiting -= 1;
        self.costs -= u64::from(removed.cost);
        self.ends.remove(weight, old_end);
        if is_last {
            // A key that soon waits again has the same tag as before.
            self.ready.remove(&mut self.flows, index);
            self.end_waiting(index);
            self.resting.push(&mut self.flows, index);
        } else {
            self.ends.add(weight, new_end);
        }
        self.update_head(index);
        self.forget();
        Some(removed.waiter)
    }

    /// Removes all waiters, and returns them in the order in which they joined.
    pub fn clear(&mut self) -> Vec<W> {
        let mut all = std::mem::take(self);
        self.next_ticket = all.next_ticket;
        self.named = all.named.take();
        if let Some(named) = &mut self.named {
            named.all_ended();
        }
        let mut waiters: Vec<_> = all.waiters.drain().collect();
        waiters.sort_unstable_by_key(|waiter| waiter.ticket);
        waiters.into_iter().map(|waiter| waiter.waiter).collect()
    }

    /// Returns the flow of a waiter, or `None` if the waiter has left.
    fn flow_at(&self, at: Position) -> Option<u32> {
        let waiting = self.waiters.get(at.slot)?;
        (waiting.ticket == at.ticket).then_some(waiting.flow)
    }

    /// Returns the flow of a key, or `None` if the key is unknown.
    fn flow(&self, key: &K) -> Option<&Flow<K>> {
        let index = self.by_key.get(key)?;
        self.flows.get(*index)
    }

    /// Returns the index of a key's flow. An unknown key gets a new flow.
    fn flow_index(&mut self, key: &K, weight: u32) -> u32 {
        let weight = u16::try_from(weight.clamp(1, MAX_WEIGHT)).unwrap_or(1);
        if let Some(&known) = self.by_key.get(key) {
            self.set_weight(known, weight);
            return known;
        }
        let index = self.flows.add(Flow {
            key: key.clone(),
            weight,
            gateways: NonZeroU16::MIN,
            is_costly: false,
            tag: self.now,
            tag_number: 0,
            end: self.now,
            head: 0,
            waiters: Chain::default(),
        });
        self.by_key.insert(key.clone(), index);
        self.resting.push(&mut self.flows, index);
        index
    }

    /// Prepares a key without waiters for its first waiter, which costs `cost`.
    fn begin_waiting(&mut self, index: u32, cost: u32) {
        self.resting.remove(&mut self.flows, index);
        self.tag_newcomer(index, cost);
        let flow = &mut self.flows[index];
        flow.end = flow.tag;
        if let Some(named) = &mut self.named {
            flow.gateways = named.began(index, &flow.key, flow.weight.into());
        }
        self.ends.add(flow.weight_in_sums(), flow.end);
        self.weights += u64::from(flow.weight);
        self.ready.push(&mut self.flows, index);
    }

    /// Sets the tag of a key that waits again, if it is a newcomer. The key must be in no line.
    fn tag_newcomer(&mut self, index: u32, cost: u32) {
        let flow = &self.flows[index];
        if flow.tag_number > 0 && flow.tag >= self.now {
            return;
        }
        let is_costly = cost > 1 && self.waiting > 0;
        let tag = if is_costly {
            let start = self.work_time.get().min(self.now + flow.cost_in_tags(cost));
            self.now.max(start + flow.cost_in_tags(cost - 1))
        } else {
            self.newcomers.min(self.now + flow.cost_in_tags(1))
        };
        self.flows[index].is_costly = is_costly;
        self.work_time.costly += usize::from(is_costly);
        self.set_tag(index, tag);
    }

    /// Records that the tag of a key is no longer one that was set by the work time.
    fn clear_costly(&mut self, index: u32) {
        if std::mem::take(&mut self.flows[index].is_costly) {
            self.work_time.costly -= 1;
        }
    }

    fn set_tag(&mut self, index: u32, tag: Tag) {
        self.tag_count += 1;
        let flow = &mut self.flows[index];
        (flow.tag, flow.tag_number) = (tag, self.tag_count);
    }

    /// Removes a key from the sums after its last waiter. The key must be in no line.
    fn end_waiting(&mut self, index: u32) {
        let flow = &mut self.flows[index];
        flow.gateways = NonZeroU16::MIN;
        self.weights -= u64::from(flow.weight);
        if let Some(named) = &mut self.named {
            named.ended(index);
        }
        self.clear_costly(index);
    }

    /// Updates the tag behind the first waiter of a key.
    fn update_head(&mut self, index: u32) {
        let flow = &self.flows[index];
        let first = flow.waiters.first().and_then(|slot| self.waiters.get(slot));
        let head = first.map_or(0, |first| flow.tag + flow.cost_in_tags(first.cost));
        self.set_head(index, head);
    }

    fn set_head(&mut self, index: u32, head: Tag) {
        let before = std::mem::replace(&mut self.flows[index].head, head);
        self.heads.replace(before, head);
    }

    /// Removes a few keys whose last departure no longer counts, or that exceed [`MAX_RESTING`].
    ///
    /// Once the last key is removed, frees the memory if there was room for many keys.
    fn forget(&mut self) {
        for _ in 0..FORGOTTEN_AT_ONCE {
            let Some(index) = self.resting.first(&self.flows) else {
                break;
            };
            if self.flows[index].tag >= self.now && self.resting.len() <= MAX_RESTING {
                break;
            }
            self.resting.remove(&mut self.flows, index);
            if let Some(flow) = self.flows.remove(index) {
                self.by_key.remove(&flow.key);
            }
        }
        if self.waiting > 0 {
            return;
        }
        self.waiters.clear();
        if self.resting.len() == 0 {
            self.flows.clear();
            if self.by_key.capacity() > MAX_KEPT_CAPACITY {
                self.by_key = HashMap::new();
            }
            (self.now, self.newcomers, self.tag_count) = (0, 0, 0);
            self.work_time.restart(0);
        }
    }
}
