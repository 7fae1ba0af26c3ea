use std::ops::{Index, IndexMut};

use slab::Slab;

/// Stands for no node.
const NONE: u32 = u32::MAX;

/// With more slots than this, the memory is given back once nothing is left.
const FEW: usize = 1024;

/// Values that can be linked into [`Chain`]s, each found by its index.
#[derive(Debug)]
pub(super) struct Nodes<T>(Slab<Node<T>>);

#[derive(Debug)]
struct Node<T> {
    before: u32,
    after: u32,
    value: T,
}

impl<T> Default for Nodes<T> {
    fn default() -> Self {
        Self(Slab::new())
    }
}

impl<T> Nodes<T> {
    /// Adds a value that is in no chain.
    pub fn add(&mut self, value: T) -> u32 {
        let index = self.0.insert(Node {
            before: NONE,
            after: NONE,
            value,
        });
        // Memory runs out long before this many.
        u32::try_from(index).unwrap_or(NONE)
    }

    /// Removes a value that is in no chain any more.
    pub fn remove(&mut self, index: u32) -> Option<T> {
        let node = self.0.try_remove(index as usize);
        node.map(|node| node.value)
    }

    pub fn get(&self, index: u32) -> Option<&T> {
        self.0.get(index as usize).map(|node| &node.value)
    }

    pub fn get_mut(&mut self, index: u32) -> Option<&mut T> {
        self.0.get_mut(index as usize).map(|node| &mut node.value)
    }

    /// Number of values.
    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// No index is as high as this.
    pub fn slots(&self) -> usize {
        self.0.capacity()
    }

    /// Removes all values, which leaves no chain valid.
    pub fn clear(&mut self) {
        if self.0.capacity() > FEW {
            self.0 = Slab::new();
        } else {
            self.0.clear();
        }
    }

    /// Removes and returns all values, in no order.
    pub fn drain(&mut self) -> impl Iterator<Item = T> {
        std::mem::take(&mut self.0)
            .into_iter()
            .map(|(_, node)| node.value)
    }
}

impl<T> Index<u32> for Nodes<T> {
    type Output = T;

    fn index(&self, index: u32) -> &T {
        &self.0[index as usize].value
    }
}

impl<T> IndexMut<u32> for Nodes<T> {
    fn index_mut(&mut self, index: u32) -> &mut T {
        &mut self.0[index as usize].value
    }
}

/// A doubly linked list of nodes. Each operation takes constant time.
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

    /// Puts a node that is in no chain behind all others.
    pub fn push<T>(&mut self, nodes: &mut Nodes<T>, index: u32) {
        let last = std::mem::replace(&mut self.last, index);
        if last == NONE {
            self.first = index;
        } else {
            nodes.0[last as usize].after = index;
        }
        let node = &mut nodes.0[index as usize];
        (node.before, node.after) = (last, NONE);
        self.len += 1;
    }

    /// The node before another one of this chain.
    pub fn before<T>(nodes: &Nodes<T>, index: u32) -> Option<u32> {
        let before = nodes.0[index as usize].before;
        (before != NONE).then_some(before)
    }

    /// Puts a node that is in no chain right before another one of this chain.
    pub fn insert_before<T>(&mut self, nodes: &mut Nodes<T>, index: u32, after: u32) {
        let before = std::mem::replace(&mut nodes.0[after as usize].before, index);
        if before == NONE {
            self.first = index;
        } else {
            nodes.0[before as usize].after = index;
        }
        let node = &mut nodes.0[index as usize];
        (node.before, node.after) = (before, after);
        self.len += 1;
    }

    /// Takes a node of this chain out of it.
    pub fn unlink<T>(&mut self, nodes: &mut Nodes<T>, index: u32) {
        let node = &mut nodes.0[index as usize];
        let (before, after) = (node.before, node.after);
        (node.before, node.after) = (NONE, NONE);
        if before == NONE {
            self.first = after;
        } else {
            nodes.0[before as usize].after = after;
        }
        if after == NONE {
            self.last = before;
        } else {
            nodes.0[after as usize].before = before;
        }
        self.len -= 1;
    }
}
