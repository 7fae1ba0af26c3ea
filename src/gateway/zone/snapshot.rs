//! Snapshot of a key: the state that its actor publishes to the supervisor.

use std::cell::Cell;
use std::time::Duration;

use limit::{Bucket, Moment, Rate};

use super::join::Key;
use super::stats::{KeyState, PermitsElsewhere};

/// State that one key's actor publishes to its supervisor.
///
/// The supervisor needs nothing else to list the key, or to park the actor: to end it and keep the
/// bucket.
#[derive(Default)]
pub(super) struct Snapshot {
    pub(super) key: Key,
    /// Number of messages sent to the actor and not handled yet.
    pub(super) pending: Cell<usize>,
    /// Number of waiters of this key.
    pub(super) depth: Cell<usize>,
    /// Number of requests in flight of this key, under limits with `in_flight`.
    pub(super) in_flight: Cell<usize>,
    /// Permits that other gateways hold; `None` if the store counts none for this gateway.
    pub(super) elsewhere: Cell<Option<PermitsElsewhere>>,
    /// Sum of the waiters' charges.
    pub(super) costs: Cell<u64>,
    /// Bucket, converted to the rate of this gateway's file.
    pub(super) bucket: Cell<Bucket>,
    /// Time of the join of the waiter that has waited longest.
    pub(super) oldest: Cell<Option<Moment>>,
    /// Index in the shard's list of keys with waiters. Valid only while the key has waiters.
    pub(super) index: Cell<usize>,
}

impl Snapshot {
    pub(super) fn new(key: Key, bucket: Bucket) -> Self {
        Self {
            key,
            bucket: Cell::new(bucket),
            ..Self::default()
        }
    }

    /// Returns the key's state for listings. `rate`: the rate of this gateway's file for the key.
    pub(super) fn state(&self, rate: Rate, now: Moment) -> KeyState {
        let oldest = self.oldest.get();
        KeyState {
            key: Key::clone(&self.key),
            depth: self.depth.get(),
            in_flight: self.in_flight.get(),
            elsewhere: self.elsewhere.get(),
            excess: self.bucket.get().excess(rate, now).requests(),
            oldest_wait: oldest.map_or(Duration::ZERO, |joined| now.since(joined)),
            active: true,
        }
    }

    /// Returns whether the actor has nothing to do: no waiters, running requests or messages.
    ///
    /// The store counts no permits of the key for this gateway, and the snapshot is up to date.
    pub(super) fn is_quiet(&self) -> bool {
        self.pending.get() == 0 && !self.is_busy() && self.elsewhere.get().is_none()
    }

    /// Returns whether the key has waiters or requests in flight.
    pub(super) fn is_busy(&self) -> bool {
        self.depth.get() > 0 || self.in_flight.get() > 0
    }
}
