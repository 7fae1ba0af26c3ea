//! Table of all keys that a supervisor remembers, ordered by last use.
//!
//! An *account* is what was charged to a key. To *park* a key is to end its actor and keep only the
//! account.

#[cfg(test)]
mod properties;

use std::ops::{Index, IndexMut};

use foldhash::fast::RandomState;
use indexmap::IndexMap;
use limit::{Account, Moment};
use smallvec::SmallVec;

/// Bytes of a key. Up to 40 bytes are stored in the table itself.
///
/// That holds for most keys, for example IP addresses. A separate allocation for each key, between
/// those of short-lived actors, would fragment the memory.
pub(super) type KeyName = SmallVec<[u8; 40]>;

/// Index that stands for no key.
const NONE: u32 = u32::MAX;

/// All keys that a supervisor remembers, ordered by last use within each state.
///
/// One table without gaps has all keys, so that they can be walked in small steps, with other work
/// in between. The last key moves into the entry of a removed key. So a walk from the end to the
/// front visits every key that stays; it visits a key that moved meanwhile twice. An index is valid
/// until the next removal.
///
/// `A`: data of a key that has an actor.
pub(super) struct Keys<A> {
    known: IndexMap<KeyName, KnownKey<A>, RandomState>,
    active: Order,
    parked: Order,
    passing: Order,
}

/// State of a key, and its neighbours in the order by last use among the keys of the same state.
pub(super) struct KnownKey<A> {
    pub(super) state: State<A>,
    pub(super) used: Moment,
    /// Index of the key that was used just before this one, or [`NONE`].
    older: u32,
    /// Index of the key that was used just after this one, or [`NONE`].
    newer: u32,
}

/// State of a remembered key.
pub(super) enum State<A> {
    /// The key has an actor.
    Active(A),
    /// The key has no actor: only its account is kept.
    Parked(Account),
    /// The key has no actor either: its last request found the bucket empty and needed none.
    ///
    /// Such keys have an order of their own, to which they are appended when they are used. A key
    /// whose actor is parked is appended to the order of parked keys some time after its use.
    Passing(Account),
}

/// Order by last use of the keys in one state, as a linked list of indexes.
struct Order {
    oldest: u32,
    newest: u32,
    len: usize,
}

impl<A> Default for Keys<A> {
    fn default() -> Self {
        Self {
            known: IndexMap::default(),
            active: Order::default(),
            parked: Order::default(),
            passing: Order::default(),
        }
    }
}

impl Default for Order {
    fn default() -> Self {
        Self {
            oldest: NONE,
            newest: NONE,
            len: 0,
        }
    }
}

impl Order {
    /// Returns the least recently used key.
    fn first(&self) -> Option<u32> {
        Some(self.oldest).filter(|oldest| *oldest != NONE)
    }
}

impl<A> KnownKey<A> {
    /// Returns the data of a key with an actor.
    pub(super) fn active(&self) -> Option<&A> {
        match &self.state {
            State::Active(active) => Some(active),
            State::Parked(_) | State::Passing(_) => None,
        }
    }

    /// Returns the account of a key without an actor.
    pub(super) fn parked(&self) -> Option<&Account> {
        match &self.state {
            State::Parked(account) | State::Passing(account) => Some(account),
            State::Active(_) => None,
        }
    }

    /// Returns the account of a key without an actor, to be changed.
    pub(super) fn parked_mut(&mut self) -> Option<&mut Account> {
        match &mut self.state {
            State::Parked(account) | State::Passing(account) => Some(account),
            State::Active(_) => None,
        }
    }
}

impl<A> Keys<A> {
    pub(super) fn len(&self) -> usize {
        self.known.len()
    }

    /// Returns the number of keys with an actor.
    pub(super) fn active(&self) -> usize {
        self.active.len
    }

    /// Returns the number of keys without an actor.
    pub(super) fn parked(&self) -> usize {
        self.parked.len + self.passing.len
    }

    /// Returns the key at an index.
    pub(super) fn name(&self, index: u32) -> KeyName {
        let entry = self.known.get_index(index as usize);
        entry.map(|(name, _)| name.clone()).unwrap_or_default()
    }

    pub(super) fn find(&self, key: &[u8]) -> Option<u32> {
        self.known.get_index_of(key).map(to_u32)
    }

    pub(super) fn get(&self, key: &[u8]) -> Option<&KnownKey<A>> {
        self.known.get(key)
    }

    pub(super) fn get_mut(&mut self, key: &[u8]) -> Option<&mut KnownKey<A>> {
        self.known.get_mut(key)
    }

    /// Adds an unknown key as the most recently used one of its state.
    pub(super) fn add(&mut self, key: &[u8], state: State<A>, now: Moment) -> u32 {
        let known = KnownKey {
            state,
            used: now,
            older: NONE,
            newer: NONE,
        };
        let (index, _) = self.known.insert_full(KeyName::from_slice(key), known);
        let index = to_u32(index);
        self.append(index);
        index
    }

    /// Makes a key the most recently used one of its state, used at `now`.
    pub(super) fn touch(&mut self, index: u32, now: Moment) {
        self[index].used = now;
        if self[index].newer != NONE {
            self.unlink(index);
            self.append(index);
        }
    }

