//! Client connections: how many there are, of how many, and whether new clients wait for a place.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use ::metrics::gauge;
use serde::{Deserialize, Serialize};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::metrics::{CONNECTIONS, MAX_CONNECTIONS};

/// The places of client connections. Clones share them.
#[derive(Clone, Debug)]
pub struct ClientConnections(Arc<State>);

#[derive(Debug)]
struct State {
    /// A permit for each connection that may be open; none before [`ClientConnections::allow`].
    capacity: Arc<Semaphore>,
    max: AtomicUsize,
    few_descriptors: AtomicBool,
    open: AtomicUsize,
    /// Listeners whose next client has no place.
    blocked: AtomicUsize,
    /// Whether any was blocked since it was last asked.
    was_blocked: AtomicBool,
    is_full: AtomicBool,
    /// Clients that wait in the kernel, as [`ClientConnections::note`] was told; `UNKNOWN`: nobody
    /// knows.
    waiting: AtomicUsize,
}

const UNKNOWN: usize = usize::MAX;

/// The connections at one moment, as samples have them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ConnectionCounts {
    /// Connections that are open.
    pub open: u64,
    /// The most that may be open: `max_connections`, or as many as the descriptors allow.
    pub max: u64,
    /// Whether `max` is less than `max_connections`, because the limit of descriptors is low.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub few_descriptors: bool,
    /// Whether new clients wait, because all places are taken.
    pub is_full: bool,
    /// How many of them wait in the kernel; left out if that is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waiting: Option<u64>,
}

/// The place of one connection, until it is dropped.
#[derive(Debug)]
pub struct ConnectionPlace {
    state: Arc<State>,
    _permit: OwnedSemaphorePermit,
}

/// A listener that waits for a place.
struct Blocked<'s>(&'s State);

impl Default for ClientConnections {
    fn default() -> Self {
        Self(Arc::new(State {
            capacity: Arc::new(Semaphore::new(0)),
            max: AtomicUsize::new(0),
            few_descriptors: AtomicBool::new(false),
            open: AtomicUsize::new(0),
            blocked: AtomicUsize::new(0),
            was_blocked: AtomicBool::new(false),
            is_full: AtomicBool::new(false),
            waiting: AtomicUsize::new(UNKNOWN),
        }))
    }
}

impl ClientConnections {
    /// Allows `max_connections` from now on, or as many as `fit` the limit of descriptors. To be
    /// called once.
    pub fn allow(&self, max_connections: usize, fit: usize) {
        let max = max_connections.min(fit).min(Semaphore::MAX_PERMITS);
        let few_descriptors = fit < max_connections;
        self.0
            .few_descriptors
            .store(few_descriptors, Ordering::Relaxed);
        self.0.max.store(max, Ordering::Relaxed);
        self.0.capacity.add_permits(max);
    }

    /// Waits for a place for the next client. `None` only if the process ends.
    pub async fn place(&self) -> Option<ConnectionPlace> {
        if let Some(place) = self.place_now() {
            return Some(place);
        }
        let _blocked = Blocked::begin(&self.0);
        let permit = Arc::clone(&self.0.capacity).acquire_owned().await;
        permit.ok().map(|permit| self.taken(permit))
    }

    /// Takes a place if one is free.
    #[must_use]
    pub fn place_now(&self) -> Option<ConnectionPlace> {
        let permit = Arc::clone(&self.0.capacity).try_acquire_owned();
        permit.ok().map(|permit| self.taken(permit))
    }

    fn taken(&self, permit: OwnedSemaphorePermit) -> ConnectionPlace {
        self.0.open.fetch_add(1, Ordering::Relaxed);
        ConnectionPlace {
            state: Arc::clone(&self.0),
            _permit: permit,
        }
    }

    /// Waits until no connection is left. Call it when no more are accepted.
    pub async fn all_gone(&self) {
        let max = self.0.max.load(Ordering::Relaxed);
        let max = u32::try_from(max).unwrap_or(u32::MAX);
        // Acquiring cannot fail: the semaphore is never closed.
        let _all = self.0.capacity.acquire_many(max).await;
    }

    /// Whether a client has waited for a place since this was last asked, or waits now.
    #[must_use]
    pub fn take_blocked(&self) -> bool {
        let was_blocked = self.0.was_blocked.swap(false, Ordering::Relaxed);
        was_blocked || self.0.blocked.load(Ordering::Relaxed) > 0
    }

    /// Notes whether new clients wait, and how many the kernel has.
    pub fn note(&self, is_full: bool, waiting: Option<usize>) {
        let waiting = waiting.unwrap_or(UNKNOWN);
        self.0.waiting.store(waiting, Ordering::Relaxed);
        self.0.is_full.store(is_full, Ordering::Relaxed);
    }

    /// The connections now.
    #[must_use]
    pub fn counts(&self) -> ConnectionCounts {
        let waiting = self.0.waiting.load(Ordering::Relaxed);
        ConnectionCounts {
            open: self.0.open.load(Ordering::Relaxed) as u64,
            max: self.0.max.load(Ordering::Relaxed) as u64,
            few_descriptors: self.0.few_descriptors.load(Ordering::Relaxed),
            is_full: self.0.is_full.load(Ordering::Relaxed),
            waiting: (waiting != UNKNOWN).then_some(waiting as u64),
        }
    }

    /// Reports the counts to Prometheus.
    #[allow(clippy::cast_precision_loss)]
    pub fn show(&self) {
        let ConnectionCounts { open, max, .. } = self.counts();
        gauge!(CONNECTIONS).set(open as f64);
        gauge!(MAX_CONNECTIONS).set(max as f64);
    }
}

impl Drop for ConnectionPlace {
    fn drop(&mut self) {
        self.state.open.fetch_sub(1, Ordering::Relaxed);
    }
}

impl<'s> Blocked<'s> {
    fn begin(state: &'s State) -> Self {
        state.blocked.fetch_add(1, Ordering::Relaxed);
        state.was_blocked.store(true, Ordering::Relaxed);
        Self(state)
    }
}

impl Drop for Blocked<'_> {
    fn drop(&mut self) {
        // It has waited until now.
        self.0.was_blocked.store(true, Ordering::Relaxed);
        self.0.blocked.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[test]
    fn who_has_no_place_is_blocked_until_one_is_free() {
        let connections = ClientConnections::default();
        connections.allow(2, 10);
        let place = || connections.place().now_or_never().flatten();
        let (first, second) = (place().unwrap(), place().unwrap());
        assert!(!connections.take_blocked(), "nobody waits");
        let third = connections.place();
        let mut third = std::pin::pin!(third);
        assert!(third.as_mut().now_or_never().is_none());
        assert!(connections.take_blocked() && connections.take_blocked());
        assert_eq!(
            (connections.counts().open, connections.counts().max),
            (2, 2)
        );
        drop(first);
        let third = third.now_or_never().flatten().unwrap();
        assert!(connections.take_blocked(), "one waited in between");
        assert!(!connections.take_blocked());
        drop((second, third));
        assert_eq!(connections.counts().open, 0);
        assert!(connections.all_gone().now_or_never().is_some());
    }

    #[test]
    fn fewer_descriptors_than_max_connections_are_known_as_the_reason() {
        for (fit, max, few_descriptors) in [(10, 2, false), (2, 2, false), (1, 1, true)] {
            let connections = ClientConnections::default();
            connections.allow(2, fit);
            let counts = connections.counts();
            assert_eq!((counts.max, counts.few_descriptors), (max, few_descriptors));
        }
    }
}
