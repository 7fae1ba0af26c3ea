//! Statistics of a zone, states of its keys, and the first keys by an order.
//!
//! `supervisor/listing` collects them in small steps.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

use limit::nanos;

use super::join::Key;

/// State of one key.
#[derive(Clone, Debug, PartialEq)]
pub struct KeyState {
    /// Bytes of the key. They need not be UTF-8.
    pub key: Key,
    /// Number of waiters.
    pub depth: usize,
    /// Number of requests in flight, under limits with `in_flight`.
    pub in_flight: usize,
    /// Permits that other gateways hold; `None` if the store counts none for this gateway.
    pub elsewhere: Option<PermitsElsewhere>,
    /// Level, in requests.
    pub excess: f64,
    /// Waiting time of the oldest waiter.
    pub oldest_wait: Duration,
    /// Whether the key has an actor. If not, only its bucket is kept.
    pub active: bool,
}

/// Permits of a key that other gateways hold, as of the store's last reply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PermitsElsewhere {
    /// Number of all these permits.
    pub permits: u32,
    /// Number of permits of vanished gateways, withheld until they expire.
    pub withheld: u32,
}

/// Order in which keys are listed, highest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// By the number of waiters, then by the level.
    Depth,
    /// By the level.
    Excess,
    /// By the waiting time of the oldest waiter.
    OldestWait,
}

/// Numbers by which a key is ordered. The second one decides between equal first ones.
type Rank = (u64, u64);

/// Collects the first `limit` keys by an order.
pub struct Top {
    order: Order,
    limit: usize,
    /// Keys by rank, the lowest first. Among keys of equal rank, the last by its bytes comes first.
    kept: BTreeMap<(Rank, Reverse<Key>), KeyState>,
    /// Keys in `kept`, because a walk may visit a key twice.
    keys: HashSet<Key>,
}

impl Top {
    /// Creates an empty collection for the first `limit` keys.
    pub fn new(order: Order, limit: usize) -> Self {
        Self {
            order,
            limit,
            kept: BTreeMap::new(),
            keys: HashSet::new(),
        }
    }

    /// Keeps a key if it is among the first and not kept already.
    pub fn offer(&mut self, state: KeyState) {
        let rank = (self.rank(&state), Reverse(Key::clone(&state.key)));
        let is_full = self.kept.len() >= self.limit;
        let lowest = self.kept.keys().next();
        if is_full && lowest.is_none_or(|lowest| *lowest >= rank) {
            return;
        }
        if self.keys.insert(Key::clone(&state.key)) {
            self.kept.insert(rank, state);
        }
        if self.kept.len() > self.limit
            && let Some((_, lowest)) = self.kept.pop_first()
        {
            self.keys.remove(&lowest.key);
        }
    }

    /// Returns the keys in order. Keys of equal rank are ordered by their bytes.
    pub fn into_sorted(self) -> Vec<KeyState> {
        self.kept.into_values().rev().collect()
    }

    /// Returns the rank of a key in the requested order.
    fn rank(&self, state: &KeyState) -> Rank {
        // For non-negative floats, the order of the bits is the order of the numbers.
        let excess = state.excess.max(0.0).to_bits();
        match self.order {
            Order::Depth => (state.depth as u64, excess),
            Order::Excess => (excess, 0),
            Order::OldestWait => (nanos(state.oldest_wait), 0),
        }
    }
}

/// State of a zone, summed over all workers.
#[derive(Debug, Default)]
pub struct ZoneStats {
    /// Number of waiters.
    pub depth: usize,
    /// Number of waiters at the deepest key.
    pub depth_max: usize,
    /// Number of requests in flight, under limits with `in_flight`.
    pub in_flight: usize,
    /// Waiting time of the oldest waiter.
    pub oldest_wait: Duration,
    /// Number of keys with an actor.
    pub active: usize,
    /// Number of keys without an actor: only the bucket is kept.
    pub parked: usize,
    /// Deepest keys among the keys with waiters.
    pub deepest: Vec<KeyState>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(key: &str, depth: usize, excess: f64) -> KeyState {
        KeyState {
            key: key.as_bytes().into(),
            depth,
            in_flight: 0,
            elsewhere: None,
            excess,
            oldest_wait: Duration::ZERO,
            active: true,
        }
    }

    fn names(top: Top) -> String {
        let keys = top.into_sorted().into_iter();
        keys.map(|state| String::from_utf8_lossy(&state.key).into_owned())
            .collect()
    }

    #[test]
    fn the_first_are_kept_and_each_once() {
        let keys = [
            ("a", 1, 1.5),
            ("b", 0, 9.0),
            ("c", 3, 3.0),
            ("d", 1, 1.25),
            ("c", 3, 3.0),
        ];
        for (order, limit, expected) in [
            (Order::Depth, 4, "cadb"),
            (Order::Depth, 2, "ca"),
            (Order::Excess, 3, "bca"),
            (Order::OldestWait, 9, "abcd"),
        ] {
            let mut top = Top::new(order, limit);
            for (key, depth, excess) in keys {
                top.offer(state(key, depth, excess));
            }
            assert_eq!(names(top), expected, "{order:?} {limit}");
        }
    }
}
