//! One queue in front of an origin, shared fairly between keys.
//!
//! Start-time fair queueing (Goyal, Vin and Cheng, 1996), FIFO within a key. A key that begins to
//! wait gets the tag `max(v, f)`, where `v` is the tag of the last departure and `f` is what the
//! key's own last departure left. The smallest tag leaves next. A departure sets `v` to its tag,
//! and the key's next tag is higher by `cost / weight`. Of equal tags the one that was set first
//! leaves first.
//!
//! So two keys of equal weight that both wait never differ by more than one departure, a key alone
//! gets everything, and nobody saves up while idle.

mod ends;
#[cfg(test)]
mod model;
#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::hash::Hash;

use ends::Ends;

/// The largest weight of a key.
pub const MAX_WEIGHT: u32 = 64;

/// One whole cost at weight 1, in tags. Each weight up to [`MAX_WEIGHT`] divides it, so no tag is
/// ever rounded.
///
/// A queue that never empties can release 2^37 whole costs before a tag overflows.
const UNIT: u128 = least_common_multiple(MAX_WEIGHT);

/// Stands for no flow.
const NONE: u32 = u32::MAX;

type Tag = u128;

/// Most keys without waiters whose last departure is remembered.
///
/// While new keys come all the time, no tag ever passes theirs. One that is forgotten early gets
/// at most one turn too many.
const MOST_RESTING: usize = 10_000;

/// The requests that wait for an origin, by key.
#[derive(Debug)]
pub struct FairQueue<K, W> {
    flows: Vec<Flow<K, W>>,
    /// Slots of `flows` that hold no key.
    free: Vec<u32>,
    by_key: HashMap<K, u32>,
    /// The flows with waiters, by tag; those of one tag in the order in which it was set.
    ready: BTreeMap<Tag, Line>,
    /// The flows without waiters whose last departure still counts against them, by its end.
    resting: BTreeMap<Tag, Line>,
    /// Number of flows in `resting`.
    rested: usize,
    /// The tag of the last departure.
    now: Tag,
    waiting: usize,
    next_ticket: u64,
    ends: Ends,
}

/// A key in the queue.
#[derive(Debug)]
struct Flow<K, W> {
    /// `None` in a free slot.
    key: Option<K>,
    weight: u32,
    /// The tag of its first waiter; without waiters, the end of its last departure.
    tag: Tag,
    /// The tag behind its last waiter.
    end: Tag,
    waiters: VecDeque<Waiting<W>>,
    /// Neighbours in its line.
    before: u32,
    after: u32,
}

#[derive(Debug)]
struct Waiting<W> {
    ticket: u64,
    cost: u32,
    /// The tag of the last departure when it joined.
    joined: Tag,
    waiter: W,
}

/// Flows of one tag, linked through their neighbours.
#[derive(Clone, Copy, Debug)]
struct Line {
    first: u32,
    last: u32,
    flows: u64,
    /// The weights of its flows together.
    weight: u64,
}

/// The position of a waiter in a [`FairQueue`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    flow: u32,
    ticket: u64,
}

/// A waiter that leaves because its turn has come.
#[derive(Debug, PartialEq, Eq)]
pub struct Next<K, W> {
    /// Its key.
    pub key: K,
    /// What it costs.
    pub cost: u32,
    /// The waiter itself.
    pub waiter: W,
}

impl<K, W> Default for FairQueue<K, W> {
    fn default() -> Self {
        Self {
            flows: Vec::new(),
            free: Vec::new(),
            by_key: HashMap::new(),
            ready: BTreeMap::new(),
            resting: BTreeMap::new(),
            rested: 0,
            now: 0,
            waiting: 0,
            next_ticket: 0,
            ends: Ends::default(),
        }
    }
}

impl<K: Hash + Eq + Clone, W> FairQueue<K, W> {
    /// Number of waiters.
    #[must_use]
    pub fn len(&self) -> usize {
        self.waiting
    }