    /// Changes a key's state and makes it the most recently used one of the new state.
    ///
    /// Returns the previous state.
    pub(super) fn replace(&mut self, index: u32, state: State<A>) -> State<A> {
        self.unlink(index);
        let before = std::mem::replace(&mut self[index].state, state);
        self.append(index);
        before
    }

    /// Forgets the key at an index. Returns its state.
    pub(super) fn remove(&mut self, index: u32) -> Option<State<A>> {
        if index as usize >= self.known.len() {
            return None;
        }
        self.unlink(index);
        let (_, removed) = self.known.swap_remove_index(index as usize)?;
        if (index as usize) < self.known.len() {
            self.relink(index);
        }
        if self.known.len() < self.known.capacity() / 4 {
            self.known.shrink_to(self.known.len() * 2);
        }
        Some(removed.state)
    }

    /// Returns the least recently used key with an actor.
    pub(super) fn oldest_active(&self) -> Option<u32> {
        self.active.first()
    }

    /// Returns the least recently used key without an actor.
    pub(super) fn oldest_parked(&self) -> Option<u32> {
        let oldest = self.parked_orders().into_iter().flatten();
        oldest.min_by_key(|index| self[*index].used)
    }

    /// Returns the least recently used parked key, and the least recently used passing key.
    pub(super) fn parked_orders(&self) -> [Option<u32>; 2] {
        [self.parked.first(), self.passing.first()]
    }

    /// Returns the keys of one state from `first` on, in order of last use, with their indexes.
    pub(super) fn from(&self, first: Option<u32>) -> impl Iterator<Item = (u32, &KnownKey<A>)> {
        let mut next = first.unwrap_or(NONE);
        std::iter::from_fn(move || {
            let (_, known) = self.known.get_index(next as usize)?;
            Some((std::mem::replace(&mut next, known.newer), known))
        })
    }

    pub(super) fn each_active(&self) -> impl Iterator<Item = &A> {
        self.from(self.oldest_active())
            .filter_map(|(_, known)| known.active())
    }

    pub(super) fn each_parked_mut(&mut self) -> impl Iterator<Item = (&[u8], &mut Account)> {
        let known = self.known.iter_mut();
        known.filter_map(|(name, known)| Some((name.as_slice(), known.parked_mut()?)))
    }

    /// Returns up to `count` keys from just before index `end` to the front.
    ///
    /// Also returns the index to continue from; 0 at the end.
    pub(super) fn walk(
        &self,
        end: usize,
        count: usize,
    ) -> (impl Iterator<Item = (&[u8], &KnownKey<A>)>, usize) {
        let end = end.min(self.known.len());
        let start = end.saturating_sub(count);
        let keys = (start..end).rev().filter_map(|index| {
            let (name, known) = self.known.get_index(index)?;
            Some((name.as_slice(), known))
        });
        (keys, start)
    }

    /// Returns the data of all keys with an actor, in no order. Does not use the linked lists.
    pub(super) fn into_active(self) -> impl Iterator<Item = A> {
        self.known
            .into_values()
            .filter_map(|known| match known.state {
                State::Active(active) => Some(active),
                State::Parked(_) | State::Passing(_) => None,
            })
    }

    /// Returns the order that a key belongs to, by its state.
    fn order(&mut self, index: u32) -> &mut Order {
        match self[index].state {
            State::Active(_) => &mut self.active,
            State::Parked(_) => &mut self.parked,
            State::Passing(_) => &mut self.passing,
        }
    }

    /// Appends a key that is in no order to the order of its state.
    fn append(&mut self, index: u32) {
        let order = self.order(index);
        let last = std::mem::replace(&mut order.newest, index);
        order.len += 1;
        if last == NONE {
            order.oldest = index;
        } else {
            self[last].newer = index;
        }
        let known = &mut self[index];
        (known.older, known.newer) = (last, NONE);
    }

    /// Removes a key from its order.
    fn unlink(&mut self, index: u32) {
        let (older, newer) = (self[index].older, self[index].newer);
        self.order(index).len -= 1;
        self.link(older, newer, index);
    }

    /// Updates the neighbours of the key that has just moved to `index`: they link to it again.
    fn relink(&mut self, index: u32) {
        let (older, newer) = (self[index].older, self[index].newer);
        self.link(older, index, index);
        self.link(index, newer, index);
    }

    /// Links two keys as neighbours. `member`: a key whose state selects the order.
    ///
    /// If one of the two is `NONE`, the other becomes that end of the order.
    fn link(&mut self, older: u32, newer: u32, member: u32) {
        if older == NONE {
            self.order(member).oldest = newer;
        } else {
            self[older].newer = newer;
        }
        if newer == NONE {
            self.order(member).newest = older;
        } else {
            self[newer].older = older;
        }
    }
}

impl<A> Index<u32> for Keys<A> {
    type Output = KnownKey<A>;

    fn index(&self, index: u32) -> &KnownKey<A> {
        &self.known[index as usize]
    }
}

impl<A> IndexMut<u32> for Keys<A> {
    fn index_mut(&mut self, index: u32) -> &mut KnownKey<A> {
        &mut self.known[index as usize]
    }
}

/// Converts an index to `u32`. Memory runs out long before there are so many keys.
fn to_u32(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(NONE)
}
