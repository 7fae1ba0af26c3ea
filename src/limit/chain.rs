//! Doubly linked lists whose nodes are in one vector and found by index.
//!
//! [`Nodes`] is the vector. A [`Chain`] is one list over some of its nodes. A value that leaves a
//! chain stays in its node until it is removed, so it can move to another chain.

use std::ops::{Index, IndexMut};

/// Index that stands for no node.
const NONE: u32 = u32::MAX;

/// [`Nodes::clear`] frees the memory if there is room for more values than this.
const MAX_KEPT_SLOTS: usize = 1024;

/// Values that can be linked into [`Chain`]s. An index identifies a value.
#[derive(Debug)]
pub(super) struct Nodes<T> {
    slots: Vec<Node<T>>,
    /// Index of the first free slot. Its `after` is the index of the next free slot.
    free: u32,
}

#[derive(Debug)]
struct Node<T> {
    /// Index of the node before it in its chain.
    before: u32,
    /// Index of the node after it in its chain.
    after: u32,
    /// `None`: the slot is free.
    value: Option<T>,
}

impl<T> Default for Nodes<T> {
    fn default() -> Self {
        Self {
            slots: Vec::new(),
            free: NONE,
        }
    }
}

impl<T> Nodes<T> {
    /// Adds a value that is in no chain. Returns its index.
    pub fn add(&mut self, value: T) -> u32 {
        let node = Node {
            before: NONE,
            after: NONE,
            value: Some(value),
        };
        let index = self.free;
        if let Some(slot) = self.slots.get_mut(index as usize) {
            self.free = slot.after;
            *slot = node;
            return index;
        }
        self.slots.push(node);
        // Memory is exhausted long before this number.
        u32::try_from(self.slots.len() - 1).unwrap_or(NONE)
    }

    /// Removes a value. It must be in no chain.
    pub fn remove(&mut self, index: u32) -> Option<T> {
        let node = self.slots.get_mut(index as usize)?;
        let value = node.value.take()?;
        node.after = std::mem::replace(&mut self.free, index);
        Some(value)
    }

    pub fn get(&self, index: u32) -> Option<&T> {
        self.slots.get(index as usize)?.value.as_ref()
    }

    pub fn get_mut(&mut self, index: u32) -> Option<&mut T> {
        self.slots.get_mut(index as usize)?.value.as_mut()
    }

    /// Returns the number of values.
    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.slots.iter().filter(|it| it.value.is_some()).count()
    }

    /// Returns the upper bound (exclusive) of all indices.
    pub fn index_bound(&self) -> usize {
        self.slots.capacity()
    }

    /// Removes all values. All chains become invalid.
    pub fn clear(&mut self) {
        if self.slots.capacity() > MAX_KEPT_SLOTS {
            self.slots = Vec::new();
        }
        self.slots.clear();
        self.free = NONE;
    }

    /// Removes and returns all values, in any order.
    pub fn drain(&mut self) -> impl Iterator<Item = T> {
        std::mem::take(self)
            .slots
            .into_iter()
            .filter_map(|node| node.value)
    }

    fn node(&mut self, index: u32) -> &mut Node<T> {
        &mut self.slots[index as usize]
    }
}

impl<T> Index<u32> for Nodes<T> {
    type Output = T;

    fn index(&self, index: u32) -> &T {
        self.get(index).expect("a value that was not removed")
    }
}

impl<T> IndexMut<u32> for Nodes<T> {
    fn index_mut(&mut self, index: u32) -> &mut T {
        self.get_mut(index).expect("a value that was not removed")
    }
}

/// Doubly linked list of nodes. Each operation takes constant time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Chain {
    first: u32,
    last: u32,
    len: u32,
}

impl Default for Chain {
    fn default() -> Self {
        Self {
            first: NONE,
            last: NONE,
            len: 0,
        }
    }
}

impl Chain {
    pub fn first(&self) -> Option<u32> {
        (self.first != NONE).then_some(self.first)
    }

    pub fn last(&self) -> Option<u32> {
        (self.last != NONE).then_some(self.last)
    }

    pub fn len(&self) -> u32 {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Appends a node that is in no chain.
    pub fn push<T>(&mut self, nodes: &mut Nodes<T>, index: u32) {
        let last = std::mem::replace(&mut self.last, index);
        if last == NONE {
            self.first = index;
        } else {
            nodes.node(last).after = index;
        }
        let node = nodes.node(index);
        (node.before, node.after) = (last, NONE);
        self.len += 1;
    }

    /// Returns the node before another one of this chain.
    pub fn before<T>(nodes: &Nodes<T>, index: u32) -> Option<u32> {
        let before = nodes.slots[index as usize].before;
        (before != NONE).then_some(before)
    }

    /// Inserts the node `index`, which is in no chain, right before the node `after` of this chain.
    pub fn insert_before<T>(&mut self, nodes: &mut Nodes<T>, index: u32, after: u32) {
        let before = std::mem::replace(&mut nodes.node(after).before, index);
        if before == NONE {
            self.first = index;
        } else {
            nodes.node(before).after = index;
        }
        let node = nodes.node(index);
        (node.before, node.after) = (before, after);
        self.len += 1;
    }

    /// Removes a node of this chain from it.
    pub fn unlink<T>(&mut self, nodes: &mut Nodes<T>, index: u32) {
        let node = nodes.node(index);
        let (before, after) = (node.before, node.after);
        (node.before, node.after) = (NONE, NONE);
        if before == NONE {
            self.first = after;
        } else {
            nodes.node(before).after = after;
        }
        if after == NONE {
            self.last = before;
        } else {
            nodes.node(after).before = before;
        }
        self.len -= 1;
    }
}