    /// Whether nothing waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.waiting == 0
    }

    /// Number of waiters of a key.
    #[must_use]
    pub fn depth(&self, key: &K) -> usize {
        self.flow(key).map_or(0, |flow| flow.waiters.len())
    }

    /// Whether one more request of a key may wait.
    ///
    /// It may while its key has fewer waiters than `queue`, and fewer than are left of `max_queue`.
    /// So one key alone takes at most half of `max_queue`, and leaves room for others. If `queue`
    /// is `None`, all requests may fill `max_queue` together.
    #[must_use]
    pub fn has_room(&self, key: &K, queue: Option<usize>, max_queue: usize) -> bool {
        let left = max_queue.saturating_sub(self.waiting);
        queue.map_or(left > 0, |queue| self.depth(key) < queue.min(left))
    }

    /// Adds a waiter. `weight` is from 1 to [`MAX_WEIGHT`]; `cost` is at least 1.
    ///
    /// A key that has waiters keeps the weight that it has.
    pub fn join(&mut self, key: &K, weight: u32, cost: u32, waiter: W) -> Position {
        let index = self.slot(key, weight);
        let ticket = self.next_ticket;
        self.next_ticket += 1;
        if self.flows[index as usize].waiters.is_empty() {
            self.begin(index);
        }
        let now = self.now;
        let flow = &mut self.flows[index as usize];
        flow.waiters.push_back(Waiting {
            ticket,
            cost,
            joined: now,
            waiter,
        });
        let end = flow.end + flow.span(cost);
        let before = std::mem::replace(&mut flow.end, end);
        let weight = flow.weight;
        self.move_end(weight, before, end);
        self.waiting += 1;
        Position {
            flow: index,
            ticket,
        }
    }

    /// Takes the waiter that leaves next.
    pub fn take(&mut self) -> Option<Next<K, W>> {
        let (&tag, line) = self.ready.first_key_value()?;
        let index = line.first;
        self.unlink(index, tag, true);
        let flow = &mut self.flows[index as usize];
        let (key, left) = (flow.key.clone()?, flow.waiters.pop_front()?);
        flow.tag = tag + flow.span(left.cost);
        self.now = tag;
        self.waiting -= 1;
        let (next, is_over) = (flow.tag, flow.waiters.is_empty());
        if is_over {
            self.ends.remove(flow.weight, flow.end);
        }
        self.ends.advance(tag);
        self.append(index, next, !is_over);
        self.forget();
        Some(Next {
            key,
            cost: left.cost,
            waiter: left.waiter,
        })
    }

    /// Removes a waiter that leaves before its turn. Those behind it move up.
    pub fn leave(&mut self, position: Position) -> Option<W> {
        let flow = self.flows.get_mut(position.flow as usize)?;
        let at = flow
            .waiters
            .binary_search_by_key(&position.ticket, |waiter| waiter.ticket)
            .ok()?;
        let left = flow.waiters.remove(at)?;
        let (tag, weight, end) = (flow.tag, flow.weight, flow.end);
        flow.end = end - flow.span(left.cost);
        let (sooner, is_over) = (flow.end, flow.waiters.is_empty());
        self.waiting -= 1;
        if is_over {
            // What the key's last departure left is its tag, or less than the present tag.
            self.ends.remove(weight, end);
            self.unlink(position.flow, tag, true);
            self.append(position.flow, tag, false);
        } else {
            self.move_end(weight, end, sooner);
            if at == 0 {
                self.move_up(position.flow);
            }
        }
        self.forget();
        Some(left.waiter)
    }

    /// Whole costs that leave before one more request of `key` would, if nobody else comes.
    ///
    /// Waiters of other keys that have the same tag are taken to leave first: the answer may be
    /// one request too high for each key that has more waiters than this one.
    #[must_use]
    pub fn ahead_of_new(&self, key: &K) -> u64 {
        match self.flow(key) {
            Some(flow) if !flow.waiters.is_empty() => self.through(flow.end),
            Some(flow) => self.through(flow.tag.max(self.now)),
            None => self.through(self.now),
        }
    }

    /// Whole costs that leave before the waiter of `key` that has `nth` others of it ahead, if
    /// nobody else comes.
    ///
    /// Those ahead are taken to cost 1 each. `None` if none of the key waits.
    #[must_use]
    pub fn ahead_of_nth(&self, key: &K, nth: u32) -> Option<u64> {
        let flow = self.flow(key).filter(|flow| !flow.waiters.is_empty())?;
        let tag = flow.tag + flow.span(nth);
        Some(self.through(tag).saturating_sub(1))
    }

    /// A part of the keys that have waiters, with how many, in no order.
    ///
    /// The part begins at the position `from`, and takes at most `most` steps. Returns where the
    /// next part begins; `None` after the last one.
    pub fn depths(
        &self,
        from: usize,
        most: usize,
        mut see: impl FnMut(&K, usize),
    ) -> Option<usize> {
        let end = from.saturating_add(most);
        for flow in self.flows.iter().skip(from).take(most) {
            if let (Some(key), depth @ 1..) = (&flow.key, flow.waiters.len()) {
                see(key, depth);
            }
        }
        (end < self.flows.len()).then_some(end)
    }

    /// Removes all waiters, those of a key in their order.
    pub fn clear(&mut self) -> Vec<W> {
        let flows = std::mem::take(self).flows.into_iter();
        let waiters = flows.flat_map(|flow| flow.waiters);
        waiters.map(|waiter| waiter.waiter).collect()
    }

    /// Whole costs of the waiters whose tag is at most `tag`.
    fn through(&self, tag: Tag) -> u64 {
        let mut begun = 0;
        for (start, line) in self.ready.range(..=tag) {
            begun += u128::from(line.weight) * (tag - start) + u128::from(line.flows) * UNIT;
        }
        let ended = self.ends.through(tag);
        let costs = begun.saturating_sub(ended) / UNIT;
        u64::try_from(costs).unwrap_or(u64::MAX)
    }

    fn flow(&self, key: &K) -> Option<&Flow<K, W>> {
        let index = self.by_key.get(key)?;
        self.flows.get(*index as usize)
    }

    /// The slot of a key; a new one if it is not known.
    fn slot(&mut self, key: &K, weight: u32) -> u32 {
        let weight = weight.clamp(1, MAX_WEIGHT);
        if let Some(&known) = self.by_key.get(key) {
            let flow = &mut self.flows[known as usize];
            if flow.waiters.is_empty() {
                flow.weight = weight;
            }
            return known;
        }
        let flow = Flow {
            key: Some(key.clone()),
            weight,
            tag: self.now,
            end: self.now,
            waiters: VecDeque::new(),
            before: NONE,
            after: NONE,
        };
        let index = if let Some(free) = self.free.pop() {
            self.flows[free as usize] = flow;
            free
        } else {
            self.flows.push(flow);
            // Memory runs out long before this many keys.
            u32::try_from(self.flows.len() - 1).unwrap_or(NONE)
        };
        self.by_key.insert(key.clone(), index);
        self.append(index, self.now, false);
        index
    }

    /// A key without waiters gets its first one.
    fn begin(&mut self, index: u32) {
        let flow = &self.flows[index as usize];
        let (rested, tag) = (flow.tag, flow.tag.max(self.now));
        self.unlink(index, rested, false);
        self.flows[index as usize].end = tag;
        self.ends.add(self.flows[index as usize].weight, tag);
        self.append(index, tag, true);
    }

    /// The first waiter of a key has left: the next one's tag is what it would be without it.
    fn move_up(&mut self, index: u32) {
        let flow = &self.flows[index as usize];
        let Some(first) = flow.waiters.front() else {
            return;
        };
        let (tag, later) = (flow.tag, flow.tag.max(first.joined));
        if later > tag {
            let (weight, end) = (flow.weight, flow.end);
            self.unlink(index, tag, true);
            self.flows[index as usize].end = end + (later - tag);
            self.move_end(weight, end, end + (later - tag));
            self.append(index, later, true);
        }
    }

    /// Forgets the keys whose last departure counts no more.
    fn forget(&mut self) {
        if self.waiting == 0 {
            self.flows.clear();
            self.free.clear();
            self.by_key.clear();
            self.ready.clear();
            self.resting.clear();
            (self.rested, self.now) = (0, 0);
            return self.ends.restart();
        }
        while let Some((&tag, &line)) = self.resting.first_key_value()
            && tag <= self.now
        {
            self.resting.remove(&tag);
            let mut index = line.first;
            while index != NONE {
                let next = self.flows[index as usize].after;
                self.rested -= 1;
                self.forget_flow(index);
                index = next;
            }
        }
        while self.rested > MOST_RESTING
            && let Some((&tag, line)) = self.resting.first_key_value()
        {
            let index = line.first;
            self.unlink(index, tag, false);
            self.forget_flow(index);
        }
    }

    fn forget_flow(&mut self, index: u32) {
        if let Some(key) = self.flows[index as usize].key.take() {
            self.by_key.remove(&key);
        }
        self.free.push(index);
    }

    fn move_end(&mut self, weight: u32, from: Tag, to: Tag) {
        self.ends.remove(weight, from);
        self.ends.add(weight, to);
    }

    fn lines(&mut self, is_ready: bool) -> &mut BTreeMap<Tag, Line> {
        if is_ready {
            &mut self.ready
        } else {
            &mut self.resting
        }
    }

    /// Puts a flow behind those of its tag.
    fn append(&mut self, index: u32, tag: Tag, is_ready: bool) {
        let weight = u64::from(self.flows[index as usize].weight);
        self.rested += usize::from(!is_ready);
        let lines = self.lines(is_ready);
        let line = lines.entry(tag).or_insert(Line {
            first: index,
            last: NONE,
            flows: 0,
            weight: 0,
        });
        let last = std::mem::replace(&mut line.last, index);
        line.flows += 1;
        line.weight += weight;
        if last != NONE {
            self.flows[last as usize].after = index;
        }
        let flow = &mut self.flows[index as usize];
        (flow.tag, flow.before, flow.after) = (tag, last, NONE);
    }

    /// Takes a flow out of its line.
    fn unlink(&mut self, index: u32, tag: Tag, is_ready: bool) {
        let flow = &self.flows[index as usize];
        let (before, after, weight) = (flow.before, flow.after, u64::from(flow.weight));
        if before != NONE {
            self.flows[before as usize].after = after;
        }
        if after != NONE {
            self.flows[after as usize].before = before;
        }
        self.rested -= usize::from(!is_ready);
        let lines = self.lines(is_ready);
        let Some(line) = lines.get_mut(&tag) else {
            return;
        };
        line.flows -= 1;
        line.weight -= weight;
        if line.flows == 0 {
            lines.remove(&tag);
            return;
        }
        if line.first == index {
            line.first = after;
        }
        if line.last == index {
            line.last = before;
        }
    }
}

impl<K, W> Flow<K, W> {
    /// What a cost is in tags.
    fn span(&self, cost: u32) -> Tag {
        UNIT / u128::from(self.weight) * u128::from(cost)
    }
}

const fn least_common_multiple(most: u32) -> u128 {
    let mut multiple = 1;
    let mut next = 2;
    while next <= most as u128 {
        let (mut a, mut b) = (multiple, next);
        while b != 0 {
            (a, b) = (b, a % b);
        }
        multiple = multiple / a * next;
        next += 1;
    }
    multiple
}
